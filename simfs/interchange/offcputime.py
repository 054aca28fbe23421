"""BCC's `offcputime`: time off the CPU in microseconds by kernel stack, as blocks or folded (`-f`)."""

from __future__ import annotations

import re
from itertools import pairwise

from simfs.interchange.reading import Lines, Reading, Waits, count

_FRAME = re.compile(r"^ {4}(?P<function>[\w.\[\]$ -]+|-)$")
_TIME = re.compile(r"^ {8}(?P<us>\d+)$")
_FOLDED = re.compile(r"^(?P<stack>[^;\s][^;]*(?:;[^;]+)+) (?P<us>\d+)$")
_SLEEPS = re.compile(
    r"^(schedule|__schedule|schedule_\w+|__x64_\w+|bpf_\w+|io_schedule\w*|finish_task_switch.*|preempt_schedule.*)$"
)
_LOCKS = re.compile(r"^(__)?(down|mutex|rwsem|percpu|rt_mutex|ww_mutex)\w*|^call_rwsem\w+")


def is_mine(text: str) -> bool:
    """Whether there is its heading, a block of a stack with a time, or a folded stack that ends in `schedule`."""
    if text.lstrip().startswith("Tracing off-CPU time"):
        return True
    lines = text.splitlines()[:400]
    if any((found := _FOLDED.match(x)) and "schedule" in found["stack"] for x in lines):
        return True
    return any(_TIME.match(b) and a.startswith("    ") for a, b in pairwise(lines)) and any(
        x.strip() in ("schedule", "__schedule") for x in lines
    )


def read(text: str) -> Reading:
    """Read the stacks; those that wait for a lock have `kind` sleeping lock, all others none."""
    lines, waits, block = Lines(text), [], list[str]()
    for line in lines:
        if line.startswith("Tracing off-CPU"):
            lines.take(0)
        elif found := _FOLDED.match(line):
            lines.take()
            waits.append(_waits(found["stack"].split(";")[:0:-1], count(found["us"]) or 0))
        elif (found := _TIME.match(line)) and block:
            lines.take(len(block) + 1)
            waits.append(_waits(block[:-1], count(found["us"]) or 0))
            block = []
        elif line.startswith("    ") and not line.startswith("     "):
            block.append(line.strip())
    return Reading("offcputime", lines.matched, lines.skipped, waits=tuple(w for w in waits if w.where))


def _waits(frames: list[str], us: int) -> Waits:
    """The stack above the scheduler; a lock's own functions are left out and make it a wait for a lock."""
    start = next((i for i, f in enumerate(frames) if not _SLEEPS.match(f)), len(frames))
    first = next((i for i, f in enumerate(frames) if i >= start and not _LOCKS.match(f)), len(frames))
    kind = _kind(frames[start:first])
    return Waits(tuple(frames[first:]) or tuple(frames[start:]), 0, kind, us * 1e3)


def _kind(own: list[str]) -> str:
    words = " ".join(own)
    if "rwsem" in words or "down_write" in words or "down_read" in words:
        return "rwsem:R" if "read" in words else "rwsem:W"
    return "mutex" if "mutex" in words else "semaphore" if "down" in words else ""
