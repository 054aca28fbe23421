"""What several runs of one point add up to: counts and times are sums, maxima are maxima, histograms are one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from simfs._engine import Histogram
from simfs.results.run_result import (
    Latency,
    LineStats,
    LockCounts,
    LockKind,
    LockSite,
    LockStats,
    RunResult,
    Wakes,
)
from simfs.results.summaries import CURVE, LockKindSummary, LockSummary, PooledLatency, WakesSummary

_LOCK_MAXIMA = {"instances", "wait_max_ns", "hold_max_ns", "still_waiting_max_ns"}
_LOCK_POOLED = {"wait_p50_ns", "wait_p99_ns", "wait_hdr"}
_LOCK_NAMES = {"name", "role", "type", "sites", "kinds"}

MS = 1_000_000

_TO_RUN = ("to_run_idle", "to_run_busy")


def pooled_latencies(runs: Sequence[Mapping[str, Latency]]) -> dict[str, PooledLatency]:
    """Of each name the times of all runs that know it."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: _latency([run[name] for run in runs if name in run], CURVE) for name in names}


def pooled_wakes(runs: Sequence[RunResult]) -> tuple[WakesSummary, ...]:
    """What became of wake-ups, of the kinds of tasks that were woken at all."""
    every = [wakes for run in runs for wakes in run.wakes]
    kinds = dict.fromkeys(wakes.kind for wakes in every if wakes.wakeups)
    return tuple(_wakes([wakes for wakes in every if wakes.kind == kind]) for kind in kinds)


def pooled_locks(runs: Sequence[RunResult]) -> tuple[LockSummary, ...]:
    """The statistics of each lock class over the runs that know it, longest wait first."""
    every = [lock for run in runs for lock in run.locks]
    names = dict.fromkeys(lock.name for lock in every)
    locks = [_lock([lock for lock in every if lock.name == name]) for name in names]
    return tuple(sorted(locks, key=lambda lock: (-lock.wait_total_ns, lock.name)))


def pooled_lines(runs: Sequence[RunResult]) -> tuple[LineStats, ...]:
    """The cache lines of each name over the runs in which somebody waited for them, the longest wait first."""
    of: dict[str, list[LineStats]] = {}
    for line in (line for run in runs for line in run.lines):
        of.setdefault(line.name, []).append(line)
    lines = [
        LineStats(
            name=name,
            transfers=sum(line.transfers for line in same),
            waited_ns=sum(line.waited_ns for line in same),
        )
        for name, same in of.items()
    ]
    return tuple(sorted(lines, key=lambda line: (-line.waited_ns, line.name)))


def _latency(parts: Sequence[Latency], at: Sequence[float] = ()) -> PooledLatency:
    every = Histogram.pooled([p.hdr for p in parts])
    return PooledLatency(
        count=every.count,
        mean_ns=every.mean,
        p50_ns=every.percentile(50),
        p90_ns=every.percentile(90),
        p99_ns=every.percentile(99),
        max_ns=every.max,
        curve=tuple(map(every.percentile, at)),
    )


def _wakes(parts: Sequence[Wakes]) -> WakesSummary:
    numbers = _sums(parts, set(Wakes.model_fields) - {"kind", *_TO_RUN})
    to_run = {name: _latency([getattr(part, name) for part in parts]) for name in _TO_RUN}
    both = [getattr(part, name) for part in parts for name in _TO_RUN]
    every = Histogram.pooled([took.hdr for took in both])
    over = {"over_1ms_percent": 100 * every.above(MS) / every.count if every.count else 0.0}
    found = {"kind": parts[0].kind, **numbers, **to_run, "to_run": _latency(both), **over}
    return WakesSummary.model_validate(found)


def _lock(parts: Sequence[LockStats]) -> LockSummary:
    waits = Histogram.pooled([p.wait_hdr for p in parts])
    first, fields = parts[0], set(LockStats.model_fields) - _LOCK_NAMES - _LOCK_POOLED
    numbers = _sums(parts, fields - _LOCK_MAXIMA) | _sums(parts, _LOCK_MAXIMA, max)
    numbers |= {"wait_p50_ns": waits.percentile(50), "wait_p99_ns": waits.percentile(99)}
    names = {"name": first.name, "role": first.role, "type": first.type}
    return LockSummary.model_validate({**names, **numbers, "sites": _sites(parts), "kinds": _kinds(parts)})


def _sites(parts: Sequence[LockStats]) -> tuple[LockSite, ...]:
    every = [site for part in parts for site in part.sites]

    def total(name: str) -> LockSite:
        same = [site for site in every if site.site == name]
        return LockSite.model_validate({"site": name, **_sums(same, LockCounts.model_fields)})

    return tuple(total(name) for name in dict.fromkeys(site.site for site in every))


def _kinds(parts: Sequence[LockStats]) -> tuple[LockKindSummary, ...]:
    every = [kind for part in parts for kind in part.kinds]

    def total(name: str) -> LockKindSummary:
        same = [kind for kind in every if kind.kind == name]
        numbers = _sums(same, set(LockKind.model_fields) - {"kind", "grant_to_run"})
        grants = [kind.grant_to_run for kind in same if kind.grant_to_run]
        found = {"kind": name, **numbers, "grant_to_run": _latency(grants) if grants else None}
        return LockKindSummary.model_validate(found)

    return tuple(total(name) for name in dict.fromkeys(kind.kind for kind in every))


def _sums(
    parts: Sequence[object], fields: Iterable[str], how: Callable[[list[float]], float] = sum
) -> dict[str, float]:
    return {name: how([getattr(part, name) for part in parts]) for name in fields}
