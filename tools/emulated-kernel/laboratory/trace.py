"""Read a guest's trace (the text of tracefs): how long woken tasks wait, and who holds the AGI in which state."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_LINE = re.compile(r"\s*(.+)-(\d+)\s+\[(\d+)\]\s+\S+\s+([\d.]+): (\w+): (.*)")
_SWITCH = re.compile(r"prev_comm=(.*) prev_pid=(\d+) .*prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+)")
_WAKING = re.compile(r"comm=(.*) pid=(\d+) .*target_cpu=(\d+)")
_MIGRATED = re.compile(r"comm=(.*) pid=(\d+) .*dest_cpu=(\d+)")
IDLE = "runnable, CPU idle"
"""A holder is on its way to a CPU that idles."""
_DADDR = re.compile(r"daddr (0x[0-9a-f]+)")


@dataclass(frozen=True)
class Event:
    """A line of a trace; `us` is its time."""

    comm: str
    pid: int
    cpu: int
    us: float
    name: str
    rest: str


@dataclass
class Task:
    """What is known of a task: R runs, Q is queued, S sleeps."""

    comm: str = "?"
    state: str = "S"
    cpu: int = 0
    woken: float | None = None
    granted: float | None = None


@dataclass
class Buffer:
    """A buffer lock: a semaphore that is granted to the first waiter."""

    owner: int | None = None
    granted: bool = False
    queue: deque[int] = field(default_factory=deque)


@dataclass(frozen=True)
class Holder:
    """A kind of task that has a buffer, and what it does: it runs, sleeps, or is runnable."""

    kind: str
    does: str
    granted: bool = False
    """It was given the buffer and has not come back with it yet."""

    def __str__(self) -> str:
        return f"{self.kind}, {'granted, ' if self.granted else ''}{self.does}"


@dataclass
class Report:
    """What a trace says; waits in microseconds by kind of task, held times in microseconds by state of the holder."""

    span: float = 0.0
    wake_to_run: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    grant_to_run: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    acquired: Counter[str] = field(default_factory=Counter)
    found_held: Counter[str] = field(default_factory=Counter)
    held: dict[Holder, float] = field(default_factory=lambda: defaultdict(float))
    runs: list[tuple[float, int, str]] = field(default_factory=list)
    """Who begins to run, when and where."""

    def text(self) -> str:
        """Return a summary."""
        lines = [f"{self.span / 1000:.1f} ms; AGI held {100 * sum(self.held.values()) / self.span:.1f} %:"]
        lines += [
            f"    {100 * us / self.span:6.2f} % {state}"
            for state, us in sorted(self.held.items(), key=lambda item: -item[1])
        ]
        for title, waits in (("wake to run", self.wake_to_run), ("grant to run", self.grant_to_run)):
            for kind, values in sorted(waits.items()):
                shown = " ".join(f"{percentile(values, p):.0f}" for p in (50, 90, 99))
                mean = sum(values) / len(values)
                lines.append(f"{title}, us, {kind}: n={len(values)} p50/90/99 {shown}, mean {mean:.1f}")
        for kind, n in sorted(self.acquired.items()):
            lines.append(f"AGI by {kind}: {n}, found held {100 * self.found_held[kind] / n:.1f} %")
        return "\n".join(lines)


def percentile(values: list[float], percent: float) -> float:
    """Return the value below which so many percent of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def events(lines: Iterable[str]) -> Iterator[Event]:
    """Yield the events among the lines."""
    for line in lines:
        if found := _LINE.match(line):
            comm, pid, cpu, seconds, name, rest = found.groups()
            yield Event(comm, int(pid), int(cpu), 1e6 * float(seconds), name, rest)


def kind_of(comm: str) -> str:
    """Return what sort of task a name is: a worker bound to its CPU, an unbound one, the load, or another."""
    if comm.startswith("kworker/"):
        return "worker, unbound" if comm.startswith("kworker/u") else "worker, bound"
    return "load" if comm.startswith("load") else "other"


class Reader:
    """Goes through a trace once."""

    def __init__(self) -> None:
        self.report = Report()
        self.tasks: dict[int, Task] = defaultdict(Task)
        self.running: dict[int, int] = {}
        self.buffers: dict[str, Buffer] = defaultdict(Buffer)
        self.first: float | None = None
        self.last = 0.0

    def read(self, lines: Iterable[str]) -> Report:
        """Return what the lines of one trace say; raise `ValueError` if there is no event in them."""
        for event in events(lines):
            self._advance(event.us)
            if event.pid:
                task = self.tasks[event.pid]
                task.comm, task.cpu, task.state = event.comm, event.cpu, "R"
                self.running[event.cpu] = event.pid
            if event.name == "sched_switch":
                self._switch(event)
            elif event.name == "sched_waking":
                self._waking(event)
            elif event.name == "sched_migrate_task":
                self._migrated(event)
            elif event.name.startswith("xfs_buf_"):
                self._buffer(event)
        if self.first is None:
            raise ValueError("there is no event of tracefs in this text")
        self.report.span = self.last - self.first
        return self.report

    def _advance(self, us: float) -> None:
        if self.first is None:
            self.first = self.last = us
        for buffer in self.buffers.values():
            if buffer.owner is not None:
                self.report.held[self._holder(buffer)] += us - self.last
        self.last = us

    def _holder(self, buffer: Buffer) -> Holder:
        task = self.tasks[buffer.owner or 0]
        state = {"R": "runs", "S": "sleeps"}.get(task.state, "")
        if not state:
            there = self.running.get(task.cpu, 0)
            state = f"runnable behind {kind_of(self.tasks[there].comm)}" if there else IDLE
        return Holder(kind_of(task.comm), state, buffer.granted)

    def _switch(self, event: Event) -> None:
        found = _SWITCH.match(event.rest)
        if found is None:
            return
        previous, following = int(found[2]), int(found[5])
        if previous:
            task = self.tasks[previous]
            task.state, task.cpu = ("Q" if found[3].startswith("R") else "S"), event.cpu
        self.running[event.cpu] = following
        if following:
            task = self.tasks[following]
            task.comm, task.state, task.cpu = found[4], "R", event.cpu
            self.report.runs.append((event.us, event.cpu, task.comm))
            if task.woken is not None:
                self.report.wake_to_run[kind_of(task.comm)].append(event.us - task.woken)
                task.woken = None
            self._has_grant(task, event.us)

    def _waking(self, event: Event) -> None:
        if found := _WAKING.match(event.rest):
            task = self.tasks[int(found[2])]
            task.comm, task.cpu = found[1], int(found[3])
            if task.state == "S":
                task.state, task.woken = "Q", event.us
            self._grant(event, int(found[2]))

    def _migrated(self, event: Event) -> None:
        """Follow a woken task to the CPU that was chosen for it: `sched_waking` has the one where it slept."""
        if found := _MIGRATED.match(event.rest):
            self.tasks[int(found[2])].cpu = int(found[3])

    def _has_grant(self, task: Task, us: float) -> None:
        """Who was granted a buffer runs with it: at once, if the grant came before the sleep."""
        if task.granted is not None:
            self.report.grant_to_run[kind_of(task.comm)].append(us - task.granted)
            task.granted = None

    def _buffer(self, event: Event) -> None:
        found = _DADDR.search(event.rest)
        if found is None:
            return
        buffer, kind = self.buffers[found[1]], kind_of(event.comm)
        if event.name == "xfs_buf_lock":
            if buffer.owner != event.pid:
                buffer.queue.append(event.pid)
        elif event.name in ("xfs_buf_lock_done", "xfs_buf_trylock"):
            if event.pid in buffer.queue:
                buffer.queue.remove(event.pid)
            self._has_grant(self.tasks[event.pid], event.us)
            self.report.acquired[kind] += 1
            buffer.owner, buffer.granted = event.pid, False
        elif event.name == "xfs_buf_unlock" and buffer.owner == event.pid:
            buffer.owner = None

    def _grant(self, event: Event, pid: int) -> None:
        """Give a buffer to whom its owner wakes: `up` does so before the event that says unlock is written.

        Who came at the same moment as another may have queued in another order than the events say, also before the
        event that says that the other has the buffer. So who asks queues, and found it held if an owner wakes him.
        """
        for buffer in self.buffers.values():
            if buffer.owner == event.pid and pid in buffer.queue:
                buffer.queue.remove(pid)
                buffer.owner, buffer.granted = pid, True
                self.report.found_held[kind_of(self.tasks[pid].comm)] += 1
                self.tasks[pid].granted = event.us
