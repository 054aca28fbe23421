"""A disk: one arm over turning platters, and the cache in which its writes wait for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.device import Request


@dataclass(frozen=True)
class Disk:
    """Of the requests that it has, a disk serves the one that it reaches first, as disks with a command queue do.

    They know where their platters are: shortest access time first (Seltzer, Chen, Ousterhout, USENIX Winter 1990).
    """

    revolution: Time
    seek_track: Time
    """A seek to the next track."""
    seek_full: Time
    """A seek over the whole disk."""
    capacity: int
    """Bytes on the disk."""
    track: int
    """Bytes that pass under the head in one turn."""
    cache: int = 0
    """Bytes of its cache, which takes writes; 0 if none does."""

    def reaches(self, head: int, place: int, now: Time) -> Time:
        """From `now` until the head is at `place`: a seek, by the root of the distance, and the turn to the sector."""
        distance = abs(head - place)
        seek = 0
        if distance >= self.track:
            part = math.sqrt(distance / self.capacity)
            seek = self.seek_track + int((self.seek_full - self.seek_track) * part)
        sector = place % self.track * self.revolution // self.track
        return seek + (sector - now - seek) % self.revolution

    def passes(self, count: int) -> Time:
        """How long so many bytes pass the head."""
        return count * self.revolution // self.track


class Cache:
    """What a disk's cache has: writes whose submitters go on.

    The arm takes them to the platters as it takes reads.
    """

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self._used = 0
        self.waiting: list[Request] = []
        """Writes that wait for the arm, the oldest first."""
        self.flushes: list[Request] = []
        """Flushes that wait until it is empty."""

    @property
    def empty(self) -> bool:
        """Nothing is on its way to the platters."""
        return not self._used

    def has_room(self, count: int) -> bool:
        """Whether there is room for a write; one that is larger than the cache has it to itself."""
        return self.empty or self._used + count <= self.disk.cache

    def take(self, count: int) -> None:
        """Give room to a write."""
        self._used += count

    def is_out(self, count: int) -> None:
        """So much is on the platters."""
        self._used -= count

    def take_flushes(self) -> list[Request]:
        """Take the flushes that are done, if any is."""
        done, self.flushes = (self.flushes, []) if self.empty else ([], self.flushes)
        return done
