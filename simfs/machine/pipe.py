"""A pipe that requests go through one after the other: a device's bandwidth, or the rate of writes of its flash."""

from __future__ import annotations

from simfs.machine.time import Time


class Pipe:
    """A pipe that lets requests pass while it is behind by no more than `slack`: a leaky bucket (ITU-T I.371)."""

    def __init__(self, slack: Time = 0) -> None:
        self._slack = slack
        self._free = 0

    def take(self, now: Time, cost: Time) -> Time:
        """Put a request into the pipe, which it keeps for `cost`. Returns how long it waits first."""
        if cost == 0:
            return 0
        begins = max(self._free, now)
        self._free = begins + cost
        return max(begins - now - self._slack, 0)
