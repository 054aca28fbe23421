"""Advice as text and as a figure."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from rich.console import Console, Group, RenderableType
from rich.text import Text

from simfs.experiments.advise import Advice, Choice
from simfs.reports.figures.drawing import DASHES, MARKERS, OKABE_ITO, from_zero, new_figure, style, thousands
from simfs.reports.layout import new_table, report_console
from simfs.reports.numbers import NOTHING, plain, plural, plus_minus

LAYOUTS = {"shared": "one shared directory", "per-task": "a directory per task"}


def print_advice(advice: Advice, console: Console | None = None) -> None:
    """Print the advice first, then the choices it was made from."""
    said: list[RenderableType] = [
        Text(f"{'' if i else '-> '}{line}") for i, line in enumerate(advice.sentences)
    ]
    table = new_table(f"{advice.scenario}, {advice.point}: {advice.tasks} tasks")
    for name in ("directories", "agcount", "locks"):
        table.add_column(name)
    for name, leaves in ((f"{plural(advice.operation)}/s", 0), ("±", 3), ("gain %", 0), ("± ", 0)):
        table.add_column(name, leaves=leaves, justify="right")
    table.add_column("verdict")
    table.add_column("runs", leaves=2, justify="right")
    table.add_column("longest wait (% of time)", leaves=1)
    table.add_row(*_row(advice.as_it_is, str(advice.as_it_is.agcount or NOTHING), now=True))
    for choice, groups in _alike([*advice.layouts, *advice.locks], advice.as_it_is):
        table.add_row(*_row(choice, groups))
    (console or report_console()).print(Group(*said, Text(""), table))


def _alike(choices: Sequence[Choice], now: Choice) -> list[tuple[Choice, str]]:
    """The choices without the present one; those as one that differ in groups alone, and not in what comes out."""
    runs: list[list[Choice]] = []
    for c in choices:
        if (c.directories, c.agcount, c.locks) == (now.directories, now.agcount, now.locks):
            continue
        last = runs[-1][0] if runs else None
        if last and (last.directories, last.locks, last.throughput) == (c.directories, c.locks, c.throughput):
            runs[-1].append(c)
        else:
            runs.append([c])
    return [
        (run[0], " to ".join(dict.fromkeys(str(c.agcount or NOTHING) for c in (run[0], run[-1]))))
        for run in runs
    ]


def _row(choice: Choice, groups: str, *, now: bool = False) -> list[str]:
    gain = choice.gain_percent
    gained = (
        [f"{gain.mean:+.1f}", plus_minus(gain).removeprefix("± ")] if gain and not now else [NOTHING, NOTHING]
    )
    waits = f"{choice.top_lock} ({choice.waits_for(choice.top_lock):.1f})" if choice.top_lock else NOTHING
    return [
        choice.directories or NOTHING,
        groups,
        ", ".join(f"{role}: {kind}" for role, kind in choice.locks.items()),
        plain(choice.throughput.mean),
        plus_minus(choice.throughput).removeprefix("± "),
        *gained,
        "as it is" if now else choice.verdict,
        str(choice.throughput.n),
        waits,
    ]


def figure(advice: Advice) -> Figure:
    """Throughput over allocation groups, a line for each directory layout, and the advised choice."""
    with style():
        made = new_figure(5.6, 3.8)
        axes = made.add_subplot()
        for index, (layout, title) in enumerate(LAYOUTS.items()):
            own = [
                c for c in advice.layouts if c.directories == layout and c.agcount and c.verdict != "stall"
            ]
            x = [c.agcount or 0 for c in own]
            low = [c.throughput.mean if c.throughput.low is None else c.throughput.low for c in own]
            high = [c.throughput.mean if c.throughput.high is None else c.throughput.high for c in own]
            axes.fill_between(x, low, high, color=OKABE_ITO[index], alpha=0.2, linewidth=0)
            axes.plot(
                x, [c.throughput.mean for c in own], color=OKABE_ITO[index], marker=MARKERS[index],
                linestyle=DASHES[index], label=title,
            )  # fmt: skip
        for choice, marker, name in ((advice.as_it_is, "X", "as it is"), (advice.best, "*", "advised")):
            axes.plot(
                choice.agcount or 0, choice.throughput.mean, marker=marker, markersize=11, linestyle="none",
                markerfacecolor="white", markeredgecolor="#000000", label=name, zorder=4,
            )  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel("allocation groups")
        axes.set_ylabel(f"{plural(advice.operation)} per second")
        from_zero(axes)
        thousands(axes)
        made.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, handlelength=3.2)
        return made
