"""Idle CPUs take waiting tasks from beyond their last-level cache.

From other caches of their socket, then from other sockets. As since 5.5; before, they do not here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from simfs.machine.cpus.cpu import Cpu
from simfs.machine.task import Task
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.sched.scheduler import Scheduler

Domain = tuple[int, int]


class Afar:
    """Looks into the domains beyond last-level caches; how is `look`."""

    def __init__(self, scheduler: Scheduler, look: Callable[[Cpu, Domain], Task | None]) -> None:
        self._scheduler = scheduler
        self._topology = scheduler.machine.topology
        self._since_5_5 = scheduler.machine.kernel.busiest != "waiting"
        self._look = look
        self._next: defaultdict[tuple[int, Domain], Time] = defaultdict(Time)
        """When a CPU may look into a domain again."""

    def domains(self, cpu: Cpu) -> Iterator[Domain]:
        """The domains beyond the last-level cache of `cpu`, the smallest first."""
        near = len(self._topology.llc(cpu.number))
        yield from (d for d in reversed(self._topology.domains) if self._since_5_5 and d[0] > near)

    def balance(self, cpu: Cpu, next_after: Callable[[int, bool], Time]) -> bool:
        """The idle `cpu` looks afar, once in as many ms as the domain has CPUs; return whether it has taken a task.

        Only the first idle one of each part does so for it (`should_we_balance`).
        """
        now = self._scheduler.machine.now
        for domain in self.domains(cpu):
            if now < self._next[cpu.number, domain]:
                continue
            part = self._topology.group(cpu.number, domain[1])
            first = next(number for number in part if self._scheduler.is_idle(self._scheduler.cpus[number]))
            moved = first == cpu.number and self._look(cpu, domain) is not None
            self._next[cpu.number, domain] = next_after(domain[0], moved)
            if moved:
                return True
        return False
