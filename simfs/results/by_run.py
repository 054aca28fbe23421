"""The value of a metric in one run: of wake-ups by kind of task, and of locks by class and kind of task or place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from simfs._engine import Histogram
from simfs.results.run_result import Latency, LockCounts, LockKind, LockStats, RunResult
from simfs.results.statistics import LEVEL, Estimate, interval, jain
from simfs.scenario.measured.metrics import Metric, metric

_WAKES = {
    "wakeups_on_previous_cpu": ("on_previous", "wakeups"),
    "wakeups_on_waker_cpu": ("on_waker", "wakeups"),
    "wakeups_beside_idle_cpu": ("beside_idle", "wakeups"),
    "stacked_wakeups": ("stacked", "beside_idle"),
}
"""What is counted, and of what it is a share."""

_COUNTS = {"waits": "contended", "acquired": "acquired"}


def estimates(runs: Sequence[RunResult], names: Iterable[str], level: float = LEVEL) -> dict[str, Estimate]:
    """What `names` are over replications, each in its unit.

    Left out is what a run does not have, and what is not taken from each run. Raises ValueError as `metric` does.
    """
    found = {}
    for name, known in [(name, metric(name)) for name in dict.fromkeys(names) if metric(name).by_run]:
        values = [value(run, known) for run in runs]
        had = [one * known.scale for one in values if one is not None]
        if had and len(had) == len(runs):
            found[name] = interval(had, level)
    return found


def value(run: RunResult, known: Metric) -> float | None:
    """What a metric that is taken from each run is in this one, times in nanoseconds; None where it is nothing."""
    return _VALUES[known.quantity](run, known)


def plain(name: str) -> str:
    """A name of a run as metrics spell it: `xfs.AGI` is `xfs_agi`."""
    return re.sub(r"\W+", "_", name).strip("_").lower()


def _counter(run: RunResult, known: Metric) -> float | None:
    counters = {
        "involuntary_switches": run.involuntary_switches,
        "wakeups": run.wakeups,
        "migrations": run.migrations,
        "pulls": run.pulls,
    }
    return _share(counters[known.part], run.operations)


def _group(run: RunResult, known: Metric) -> float | None:
    """Of one group its rate, its share of all operations and Jain's index over its tasks; of all the index over groups.

    Between groups the index is that of the operations of a task, so that groups of different sizes can be compared.
    """
    groups = run.group_operations
    if not known.operation:
        return jain([sum(of) / len(of) for of in groups.values()]) if groups else None
    of = groups.get(known.operation)
    if of is None:
        return None
    match known.part:
        case "per_s":
            return sum(of) / run.window_ns * 1e9
        case "share_percent":
            return _percent(sum(of), run.operations)
    return jain(of)


def _wakes(run: RunResult, known: Metric) -> float | None:
    part, whole = _WAKES[known.part]
    of = [wakes for wakes in run.wakes if known.by in ("", wakes.kind)]
    return _percent(sum(getattr(w, part) for w in of), sum(getattr(w, whole) for w in of))


def _wake_to_run(run: RunResult, known: Metric) -> float | None:
    of = [wakes for wakes in run.wakes if known.by in ("", wakes.kind)]
    idle = [wakes.to_run_idle for wakes in of if known.part != "busy"]
    busy = [wakes.to_run_busy for wakes in of if known.part != "idle"]
    return _time([*idle, *busy], known)


def _delay(run: RunResult, known: Metric) -> float | None:
    return _time([took for name, took in run.delays.items() if plain(name) == known.operation], known)


def _grant_to_run(run: RunResult, known: Metric) -> float | None:
    lock = _lock(run, known)
    kinds = [kind for kind in lock.kinds if known.by in ("", kind.kind)] if lock else []
    return _time([kind.grant_to_run for kind in kinds if kind.grant_to_run], known)


def _acquisitions(run: RunResult, known: Metric) -> float | None:
    counts = _counts(run, known)
    if counts is None:
        return None
    what, is_percent, _ = known.part.partition("_percent")
    if is_percent:
        return _percent(getattr(counts, what), counts.acquired)
    return _share(getattr(counts, _COUNTS[what.removesuffix("_per_operation")]), run.operations)


def _wait(run: RunResult, known: Metric) -> float | None:
    """Of places and kinds only the mean is known; percentiles are of the whole class."""
    counts, lock = _counts(run, known), _lock(run, known)
    if not counts or not lock or not counts.contended:
        return None
    if known.statistic == "mean":
        return counts.wait_total_ns / counts.contended
    if known.by:
        return None
    return lock.wait_max_ns if known.statistic == "max" else _statistic([lock.wait_hdr], known)


def _held(run: RunResult, known: Metric) -> float | None:
    """Percent of the window; of several instances, all of them together unless it is the busiest one."""
    lock = _lock(run, known)
    if lock is None:
        return None
    match known.part:
        case "busiest_held":
            held = lock.busiest_held_ns
        case "held_shared":
            held = lock.held_shared_ns
        case part:
            kinds = [kind for kind in lock.kinds if known.by in ("", kind.kind)]
            held = sum(_held_part(kind, part.removeprefix("held").removeprefix("_")) for kind in kinds)
    return _percent(held, run.window_ns)


def _held_part(kind: LockKind, part: str) -> float:
    return float(getattr(kind, f"{part}_ns")) if part else kind.held_ns


def _counts(run: RunResult, known: Metric) -> LockCounts | None:
    """Of all, of a kind of task, or of a place; a kind or place that never took the lock has zeros."""
    lock = _lock(run, known)
    if lock is None or not known.by:
        return lock
    named: dict[str, LockCounts] = {plain(site.site): site for site in lock.sites}
    named |= {kind.kind: kind for kind in lock.kinds}
    return named.get(known.by, LockCounts(acquired=0, contended=0, wait_total_ns=0))


def _lock(run: RunResult, known: Metric) -> LockStats | None:
    return next((lock for lock in run.locks if plain(lock.name) == known.lock), None)


def _time(parts: Sequence[Latency], known: Metric) -> float | None:
    """A statistic of all parts together, or the percentage of them that is over the limit."""
    if not sum(part.count for part in parts):
        return None
    return _statistic([part.hdr for part in parts], known)


def _statistic(texts: Sequence[str], known: Metric) -> float:
    every = Histogram.pooled(texts)
    if known.over_ns is not None:
        return 100 * every.above(round(known.over_ns)) / every.count
    if known.statistic in ("mean", "max"):
        return float(getattr(every, known.statistic))
    return every.percentile(float(known.statistic.removeprefix("p")))


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _percent(part: float, whole: float) -> float | None:
    return 100 * part / whole if whole else None


_VALUES: dict[str, Callable[[RunResult, Metric], float | None]] = {
    "counter": _counter,
    "group": _group,
    "wakes": _wakes,
    "wake_to_run": _wake_to_run,
    "grant_to_run": _grant_to_run,
    "acquisitions": _acquisitions,
    "wait": _wait,
    "held": _held,
    "delay": _delay,
}
