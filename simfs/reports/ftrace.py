"""A time line as ftrace prints it (`trace`, the default tracer): what `trace-cmd report` writes and viewers read.

Events as in Linux 6: `sched_switch`, `sched_waking`, `sched_wakeup`, `contention_begin`, `contention_end`, and
`tracing_mark_write` with atrace's marks: slices of operations and waits (`B`, `E`), holds (`S`, `F`), counters (`C`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from simfs.machine.time import Time
from simfs.reports.tracks import IDLE, PRIORITY, PROCESS, Slice, Tracks, nested
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


class Line(NamedTuple):
    """One event."""

    time: Time
    order: int
    task: int | None
    cpu: int
    text: str


def ftrace(line: Timeline, types: Mapping[str, str]) -> str:
    """The text; `types` are the types of lock classes by name."""
    tracks = Tracks(line)
    events = [*_switches(tracks), *_wakes(tracks), *_slices(tracks, types), *_holds(tracks), *_queues(tracks)]
    events.sort(key=lambda event: event[:2])
    return HEADER + "".join(_text(tracks, event) for event in events)


def _text(tracks: Tracks, event: Line) -> str:
    name = "<idle>" if event.task is None else tracks.name(event.task)
    group = "-----" if event.task is None else f"{PROCESS:5}"
    head = f"{name:>16}-{_pid(event.task):<6} ({group}) [{event.cpu:03}] d..2. "
    return f"{head}{event.time / 1e12:.9f}: {event.text}\n"


def _pid(task: int | None) -> int:
    return IDLE if task is None else PROCESS + task


def _switches(tracks: Tracks) -> Iterator[Line]:
    for time, cpu, before, left, after in tracks.switches:
        state = "R" if before is None else left
        prev = f"prev_comm={tracks.name(before, cpu)} prev_pid={_pid(before)} prev_prio={PRIORITY} prev_state={state}"
        after_ = f"next_comm={tracks.name(after, cpu)} next_pid={_pid(after)} next_prio={PRIORITY}"
        yield Line(time, SWITCHED, before, cpu, f"sched_switch: {prev} ==> {after_}")


def _wakes(tracks: Tracks) -> Iterator[Line]:
    for wake in tracks.line.wakes:
        waker, cpu = _context(tracks, wake)
        woken = (
            f"comm={tracks.name(wake.task)} pid={_pid(wake.task)} prio={PRIORITY} target_cpu={wake.cpu:03}"
        )
        for event in ("sched_waking", "sched_wakeup"):
            yield Line(wake.time, WOKEN, waker, cpu, f"{event}: {woken}")


def _context(tracks: Tracks, wake: Wake) -> tuple[int | None, int]:
    """Who wakes where: a task where it runs, an interrupt on the CPU of who is woken."""
    if wake.by.startswith("task "):
        waker = int(wake.by.removeprefix("task "))
        return waker, tracks.doing(waker, wake.time).cpu
    return tracks.current(wake.cpu, wake.time), wake.cpu


def _slices(tracks: Tracks, types: Mapping[str, str]) -> Iterator[Line]:
    for task, slices in tracks.slices.items():
        for time, each, begins in nested(slices):
            order = AFTER if tracks.comes(task, time) else BEFORE
            cpu = tracks.doing(task, time).cpu
            mark = f"B|{PROCESS}|{_slice_name(tracks, each)}" if begins else f"E|{PROCESS}"
            texts = [f"tracing_mark_write: {mark}"]
            if each.span.kind == "wait":
                texts.insert(0 if begins else 1, _contention(tracks, each, types, begins=begins))
            for text in texts:
                yield Line(time, order, task, cpu, text)


def _slice_name(tracks: Tracks, each: Slice) -> str:
    if each.span.kind == "operation":
        return each.span.about or "operation"
    owner = tracks.owner(each.span.about, each.begin)
    return f"Lock contention on {each.span.about.partition('#')[0]} (owner tid: {_pid(owner)})"


def _contention(tracks: Tracks, each: Slice, types: Mapping[str, str], *, begins: bool) -> str:
    name, _, number = each.span.about.partition("#")
    lock = f"0x{int(number or 0):016x}"
    if not begins:
        return f"contention_end: {lock} (ret=0)"
    kind = types.get(name, "")
    flags = [next((flag for start, flag in FLAGS if kind.startswith(start)), "SPIN")]
    if "rw" in kind or "percpu" in kind or "btrfs" in kind:
        flags.append(tracks.side(each.span.about, each.span.task, each.span.end).upper())
    return f"contention_begin: {lock} (flags={'|'.join(flag for flag in flags if flag)})"


def _holds(tracks: Tracks) -> Iterator[Line]:
    for cookie, span in enumerate(tracks.line.of("hold", "hold shared")):
        name = f"{PROCESS}|{span.about.partition('#')[0]} held|{cookie}"
        begin = max(span.begin, tracks.line.begin)
        for time, mark in ((begin, "S"), (span.end, "F")):
            if time is not None:
                cpu = tracks.doing(span.task, time).cpu
                yield Line(time, AFTER, tracks.current(cpu, time), cpu, f"tracing_mark_write: {mark}|{name}")


def _queues(tracks: Tracks) -> Iterator[Line]:
    for name, steps in tracks.queues.items():
        for time, waiting in steps:
            mark = f"C|{PROCESS}|waiting for {name}|{waiting}"
            yield Line(time, AFTER, None, 0, f"tracing_mark_write: {mark}")
