"""Blocks of structures: a cache has one as long as it holds all that was used there since the block was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simfs.machine.caches.line import Home
from simfs.machine.caches.recency import Recency
from simfs.machine.cpus.topology import Topology
from simfs.machine.time import Time, from_ns

LINE_BYTES = 64
LONGEST_AGO = (1 << 32) - 1
"""In lines."""


class Uses:
    """What was used in one cache."""

    def __init__(self, size: int) -> None:
        self.recent = Recency(size)
        self.seen = 0
        """What had been used altogether when last looked at."""

    def catch_up(self, used: int) -> None:
        """Note what else was used here, until `used` bytes."""
        if used > self.seen:
            self.recent.add(used - self.seen)
        self.seen = used


class Use:
    """A use of a block in one cache."""

    def __init__(self, uses: Uses, count: int) -> None:
        self.uses = uses
        self.count = count
        self.bucket = uses.recent.add(count)

    def leave(self) -> bool:
        """Whether it has been driven out. It is used no longer."""
        gone = self.uses.recent.is_gone(self.bucket)
        self.uses.recent.take(self.bucket, self.count)
        return gone


class Block:
    """A block: where, when and how much of it was used last."""

    def __init__(self, lines: range, ago: int | None) -> None:
        self.lines = lines
        self.ago = None if ago is None else min(ago // LINE_BYTES, LONGEST_AGO) * LINE_BYTES
        """How many bytes before the run it was used; None if it was made just now."""
        self.last: tuple[Use, Use] | None = None
        """Its last use on a core and under a last-level cache; None before the first."""
        self.home = Home.CORE
        """What had it when it was used last."""


class Blocks:
    """What caches have of the blocks of structures."""

    def __init__(self, machine: Mapping[str, Any], topology: Topology) -> None:
        caches, cpus = machine["caches"], range(topology.cpus)
        self._topology = topology
        self._cores = [Uses(int(caches["core_bytes"])) for _ in cpus]
        """By the first CPU of a core."""
        self._llcs = [Uses(int(caches["llc_bytes"])) for _ in cpus]
        """By the first CPU under a last-level cache."""
        self._all: list[Block] = []
        overlap: float = machine["costs"]["line_overlap"]
        times = {Home.LLC: caches["llc_ns"], Home.MEMORY: caches["memory_ns"]}
        self._one = {Home.CORE: 0} | {home: from_ns(time) for home, time in times.items()}
        """What one line costs from there."""
        self._overlapped = {Home.CORE: 0} | {home: from_ns(time / overlap) for home, time in times.items()}
        """The same of one of several whose addresses are known."""
        self._streamed_ns = 1e9 / caches["memory_bandwidth"]
        """What a byte costs that one core reads from memory in order."""

    def new_block(self, lines: range, ago: int | None) -> int:
        """Make a block that was made just now, or that was last used so many bytes ago."""
        self._all.append(Block(lines, ago))
        return len(self._all) - 1

    def use(self, cpu: int, used: tuple[int, int], number: int, count: int) -> tuple[Home, range]:
        """Use a block on a CPU, where `used` bytes have been on the core and under the cache.

        Returns what had it, and its lines.
        """
        block = self._all[number]
        core, llc = self._cores[self._topology.core(cpu).start], self._llcs[self._topology.llc(cpu).start]
        for uses, until in zip((core, llc), used, strict=True):
            uses.catch_up(until)
        block.home = home = _leave(block, core, llc)
        core.seen += count if home is not Home.CORE else 0
        llc.seen += count if home is Home.MEMORY else 0
        block.last = Use(core, count), Use(llc, count)
        return home, block.lines

    def fetched(self, number: int, chain: int, lines: int) -> Time:
        """What it costs to fetch more of a block, if that had been driven out."""
        home = self._all[number].home
        return chain * self._one[home] + lines * self._overlapped[home]

    def streamed(self, number: int, count: int) -> Time:
        """What it costs to copy so many bytes of a block, if memory had it."""
        return from_ns(count * self._streamed_ns) if self._all[number].home is Home.MEMORY else 0


def _leave(block: Block, core: Uses, llc: Uses) -> Home:
    """What has a block now. It is used no longer where it was."""
    if block.last is not None:
        from_core, from_llc = (use.leave() for use in block.last)
    elif block.ago is not None:
        ago = block.ago
        from_core, from_llc = (ago + uses.recent.total() > uses.recent.size for uses in (core, llc))
    else:
        return Home.CORE
    if from_llc:
        return Home.MEMORY
    return Home.LLC if from_core else Home.CORE
