"""A time line as a Perfetto trace (protobuf), for ui.perfetto.dev and its SQL. Needs the package `perfetto`.

Tracks: counters of who waits by lock class; for each task its operations and waits, and below it what it holds; the
CPUs by `sched_switch`. Slices are called by the class, the lock itself is an argument, so that `GROUP BY name` works.
A flow goes from each hold to the next task's hold of that lock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from simfs.machine.labels import number_of
from simfs.machine.time import Time
from simfs.reports.traces.tracks import PRIORITY, PROCESS, Slice, Tracks, nested, pid_of
from simfs.results.timeline import Span, Timeline

if TYPE_CHECKING:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket

SEQUENCE = 1
STATES = {"R": 0, "S": 1, "D": 2, "X": 16}
"""Bits of `prev_state` in `sched_switch`."""


def perfetto(line: Timeline) -> bytes:
    """The trace. Raises ImportError without the package."""
    return bytes(_Writer(line).write().SerializeToString())


class _Writer:
    def __init__(self, line: Timeline) -> None:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2

        self.proto = perfetto_trace_pb2
        self.trace: Trace = perfetto_trace_pb2.Trace()
        self.tracks = Tracks(line)
        self.line = line
        self.last_track = 0
        overs = list(enumerate(line.hand_overs, start=1))
        self.given = {(over.lock, over.giver, over.released): number for number, over in overs}
        self.taken = {(over.lock, over.taker, over.acquired): number for number, over in overs}

    def write(self) -> Trace:
        self._names()
        self._cpus()
        self._counters()
        for task in self.line.tasks:
            thread = self._track(thread=task)
            for time, each, begins in nested(self.tracks.slices.get(task, ())):
                self._slice(time, thread, each, begins=begins)
            self._holds(task, thread)
        return self.trace

    def _packet(self, time: Time | None = None) -> TracePacket:
        packet = self.trace.packet.add()
        packet.trusted_packet_sequence_id = SEQUENCE
        if time is not None:
            packet.timestamp = _ns(time)
        return packet

    def _names(self) -> None:
        packet = self._packet()
        packet.sequence_flags = self.proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        packet.process_tree.processes.add(pid=PROCESS, cmdline=["simfs"])
        for task in self.line.tasks:
            tid, name = pid_of(task), self.tracks.name(task)
            packet.process_tree.threads.add(tid=tid, tgid=PROCESS, name=name)

    def _cpus(self) -> None:
        bundles: dict[int, list[tuple[Time, int, Any]]] = defaultdict(list)
        for switch in self.tracks.switches:
            bundles[switch.cpu].append((switch.time, 1, switch))
        for wake in self.line.wakes:
            bundles[wake.cpu].append((wake.time, 0, wake))
        for cpu, events in sorted(bundles.items()):
            ftrace = self._packet().ftrace_events
            ftrace.cpu = cpu
            for time, switches, event in sorted(events, key=lambda event: event[:2]):
                made = ftrace.event.add(timestamp=_ns(time))
                self._switch(made, event) if switches else self._waking(made, event)

    def _switch(self, made: Any, event: Any) -> None:  # noqa: ANN401
        made.pid = pid_of(event.before)
        switch = made.sched_switch
        switch.prev_comm, switch.prev_pid = self.tracks.name(event.before, event.cpu), pid_of(event.before)
        switch.next_comm, switch.next_pid = self.tracks.name(event.after, event.cpu), pid_of(event.after)
        switch.prev_prio = switch.next_prio = PRIORITY
        switch.prev_state = STATES["R" if event.before is None else event.left]

    def _waking(self, made: Any, event: Any) -> None:  # noqa: ANN401
        made.pid = pid_of(number_of(event.by))
        waking = made.sched_waking
        waking.comm, waking.pid = self.tracks.name(event.task), pid_of(event.task)
        waking.prio, waking.success, waking.target_cpu = PRIORITY, 1, event.cpu

    def _track(self, name: str = "", *, thread: int | None = None, parent: int | None = None) -> int:
        self.last_track += 1
        descriptor = self._packet().track_descriptor
        descriptor.uuid = self.last_track
        if name:
            descriptor.name = name
        if parent is not None:
            descriptor.parent_uuid = parent
        if thread is not None:
            descriptor.thread.pid, descriptor.thread.tid = PROCESS, pid_of(thread)
            descriptor.thread.thread_name = self.tracks.name(thread)
        return self.last_track

    def _counters(self) -> None:
        for name, steps in self.tracks.queues.items():
            track = self._track(f"waiting for {name}")
            self.trace.packet[-1].track_descriptor.counter.unit_name = "tasks"
            for time, waiting in steps:
                event = self._packet(time).track_event
                event.type = self.proto.TrackEvent.TYPE_COUNTER
                event.track_uuid, event.counter_value = track, waiting

    def _event(self, time: Time, track: int, name: str, category: str, **arguments: str | int) -> Any:  # noqa: ANN401
        """The begin of a slice."""
        event = self._packet(time).track_event
        event.type, event.track_uuid = self.proto.TrackEvent.TYPE_SLICE_BEGIN, track
        event.name = name
        event.categories.append(category)
        for key, value in arguments.items():
            argument = event.debug_annotations.add(name=key)
            if isinstance(value, int):
                argument.int_value = value
            else:
                argument.string_value = value
        return event

    def _end(self, time: Time, track: int) -> None:
        event = self._packet(time).track_event
        event.type, event.track_uuid = self.proto.TrackEvent.TYPE_SLICE_END, track

    def _slice(self, time: Time, track: int, each: Slice, *, begins: bool) -> None:
        if not begins:
            self._end(time, track)
            return
        if each.span.kind == "operation":
            self._event(time, track, each.span.about or "operation", "operation")
            return
        lock = each.span.about
        owner = self.tracks.owner(lock, each.begin)
        name = f"Lock contention on {lock.partition('#')[0]} (owner tid: {pid_of(owner)})"
        about: dict[str, str | int] = {
            "lock_class": lock.partition("#")[0],
            "lock": lock,
            "owner_tid": pid_of(owner),
        }
        self._event(time, track, name, "wait", **about)

    def _holds(self, task: int, thread: int) -> None:
        """What a task holds, on as many tracks as it holds at once: holds need not nest."""
        free: list[tuple[Time, int]] = []
        for span in self._of(task):
            begin = max(span.begin, self.line.begin)
            lane = next((at for at, (end, _) in enumerate(free) if end <= begin), len(free))
            if lane == len(free):
                free.append((0, self._track("holds", parent=thread)))
            end = self.line.end if span.end is None else span.end
            free[lane] = (end, free[lane][1])
            self._hold(span, begin, end, free[lane][1])

    def _of(self, task: int) -> Iterator[Span]:
        return (span for span in self.line.of("hold", "hold shared") if span.task == task)

    def _hold(self, span: Span, begin: Time, end: Time, track: int) -> None:
        shared = int(span.kind == "hold shared")
        runs = _ns(self.tracks.runs_from(span.task, begin)) - _ns(begin)
        about: dict[str, str | int] = {
            "lock": span.about,
            "holder": self.tracks.name(span.task),
            "shared": shared,
        }
        about["not_yet_running_ns"] = min(runs, _ns(end) - _ns(begin))
        event = self._event(begin, track, span.about.partition("#")[0], "hold", **about)
        if given := self.given.get((span.about, span.task, end)):
            event.flow_ids.append(given)
        if taken := self.taken.get((span.about, span.task, span.begin)):
            event.terminating_flow_ids.append(taken)
        self._end(end, track)


def _ns(time: Time) -> int:
    return time // 1000
