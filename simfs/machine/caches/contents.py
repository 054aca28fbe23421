"""What blocks hold, which CPUs read and change under a lock.

`line` has the words that CPUs meet at, one by one, with their queues. Here are whole blocks: which lines somebody goes
through is known, and nobody else is there meanwhile.
"""

from __future__ import annotations

from simfs.machine.caches.line import Access
from simfs.machine.cpus.topology import Topology
from simfs.machine.time import Time


class Contents:
    """What CPUs have of one block."""

    def __init__(self) -> None:
        self._changed: set[int] = set()
        """Lines that somebody has changed."""
        self._by: list[int] = []
        """Who has changed them, each CPU once, the last one last."""
        self._stale: dict[int, set[int]] = {}
        """Of each CPU that was here, the lines that others have changed since."""

    def touch(self, topology: Topology, cpu: int, lines: range, access: Access) -> Time:
        """Go through these lines; return how long it takes to fetch those that others have changed since.

        They come together, from the last other CPU that has changed any.
        """
        stale = self._stale.setdefault(cpu, set(self._changed))
        missing = len(stale.intersection(lines))
        stale.difference_update(lines)
        time = 0
        if missing:
            source = next(other for other in reversed(self._by) if other != cpu)
            time = topology.of_span(topology.transfer(source, cpu), missing)
        if access is not Access.READ:
            self._change(cpu, lines)
        return time

    def _change(self, cpu: int, lines: range) -> None:
        self._changed.update(lines)
        for other, stale in self._stale.items():
            if other != cpu:
                stale.update(lines)
        self._by = [other for other in self._by if other != cpu] + [cpu]
