"""CPUs and their distances."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any

from simfs.machine.time import Time, from_ns


class Topology:
    """Which CPUs share what, and what moving a cache line between them costs."""

    def __init__(self, machine: Mapping[str, Any]) -> None:
        costs = machine["costs"]
        self.cpus: int = machine["cpus"]
        self.per_socket: int = max(machine["cpus_per_socket"], 1)
        self._per_llc: int = max(machine["cpus_per_llc"], 1)
        self._per_core: int = max(machine["cpus_per_core"], 1)
        self._levels = [
            (self._per_core, from_ns(costs["line_smt"])),
            (self._per_llc, from_ns(costs["line_llc"])),
            (self.per_socket, from_ns(costs["line_socket"])),
        ]
        sizes = [1, self._per_core, self._per_llc, self.per_socket, self.cpus]
        pairs = [pair for pair in pairwise(sizes) if pair[0] < pair[1]]
        self.domains = [(span, size) for size, span in reversed(pairs)]
        """The scheduling domains of every CPU, the largest first: so many CPUs, in parts of so many."""
        self.within_llc = from_ns(costs["line_llc"])
        """Time to move a line between CPUs that share a last-level cache."""
        self._within_socket = max(self.within_llc, from_ns(costs["line_socket"]))
        self._remote = from_ns(costs["line_remote"])
        self._overlap: float = costs["line_overlap"]
        self.migrates = costs.get("line_migrates", 0) >= 0.5
        """A load takes a line that another CPU under the same last-level cache has modified."""
        self.hit = from_ns(costs["line_hit"])
        """Time of an access that needs no transfer."""
        self.atomic = from_ns(costs.get("line_atomic", costs["line_hit"]))
        """The same of an atomic read-modify-write."""
        caches = machine.get("caches")
        self.memory = 0 if caches is None else from_ns(caches["memory_ns"])
        """Cost of a line that no cache has."""
        self.from_llc = 0 if caches is None else from_ns(caches["llc_ns"])
        """Cost of one that only the last-level cache has."""
        self._smt_speed: float = costs["smt_speed"]

    def speed_beside(self, others: int) -> float:
        """How fast a program runs, relative to alone, beside so many other CPUs of its core."""
        return 2 * self._smt_speed / (others + 1) if others else 1.0

    def transfer(self, a: int, b: int) -> Time:
        """Time to move one line between two CPUs: by the nearest level that they share."""
        for share, price in self._levels:
            if a // share == b // share:
                return price
        return self._remote

    def beyond_socket(self, a: int, b: int) -> Time:
        """How much longer it takes to move a line between two CPUs than within a socket."""
        return max(self.transfer(a, b) - self._within_socket, 0)

    def nearest(self, cpu: int, others: Collection[int]) -> int | None:
        """The CPU from which a line comes soonest: `cpu`, else the next below or above, whichever shares more with it.

        CPUs that share something have neighbouring numbers.
        """
        if cpu in others:
            return cpu
        below = max((other for other in others if other < cpu), default=None)
        above = min((other for other in others if other > cpu), default=None)
        two = [other for other in (below, above) if other is not None]
        return min(two, key=lambda other: (self.transfer(other, cpu), abs(other - cpu)), default=None)

    def of_span(self, one: Time, span: int) -> Time:
        """Time to move `span` lines used together, of which `one` takes so long: the others overlap with it."""
        return one + int(one * (span - 1) / self._overlap)

    def socket(self, cpu: int) -> int:
        """The socket of `cpu`."""
        return cpu // self.per_socket

    @property
    def sockets(self) -> int:
        """How many sockets there are."""
        return -(-self.cpus // self.per_socket)

    def share_llc(self, a: int, b: int) -> bool:
        """Whether two CPUs share a last-level cache."""
        return a // self._per_llc == b // self._per_llc

    def cache_of(self, cpu: int) -> int:
        """The number of its last-level cache."""
        return cpu // self._per_llc

    def is_numa(self, domain: tuple[int, int]) -> bool:
        """Whether the parts of a domain are NUMA nodes (`SD_NUMA`): here, sockets."""
        return domain[0] > self.per_socket

    def nice_tries(self, domain: tuple[int, int]) -> int:
        """How many looks may fail before tasks move that ran a moment ago (`cache_nice_tries`, `sd_init`)."""
        if domain[0] <= self._per_core:
            return 0
        return 2 if self.is_numa(domain) else 1

    def tasks_of_node(self, part: int) -> int:
        """How many tasks a NUMA node may have before they count as too many (`imb_numa_nr`).

        With one last-level cache this part of its CPUs, else a task a cache.
        """
        caches = self.per_socket // self._per_llc
        return self.per_socket // part if caches == 1 else caches

    @property
    def has_siblings(self) -> bool:
        """Whether cores have more CPUs than one."""
        return self._per_core > 1

    def core(self, cpu: int) -> range:
        """The CPUs of `cpu`'s core."""
        return self.group(cpu, self._per_core)

    def llc(self, cpu: int) -> range:
        """The CPUs that share `cpu`'s last-level cache."""
        return self.group(cpu, self._per_llc)

    def group(self, cpu: int, size: int) -> range:
        """The CPUs around `cpu` that are together in parts of `size`."""
        first = cpu // size * size
        return range(first, min(first + size, self.cpus))
