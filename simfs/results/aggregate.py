"""From the runs of one point to its `PointResult`, and from measured rows to comparisons."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from simfs.results.by_run import estimates
from simfs.results.chains import pooled_chains
from simfs.results.marks import marks, observed, two_groups
from simfs.results.model import Comparison, Finding, MeasuredRow, PointResult, Value, quantity, short
from simfs.results.pooling import pooled_latencies, pooled_lines, pooled_locks, pooled_wakes
from simfs.results.run_result import CpuTime, RunResult
from simfs.results.statistics import LEVEL, Estimate, batch_means, interval, jain, max_min, mser, two_stage
from simfs.results.summaries import CpuShares, LatencyIntervals
from simfs.results.sums import mean_of, means_of_columns


class PointLike(Protocol):
    """What results need to know of a point of a scenario."""

    @property
    def id(self) -> str:
        """Stable name of the point."""

    @property
    def variant(self) -> str:
        """Name of the variant."""

    @property
    def values(self) -> Mapping[str, Value]:
        """Sweep values by dotted key."""


def summarise(
    point: PointLike,
    runs: Sequence[RunResult],
    level: float = LEVEL,
    decided_by: int | None = None,
    metrics: Iterable[str] = (),
) -> PointResult:
    """Return the statistics of one point over its replications, in the order of the replications.

    `metrics` are the names of metrics that somebody asks for.
    `decided_by` is how many of them decided how many there are; all by default, so that nothing was decided.
    One replication alone takes the interval of its throughput from its batches; nothing else has one then.
    Raises ValueError where `runs` is empty.
    """
    first, wanted = runs[0], tuple(metrics)
    batches = _batches(runs)
    rate, rates = throughput(runs, level, decided_by), tuple(r.throughput_per_s for r in runs)
    groups = two_groups(*observed(rates, batches["batches_per_s"]))
    result = PointResult(
        id=point.id,
        variant=point.variant,
        values=dict(point.values),
        tasks=first.tasks,
        cpus=round(first.cpu_ns.total / first.window_ns),
        origin="predicted",
        replications=len(runs),
        window_ns=first.window_ns,
        operations=sum(r.operations for r in runs),
        events=sum(r.events for r in runs),
        throughput=rate,
        replication_throughputs=rates,
        groups=groups,
        marks=("no round",) if _only_parts(runs) else marks(rate, "1/s", groups),
        metrics=estimates(runs, wanted, level),
        **batches,
        **_intervals(runs, level),
        **_pooled(runs),
    )
    return result.model_copy(update={"metrics": {n: e for n in wanted if (e := result.estimate(n))}})


def _batches(runs: Sequence[RunResult]) -> dict[str, Any]:
    """Throughput of each batch of the window, and where it has settled."""
    per_s = [_batches_per_s(run) for run in runs]
    batches = means_of_columns(per_s) or [throughput(runs).mean]
    transient = mser(batches, group=1)
    return {
        "batches_per_s": tuple(batches),
        "transient_batches": transient,
        "settled_per_s": mean_of(batches[transient:]),
    }


def _batches_per_s(run: RunResult) -> list[float]:
    scale = len(run.batch_operations) / run.window_ns * 1e9
    return [scale * operations for operations in run.batch_operations]


def _intervals(runs: Sequence[RunResult], level: float) -> dict[str, Any]:
    """What has one number in each run."""
    moves_data = any(r.bytes for r in runs)
    return {
        "shares": _shares([r.cpu_ns for r in runs], level),
        "context_switches": interval([r.context_switches / r.window_ns * 1e9 for r in runs], level),
        "context_switches_per_operation": _per_operation(runs, [r.context_switches for r in runs], level),
        "joules_per_operation": _per_operation(runs, [r.energy_joules for r in runs], level),
        "fairness": interval([jain(r.per_task_operations) for r in runs], level),
        "max_min": _max_min(runs, level),
        "system_ns_per_operation": _per_operation(runs, [_kernel_ns(r.cpu_ns) for r in runs], level),
        "bytes_per_s": interval([r.bytes / r.window_ns * 1e9 for r in runs], level) if moves_data else None,
        "latency_intervals": _latency_intervals(runs, level),
    }


def _pooled(runs: Sequence[RunResult]) -> dict[str, Any]:
    """What is told of all runs together."""
    seconds = sum(r.window_ns for r in runs) / 1e9
    return {
        "wakes": pooled_wakes(runs),
        "delays": pooled_latencies([r.delays for r in runs]),
        "requests": (requests := pooled_latencies([r.requests for r in runs])),
        "requests_per_s": {op: took.count / seconds for op, took in requests.items()},
        "latency": pooled_latencies([r.latency for r in runs]),
        "locks": pooled_locks(runs),
        "lines": pooled_lines(runs),
        "chains": pooled_chains(runs) if all(run.chains for run in runs) else None,
    }


def throughput(runs: Sequence[RunResult], level: float = LEVEL, decided_by: int | None = None) -> Estimate:
    """Operations per second over replications; over the batches of the run where there is only one."""
    if len(runs) > 1:
        return two_stage([r.throughput_per_s for r in runs], decided_by or len(runs), level)
    run = runs[0]
    if len(run.batch_operations) < 4:
        return interval([run.throughput_per_s], level)
    per_s = len(run.batch_operations) / run.window_ns * 1e9
    return batch_means([n * per_s for n in run.batch_operations], len(run.batch_operations) // 2, level)


def findings(point: PointLike, runs: Sequence[RunResult]) -> list[Finding]:
    """Broken laws and stalls of all replications, and that no operation ended in any of them."""
    found = [] if any(run.stall or _ended(run) for run in runs) else [_empty(point, runs[0])]
    for i, run in enumerate(runs):
        if run.stall:
            message = f"{run.stall.kind} at {run.stall.at_ns / 1e6:.3f} ms"
            stalled = Finding(kind="stall", point=point.id, replication=i, message=message, stall=run.stall)
            found.append(stalled)
        for law in (law for law in run.laws if not law.ok):
            message = f"{law.law} is broken: {_readable(law.detail)}"
            found.append(Finding(kind="law", point=point.id, replication=i, message=message))
    return found


def _ended(run: RunResult) -> bool:
    """Whether anything ended in the window, counted or not."""
    return bool(run.operations or any(latency.count for latency in run.latency.values()))


def _only_parts(runs: Sequence[RunResult]) -> bool:
    """Whether operations ended that are parts of others, and none of those."""
    return not any(run.operations or run.stall for run in runs) and any(map(_ended, runs))


def _empty(point: PointLike, run: RunResult) -> Finding:
    window = f"no operation ended in the window of {run.window_ns / 1e6:g} ms"
    advice = "set a longer measure.duration (--quick takes a fifth of it)"
    return Finding(kind="empty", point=point.id, replication=0, message=f"{window}: {advice}")


def unanswered(
    points: Sequence[PointResult], found: Iterable[Finding]
) -> tuple[tuple[PointResult, ...], tuple[MeasuredRow, ...]]:
    """The points, with nothing beside those whose window is empty, and the rows that were beside them."""
    empty = {finding.point for finding in found if finding.kind == "empty"}
    kept = (p.model_copy(update={"measured": ()}) if p.id in empty else p for p in points)
    return tuple(kept), tuple(c.row for p in points if p.id in empty for c in p.measured)


def _readable(detail: str) -> str:
    """The engine's picoseconds in units that people read."""
    return re.sub(r"(\d+) ps\b", lambda found: quantity(int(found[1]) / 1000, "ns"), detail)


def compare(
    points: Sequence[PointResult], rows: Iterable[MeasuredRow]
) -> tuple[tuple[PointResult, ...], tuple[MeasuredRow, ...]]:
    """Return the points with the measured rows that belong to them, and the rows that belong to none."""
    beside: list[list[Comparison]] = [[] for _ in points]
    unmatched = []
    for row in rows:
        answers = [
            (i, p.reported(row.metric, row.operations, row.pause_s))
            for i, p in enumerate(points)
            if matches(p, row)
        ]
        known = [(i, estimate) for i, estimate in answers if estimate is not None]
        for i, estimate in known:
            beside[i].append(comparison(row, estimate))
        if not known:
            unmatched.append(row)
    compared = (p.model_copy(update={"measured": tuple(c)}) for p, c in zip(points, beside, strict=True))
    return tuple(compared), tuple(unmatched)


def comparison(row: MeasuredRow, simulated: Estimate) -> Comparison:
    """A measured row beside the simulated estimate of the same metric."""
    error = simulated.mean - row.value
    percent = 100 * error / row.value if row.value else None
    return Comparison(row=row, simulated=simulated, error=error, error_percent=percent)


def matches(point: PointResult, row: MeasuredRow) -> bool:
    """Whether `row` was measured at this variant and these sweep values.

    A row may name keys in full or by their last part, and may name `tasks` and `cpus` also where they are
    not swept.
    """
    known: dict[str, Value] = {"tasks": point.tasks, "cpus": point.cpus}
    known |= {"workload.tasks": point.tasks, "machine.cpus": point.cpus}
    known |= {short(k): v for k, v in point.values.items()} | point.values
    return row.variant == point.variant and all(known.get(k) == v for k, v in row.values.items())


def _shares(times: Sequence[CpuTime], level: float) -> CpuShares:
    def share(state: str) -> Estimate:
        return interval([100 * float(getattr(t, state)) / t.total for t in times], level)

    return CpuShares(**{state: share(state) for state in CpuShares.model_fields})


def _per_operation(runs: Sequence[RunResult], totals: Sequence[float], level: float) -> Estimate | None:
    if any(r.operations == 0 for r in runs):
        return None
    return interval([total / r.operations for total, r in zip(totals, runs, strict=True)], level)


def _max_min(runs: Sequence[RunResult], level: float) -> Estimate | None:
    ratios = [max_min(r.per_task_operations) for r in runs]
    return interval(ratios, level) if all(map(math.isfinite, ratios)) else None


def _latency_intervals(runs: Sequence[RunResult], level: float) -> dict[str, LatencyIntervals]:
    """Of operations that ended in every run: where one is missing, nothing can be said of the spread."""
    common = [name for name in runs[0].latency if all(r.latency.get(name) for r in runs)]
    return {
        name: LatencyIntervals(
            **{
                field: interval([getattr(r.latency[name], field) for r in runs], level)
                for field in LatencyIntervals.model_fields
            }
        )
        for name in common
        if all(r.latency[name].count for r in runs)
    }


def _kernel_ns(time: CpuTime) -> float:
    """What `time` calls sys: a spinning or switching task is in the kernel."""
    return time.system + time.spin + time.switch
