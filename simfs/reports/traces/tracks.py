"""What trace viewers show, out of a time line: switches as the kernel tells them, slices that nest, who owns a lock.

Task n is the thread 1000 + n, since thread 0 is the idle task, and kernel thread n is 1000000 + n.
All are threads of one process, 1000.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from simfs.machine.time import Time
from simfs.results.timeline import Doing, Interval, Ran, Span, Timeline

PROCESS = 1000
"""The process, and what is added to a task's number."""
KTHREADS = 1_000_000
"""What is added to a kernel thread's number."""
IDLE = 0
PRIORITY = 120


def pid_of(task: int | None) -> int:
    """The thread's number in the viewer."""
    if task is None:
        return IDLE
    return PROCESS + task if task >= 0 else KTHREADS - task


class Switch(NamedTuple):
    """A CPU goes from one task to the next (`sched_switch`); None is the idle task."""

    time: Time
    cpu: int
    before: int | None
    left: str
    """In which state who ran before left: `R` runnable, `S` or `D` asleep, `X` ended."""
    after: int | None


class Slice(NamedTuple):
    """An operation or a wait as its task sees it: a wait ends when the task runs."""

    begin: Time
    end: Time
    span: Span


@dataclass(frozen=True)
class Tracks:
    """A time line as the tracks of a viewer."""

    line: Timeline

    def name(self, task: int | None, cpu: int = 0) -> str:
        """A thread's name, at most 15 characters as in the kernel (`comm`)."""
        if task is None:
            return f"swapper/{cpu}"
        return f"load-{task}" if task >= 0 else f"kthread-{-task}"

    @cached_property
    def switches(self) -> list[Switch]:
        """All switches in order of time."""
        found = [switch for cpu, ran in self.line.cpus.items() for switch in self._switches(cpu, ran)]
        return sorted(found, key=lambda switch: (switch.time, switch.cpu))

    def _switches(self, cpu: int, ran: list[Ran]) -> Iterator[Switch]:
        """Of one CPU. What the machine needs for a switch is the time of who comes, as in the kernel."""
        current: int | None = None
        free = left = self.line.begin
        for each in ran:
            if each.task is None:
                free = each.end if each.idle else free
                continue
            comes = max(free, self._runnable_since(each.task, each.begin))
            if current is not None and left < comes:
                yield Switch(left, cpu, current, self._left(current, left), None)
                current = None
            state = "R" if current is None else self._left(current, left)
            yield Switch(comes, cpu, current, state, each.task)
            current, free, left = each.task, each.end, each.end
        if current is not None and left < self.line.end:
            yield Switch(left, cpu, current, self._left(current, left), None)

    def _runnable_since(self, task: int, runs: Time) -> Time:
        parts = self.line.tasks[task]
        at = bisect_right(parts, runs, key=lambda part: part.begin) - 1
        while at > 0 and parts[at - 1].doing is Doing.RUNNABLE:
            at -= 1
        return parts[at].begin

    def _left(self, task: int, time: Time) -> str:
        part = self.doing(task, time)
        if part.doing is Doing.ASLEEP:
            return "D" if part.waits or part.woken_by.startswith("device") else "S"
        return "X" if part.doing is Doing.AWAY else "R"

    def doing(self, task: int, time: Time) -> Interval:
        """What a task does from a time on."""
        parts = self.line.tasks[task]
        return parts[max(bisect_right(parts, time, key=lambda part: part.begin) - 1, 0)]

    def comes(self, task: int, time: Time) -> bool:
        """Whether a task comes to a CPU at a time."""
        parts = self.line.tasks[task]
        at = bisect_right(parts, time, key=lambda part: part.begin) - 1
        runs = at >= 0 and parts[at].begin == time and parts[at].doing is Doing.RUN
        return runs and (at == 0 or parts[at - 1].doing is not Doing.RUN)

    @cached_property
    def _on(self) -> dict[int, list[tuple[Time, int | None]]]:
        changes: dict[int, list[tuple[Time, int | None]]] = defaultdict(list)
        for switch in self.switches:
            changes[switch.cpu].append((switch.time, switch.after))
        return changes

    def current(self, cpu: int, time: Time) -> int | None:
        """The task that has a CPU."""
        changes = self._on.get(cpu, [])
        at = bisect_right(changes, time, key=lambda change: change[0]) - 1
        return changes[at][1] if at >= 0 else None

    @cached_property
    def slices(self) -> dict[int, list[Slice]]:
        """Operations and waits of each task, those outside before those inside."""
        found: dict[int, list[Slice]] = defaultdict(list)
        for span in self.line.of("operation", "wait"):
            begin, end = max(span.begin, self.line.begin), span.end
            until = self.line.end if end is None else self.runs_from(span.task, end)
            found[span.task].append(Slice(begin, until, span))
        for slices in found.values():
            slices.sort(key=lambda each: (each.begin, -each.end, each.span.kind != "operation"))
        return found

    def runs_from(self, task: int, time: Time) -> Time:
        """When a task runs that has something from a time on: then, or when it comes to a CPU."""
        parts = self.line.tasks[task]
        first = max(bisect_right(parts, time, key=lambda part: part.begin) - 1, 0)
        runs = (max(part.begin, time) for part in parts[first:] if part.doing is Doing.RUN)
        return next(runs, self.line.end)

    @cached_property
    def _holders(self) -> dict[str, list[Span]]:
        held: dict[str, list[Span]] = defaultdict(list)
        for span in self.line.of("hold", "hold shared"):
            held[span.about].append(span)
        return held

    def owner(self, lock: str, time: Time) -> int | None:
        """Who has a lock at a time: the holder, or the last reader who came."""
        spans = self._holders.get(lock, [])
        last = bisect_right(spans, time, key=lambda span: span.begin)
        return next((s.task for s in reversed(spans[:last]) if s.end is None or s.end > time), None)

    def side(self, lock: str, task: int, time: Time | None) -> str:
        """`read` if a wait that ended at `time` ended with a shared hold; else `write`."""
        spans = self._holders.get(lock, [])
        shared = any(s.task == task and s.begin == time and s.kind == "hold shared" for s in spans)
        return "read" if shared else "write"

    @cached_property
    def queues(self) -> dict[str, list[tuple[Time, int]]]:
        """How many tasks wait for the locks of each class that somebody waits for."""
        locks = sorted({span.about for span in self.line.of("wait")})
        classes = sorted({lock.partition("#")[0] for lock in locks})
        own = {name: frozenset(lock for lock in locks if lock.partition("#")[0] == name) for name in classes}
        return {name: self.line.waiting(own[name]) for name in classes}


def nested(slices: Iterable[Slice]) -> Iterator[tuple[Time, Slice, bool]]:
    """When slices begin (True) and end (False), each inside the one before it that has not ended."""
    open_: list[Slice] = []
    for each in slices:
        while open_ and open_[-1].end <= each.begin:
            yield open_[-1].end, open_[-1], False
            open_.pop()
        inside = each._replace(end=min(each.end, open_[-1].end)) if open_ else each
        yield inside.begin, inside, True
        open_.append(inside)
    for each in reversed(open_):
        yield each.end, each, False
