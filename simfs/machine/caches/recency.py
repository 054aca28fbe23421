"""How much was used in a cache since a block was last used there, each thing counted once, where it was used last.

What was used lies in buckets, from the oldest to the newest; a use moves a block to the newest (as T. Saemundsson et
al. keep it for caches of objects, "Dynamic performance profiling of cloud caches", SoCC 2014). So a block needs the
number of its bucket, and a use a sum over newer buckets. Counting all that comes into the cache is not enough: from a
structure one and a half times as large as the cache, nothing would come in any more once a cache of it is there.
"""

from __future__ import annotations

BUCKETS = 128
"""Buckets that are kept apart."""
FILL = 32
"""How many of them fill a cache."""


class Recency:
    """What was used in one cache of `size` bytes, by when."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._full = max(size // FILL, 1)
        self._buckets = [0]
        """Bytes of each, the oldest first."""
        self._oldest = 0
        """The number of the first."""

    @property
    def _newest(self) -> int:
        return self._oldest + len(self._buckets) - 1

    def add(self, count: int) -> int:
        """So many bytes are used now that were not used before. Returns the number of the bucket that they are in."""
        now = self._buckets[-1]
        if now > 0 and now + count > self._full:
            self._buckets.append(0)
            if len(self._buckets) > BUCKETS:
                self._buckets[:2] = [sum(self._buckets[:2])]
                self._oldest += 1
        self._buckets[-1] += count
        return self._newest

    def take(self, bucket: int, count: int) -> None:
        """Bytes of a bucket are used anew, or are no more."""
        self._buckets[max(bucket - self._oldest, 0)] -= count

    def since(self, bucket: int) -> int:
        """Bytes that were used last after what is in a bucket; of those in the bucket itself, half."""
        at = max(bucket - self._oldest, 0)
        return sum(self._buckets[at + 1 :]) + self._buckets[at] // 2

    def is_gone(self, bucket: int) -> bool:
        """Whether the cache does not hold what was used last before that."""
        return self.since(bucket) > self.size

    def total(self) -> int:
        """All bytes that were ever used."""
        return sum(self._buckets)
