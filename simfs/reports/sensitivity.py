"""Sensitivities as text and as figures."""

from __future__ import annotations

from matplotlib.figure import Figure
from rich.console import Group, RenderableType
from rich.text import Text

from simfs.experiments.sensitivity import Sensitivity
from simfs.reports.figures.drawing import OKABE_ITO, from_zero, new_figure, style
from simfs.reports.layout import new_table, report_console
from simfs.reports.numbers import plain, plural, plus_minus

SHOWN = 12


def print_sensitivity(found: Sensitivity) -> None:
    """Print screening, shares and bands."""
    report_console().print(Group(*_parts(found)))


def _parts(found: Sensitivity) -> list[RenderableType]:
    name = f"{found.metric} {plain(found.output.mean)} {plus_minus(found.output)}"
    table = new_table(f"{found.scenario}, {found.point}: {name}; effect of a parameter's whole range, %")
    table.add_column("parameter")
    for column in ("from", "to", "mu*", "±", "mu", "sigma"):
        table.add_column(column, justify="right")
    table.add_column("matters")
    for s in found.screened[:SHOWN]:
        table.add_row(
            s.parameter, plain(s.low), plain(s.high), f"{s.mu_star.mean:.2f}",
            plus_minus(s.mu_star).removeprefix("± "), f"{s.mu:+.2f}", f"{s.sigma:.2f}", "yes" if s.matters else "",
        )  # fmt: skip
    parts: list[RenderableType] = [table]
    if found.shares:
        shares = new_table("Sobol indices: share of the variance (95 % bootstrap)")
        for column in ("parameter", "first order", "", "total", " "):
            shares.add_column(column)
        for share in found.shares:
            cells = [f"{e.mean:.2f} [{e.low:.2f}, {e.high:.2f}]" for e in (share.first, share.total)]
            shares.add_row(share.parameter, cells[0], "", cells[1], "")
        parts.append(shares)
    if found.bands:
        bands = new_table(f"Bands: noise, and 5 to 95 % of {found.draws} draws of all parameters")
        for column in ("tasks", found.metric, "±", "5 %", "median", "95 %"):
            bands.add_column(column, justify="right")
        for b in found.bands:
            width = plus_minus(b.predicted).removeprefix("± ")
            cells = [plain(x) for x in (b.low, b.median, b.high)]
            bands.add_row(str(b.tasks), plain(b.predicted.mean), width, *cells)
        parts.append(bands)
    mattering = sum(s.matters for s in found.screened)
    parts.append(
        Text(
            f"{mattering} of {len(found.screened)} parameters matter beyond noise (mu* of noise alone:"
            f" {found.noise_percent:.2f} %); {found.trajectories} trajectories, seed {found.seed}"
        )
    )
    return parts


def screening(found: Sensitivity) -> Figure:
    """mu* of the strongest parameters with intervals, and what noise alone would give."""
    with style():
        shown = found.screened[:SHOWN]
        figure = new_figure(6.4, 1.3 + 0.24 * len(shown))
        axes = figure.add_subplot()
        for place, s in enumerate(shown):
            half = 0.0 if s.mu_star.low is None else s.mu_star.half_width
            axes.barh(
                place, s.mu_star.mean, xerr=half, height=0.6, color=OKABE_ITO[0] if s.matters else "#999999",
                hatch="" if s.matters else "//", edgecolor="white", linewidth=0,
                error_kw={"elinewidth": 1.2, "capsize": 2.5}, label="matters" if s.matters else "within noise",
            )  # fmt: skip
        axes.axvline(found.noise_percent, color="#000000", linestyle="--", linewidth=1, label="noise alone")
        axes.set_yticks(range(len(shown)), [s.parameter for s in shown])
        axes.set_ylim(len(shown) - 0.5, -0.5)
        strongest = max((s.mu_star.mean for s in shown), default=0.0)
        # Few trajectories have intervals beside which no bar could be seen: such a one leaves the picture.
        axes.set_xlim(0, min(axes.get_xlim()[1], 3 * strongest) or 1)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(f"mu*: effect of the parameter's range on {found.metric} (%)")
        handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=3)
        return figure


def bands(found: Sensitivity) -> Figure:
    """The predicted curve in nested bands: noise inside, parameter uncertainty around it."""
    with style():
        figure = new_figure(6.4, 4.0)
        axes = figure.add_subplot()
        points = sorted(found.bands, key=lambda b: b.tasks)
        x = [b.tasks for b in points]
        axes.fill_between(
            x, [b.low for b in points], [b.high for b in points], color=OKABE_ITO[5], alpha=0.35, linewidth=0,
            label=f"parameters, 5 to 95 % of {found.draws} draws",
        )  # fmt: skip
        means = [b.predicted.mean for b in points]
        noise = [0.0 if b.predicted.low is None else b.predicted.half_width for b in points]
        low = [m - n for m, n in zip(means, noise, strict=True)]
        high = [m + n for m, n in zip(means, noise, strict=True)]
        axes.fill_between(x, low, high, color=OKABE_ITO[0], alpha=0.45, linewidth=0, label="noise, 95 %")
        axes.plot(x, means, color=OKABE_ITO[0], marker="o", label="predicted")
        axes.set_xlabel("tasks")
        rate = found.metric.endswith("_per_s")
        axes.set_ylabel(f"{plural(found.operation)} per second" if rate else found.metric)
        from_zero(axes)
        figure.legend(loc="outside lower center", ncols=3)
        return figure
