"""`perf script` of what `perf lock record` wrote: every wait with its whole call chain.

Waits are pairs of `lock:contention_begin` and `lock:contention_end` of one thread and lock
(`include/trace/events/lock.h`, Linux 5.19).
"""

from __future__ import annotations

import re
from collections import defaultdict

from simfs.interchange.reading import Lines, Reading, Waits

_EVENT = re.compile(
    r"^\s*(?P<comm>\S.*?)\s+(?P<tid>\d+)(?:/\d+)?\s+(?:\[\d+\]\s+)?(?P<at>\d{1,12}\.\d{1,9}):\s+"
    r"lock:contention_(?P<what>begin|end): (?P<lock>0x[0-9a-f]+) \((?:flags=(?P<flags>[\w|]*)|ret=-?\d+)\)"
)
_FRAME = re.compile(r"^\s+[0-9a-f]+ (?P<function>[\w.]+)(?:\+0x[0-9a-f]+)? \(.*\)$")
_LEFT_OUT = re.compile(
    r"_(slowpath|failed)$|^(_raw_(spin|read|write)_|rwsem_|down_|mutex_|__mutex_|__down|percpu_)"
    r"|^(down|up|__up|queued_(read|write)_lock)$|^up_(read|write)"
)
_SLEEPING = re.compile(r"rwsem_|^(__)?(up|down|mutex)")
"""Functions of the locks themselves, as perf leaves them out of the caller."""

_KINDS = {
    "SPIN": "spinlock",
    "SPIN|READ": "rwlock:R",
    "SPIN|WRITE": "rwlock:W",
    "READ": "rwsem:R",
    "WRITE": "rwsem:W",
    "RT": "rt-mutex",
    "PERCPU|READ": "pcpu-sem:R",
    "PERCPU|WRITE": "pcpu-sem:W",
    "MUTEX": "mutex",
    "SPIN|MUTEX": "mutex",
    "MUTEX|SPIN": "mutex",
    "": "semaphore",
    "0": "semaphore",
    "0x0": "semaphore",
}


def is_mine(text: str) -> bool:
    """Whether one of the first lines is a contention tracepoint."""
    return any(_EVENT.match(line) for line in text[:20_000].splitlines()[:200])


def read(text: str) -> Reading:
    """Read the waits by call chain and kind. A begin without its end has a count and no time."""
    lines = Lines(text)
    waits = defaultdict[tuple[str, tuple[str, ...]], list[float]](list)
    open_ = dict[tuple[str, str], tuple[str, list[str], float]]()
    chain: list[str] | None = None
    first = last = None
    for line in lines:
        if found := _EVENT.match(line):
            lines.take()
            at = float(found["at"]) * 1e9
            first, last = at if first is None else first, at
            who, chain = (found["tid"], found["lock"]), None
            if found["what"] == "begin":
                chain = []
                open_.setdefault(who, (_KINDS.get(found["flags"] or "", ""), chain, at))
            elif who in open_:
                kind, frames, since = open_.pop(who)
                waits[_waited(kind, frames)].append(max(0.0, at - since))
        elif frame := _FRAME.match(line):
            lines.take()
            if chain is not None:
                chain.append(frame["function"])
    seconds = (last - first) / 1e9 if first is not None and last is not None and last > first else None
    found_waits = tuple(
        Waits(where, len(times), kind, sum(times), max(times)) for (kind, where), times in waits.items()
    )
    return Reading("perf-script", lines.matched, lines.skipped, waits=found_waits, seconds=seconds)


def _waited(kind: str, frames: list[str]) -> tuple[str, tuple[str, ...]]:
    """Kind and chain without the functions of the lock itself; a spinlock inside a sleeping lock is its `wait_lock`."""
    start = next((i for i, f in enumerate(frames) if not _LEFT_OUT.search(f)), 0)
    inside = kind == "spinlock" and any(_SLEEPING.match(f) for f in frames[:start])
    return "wait_lock" if inside else kind, tuple(frames[start:])
