"""What keeps the tasks of a point from being faster, in a sentence: a lock, sleep for no lock, or slower code."""

from __future__ import annotations

import re
from collections.abc import Iterable

from simfs.results.chains import MOSTLY, does, fetches
from simfs.results.model import PointResult, quantity
from simfs.results.summaries import LockSummary

WAITED = 0.01
"""Part of their time that tasks wait for a lock from which on that is told."""

QUEUED = 2
"""Tasks that wait on average from which on a lock is not free for want of takers."""

SLOWER = 1.5
"""Times the CPU time of an operation alone from which on that is told."""

INSIDE = re.compile(r"\.wait_lock$")
"""Raw spinlocks inside other locks: who waits for them waits for those."""

DOING = ("run", "wait for a CPU", "sleep", "wait for a device")
"""What holders do while others wait, in the order of `holder_parts`."""


def bottleneck(point: PointResult, beside: Iterable[PointResult] = ()) -> str:
    """What tasks wait for longest, or how much slower they run than fewer of `beside`; empty where neither is much."""
    return _longest_wait(point) or _slower(point, _alone(point, beside)) or _lines(point)


def _longest_wait(point: PointResult) -> str:
    """What tasks wait for longest: a lock and what its holders do, or no lock; empty where nobody waits long."""
    locks = [lock for lock in point.locks if lock.contended and not INSIDE.search(lock.name)]
    waits = {lock: lock.wait_total_ns / (point.window_ns * point.replications) for lock in locks}
    asleep = _asleep_for_no_lock(point, sum(waits.values()))
    if asleep >= MOSTLY and asleep * point.tasks > max(waits.values(), default=0.0):
        return f"tasks sleep {100 * asleep:.0f} % of their time for what is no lock{_for_what(point)}"
    if not locks:
        return ""
    lock = max(locks, key=lambda lock: lock.wait_total_ns)
    fetched = sum(line.waited_ns for line in point.lines)
    if waits[lock] < WAITED * point.tasks or (_lines(point) and lock.wait_total_ns < fetched):
        return ""
    free = _free_percent(lock, point) if waits[lock] >= QUEUED else 0.0
    return f"{waits[lock]:.1f} tasks wait for {lock.name} on average{_holders(lock, free)}"


def _task_time_ns(point: PointResult) -> float:
    """Tasks times window, over all replications."""
    return point.window_ns * point.replications * point.tasks


def _lines(point: PointResult) -> str:
    """How long tasks wait for cache lines that others use, and for which most; empty where that is not long."""
    return fetches(point.lines, _task_time_ns(point))


def _asleep_for_no_lock(point: PointResult, waiting: float) -> float:
    """The least part of their time that tasks sleep for no lock: neither busy CPUs nor locks account for it.

    Of more tasks than CPUs some wait for a CPU: they are told to sleep no more than CPUs idle.
    """
    idle = point.shares.idle.mean / 100
    return min(idle, (point.tasks - point.cpus * (1 - idle) - waiting) / point.tasks)


def _for_what(point: PointResult) -> str:
    """What most of that time is for, if chains of waits were recorded; else who knows."""
    if point.chains is None or not point.chains.sleeps:
        return " (`simfs why` tells for what)"
    most = max(point.chains.sleeps, key=lambda slept: slept.time_ns)
    return f", most of it because {does(most.sleeper or 'a task', most.reason, most.function)}"


def _free_percent(lock: LockSummary, point: PointResult) -> float:
    """How much of the time nobody has a lock that tasks queue for; 0 where there are several, or readers."""
    if lock.instances != 1 or lock.acquired_shared:
        return 0.0
    return max(0.0, 100 - 100 * lock.hold_total_ns / (point.window_ns * point.replications))


def _holders(lock: LockSummary, free: float) -> str:
    """What holders do, and how long the lock is on its way between them."""
    parts = lock.holder_parts
    if not (whole := sum(parts)):
        return ""
    share, doing = max(zip(parts, DOING, strict=True))
    said = f"holders {doing} for {100 * share / whole:.0f} % of {'that' if free < 10 else 'the other'} time"
    if free < 10:
        return f", whose {said}"
    return f", which is on its way to the next of them for {free:.0f} % of the time; its {said}"


def _alone(point: PointResult, beside: Iterable[PointResult]) -> PointResult | None:
    """The point of the same curve with the fewest tasks; None where none has fewer."""
    fewer = [
        p
        for p in beside
        if (p.variant, p.setting) == (point.variant, point.setting) and p.tasks < point.tasks and p.operations
    ]
    return min(fewer, key=lambda p: p.tasks, default=None)


def _slower(point: PointResult, alone: PointResult | None) -> str:
    """How much more time in the kernel an operation takes than with fewer tasks, where no lock is the reason.

    That of more tasks than CPUs is not compared: they also take turns.
    """
    here, there = (p.system_ns_per_operation if p else None for p in (point, alone))
    if not (alone and here and there and there.mean) or point.tasks > point.cpus:
        return ""
    if here.mean < SLOWER * there.mean:
        return ""
    times = (
        f"{quantity(here.mean, 'ns')} in the kernel, not {quantity(there.mean, 'ns')} as with {alone.tasks}"
    )
    reason = _lines(point) or "cache lines that others change, or cold caches"
    return f"an operation takes {times}, and not for locks: {reason}"
