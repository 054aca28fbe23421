"""What-if answers as text and as a figure."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from simfs.experiments.whatif import Effect, LockSlope, WhatIf
from simfs.reports.figures.drawing import DASHES, MARKERS, OKABE_ITO, new_figure, style
from simfs.reports.layout import Sheet, new_table, report_console
from simfs.reports.numbers import NOTHING, counted, duration, folded, percent, plain, plural, plus_minus

SHOWN = 6
"""Curves in the figure, each in a panel of its own: in one panel their intervals would hide each other."""

BESIDE = 2
"""Panels beside each other."""


WAITED = 5
"""Per cent of the tasks' time from which on waits for a lock are told although its holds do not matter."""

BREAKS_ORDER = ("remove", "split")
"""Changes after which tasks that one lock kept apart meet at others."""


def print_what_if(answer: WhatIf, console: Console | None = None) -> None:
    """Print the answer, on standard output unless another console is given."""
    (console or report_console()).print(report(answer))


def report(answer: WhatIf) -> RenderableType:
    """The point as it is, the causal profile, the effects of single changes, and a sentence."""
    said = Padding(Group(*(Text(line) for line in sentences(answer))), (0, 1, 0, 1))
    return Group(*(Text(line) for line in heading(answer)), *sheets(answer), said)


def sheets(answer: WhatIf) -> list[Sheet]:
    """The causal profile and the effects of single changes, where there are any."""
    parts = [_profile(answer)] if answer.profile else []
    return [*parts, _effects(answer)] if answer.effects else parts


def sentences(answer: WhatIf) -> list[str]:
    """What the numbers say, in words made from them."""
    lines = []
    if answer.profile:
        for s in [s for s in answer.profile if s.verdict == "matters"][:1]:
            lines.append(
                f"{s.lock} matters most: each per cent of its hold time removed gains"
                f" {s.slope.mean:.2f} % (± {s.slope.half_width:.2f})"
            )
        names = [s.verdict for s in answer.profile]
        if "matters" not in names:
            lines.append("no lock's hold time is known to matter")
        lines += _waited_for(answer)
        for said in dict.fromkeys(name for name in names if name not in ("matters", "harms")):
            runs = " runs" if said.startswith("undecided") else ""
            lines.append(f"{names.count(said)} of {len(names)} locks: {said}{runs}")
    if answer.too_short:
        few = "held too briefly to matter, whoever waits"
        lines.append(f"not tried, {few}: {', '.join(answer.too_short)}")
    stalled = {f.point: f for f in answer.findings if f.stall}
    for e in answer.effects:
        found = stalled.get(f"{e.lock}: {e.change}")
        if found and found.stall:
            lines.append(f"{e.lock}, {e.change}: {e.stall}: {'; '.join(found.stall.cycle[:2])}")
            if found.stall.kind == "deadlock" and e.change.startswith(BREAKS_ORDER):
                lines.append(
                    f"{e.lock} keeps tasks in order that take other locks; without it, those need an order of their own"
                )
    return lines


def _waited_for(answer: WhatIf) -> list[str]:
    """Where tasks wait for a lock whose holds are not what costs time: a profile of holds does not show that."""
    most = max(answer.profile, key=lambda s: s.waited_percent)
    if most.waited_percent < WAITED or most.verdict in ("matters", "harms"):
        return []
    return [
        f"tasks wait most for {most.lock}, {percent(most.waited_percent)} % of their time, and not for what is done in"
        f" its holds: perhaps for its hand-over; --lock '{most.lock}' tries other kinds of it"
    ]


def figure(answer: WhatIf) -> Figure:
    """Throughput gained over hold time removed, and the slopes of all locks with their intervals."""
    with style():
        curves = answer.profile[:SHOWN]
        columns = min(BESIDE, len(curves))
        rows = -(-len(curves) // columns)
        made = new_figure(7.2, max(2.9, 0.6 + 1.2 * rows, 0.8 + 0.22 * len(answer.profile)))
        left, right = made.subfigures(1, 2, squeeze=False)[0]
        panels = list(left.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
        for index, (axes, slope) in enumerate(zip(panels, curves, strict=False)):
            _curve(axes, slope, index)
        for axes in panels[len(curves) :]:
            axes.set_visible(False)
        left.supxlabel("hold time removed (%)", fontsize=9)
        left.supylabel(f"{plural(answer.operation)} per second gained (%)", fontsize=9)
        _bars(right.subplots(), answer.profile)
        made.suptitle(
            f"{answer.scenario}, {answer.variant}: {counted(answer.tasks, 'task')} on {answer.cpus} CPUs",
            fontsize=9,
        )
        return made


def _curve(axes: Axes, slope: LockSlope, index: int) -> None:
    x = [0.0, *slope.removed_percent]
    low = [0.0, *(g.mean if g.low is None else g.low for g in slope.gain_percent)]
    high = [0.0, *(g.mean if g.high is None else g.high for g in slope.gain_percent)]
    colour = OKABE_ITO[index]
    axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.plot(
        x, [0.0, *(g.mean for g in slope.gain_percent)], color=colour, marker=MARKERS[index],
        linestyle=DASHES[index],
    )  # fmt: skip
    axes.axhline(0, color="#777777", linewidth=0.8, zorder=1)
    axes.set_title(folded(slope.lock, 26), loc="left", fontsize=8)
    axes.tick_params(labelbottom=True)


def _bars(axes: Axes, profile: tuple[LockSlope, ...]) -> None:
    for place, slope in enumerate(profile):
        half = 0.0 if slope.slope.low is None else slope.slope.half_width
        colour = OKABE_ITO[place] if place < SHOWN else "#999999"
        axes.errorbar(
            slope.slope.mean, place, xerr=half, color=colour, marker=MARKERS[min(place, SHOWN)],
            linestyle="none", capsize=2.5, elinewidth=1.2,
        )  # fmt: skip
    axes.axvline(0, color="#777777", linewidth=0.8, zorder=1)
    axes.set_yticks(range(len(profile)), [s.lock for s in profile])
    axes.set_ylim(len(profile) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.set_xlabel("% gained per % removed")


def heading(answer: WhatIf) -> list[str]:
    """What was changed, and the point as it is."""
    return [
        f"{answer.scenario}, {answer.variant}: {counted(answer.tasks, 'task')} on {answer.cpus} CPUs,"
        f" {answer.replications} x {duration(answer.window_ns)}, seed {answer.seed}",
        f"as it is: {plain(answer.throughput.mean)} {plural(answer.operation)}/s"
        f" {plus_minus(answer.throughput)}",
    ]


def _profile(answer: WhatIf) -> Sheet:
    table = new_table("Causal profile: throughput gained (%) as hold time is removed (all ± hold at once)")
    table.add_column("lock")
    table.add_column("type", leaves=4, no_wrap=True)
    columns = (
        ("slope\n%/%", 0),
        ("±", 0),
        ("held\n% of time", 3),
        ("waited\n% of time", 2),
        ("contended", 5),
    )
    for name, leaves in columns:
        table.add_column(name, leaves=leaves, justify="right")
    table.add_column("verdict")
    removed = answer.profile[0].removed_percent
    for r in removed:
        table.add_column(f"-{r:g} %", leaves=1 if r == removed[-1] else 6, justify="right")
    for s in answer.profile:
        table.add_row(
            s.lock, s.type, f"{s.slope.mean:+.3f}", plus_minus(s.slope).removeprefix("± "),
            f"{s.held_percent:.2f}", f"{s.waited_percent:.2f}", f"{s.contended:,}", s.verdict,
            *(f"{g.mean:+.1f}" for g in s.gain_percent),
        )  # fmt: skip
    return table


def _effects(answer: WhatIf) -> Sheet:
    table = new_table("One change at a time")
    for name in ("lock", "change"):
        table.add_column(name)
    for name in (f"{plural(answer.operation)}/s", "±", "gain %", "± "):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for e in answer.effects:
        table.add_row(*_effect(e))
    return table


def _effect(e: Effect) -> list[str]:
    rate = [plain(e.throughput.mean), plus_minus(e.throughput).removeprefix("± ")]
    gain = e.gain_percent
    shown = [f"{gain.mean:+.1f}", plus_minus(gain).removeprefix("± ")] if gain else [NOTHING, NOTHING]
    return [e.lock or "", e.change, *(rate if not e.stall else [NOTHING, NOTHING]), *shown, e.verdict]
