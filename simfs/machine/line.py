"""Cache lines: who has a copy, and until when the line is being transferred.

The one mechanism behind every contended word: an access is a hit, or waits for the transfers of the line before it and
then for its own, priced by distance.
"""

from __future__ import annotations

from enum import Enum

from simfs.machine.time import Time
from simfs.machine.topology import Topology, nearest


class Access(Enum):
    """What an access does to a line."""

    READ = "read"
    """A load: any number of CPUs may share the line."""
    WRITE = "write"
    """A store: the CPU takes the line for itself, from its store buffer if it has a copy."""
    ATOMIC = "atomic"
    """An atomic read-modify-write: the CPU takes the line and waits until all others have given theirs up."""


class Line:
    """One cache line, or `span` neighbouring ones that are always used together."""

    def __init__(self, span: int = 1) -> None:
        self.span = span
        self.owner: int | None = None
        self.sharers: set[int] = set()
        self.busy_until: Time = 0
        self.transfers = 0

    def access(self, topology: Topology, cpu: int, at: Time, access: Access) -> Time:
        """The time that `cpu` spends on an access made at `at`.

        The first access of all is a hit: it comes with the structure's own cost. So is a store to a line of which only
        this CPU has a copy, or that it shares: the other copies are invalidated from its store buffer. An atomic access
        lasts until the farthest copy is gone.
        """
        if self._hits(cpu, access):
            return topology.hit
        supplier = self.owner
        if supplier is None:
            supplier = self._farthest(topology, cpu) if access is Access.ATOMIC else self._nearest_copy(cpu)
        if access is Access.READ:
            self.sharers |= {cpu} if self.owner is None else {cpu, self.owner}
            self.owner = None
        else:
            self.owner, self.sharers = cpu, {cpu}
        if supplier is None or supplier == cpu:
            return topology.hit
        self.transfers += self.span
        start = max(at, self.busy_until)
        self.busy_until = start + topology.transfer_span(supplier, cpu, self.span)
        return self.busy_until - at

    def is_elsewhere(self, cpu: int) -> bool:
        """Whether some other CPU has a copy, so that `cpu` has to fetch the line before it can write to it."""
        return bool(self.sharers - {cpu}) if self.owner is None else self.owner != cpu

    def _hits(self, cpu: int, access: Access) -> bool:
        return cpu in self.sharers if access is Access.READ else self.owner == cpu

    def _farthest(self, topology: Topology, cpu: int) -> int | None:
        """Who of the others has the copy that it takes longest to get."""
        others = self.sharers - {cpu}
        return max(others, key=lambda other: topology.transfer(other, cpu), default=None)

    def _nearest_copy(self, cpu: int) -> int | None:
        return nearest(cpu, self.sharers)
