"""The order in which caches have a line for which CPUs queue.

A last-level cache serves those of its own cores that wait when the line comes, then gives it away. A core asks once for
its hyper-threads.
"""

from __future__ import annotations

from dataclasses import dataclass

from simfs.machine.cpus.topology import Topology
from simfs.machine.time import Time


@dataclass
class Visit:
    """A line's stay under one last-level cache."""

    begins: Time
    """When the line comes. Who has asked by then is served in this visit, each CPU once."""
    serves: list[int]

    def takes(self, cpu: int, at: Time) -> bool:
        """Whether `cpu`, which asks at `at`, is served in it."""
        return self.begins > at and cpu not in self.serves


class Rounds:
    """The visits that a line makes while CPUs queue for it: of each last-level cache the latest."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._visits: dict[int, Visit] = {}
        self._last: Visit | None = None
        self._cores: list[tuple[int, Time]] = []
        """Who has asked for its core, which has other CPUs, and when the line comes."""

    def queue(self, source: int, cpu: int, at: Time, busy_until: Time) -> Time:
        """How long the transfer takes by which `cpu`, which asks at `at`, gets the line.

        The line is moved until `busy_until`; `source` has the farthest copy of it.
        """
        if not self._topology.has_siblings:
            return self._join(source, cpu, at, busy_until)
        sibling = self._sibling(source, cpu, at, busy_until)
        if sibling is not None:
            return self._topology.transfer(sibling, cpu)
        transfer = self._join(source, cpu, at, busy_until)
        self._cores.append((cpu, busy_until + transfer))
        return transfer

    def _sibling(self, source: int, cpu: int, at: Time, busy_until: Time) -> int | None:
        """Return the other CPU of `cpu`'s core, if it waits at `at`: then the line comes for both."""
        if self._last is None:
            self._cores = [(source, busy_until)]  # where it is going
        self._cores = [entry for entry in self._cores if entry[1] > at]
        core = self._topology.core(cpu)
        entry = next((entry for entry in self._cores if entry[0] != cpu and entry[0] in core), None)
        if entry is None:
            return None
        self._cores.remove(entry)
        return entry[0]

    def _join(self, source: int, cpu: int, at: Time, busy_until: Time) -> Time:
        if self._last is None:
            self._last = self._comes_last(Visit(busy_until, [source]))  # where it is going
        own = self._visits.get(self._topology.cache_of(cpu))
        if own is not None and own.takes(cpu, at):
            return self._lengthen(own, cpu)
        last = self._last.serves[-1]
        if self._topology.share_llc(last, cpu) and self._topology.share_llc(source, cpu):
            return self._topology.transfer(source, cpu)
        transfer = max(self._topology.transfer(last, cpu), self._topology.transfer(source, cpu))
        self._last = self._comes_last(Visit(busy_until + transfer, [cpu]))
        return transfer

    def _comes_last(self, visit: Visit) -> Visit:
        self._visits[self._topology.cache_of(visit.serves[0])] = visit
        return visit

    def _lengthen(self, own: Visit, cpu: int) -> Time:
        """`cpu` is served in a visit that has not begun; those after it begin later."""
        transfer = self._topology.transfer(own.serves[-1], cpu)
        own.serves.append(cpu)
        for later in self._visits.values():
            if later.begins > own.begins:
                later.begins += transfer
        return transfer

    def end(self) -> None:
        """Nobody queues any more."""
        self._last = None
