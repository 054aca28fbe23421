"""Blocks of structures: a last-level cache has one as long as it holds all that was used since the block was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simfs.machine.recency import Recency
from simfs.machine.time import Time, from_ns

LINE_BYTES = 64
LONGEST_AGO = (1 << 32) - 1
"""In lines."""


class Block:
    """A block: where, when and how much of it was used last."""

    def __init__(self, lines: range, ago: int | None) -> None:
        self.lines = lines
        self.ago = None if ago is None else min(ago // LINE_BYTES, LONGEST_AGO) * LINE_BYTES
        """How many bytes before the run it was used; None if it was made just now."""
        self.bucket: int | None = None
        """Where its last use is; None before the first."""
        self.count = 0
        """Bytes of its last use."""
        self.llc = 0
        """The first CPU under the cache of its last use."""
        self.cold = False
        """Whether it had been driven out when it was used last."""


class Blocks:
    """What last-level caches have of the blocks of structures."""

    def __init__(self, machine: Mapping[str, Any]) -> None:
        caches = machine["caches"]
        self._size = int(caches["llc_bytes"])
        cpus: int = machine["cpus"]
        self._recent = [Recency(self._size) for _ in range(cpus)]
        """By the first CPU under a last-level cache."""
        self._seen = [0] * cpus
        """What had been used there altogether when last looked at."""
        self._all: list[Block] = []
        self._memory = from_ns(caches["memory_ns"])
        """What one line costs from memory."""
        self._overlapped = from_ns(caches["memory_ns"] / machine["costs"]["line_overlap"])
        """The same of one of several whose addresses are known."""

    def new_block(self, lines: range, ago: int | None) -> int:
        """Make a block that was made just now, or that was last used so many bytes ago."""
        self._all.append(Block(lines, ago))
        return len(self._all) - 1

    def use(self, llc: int, used: int, number: int, count: int) -> range | None:
        """Use a block under `llc`, where `used` bytes have been altogether. Returns its lines if it was driven out."""
        block, recent = self._all[number], self._recent[llc]
        if used > self._seen[llc]:
            recent.add(used - self._seen[llc])
        block.cold = self._since(block, recent) > self._size
        self._seen[llc] = used + (count if block.cold else 0)
        block.bucket, block.count, block.llc = recent.add(count), count, llc
        return block.lines if block.cold else None

    def _since(self, block: Block, recent: Recency) -> int:
        """Bytes that were used since a block was; it is used no longer where that was."""
        if block.bucket is None:
            return 0 if block.ago is None else block.ago + recent.total()
        there = self._recent[block.llc]
        since = there.since(block.bucket)
        there.take(block.bucket, block.count)
        return since

    def fetched(self, number: int, chain: int, lines: int) -> Time:
        """What it costs to fetch more of a block, if that had been driven out."""
        return chain * self._memory + lines * self._overlapped if self._all[number].cold else 0
