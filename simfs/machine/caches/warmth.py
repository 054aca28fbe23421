"""Warmth: how much of the kernel's code and data a call finds in the caches of its core.

Each core and each last-level cache counts the bytes that were used there. A kind of call (`site`) remembers that count
at its last use; so many bytes later its lines are gone. Of some kinds the lines were counted, in bodies: those that the
same calls touch. A body was used last by the last of them. Of other kinds nobody knows the lines. How many a stretch of
their code touches grows with the root of its time (A. Hartstein et al., "Cache miss behavior: is it sqrt 2?", Computing
Frontiers 2006: re-references fall with time as t^-1.5), and they find what other calls have brought in since. No set of
lines is kept.

The front end of a core is one more cache, of the branches in lines of code: only code that runs drives them out. Its
TLB is one of pages, of whose translations each that is missing takes a walk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import floor, isqrt
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple, Self

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
PAGE_BYTES = 4096
LONGEST: Time = 1 << 40
"""The longest time that is told from longer ones: 1.1 s."""
NEVER_FULL = 1 << 63
"""The size of a front end or a TLB that forgets nothing, of a machine that says nothing of it."""


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
    """What a call misses: a part of its lines in its core's cache, in the last-level cache, and in its front end."""

    site: str
    core: int
    llc: int
    front: int
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


@dataclass(slots=True)
class Lines:
    """How many of something a call misses in each cache."""

    core: int
    llc: int
    front: int
    stalled: int
    """Those of the front end that the core's cache has lost, too."""
    walks: int = 0
    """Pages whose translations are missing."""
    far_walks: int = 0
    """Those whose line of the page tables is beyond the core's cache."""
    farther_walks: int = 0
    """Those whose line is in memory."""

    def cost(self, prices: Iterable[int]) -> int:
        """What they cost."""
        lost = (self.core, self.llc, self.front, self.stalled)
        walked = (self.walks, self.far_walks, self.farther_walks)
        return sum(map(mul, lost + walked, prices))


class Body(NamedTuple):
    """How many lines and pages of data, and the calls that touch them."""

    lines: int
    pages: int
    sites: list[str]


class At(NamedTuple):
    """The caches of one CPU."""

    core: Cache
    llc: Cache
    front: Cache
    tlb: Cache


class Warmth:
    """The caches of a machine."""

    def __init__(self, machine: Mapping[str, Any], topology: Topology) -> None:
        caches = machine["caches"]
        lines: float = caches["code_lines"]
        overlap: float = machine["costs"]["line_overlap"]
        beyond = max(caches["memory_ns"] - caches["llc_ns"], 0.0)

        def scaled(each: float) -> int:
            return floor(lines * each / ROOT_OF_US * 65536.0 + 0.5)

        front, tlb = (int(caches.get(name, 0)) or NEVER_FULL for name in ("front_end_bytes", "tlb_bytes"))
        walk = (
            (caches.get("tlb_walk_ns", 0.0), caches["llc_ns"], beyond)
            if tlb < NEVER_FULL
            else (0.0, 0.0, 0.0)
        )
        prices = (
            caches["llc_ns"] / overlap,
            beyond / overlap,
            caches.get("front_end_ns", 0.0),
            caches.get("front_end_stall_ns", 0.0),
            *walk,
        )

        self._topology = topology
        self._cores = [Cache(int(caches["core_bytes"])) for _ in range(topology.cpus)]
        """By the first CPU of a core."""
        self._fronts = [Cache(front) for _ in range(topology.cpus)]
        self._tlbs = [Cache(tlb) for _ in range(topology.cpus)]
        self._llcs = [Cache(int(caches["llc_bytes"])) for _ in range(topology.cpus)]
        """By the first CPU under a last-level cache."""
        self.blocks = Blocks(machine, topology)
        self._speed: float = machine["costs"]["speed"]
        self._root = [scaled(ns * 1e3) for ns in prices]
        """What the `Lines` of a unit of root cost, in 1/65536 ps."""
        self._bytes = scaled(LINE_BYTES)
        self._line = [from_ns(ns) for ns in prices]
        """What one of `Lines` costs."""
        self._bodies: dict[str, list[Body]] = {}
        """Of calls whose lines were counted."""
        for body in caches.get("bodies", ()):
            counts = floor(body["lines"] + 0.5), floor(body.get("pages", 0) + 0.5)
            for site in body["calls"]:
                self._bodies.setdefault(site, []).append(Body(*counts, body["calls"]))
        self._took: dict[str, Time] = {}
        """How long the last call of these kinds took."""

    @classmethod
    def of(cls, machine: Mapping[str, Any], topology: Topology) -> Self | None:
        """The caches of a RunSpec's machine; None if it says nothing of them, or that code has no lines."""
        caches = machine.get("caches")
        return None if caches is None or caches["code_lines"] == 0 else cls(machine, topology)

    def _at(self, task: Task) -> At:
        cpu = task.cpu.number
        core, llc = self._topology.core(cpu).start, self._topology.llc(cpu).start
        return At(self._cores[core], self._llcs[llc], self._fronts[core], self._tlbs[core])

    def enter(self, task: Task) -> None:
        """Let a task begin a call, at its site."""
        self.leave(task)
        site, at = task.site, self._at(task)
        counted = None
        if (bodies := self._bodies.get(site)) is not None:
            cold = any(cache.gone_of(site) for cache in (at.core, at.front, at.tlb))
            counted = Fetching(self._fetch_bodies(at, bodies) if cold else 0, self._took.get(site, 0))
        at.tlb.enter(site)
        task.missing = Missing(site, at.core.enter(site), at.llc.enter(site), at.front.enter(site), counted)

    def _fetch_bodies(self, at: At, bodies: Iterable[Body]) -> Time:
        """What it costs a call to bring in the bodies that it misses. Lines of page tables are where a body's are."""
        missed = Lines(0, 0, 0, 0)
        for lines, pages, sites in bodies:
            gone, unknown = at.core.gone_of(*sites), at.front.gone_of(*sites)
            beyond = min(gone, at.llc.gone_of(*sites))
            walks = pages * at.tlb.gone_of(*sites) >> 16
            missed.core += lines * gone >> 16
            missed.llc += lines * beyond >> 16
            missed.front += lines * unknown >> 16
            missed.stalled += lines * min(gone, unknown) >> 16
            missed.walks += walks
            missed.far_walks += walks * gone >> 16
            missed.farther_walks += walks * beyond >> 16
        at.core.used += missed.core * LINE_BYTES
        at.llc.used += missed.llc * LINE_BYTES
        at.front.used += missed.front * LINE_BYTES
        at.tlb.used += missed.walks * PAGE_BYTES
        return missed.cost(self._line)

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
        core, llc, front, _ = self._at(task)
        if missing.counted is not None or missing.core == missing.front == 0:
            for cache in (core, llc, front):
                cache.note_time(time)
            task.segment.debt += 0 if missing.counted is None else missing.counted.pay(own)
            return
        lines, unknown = core.grow(time) * missing.core >> 16, front.grow(time) * missing.front >> 16
        beyond = min(lines, llc.grow(time) * missing.llc >> 16)
        core.bring(lines * self._bytes >> 16)
        llc.bring(beyond * self._bytes >> 16)
        front.bring(unknown * self._bytes >> 16)
        missed = Lines(lines, beyond, unknown, min(lines, unknown))
        task.segment.debt += missed.cost(self._root) >> 16

    def use_block(self, task: Task, block: int, count: int) -> tuple[Home, range]:
        """Let a task use so many bytes of a block of a structure. Returns what had it, and its lines."""
        core, llc, *_ = self._at(task)
        home, lines = self.blocks.use(task.cpu.number, (core.used, llc.used), block, count)
        core.used += count if home is not Home.CORE else 0
        llc.used += count if home is Home.MEMORY else 0
        return home, lines

    def use_memory(self, task: Task, count: int) -> None:
        """Let a task use so much memory of its own in user mode; a call has ended."""
        self.leave(task)
        core, llc, _, tlb = self._at(task)
        for cache in (core, llc, tlb):
            cache.used += count

    def use_code(self, task: Task, count: int) -> None:
        """Let a task run so much code of its own in user mode."""
        self.use_memory(task, count)
        self._at(task).front.used += count
