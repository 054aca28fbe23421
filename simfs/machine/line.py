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
    """A store or an atomic read-modify-write: the CPU takes the line for itself."""


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
        this CPU has a copy, or that it shares: the other copies are invalidated from its store buffer.
        """
        if self._hits(cpu, access):
            return topology.hit
        supplier = self.owner if self.owner is not None else self._nearest_copy(cpu)
        if access is Access.WRITE:
            self.owner, self.sharers = cpu, {cpu}
        else:
            self.sharers |= {cpu} if self.owner is None else {cpu, self.owner}
            self.owner = None
        if supplier is None or supplier == cpu:
            return topology.hit
        self.transfers += self.span
        start = max(at, self.busy_until)
        self.busy_until = start + topology.transfer_span(supplier, cpu, self.span)
        return self.busy_until - at

    def _hits(self, cpu: int, access: Access) -> bool:
        return self.owner == cpu if access is Access.WRITE else cpu in self.sharers

    def _nearest_copy(self, cpu: int) -> int | None:
        return nearest(cpu, self.sharers)
