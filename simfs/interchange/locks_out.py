"""What simulated locks look like in tools: the function or lockdep's name that stands for a class, times in ns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from simfs._engine import Histogram
from simfs.interchange.reading import Waits
from simfs.interchange.symbols import chains, lock_of, symbols
from simfs.results.model import PointResult
from simfs.results.summaries import LockSummary

SLEEPING = ("mutex", "rwsem", "semaphore", "percpu-rwsem")
_PERF = {"percpu-rwsem": "pcpu-sem"}
_SIDED = ("rwsem", "rwlock", "pcpu-sem")


@dataclass(frozen=True)
class Shown:
    """A lock class as a line of a tool; times in nanoseconds, over all replications."""

    where: str
    kind: str
    count: int
    acquired: int
    total_ns: float
    max_ns: float
    held_ns: float
    held_max_ns: float

    @property
    def mean_ns(self) -> float:
        """Mean wait."""
        return self.total_ns / self.count if self.count else 0.0


def the_one(points: Sequence[PointResult]) -> PointResult:
    """The point with as many tasks as CPUs, else that with the most tasks."""
    full = [p for p in points if p.tasks == p.cpus]
    return full[0] if full else max(points, key=lambda p: p.tasks)


def contended(point: PointResult) -> list[Shown]:
    """Locks that the kernel's tracepoints would tell waits for, the longest total first."""
    found = [(lock, traced(lock)) for lock in point.locks]
    shown = [replace(_shown(lock), count=count, total_ns=ns) for lock, (count, ns) in found if count]
    return sorted(shown, key=lambda x: -x.total_ns)


def traced(lock: LockSummary) -> tuple[int, float]:
    """Waits and their total time (ns) that `lock:contention_begin` tells of.

    A task that gets an rwsem while it spins is not among them: the event comes when spinning has failed
    (`rwsem_down_write_slowpath`, 5.19 to 6.18; `__mutex_lock_common` has it before). Those who slept count as those
    who waited longest; without a histogram, as in a result that was read back, their time is that of all.
    """
    if lock.type != "rwsem" or not lock.contended:
        return lock.contended, lock.wait_total_ns
    if not lock.wait_hdr or not lock.slept:
        return lock.slept, lock.wait_total_ns if lock.slept else 0.0
    waits = Histogram.decode(lock.wait_hdr)
    return lock.slept, lock.wait_total_ns * waits.share_of_largest(100 * lock.slept / lock.contended)


def sleeping(point: PointResult) -> list[Shown]:
    """Locks that waiters sleep for, as far as they were taken."""
    return [_shown(lock) for lock in point.locks if lock.type in SLEEPING and lock.acquired]


def _shown(lock: LockSummary) -> Shown:
    return Shown(
        function_of(lock.name),
        _kind(lock),
        lock.contended,
        lock.acquired,
        lock.wait_total_ns,
        lock.wait_max_ns,
        lock.hold_total_ns + lock.hold_shared_total_ns,
        lock.hold_max_ns,
    )


def _kind(lock: LockSummary) -> str:
    """perf's word; waits are not counted by side, so a lock has the side from which it is taken more often."""
    kind = _PERF.get(lock.type, lock.type)
    if kind not in _SIDED:
        return kind
    return f"{kind}:{'R' if 2 * lock.acquired_shared > lock.acquired else 'W'}"


def function_of(lock: str) -> str:
    """The function that names a class in a call chain, or its name in one word where no chain does.

    A `wait_lock` is taken where its lock is. A class whose function takes another one, too, has lockdep's name.
    """
    lock = lock.removesuffix(".wait_lock") if lock not in symbols().locks else lock
    group = re.sub(r" L\d+$", "", lock)
    found = next((c for c in chains() if c.lock in (lock, group)), None)
    if found is None:
        return re.sub(r"[^\w.]+", "_", lock)
    function = found.functions[-1]
    return function if lock_of(Waits((function,), 1, found.kind)) == found.lock else lockdep_of(lock)


def of_lock_stat(point: PointResult) -> Iterator[tuple[str, list[int | float]]]:
    """Each class with lockdep's name and the twelve columns, in microseconds; minima are not kept and are 0."""
    for lock in sorted(point.locks, key=lambda x: -x.contended):
        if not lock.acquired:
            continue
        shared, alone = lock.acquired_shared, lock.acquired - lock.acquired_shared
        sides = [("", lock.acquired, lock.hold_total_ns + lock.hold_shared_total_ns, lock.hold_max_ns)]
        if shared and alone:
            sides = [
                ("-W", alone, lock.hold_total_ns, lock.hold_max_ns),
                ("-R", shared, lock.hold_shared_total_ns, 0.0),
            ]
        for n, (side, acquired, held, longest) in enumerate(sides):
            found = lock.contended if n == 0 else 0
            wait = lock.wait_total_ns if n == 0 else 0.0
            most = lock.wait_max_ns if n == 0 else 0.0
            moved = min(lock.line_transfers, lock.acquired) if n == 0 else 0
            times = _times(0.0, most, wait, found)
            yield lockdep_of(lock.name) + side, [
                min(found, moved), found, *times, moved, acquired, *_times(0.0, longest, held, acquired)
            ]  # fmt: skip


def _times(shortest: float, longest: float, whole: float, n: int) -> list[float]:
    return [shortest / 1e3, longest / 1e3, whole / 1e3, whole / 1e3 / n if n else 0.0]


def lockdep_of(lock: str) -> str:
    """Lockdep's name of a class; where it has none, the class's own."""
    group, _, level = lock.partition(" L")
    for name in (lock, group):
        known = symbols().locks.get(name)
        if known and known.lockdep:
            word = known.lockdep[0]
            return f"{word}0{level}" if word.endswith("-") else word
    return lock.replace(":", " ")
