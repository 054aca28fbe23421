"""Warmth: how much of the kernel's code and data a call finds in the caches of its core.

Each core and each last-level cache counts the bytes that were used there. A kind of call (`site`) remembers that count
at its last use; so many bytes later its lines are gone. How many lines a stretch of code touches grows with the root of
its time (A. Hartstein et al., "Cache miss behavior: is it sqrt 2?", Computing Frontiers 2006: re-references fall with
time as t^-1.5), so a call also finds what other calls have brought in since. No set of lines is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor, isqrt
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
LONGEST: Time = 1 << 40
"""The longest time that is told from longer ones: 1.1 s."""


class Missing(NamedTuple):
    """What a call misses: a part of its lines in its core's cache, and in the last-level cache."""

    core: int
    llc: int


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
        last = self.marks.get(site)
        self.marks[site] = self.used
        return WHOLE if last is None else self.gone(self.used - last)

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
        self.warm = min(before + time, LONGEST)
        return isqrt(self.warm << ROOT_SHIFT) - isqrt(before << ROOT_SHIFT)

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
        core, llc = self._at(task)
        task.missing = Missing(core.enter(task.site), llc.enter(task.site))

    def fetch(self, task: Task, own: Time) -> None:
        """Let a task fetch what it misses for `own` of kernel code, and owe for it."""
        if (missing := task.missing) is None:
            return
        time = int(own / self._speed)
        core, llc = self._at(task)
        if missing.core == 0:
            core.warm = min(core.warm + time, LONGEST)
            llc.warm = min(llc.warm + time, LONGEST)
            return
        lines = core.grow(time) * missing.core >> 16
        beyond = min(lines, llc.grow(time) * missing.llc >> 16)
        core.bring(lines * self._bytes >> 16)
        llc.bring(beyond * self._bytes >> 16)
        task.segment.debt += lines * self._from_llc + beyond * self._from_memory >> 16

    def fetch_data(self, task: Task, count: int) -> None:
        """Let a task use data of its call, which are as warm as its code, and owe for what it misses."""
        if (missing := task.missing) is None:
            return
        lines, beyond = -(-count // LINE_BYTES), min(missing.llc, missing.core)
        core, llc = self._at(task)
        core.bring((lines * missing.core >> 16) * LINE_BYTES)
        llc.bring((lines * beyond >> 16) * LINE_BYTES)
        near, far = self._line
        task.segment.debt += lines * (missing.core * near + beyond * far) >> 16

    def use_block(self, task: Task, block: int, count: int) -> tuple[Home, range]:
        """Let a task use so many bytes of a block of a structure. Returns what had it, and its lines."""
        core, llc = self._at(task)
        home, lines = self.blocks.use(task.cpu.number, (core.used, llc.used), block, count)
        core.used += count if home is not Home.CORE else 0
        llc.used += count if home is Home.MEMORY else 0
        return home, lines

    def use_memory(self, task: Task, count: int) -> None:
        """Let a task use so much memory of its own in user mode; a call has ended."""
        task.missing = None
        for cache in self._at(task):
            cache.used += count
