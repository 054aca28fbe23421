"""A disk: one arm over turning platters."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simfs.machine.time import Time


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

    def reaches(self, head: int, place: int, now: Time) -> Time:
        """From `now` until the head is at `place`: a seek, by the root of the distance, and the turn to the sector."""
        distance = abs(head - place)
        seek = 0
        if distance >= self.track:
            part = math.sqrt(distance / self.capacity)
            seek = self.seek_track + int((self.seek_full - self.seek_track) * part)
        sector = place % self.track * self.revolution // self.track
        return seek + (sector - now - seek) % self.revolution
