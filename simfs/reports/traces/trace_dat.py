"""A time line as trace-cmd's file `trace.dat` (version 6), which `trace-cmd report` and KernelShark open.

The layout is that of trace-cmd.dat.v6(5): formats of events, names of threads, then for each CPU pages of the kernel's
ring buffer. The events are those of `ftrace`.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from simfs.reports.traces.ftrace import Line, events_of
from simfs.reports.traces.tracks import Tracks, pid_of
from simfs.results.timeline import Timeline

PAGE = 4096
PAGE_HEADER = 16
MOST_DELTA = (1 << 27) - 1
TIME_EXTEND = 30
MOST_WORDS = 28
"""Longest event (in words) whose length stands in its header."""

PAGE_FORMAT = """\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;
"""
EVENT_FORMAT = """\
# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
"""
STATES = {"R": 0, "S": 1, "D": 2, "X": 0x10}
FLAGS = {"SPIN": 1, "READ": 2, "WRITE": 4, "PERCPU": 16, "MUTEX": 32}
"""`LCB_F_*` of include/trace/events/lock.h."""


class Field(NamedTuple):
    """A field of an event: how C declares it, and how it is packed."""

    declared: str
    name: str
    packed: str


class Format(NamedTuple):
    """An event as `/sys/kernel/tracing/events/*/format` describes it."""

    number: int
    system: str
    fields: tuple[Field, ...]
    printed: str


_COMMON = (
    Field("unsigned short common_type", "", "H"),
    Field("unsigned char common_flags", "", "B"),
    Field("unsigned char common_preempt_count", "", "B"),
    Field("int common_pid", "", "i"),
)
_WAKE = (
    Field("char comm[16]", "comm", "16s"),
    Field("pid_t pid", "pid", "i"),
    Field("int prio", "prio", "i"),
    Field("int target_cpu", "target_cpu", "i"),
)
_WOKEN = '"comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu'
_STATES = '{ 0x0001, "S" }, { 0x0002, "D" }, { 0x0010, "X" }'
_FLAGS = ", ".join(f'{{ {bit}, "{name}" }}' for name, bit in FLAGS.items())
FORMATS = {
    "sched_switch": Format(
        101,
        "sched",
        (
            Field("char prev_comm[16]", "prev_comm", "16s"),
            Field("pid_t prev_pid", "prev_pid", "i"),
            Field("int prev_prio", "prev_prio", "i"),
            Field("long prev_state", "prev_state", "q"),
            Field("char next_comm[16]", "next_comm", "16s"),
            Field("pid_t next_pid", "next_pid", "i"),
            Field("int next_prio", "next_prio", "i"),
        ),
        '"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s ==> next_comm=%s next_pid=%d next_prio=%d", '
        "REC->prev_comm, REC->prev_pid, REC->prev_prio, "
        f'REC->prev_state ? __print_flags(REC->prev_state, "|", {_STATES}) : "R", '
        "REC->next_comm, REC->next_pid, REC->next_prio",
    ),
    "sched_waking": Format(102, "sched", _WAKE, _WOKEN),
    "sched_wakeup": Format(103, "sched", _WAKE, _WOKEN),
    "contention_begin": Format(
        104,
        "lock",
        (Field("void * lock_addr", "lock_addr", "Q"), Field("unsigned int flags", "flags", "I")),
        f'"%p (flags=%s)", REC->lock_addr, __print_flags(REC->flags, "|", {_FLAGS})',
    ),
    "contention_end": Format(
        105,
        "lock",
        (Field("void * lock_addr", "lock_addr", "Q"), Field("int ret", "ret", "i")),
        '"%p (ret=%d)", REC->lock_addr, REC->ret',
    ),
    "tracing_mark_write": Format(
        5,
        "ftrace",
        (Field("unsigned long ip", "ip", "Q"), Field("char buf[]", "buf", "")),
        '"%s", REC->buf',
    ),
}
"""The events that are written; `tracing_mark_write` is ftrace's own `print`."""


def trace_dat(line: Timeline, types: Mapping[str, str]) -> bytes:
    """The file; `types` are the types of lock classes by name."""
    tracks = Tracks(line)
    events: dict[int, list[Line]] = defaultdict(list)
    for event in events_of(tracks, types):
        events[event.cpu].append(event)
    cpus = max([*events, *line.cpus], default=0) + 1
    head = _head(tracks) + struct.pack("<I", cpus) + b"options  \0" + struct.pack("<H", 0) + b"flyrecord\0"
    rings = [_ring(events[cpu]) for cpu in range(cpus)]
    offset = -(-(len(head) + 16 * cpus) // PAGE) * PAGE
    places, at = b"", offset
    for ring in rings:
        places += struct.pack("<QQ", at, len(ring))
        at += len(ring)
    return (head + places).ljust(offset, b"\0") + b"".join(rings)


def _head(tracks: Tracks) -> bytes:
    own = [(name, form) for name, form in FORMATS.items() if form.system == "ftrace"]
    systems: dict[str, list[bytes]] = defaultdict(list)
    for name, form in FORMATS.items():
        if form.system != "ftrace":
            systems[form.system].append(_sized(_format(name, form)))
    parts = [b"\x17\x08Dtracing6\0", struct.pack("<BBI", 0, 8, PAGE)]
    parts += [b"header_page\0", _sized(PAGE_FORMAT), b"header_event\0", _sized(EVENT_FORMAT)]
    parts += [struct.pack("<I", len(own)), *(_sized(_format("print", form)) for _, form in own)]
    parts.append(struct.pack("<I", len(systems)))
    for system, formats in systems.items():
        parts += [system.encode() + b"\0", struct.pack("<I", len(formats)), *formats]
    names = "".join(f"{pid_of(task)} {tracks.name(task)}\n" for task in tracks.line.tasks)
    return b"".join([*parts, struct.pack("<II", 0, 0), _sized(names)])  # neither symbols nor printk formats


def _sized(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _format(name: str, form: Format) -> str:
    lines, offset = [], 0
    for field in (*_COMMON, *form.fields):
        offset = _aligned(offset, field)
        size = struct.calcsize(f"<{field.packed}") if field.packed else 0
        signed = int(field.packed in ("i", "q"))
        lines.append(f"\tfield:{field.declared};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n")
        offset += size
    common, own = "".join(lines[: len(_COMMON)]), "".join(lines[len(_COMMON) :])
    return f"name: {name}\nID: {form.number}\nformat:\n{common}\n{own}\nprint fmt: {form.printed}\n"


def _aligned(offset: int, field: Field) -> int:
    size = 1 if field.packed in ("16s", "") else struct.calcsize(f"<{field.packed}")
    return -(-offset // size) * size


def _record(event: Line) -> bytes:
    """An event as it lies in the ring buffer, filled up to words."""
    form = FORMATS[event.event]
    data = struct.pack("<HBBi", form.number, 0, 0, pid_of(event.task))
    for field in form.fields:
        data = data.ljust(_aligned(len(data), field), b"\0")
        if not field.packed:
            data += str(event.values[field.name]).encode() + b"\n\0"
            continue
        data += struct.pack(f"<{field.packed}", _value(event, field))
    return data.ljust(-(-len(data) // 4) * 4, b"\0")


def _value(event: Line, field: Field) -> int | bytes:
    value = event.values.get(field.name, 0)
    if field.name == "prev_state":
        return STATES[str(value)]
    if field.name == "flags":
        return sum(FLAGS[flag] for flag in str(value).split("|") if flag)
    return value.encode()[:15] if isinstance(value, str) else value


def _ring(events: list[Line]) -> bytes:
    """The pages of a CPU's ring buffer; times are nanoseconds."""
    pages: list[bytes] = []
    page, first, last = b"", 0, 0
    for event in events:
        time, data = event.time // 1000, _record(event)
        entry = _entry(time - last, data)
        if page and len(page) + len(entry) > PAGE - PAGE_HEADER:
            pages.append(_page(first, page))
            page = b""
        if not page:
            first, entry = time, _entry(0, data)
        page, last = page + entry, time
    return b"".join([*pages, *([_page(first, page)] if page else [])])


def _entry(delta: int, data: bytes) -> bytes:
    extend = b""
    if delta > MOST_DELTA:
        extend = struct.pack("<II", TIME_EXTEND | (delta & MOST_DELTA) << 5, delta >> 27)
        delta = 0
    words = len(data) // 4
    if words > MOST_WORDS:
        return extend + struct.pack("<II", delta << 5, len(data) + 4) + data
    return extend + struct.pack("<I", words | delta << 5) + data


def _page(time: int, data: bytes) -> bytes:
    return (struct.pack("<QQ", time, len(data)) + data).ljust(PAGE, b"\0")
