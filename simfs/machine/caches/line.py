"""Cache lines: who has a copy, and until when the line is being transferred.

The one mechanism behind every contended word: an access is a hit, or waits for the transfers of the line before it and
then for its own, priced by distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from simfs.machine.caches.rounds import Rounds
from simfs.machine.cpus.topology import Topology
from simfs.machine.time import Time


class Access(Enum):
    """What an access does to a line."""

    READ = "read"
    """A load: any number of CPUs may share the line."""
    STORE = "store"
    """A store: the CPU takes the line for itself. It waits in the store buffer, and the CPU goes on."""
    WRITE = "write"
    """A load and a store: the CPU waits for the line unless it has a copy."""
    ATOMIC = "atomic"
    """An atomic read-modify-write: the CPU waits until the line is its own and all its earlier stores are done."""


def without_transfer(topology: Topology, access: Access) -> Time:
    """Time of an access that needs no transfer."""
    return topology.atomic if access is Access.ATOMIC else topology.hit


class Home(Enum):
    """The nearest that has memory which was not used for a while."""

    CORE = "core"
    """The core's own cache."""
    LLC = "llc"
    """The last-level cache."""
    MEMORY = "memory"
    """No cache."""


@dataclass
class Coming:
    """A load that has asked for the line."""

    to: int
    at: Time
    takes: bool
    """It takes the line, so that the next instruction may write to it."""


class Line:
    """One cache line, or `span` neighbouring ones that are always used together."""

    def __init__(self, span: int = 1, name: str = "") -> None:
        self.span = span
        self.name = name
        """What results call it, if it is no lock's."""
        self.owner: int | None = None
        self.sharers: set[int] = set()
        self.busy_until: Time = 0
        self.keeper = 0
        """Who had the line to itself before."""
        self.keeps_until: Time = 0
        """Until the request has reached it."""
        self._rounds: Rounds | None = None
        """Where it is going, while CPUs of several last-level caches queue for it."""
        self.unmodified = False
        """Its owner has loaded it, and not written to it since."""
        self._coming: list[Coming] = []
        """To whom it comes by loads, in this order, where loads may take it."""
        self.transfers = 0
        self.waited: Time = 0
        """How long tasks have waited for it, with the transfers before theirs."""
        self.home = Home.CORE
        """What has it, if it was driven out of the cores' own caches."""

    def access(self, topology: Topology, cpu: int, at: Time, access: Access) -> Time:
        """How long it takes until an access that `cpu` makes at `at` is done.

        Whether the CPU waits for that is another thing (`Task.access`). The first access of all is a hit: it comes with
        the structure's own cost. A store to a line of which others have copies is done when the farthest is gone. A
        request has half of the transfer to go until it reaches the owner, and waits meanwhile for transfers before it:
        until then the owner goes on with the line.
        """
        if self._hits(cpu, access):
            self.unmodified &= access is Access.READ
            return without_transfer(topology, access)
        if (self.keeper == cpu and at < self.keeps_until) or self._has_just_come(cpu, at):
            if access is not Access.READ:
                self._modify_before_it_goes(topology, cpu, at)
            return without_transfer(topology, access)
        latency = self._latency(topology, cpu, at, access)
        if latency is None:
            return without_transfer(topology, access)
        self.home = Home.CORE
        self.transfers += self.span
        self.busy_until = max(at, self.busy_until) + topology.of_span(latency, self.span)
        if topology.migrates and access is Access.READ:
            self._coming = [load for load in self._coming if load.at >= at]
            self._coming.append(Coming(cpu, self.busy_until, takes=self.owner == cpu))
        return self.busy_until - at

    def start_window(self) -> None:
        """What is counted of it begins anew."""
        self.transfers = self.waited = 0

    def _has_just_come(self, cpu: int, at: Time) -> bool:
        """Whether it has come to `cpu` just now by a load that takes it.

        The next instruction finds it there, though others wait for it.
        """
        return any(load.to == cpu and load.at == at and load.takes for load in self._coming)

    def _modify_before_it_goes(self, topology: Topology, cpu: int, at: Time) -> None:
        """`cpu` writes to the line, for which others have asked.

        The load that is served next finds it modified, and takes it.
        """
        following = next((load for load in self._coming if load.at > at), None)
        if following is not None:
            following.takes |= topology.share_llc(cpu, following.to)
        last = self._coming[-1].to if self._coming else cpu
        if self.owner is None and last != cpu and topology.share_llc(cpu, last):
            self.owner, self.sharers, self.unmodified = last, {last}, True

    def _latency(self, topology: Topology, cpu: int, at: Time, access: Access) -> Time | None:
        """How long a transfer takes, if one is needed; from now on `cpu` has the line."""
        source = self.owner
        if source is None:
            source = (
                topology.nearest(cpu, self.sharers)
                if access is Access.READ
                else self._farthest(topology, cpu)
            )
        elsewhere = {Home.CORE: None, Home.LLC: topology.from_llc, Home.MEMORY: topology.memory}[self.home]
        if source is None or source == cpu:
            latency = elsewhere
        else:
            latency = self._way(topology, source, cpu, at, access)
            if self.owner is not None:
                self.keeper, self.keeps_until = self.owner, max(self.busy_until, at + latency // 2)
        if access is Access.READ and not self._migrates(topology, cpu):
            self.sharers |= {cpu} if self.owner is None else {cpu, self.owner}
            self.owner = None
        else:
            self.owner, self.sharers = cpu, {cpu}
        self.unmodified = access is Access.READ
        return latency

    def _migrates(self, topology: Topology, cpu: int) -> bool:
        """Whether a load by `cpu` takes the line from its owner: on some machines, if that has modified it."""
        owner = self.owner
        if owner is None or self.unmodified:
            return False
        return topology.migrates and topology.share_llc(owner, cpu)

    def _way(self, topology: Topology, source: int, cpu: int, at: Time, access: Access) -> Time:
        """How long the transfer takes by which `cpu`, which asks at `at`, gets it from `source`."""
        near = topology.share_llc(source, cpu)
        if near and self.owner is None and access is Access.READ:
            return topology.transfer(source, cpu)  # its cache has a copy
        if self.busy_until <= at:
            if self._rounds is not None:
                self._rounds.end()
            return topology.transfer(source, cpu)
        if self._rounds is None:
            if near and not topology.has_siblings:
                return topology.transfer(source, cpu)
            self._rounds = Rounds(topology)
        return self._rounds.queue(source, cpu, at, self.busy_until)

    def drive_out(self, home: Home) -> None:
        """Only its home has the line: who comes next fetches it from there."""
        self.owner, self.sharers, self.keeps_until = None, set(), 0
        self.home = home

    def refetch(self, topology: Topology, cpu: int, at: Time) -> Time:
        """When `cpu`, which polls the line, sees what was written to it at `at`: its copy may still be under way."""
        took = self.access(topology, cpu, at, Access.READ)
        return max(self.busy_until, at + took)

    def has_copy(self, cpu: int) -> bool:
        """Whether `cpu` can read the line without fetching it."""
        return cpu in self.sharers

    def is_elsewhere(self, cpu: int) -> bool:
        """Whether some other CPU has a copy, so that `cpu` has to fetch the line before it can write to it."""
        return bool(self.sharers - {cpu}) if self.owner is None else self.owner != cpu

    def _hits(self, cpu: int, access: Access) -> bool:
        return cpu in self.sharers if access is Access.READ else self.owner == cpu

    def _farthest(self, topology: Topology, cpu: int) -> int | None:
        """Who of the others has the copy that it takes longest to get."""
        others = sorted(self.sharers - {cpu})
        return max(others, key=lambda other: topology.transfer(other, cpu), default=None)
