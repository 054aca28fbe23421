"""A time line as ftrace prints it (`trace`, the default tracer): what `trace-cmd report` writes and viewers read.

Events as in Linux 6: `sched_switch`, `sched_waking`, `sched_wakeup`, `contention_begin`, `contention_end`, and
`tracing_mark_write` with atrace's marks: slices of operations and waits (`B`, `E`), holds (`S`, `F`), counters (`C`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from simfs.machine.labels import number_of
from simfs.machine.time import Time
from simfs.reports.traces.tracks import PRIORITY, PROCESS, Slice, Tracks, nested, pid_of
from simfs.results.timeline import Timeline, Wake

HEADER = """\
# tracer: nop
#
#                                _-----=> irqs-off
#           TASK-PID       TGID   CPU#  |||||   TIMESTAMP  FUNCTION
#              | |           |      |   |||||      |         |
"""
BEFORE, WOKEN, SWITCHED, AFTER = range(4)
"""The order of events at one time: marks of who leaves, wake-ups, switches, marks of who comes."""

FLAGS = (("mutex", "MUTEX"), ("rwsem", ""), ("semaphore", ""), ("percpu", "PERCPU"))
"""`LCB_F_*` by the beginning of a lock's type; of all others, which spin, `SPIN`."""


FORMATS = {
    "sched_switch": "prev_comm={prev_comm} prev_pid={prev_pid} prev_prio={prev_prio} prev_state={prev_state}"
    " ==> next_comm={next_comm} next_pid={next_pid} next_prio={next_prio}",
    "sched_waking": "comm={comm} pid={pid} prio={prio} target_cpu={target_cpu:03}",
    "sched_wakeup": "comm={comm} pid={pid} prio={prio} target_cpu={target_cpu:03}",
    "contention_begin": "0x{lock_addr:016x} (flags={flags})",
    "contention_end": "0x{lock_addr:016x} (ret={ret})",
    "tracing_mark_write": "{buf}",
}
"""How the kernel prints each event."""

Values = dict[str, int | str]


class Line(NamedTuple):
    """One event."""

    time: Time
    order: int
    task: int | None
    cpu: int
    event: str
    values: Values


def ftrace(line: Timeline, types: Mapping[str, str]) -> str:
    """The text; `types` are the types of lock classes by name."""
    tracks = Tracks(line)
    return HEADER + "".join(_text(tracks, event) for event in events_of(tracks, types))


def events_of(tracks: Tracks, types: Mapping[str, str]) -> list[Line]:
    """All events in order."""
    events = [*_switches(tracks), *_wakes(tracks), *_slices(tracks, types), *_holds(tracks), *_queues(tracks)]
    return sorted(events, key=lambda event: event[:2])


def _text(tracks: Tracks, event: Line) -> str:
    name = "<idle>" if event.task is None else tracks.name(event.task)
    group = "-----" if event.task is None else f"{PROCESS:5}"
    head = f"{name:>16}-{pid_of(event.task):<6} ({group}) [{event.cpu:03}] d..2. "
    seconds, ns = divmod(event.time // 1000, 10**9)
    return f"{head}{seconds}.{ns:09}: {event.event}: {FORMATS[event.event].format(**event.values)}\n"


def _switches(tracks: Tracks) -> Iterator[Line]:
    for time, cpu, before, left, after in tracks.switches:
        values: Values = {"prev_state": "R" if before is None else left}
        for side, task in (("prev", before), ("next", after)):
            values[f"{side}_comm"] = tracks.name(task, cpu)
            values[f"{side}_pid"], values[f"{side}_prio"] = pid_of(task), PRIORITY
        yield Line(time, SWITCHED, before, cpu, "sched_switch", values)


def _wakes(tracks: Tracks) -> Iterator[Line]:
    for wake in tracks.line.wakes:
        waker, cpu = _context(tracks, wake)
        woken: Values = {"comm": tracks.name(wake.task), "pid": pid_of(wake.task)}
        woken |= {"prio": PRIORITY, "target_cpu": wake.cpu}
        for event in ("sched_waking", "sched_wakeup"):
            yield Line(wake.time, WOKEN, waker, cpu, event, woken)


def _context(tracks: Tracks, wake: Wake) -> tuple[int | None, int]:
    """Who wakes where: a task where it runs, an interrupt on the CPU of who is woken."""
    waker = number_of(wake.by)
    if waker is not None:
        return waker, tracks.doing(waker, wake.time).cpu
    return tracks.current(wake.cpu, wake.time - 1), wake.cpu


def _slices(tracks: Tracks, types: Mapping[str, str]) -> Iterator[Line]:
    for task, slices in tracks.slices.items():
        for time, each, begins in nested(slices):
            order = AFTER if tracks.comes(task, time) else BEFORE
            cpu = tracks.doing(task, time).cpu
            mark = f"B|{PROCESS}|{_slice_name(tracks, each)}" if begins else f"E|{PROCESS}"
            events = [_mark(time, order, task, cpu, mark)]
            if each.span.kind == "wait":
                told = _begin(tracks, each, types) if begins else ("contention_end", _lock(each) | {"ret": 0})
                events.insert(0 if begins else 1, Line(time, order, task, cpu, *told))
            yield from events


def _mark(time: Time, order: int, task: int | None, cpu: int, text: str) -> Line:
    return Line(time, order, task, cpu, "tracing_mark_write", {"buf": text})


def _slice_name(tracks: Tracks, each: Slice) -> str:
    if each.span.kind == "operation":
        return each.span.about or "operation"
    owner = tracks.owner(each.span.about, each.begin)
    return f"Lock contention on {each.span.about.partition('#')[0]} (owner tid: {pid_of(owner)})"


def _lock(each: Slice) -> Values:
    return {"lock_addr": int(each.span.about.partition("#")[2] or 0)}


def _begin(tracks: Tracks, each: Slice, types: Mapping[str, str]) -> tuple[str, Values]:
    name = each.span.about.partition("#")[0]
    kind = types.get(name, "")
    flags = [next((flag for start, flag in FLAGS if kind.startswith(start)), "SPIN")]
    if "rw" in kind or "percpu" in kind or "btrfs" in kind:
        flags.append(tracks.side(each.span.about, each.span.task, each.span.end).upper())
    return "contention_begin", _lock(each) | {"flags": "|".join(flag for flag in flags if flag)}


def _holds(tracks: Tracks) -> Iterator[Line]:
    for cookie, span in enumerate(tracks.line.of("hold", "hold shared")):
        name = f"{PROCESS}|{span.about.partition('#')[0]} held|{cookie}"
        begin = max(span.begin, tracks.line.begin)
        for time, mark in ((begin, "S"), (span.end, "F")):
            if time is not None:
                cpu = tracks.doing(span.task, time).cpu
                yield _mark(time, AFTER, tracks.current(cpu, time), cpu, f"{mark}|{name}")


def _queues(tracks: Tracks) -> Iterator[Line]:
    for name, steps in tracks.queues.items():
        for time, waiting in steps:
            yield _mark(time, AFTER, None, 0, f"C|{PROCESS}|waiting for {name}|{waiting}")
