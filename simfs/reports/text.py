"""The report on the terminal: curves, locks in the columns of `perf lock contention`, and honest notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from simfs.reports.accuracy import levels
from simfs.reports.layout import Sheet, new_table, report_console
from simfs.reports.lock_sheets import kept, lines, locks, locks_of_all, waited, where
from simfs.reports.numbers import NOTHING, counted, duration, percent, plain, plural, plus_minus
from simfs.reports.tournament import tournament
from simfs.reports.variants import side_by_side
from simfs.results.focus import focus, focus_tasks
from simfs.results.model import Case, Comparison, PointResult, ScenarioResult, once_a_point, short
from simfs.results.scaling import Ideal
from simfs.results.statistics_scaling import scalings
from simfs.results.tournament import is_tournament

SHOWN = 4
"""Items of a note that are named before the rest is counted."""

CURVE = 3
"""Points that make a curve."""

MORE = "each variant's curve, operations, wake-ups and locks by caller: --details, or one with --variant NAME"
"""Where what a comparison leaves out is to be found."""

KINDS = {"load": "load", "bound": "bound threads", "kernel": "other threads"}
"""Kinds of tasks as a person would name them; threads are the kernel's."""

LEAVING = {
    "measured": 1, "error": 1, "idle %": 2, "mark": 3, "spin %": 4, "ideal": 5, "sys %": 6, "MB/s": 7, "user %": 8,
    "switch/s": 9, "J/op": 10,
}  # fmt: skip
"""Columns of curves that leave where there is too little room, the highest number first."""

Cell = Callable[[PointResult], str]


def print_report(result: ScenarioResult, console: Console | None = None, *, details: bool = True) -> None:
    """Print the report, of several curves only how they compare unless `details` are asked for.

    On standard output unless another console is given.
    """
    console = console or report_console()
    console.print(report(result, details=details))


def report(result: ScenarioResult, *, details: bool = True) -> RenderableType:
    """The answer, the curves and top locks, what was fitted and how far off all is; or locks compared."""
    said = [Padding(Text(f"-> {result.answer}"), (0, 0, 1, 0))] if result.answer else []
    if details or not has_several_curves(result):
        return Group(*said, *sheets(result), notes(result))
    return Group(*said, *comparison(result), notes(result), Padding(Text(MORE), (0, 1)))


def has_several_curves(result: ScenarioResult) -> bool:
    """Whether a comparison of curves says most: all tables of each would fill some screens."""
    curved = [v for v in result.variants if len(result.of(v)) >= CURVE]
    return len(curved) > 1 and not is_tournament(result)


def comparison(result: ScenarioResult) -> list[Sheet]:
    """The variants side by side: throughput, CPU time and longest waits at the point of most interest."""
    title = f"At {counted(focus_tasks(result), 'task')}"
    curves = [side_by_side(result), _curve(result, focus(result), title, with_variant=True)]
    return [*curves, *metrics(result), *locks_of_all(result), *_held_against(result)]


def sheets(result: ScenarioResult) -> list[Sheet]:
    """All tables of a report."""
    if is_tournament(result):
        return tournament(result)
    parts = [
        *curves(result), *metrics(result), *scaling(result), *operations(result), *wakes(result), *requests(result),
        *locks(result), *lines(result),
    ]  # fmt: skip
    return [*parts, *_held_against(result)]


def _held_against(result: ScenarioResult) -> list[Sheet]:
    """What was measured, and what the scenario expects."""
    return [*kept(measured(result), result), *kept(expectations(result), result)]


def curves(result: ScenarioResult) -> list[Sheet]:
    """All variants side by side, then throughput and CPU shares of each; all in one table where none has a curve."""
    if all(len(result.of(variant)) < CURVE for variant in result.variants):
        return [_curve(result, result.points, result.name, with_variant=True)]
    together = [side_by_side(result)] if len(result.variants) > 1 and result.sweep else []
    each = [_curve(result, result.of(v), result.title(v), with_variant=False) for v in result.variants]
    return together + each


def scaling(result: ScenarioResult) -> list[Sheet]:
    """Of each curve its scalability law, and the machine repairman of its busiest lock."""
    table = new_table("Scalability law (contention, coherency) and the busiest lock's machine repairman")
    table.add_column("variant")
    leaving = {
        "contention": 6,
        "±": 6,
        "coherency": 6,
        "peak at": 3,
        "lock": 1,
        "hold": 4,
        "think": 5,
        "knee N*": 2,
    }
    for name in ("contention", "±", "coherency", "±", "peak at", "lock", "hold", "think", "knee N*"):
        side = "left" if name == "lock" else "right"
        table.add_column(name, leaves=leaving[name], justify=side, no_wrap=True)
    found = scalings(result)
    for s in found:
        law, twin = s.law, s.twin
        name = ", ".join(part for part in (result.title(s.variant), s.setting) if part)
        coefficients = [NOTHING] * 5
        if law:
            pairs = [(f"{e.mean:.3g}", f"{e.half_width:.1g}") for e in (law.contention, law.coherency)]
            coefficients = [*pairs[0], *pairs[1], plain(law.peak) if law.peak < 1e4 else NOTHING]
        lock = (
            [twin.lock, duration(twin.hold_ns), duration(twin.think_ns), plain(twin.knee)]
            if twin
            else [""] * 4
        )
        table.add_row(name, *coefficients, *lock)
    return kept(table, result)


def operations(result: ScenarioResult) -> list[Sheet]:
    """Of each variant whose tasks do several operations how long each took, in dbench's columns."""
    points = [point for point in focus(result) if len(point.latency) > 1]
    return [_operations(point, result) for point in points] or kept(_operations_head(""), result)


def metrics(result: ScenarioResult) -> list[Sheet]:
    """The metrics that were asked for by name, of every point."""
    names = [name for name in dict.fromkeys(n for p in result.points for n in p.metrics)]
    table = new_table("Metrics")
    for name in ("variant", "setting", "metric"):
        table.add_column(name)
    for name, leaves in (("tasks", 2), ("value", 0), ("±", 1)):
        table.add_column(name, leaves=leaves, justify="right")
    for p in result.points:
        for name in (n for n in names if n in p.metrics):
            found = p.metrics[name]
            numbers = (str(p.tasks), plain(found.mean), plus_minus(found).removeprefix("± "))
            table.add_row(result.title(p.variant), p.setting, name, *numbers)
    return kept(table, result)


def wakes(result: ScenarioResult) -> list[Sheet]:
    """Of each variant with wake-ups how long tasks waited for a CPU then, and whether they stayed where they were."""
    table = new_table("From wake-up to run, by kind of task")
    table.add_column("variant")
    table.add_column("tasks", names_rows=True, no_wrap=True)
    names = ("wake-ups", "p50", "p90", "p99", "mean", "> 1 ms", "on previous CPU", "on waker's")
    for name, leaves in zip(names, (3, 0, 6, 1, 5, 2, 7, 8), strict=True):
        table.add_column(name, leaves=leaves, justify="right")
    found = [(point, wakes) for point in focus(result) for wakes in point.wakes]
    told = ""
    for point, w in found:
        name = result.title(point.variant) if point.variant != told else ""
        told = point.variant
        times = (w.to_run.p50_ns, w.to_run.p90_ns, w.to_run.p99_ns, w.to_run.mean_ns)
        stayed = (100 * count / w.wakeups for count in (w.on_previous, w.on_waker))
        shares = [f"{percent(share)} %" for share in (w.over_1ms_percent, *stayed)]
        table.add_row(name, KINDS[w.kind], f"{w.wakeups:,}", *map(duration, times), *shares)
    return kept(table, result)


def measured(result: ScenarioResult) -> Sheet:
    """Every measured row beside what was simulated for it."""
    table = new_table("Measured against simulated")
    for name in ("series", "metric"):
        table.add_column(name)
    for name in ("measured", "simulated", "±", "error"):
        table.add_column(name, leaves=2 if name == "±" else 0, justify="right")
    table.add_column("role", leaves=1)
    for p in result.points:
        for c in p.measured:
            about = "~" if c.row.approx else ""
            role = "fitted on" if _fitted_on(c, result) else c.row.role
            table.add_row(
                c.row.label, c.row.metric, about + plain(c.row.value), plain(c.simulated.mean),
                plus_minus(c.simulated).removeprefix("± "), error(c), role,
            )  # fmt: skip
    return table


def expectations(result: ScenarioResult) -> Sheet:
    """What the scenario expects, a line a case; `close`: within the intervals it could be the other way round."""
    table = new_table("Expected")
    for name in ("holds", "expectation", "at"):
        table.add_column(name)
    table.add_column("found", justify="right")
    for each in result.expected:
        for case in each.cases:
            verdict = ("yes" if case.holds else "NO") + (", close" if case.close else "")
            table.add_row(verdict, each.text, case_at(case), found(case))
        if not each.cases:
            table.add_row("not checked", each.text, NOTHING, "its points were not run")
    return table


def case_at(case: Case) -> str:
    """Where a case is, as a person would name it."""
    return ", ".join(str(v) if k == "variant" else f"{short(k)} {v}" for k, v in case.at.items()) or NOTHING


def found(case: Case) -> str:
    """The values of a case's sides, each with its unit."""
    sides = zip(case.values, case.units, strict=True)
    return "; ".join("no value" if v is None else f"{plain(v)} {unit}".strip() for v, unit in sides)


def missed(result: ScenarioResult) -> Iterable[str]:
    """A sentence for each case of an expectation that does not hold."""
    for each in result.expected:
        for case in each.failed:
            where = f" at {case_at(case)}" if case.at else ""
            yield f"expected {each.text}{where}, but found {found(case)}"


def notes(result: ScenarioResult) -> RenderableType:
    """What was fitted and what predicted, how far off, and what went wrong, as sentences."""
    lines = [Text(line) for line in sentences(result)]
    for f, more in once_a_point(result.findings):
        lines.append(Text(f"error: {f.message} ({f.point}, replication {f.replication}){more}", "red"))
        lines += [Text(f"  {step}", "red") for step in (f.stall.cycle if f.stall else ())]
    return Padding(Group(*lines), (1, 1, 0, 1))


def sentences(result: ScenarioResult) -> Iterable[str]:
    """The notes that every form of output carries."""
    yield from (fit.sentence for fit in result.fits)
    if not result.fits:
        yield "nothing was fitted here"
    yield from levels(result.filesystems, fitted=bool(result.fits))
    if result.first_look_of_ns:
        yield (
            f"a first look (--quick): what takes a good part of the scenario's {duration(result.first_look_of_ns)} to "
            "build up is not seen, and no interval covers that"
        )
    if calm := [result.title(point.variant) for point in focus(result) if not waited(point)]:
        yield f"no lock was waited for: {_few(calm)}"
    yield from _distances([c for p in result.points for c in p.measured if c.row.role == "predict"])
    if alone := [f"'{row.label}' {row.metric}" for row in result.unmatched]:
        yield f"measured rows without a simulated point: {_few(alone)}"
    yield from _marked(result.points)
    if unsettled := [p.id for p in result.points if p.unsettled]:
        perhaps = "perhaps not settled when measuring began (longer warm-up?)"
        yield f"{counted(len(unsettled), 'point')} {perhaps}: {_few(unsettled)}"


def _marked(points: Sequence[PointResult]) -> Iterable[str]:
    """What the marks mean, and the groups of those that fall into two."""
    if wide := [p.id for p in points if "wide" in p.marks]:
        yield f"wide: the interval is wider than a fifth of the value ({_few(wide)})"
    if full := [p.id for p in points if "saturated" in p.marks]:
        yield f"saturated: requests arrive faster than they are served, so waits grow with the window ({_few(full)})"
    if none := [p.id for p in points if "no round" in p.marks]:
        yield f"no round: parts of operations ended in the window, but no whole one: measure longer ({_few(none)})"
    if split := [f"{p.id}: {p.groups}" for p in points if p.groups]:
        yield f"two groups (Engelman and Hartigan's test, 1 %): a bistable point, not noise ({_few(split)})"


def _few(names: Sequence[str]) -> str:
    more = f"; and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return "; ".join(names[:SHOWN]) + more


def _distances(predicted: Sequence[Comparison]) -> Iterable[str]:
    """How far the predictions of each metric are off: percentages in points, all else in percent."""
    for metric in dict.fromkeys(c.row.metric for c in predicted):
        points = metric.endswith("_percent")
        same = [c.error if points else c.error_percent for c in predicted if c.row.metric == metric]
        errors = [abs(e) for e in same if e is not None]
        if errors:
            unit = "points" if points else "%"
            middle, worst = median(errors), max(errors)
            rows = counted(len(errors), "row")
            yield f"predicted {metric}, {rows}: median error {middle:.1f} {unit}, worst {worst:.1f}"


def error(c: Comparison) -> str:
    """The error of a comparison: relative where that makes sense, else in points."""
    if c.row.metric.endswith("_percent"):
        return f"{percent(c.error, signed=True)} points"
    return f"{percent(c.error_percent, signed=True)} %" if c.error_percent is not None else f"{c.error:+.3g}"


def _curve(result: ScenarioResult, points: Sequence[PointResult], title: str, *, with_variant: bool) -> Sheet:
    table = new_table(title)
    if with_variant:
        table.add_column("variant")
    swept = [key for key in result.sweep if short(key) != "tasks"]
    for key in swept:
        table.add_column(short(key))
    cells = _cells(result)
    for name in cells:
        table.add_column(name, leaves=LEAVING.get(name, 0), names_rows=name == "tasks", justify="right")
    settings = list(dict.fromkeys(p.setting for p in points))
    for p in sorted(points, key=lambda p: settings.index(p.setting)):
        names = [result.title(p.variant)] if with_variant else []
        names += [str(p.values.get(key, NOTHING)) for key in swept]
        table.add_row(*names, *(cell(p) for cell in cells.values()))
    return table


def _cells(result: ScenarioResult) -> dict[str, Cell]:
    """Columns of the curve by name; those that would be empty all the way down are left out."""
    ideal = Ideal(result)
    cells: dict[str, Cell] = {
        "tasks": lambda p: str(p.tasks),
        f"{plural(result.operation)}/s": lambda p: plain(p.throughput.mean),
        "±": lambda p: plus_minus(p.throughput).removeprefix("± "),
        "mark": lambda p: ", ".join(p.marks),
        "ideal": lambda p: plain(ideal.per_s(p)),
        "MB/s": lambda p: plain(p.bytes_per_s.mean / 1e6 if p.bytes_per_s else None),
        "idle %": lambda p: percent(p.shares.idle.mean),
        "user %": lambda p: percent(p.shares.user.mean),
        "sys %": lambda p: percent(p.shares.system.mean),
        "spin %": lambda p: percent(p.shares.spin.mean),
        "switch/s": lambda p: plain(p.context_switches.mean),
        "J/op": lambda p: plain(p.joules_per_operation.mean if p.joules_per_operation else None),
        "measured": lambda p: _rate_row(p, lambda c: ("~" if c.row.approx else "") + plain(c.row.value)),
        "error": lambda p: _rate_row(p, lambda c: percent(c.error_percent, signed=True) + "%"),
    }
    optional = {"mark", "ideal", "MB/s", "J/op", "measured", "error"}
    empty = {
        n for n in optional if result.points and all(cells[n](p) in (NOTHING, "", "0") for p in result.points)
    }
    return {name: cell for name, cell in cells.items() if name not in empty}


def _rate_row(point: PointResult, show: Callable[[Comparison], str]) -> str:
    rates = [c for c in point.measured if point.estimate(c.row.metric) == point.throughput]
    return " ".join(show(c) for c in rates)


DBENCH = (
    "NTCreateX", "Close", "Rename", "Unlink", "Qpathinfo", "Qfileinfo", "Qfsinfo", "Sfileinfo", "Find", "WriteX",
    "ReadX", "LockX", "UnlockX", "Flush",
)  # fmt: skip
"""The order in which dbench lists its calls."""


def requests(result: ScenarioResult) -> list[Sheet]:
    """Of each variant with a device of its own what that served, and how much was under way (Little's law)."""
    table = new_table("Requests of the device, from submission to interrupt")
    for name in ("variant", "request"):
        table.add_column(name, no_wrap=name == "request")
    for name, leaves in zip(("1/s", "mean", "p50", "p99", "under way"), (0, 0, 2, 1, 0), strict=True):
        table.add_column(name, leaves=leaves, justify="right")
    found = [
        (point, op, took) for point in focus(result) for op, took in point.requests.items() if took.count
    ]
    told = ""
    for point, op, took in found:
        name = result.title(point.variant) if point.variant != told else ""
        told = point.variant
        per_s = point.requests_per_s[op]
        times = map(duration, (took.mean_ns, took.p50_ns, took.p99_ns))
        table.add_row(name, op, plain(per_s), *times, plain(per_s * took.mean_ns / 1e9))
    return kept(table, result)


def _operations_head(title: str) -> Sheet:
    table = new_table(title)
    table.add_column("Operation", no_wrap=True)
    for name in ("Count", "AvgLat", "MaxLat"):
        table.add_column(name, justify="right")
    return table


def _operations(point: PointResult, result: ScenarioResult) -> Sheet:
    table = _operations_head(f"{result.title(point.variant)}: latency of operations, {where(point)}")
    names = [name for name in DBENCH if name in point.latency]
    for name in [*names, *(name for name in point.latency if name not in names)]:
        took = point.latency[name]
        lasting = [f"{ns / 1e6:.3f}" if names else duration(ns) for ns in (took.mean_ns, took.max_ns)]
        table.add_row(name, f"{took.count:,}", *lasting)
    return table


def _fitted_on(c: Comparison, result: ScenarioResult) -> bool:
    return any(c.row in fit.rows for fit in result.fits)
