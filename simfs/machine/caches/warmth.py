"""Warmth: how much of the kernel's code and data a call finds in the caches of its core.

Each core and each last-level cache counts the bytes that were used there. A kind of call (`site`) remembers that count
at its last use; so many bytes later its lines are gone. Of some kinds the lines were counted, in bodies: those that the
same calls touch. A body was used last by the last of them. Of other kinds nobody knows the lines. How many a stretch of
their code touches grows with the root of its time (A. Hartstein et al., "Cache miss behavior: is it sqrt 2?", Computing
Frontiers 2006: re-references fall with time as t^-1.5), and they find what other calls have brought in since. No set of
lines is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import floor, isqrt
from typing import TYPE_CHECKING, Any, Self

from simfs.machine.caches.blocks import Blocks
from simfs.machine.caches.line import Home
from simfs.machine.cpus.topology import Topology
from simfs.machine.time import Time, from_ns

if TYPE_CHECKING:
    from simfs.machine.task import Task

WHOLE = 1 << 16
"""Parts are in 1/65536."""
ROOT_SHIFT = 16
"""Roots are of picoseconds, in 1/256."""
ROOT_OF_US = 256.0 * 1e3
LINE_BYTES = 64
LONGEST: Time = 1 << 40
"""The longest time that is told from longer ones: 1.1 s."""


@dataclass(slots=True)
class Fetching:
    """A call whose lines were counted, and how much of their cost was paid."""

    cost: Time
    last: Time
    """How long the last call of its kind took."""
    paid: Time = 0
    own: Time = 0
    """Its time so far."""

    def pay(self, own: Time) -> Time:
        """What it pays for its next `own`: calls touch new lines evenly, up to their ends."""
        self.own += own
        part = (self.own << 16) // self.last if self.own < self.last else WHOLE
        due = self.cost * part >> 16
        before, self.paid = self.paid, due
        return due - before


@dataclass(slots=True)
class Missing:
    """What a call misses: a part of its lines in its core's cache, and in the last-level cache."""

    site: str
    core: int
    llc: int
    counted: Fetching | None


class Cache:
    """One cache: what was used on it, and when each kind of call last was."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.used = 0
        """Bytes used so far."""
        self.by_calls = 0
        """The same at the last use by a call."""
        self.warm: Time = 0
        """Time of the calls since somebody else's bytes drove something out."""
        self.marks: dict[str, int] = {}
        """Bytes used so far at the last call of each kind."""

    def enter(self, site: str) -> int:
        """Let a call begin. Returns the part of its lines that is gone."""
        if self.gone(self.used - self.by_calls) > 0:
            self.warm = 0
        self.by_calls = self.used
        gone = self.gone_of(site)
        self.marks[site] = self.used
        return gone

    def gone_of(self, *sites: str) -> int:
        """The part of lines that is gone of a body that several kinds touch."""
        return min(self.gone(self.used - self.marks[s]) if s in self.marks else WHOLE for s in sites)

    def gone(self, count: int) -> int:
        """The part of lines that is gone after so many bytes.

        Which set a line is in is chance, so some are gone after half of the cache's size, and some last for one and a
        half: of 16 ways a set meets 16 +- 4 lines while a cache of them comes in.
        """
        half = self.size // 2
        if count <= half:
            return 0
        return min((count - half << 16) // self.size, WHOLE)

    def grow(self, time: Time) -> int:
        """How much the root of the calls' time grows by `time`."""
        before = self.warm
        self.note_time(time)
        return isqrt(self.warm << ROOT_SHIFT) - isqrt(before << ROOT_SHIFT)

    def note_time(self, time: Time) -> None:
        """Note that calls have taken so much longer."""
        self.warm = min(self.warm + time, LONGEST)

    def bring(self, count: int) -> None:
        """Note that a call has brought so many bytes in."""
        self.used += count
        self.by_calls += count


class Warmth:
    """The caches of a machine."""

    def __init__(self, machine: Mapping[str, Any], topology: Topology) -> None:
        caches = machine["caches"]
        lines: float = caches["code_lines"]
        overlap: float = machine["costs"]["line_overlap"]
        beyond = max(caches["memory_ns"] - caches["llc_ns"], 0.0)

        def scaled(each: float) -> int:
            return floor(lines * each / ROOT_OF_US * 65536.0 + 0.5)

        self._topology = topology
        self._cores = [Cache(int(caches["core_bytes"])) for _ in range(topology.cpus)]
        """By the first CPU of a core."""
        self._llcs = [Cache(int(caches["llc_bytes"])) for _ in range(topology.cpus)]
        """By the first CPU under a last-level cache."""
        self.blocks = Blocks(machine, topology)
        self._speed: float = machine["costs"]["speed"]
        self._from_llc = scaled(caches["llc_ns"] * 1e3 / overlap)
        self._from_memory = scaled(beyond * 1e3 / overlap)
        """What the lines of a unit of root cost from there, in 1/65536 ps."""
        self._bytes = scaled(LINE_BYTES)
        self._line = from_ns(caches["llc_ns"] / overlap), from_ns(beyond / overlap)
        """What one line costs from there."""
        self._streamed = from_ns(LINE_BYTES * 1e9 / caches["memory_bandwidth"])
        """What one costs from memory among those that are used in order."""
        self._bodies: dict[str, list[tuple[int, list[str]]]] = {}
        """Of calls whose lines were counted: how many, and the calls that touch them."""
        for body in caches.get("bodies", ()):
            for site in body["calls"]:
                self._bodies.setdefault(site, []).append((floor(body["lines"] + 0.5), body["calls"]))
        self._took: dict[str, Time] = {}
        """How long the last call of these kinds took."""

    @classmethod
    def of(cls, machine: Mapping[str, Any], topology: Topology) -> Self | None:
        """The caches of a RunSpec's machine; None if it says nothing of them, or that code has no lines."""
        caches = machine.get("caches")
        return None if caches is None or caches["code_lines"] == 0 else cls(machine, topology)

    def _at(self, task: Task) -> tuple[Cache, Cache]:
        cpu = task.cpu.number
        return self._cores[self._topology.core(cpu).start], self._llcs[self._topology.llc(cpu).start]

    def enter(self, task: Task) -> None:
        """Let a task begin a call, at its site."""
        self.leave(task)
        site, (core, llc) = task.site, self._at(task)
        counted = None
        if (bodies := self._bodies.get(site)) is not None:
            cost = self._fetch_bodies(core, llc, bodies) if core.gone_of(site) else 0
            counted = Fetching(cost, self._took.get(site, 0))
        task.missing = Missing(site, core.enter(site), llc.enter(site), counted)

    def _fetch_bodies(self, core: Cache, llc: Cache, bodies: Iterable[tuple[int, list[str]]]) -> Time:
        """What it costs a call to bring in the bodies that it misses."""
        near = far = 0
        for lines, sites in bodies:
            gone = core.gone_of(*sites)
            near += lines * gone >> 16
            far += lines * min(gone, llc.gone_of(*sites)) >> 16
        core.used += near * LINE_BYTES
        llc.used += far * LINE_BYTES
        return near * self._line[0] + far * self._line[1]

    def leave(self, task: Task) -> None:
        """A call is over."""
        if task.missing is not None and task.missing.counted is not None:
            self._took[task.missing.site] = task.missing.counted.own
        task.missing = None

    def fetch(self, task: Task, own: Time) -> None:
        """Let a task fetch what it misses for `own` of kernel code, and owe for it."""
        if (missing := task.missing) is None:
            return
        time = int(own / self._speed)
        core, llc = self._at(task)
        if missing.core == 0 or missing.counted is not None:
            core.note_time(time)
            llc.note_time(time)
            task.segment.debt += 0 if missing.counted is None else missing.counted.pay(own)
            return
        lines = core.grow(time) * missing.core >> 16
        beyond = min(lines, llc.grow(time) * missing.llc >> 16)
        core.bring(lines * self._bytes >> 16)
        llc.bring(beyond * self._bytes >> 16)
        task.segment.debt += lines * self._from_llc + beyond * self._from_memory >> 16

    def fetch_data(self, task: Task, count: int) -> None:
        """Let a task write data in order, which are as warm as its call, and owe for what memory has of them."""
        if (missing := task.missing) is None:
            return
        lines, beyond = -(-count // LINE_BYTES), min(missing.llc, missing.core)
        core, llc = self._at(task)
        core.bring((lines * missing.core >> 16) * LINE_BYTES)
        llc.bring((lines * beyond >> 16) * LINE_BYTES)
        task.segment.debt += lines * self._streamed * beyond >> 16

    def use_block(self, task: Task, block: int, count: int) -> tuple[Home, range]:
        """Let a task use so many bytes of a block of a structure. Returns what had it, and its lines."""
        core, llc = self._at(task)
        home, lines = self.blocks.use(task.cpu.number, (core.used, llc.used), block, count)
        core.used += count if home is not Home.CORE else 0
        llc.used += count if home is Home.MEMORY else 0
        return home, lines

    def use_memory(self, task: Task, count: int) -> None:
        """Let a task use so much memory of its own in user mode; a call has ended."""
        self.leave(task)
        for cache in self._at(task):
            cache.used += count
