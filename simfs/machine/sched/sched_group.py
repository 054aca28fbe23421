"""How busy CPUs are together (`sg_lb_stats`).

Those look at it who seek the idlest of them for a task, and the busiest to take one from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from simfs.machine.cpus.cpu import Cpu
from simfs.machine.sched.placement import IMBALANCE, share_of_load
from simfs.machine.sched.run_queue import Level
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.sched.scheduler import Scheduler
    from simfs.machine.task import Task


ALLOWANCE = 1024 * (IMBALANCE - 100) // 100
"""How much more load a group may have than another before a new task goes to that."""


class Kind(IntEnum):
    """What CPUs have to do (`group_type`)."""

    HAS_SPARE = 0
    FULLY_BUSY = 1
    OVERLOADED = 2


@dataclass(frozen=True)
class Group:
    """What is known of some CPUs."""

    kind: Kind
    cpus: int
    tasks: int
    """How many are in their run queues, those included that sleep and have not left (`sum_nr_running`)."""
    idle: int
    utilization: int
    load: int
    """Average of a CPU."""


class Groups:
    """The CPUs of a machine, by scheduling domain."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._topology = scheduler.machine.topology
        self._counts_runnable = scheduler.machine.kernel.busiest == "runnable"

    def parts(self, cpu: int, span: int, size: int) -> Iterator[range]:
        """The parts of a domain of `cpu`, its own first and then around."""
        domain = self._topology.group(cpu, span)
        parts = [self._topology.group(first, size) for first in range(domain.start, domain.stop, size)]
        own = (cpu - domain.start) // size
        yield from parts[own:]
        yield from parts[:own]

    def of(self, part: range) -> Group:
        """`update_sg_lb_stats`."""
        return self.seen(part, None, self._scheduler.now)

    def seen(self, part: range, without: Task | None, moment: Time) -> Group:
        """Who idled when that was looked at, at `moment`, counts as idle.

        Where a task is to go on, as if it were not there (`update_sg_wakeup_stats`).
        """
        past = moment < self._scheduler.now
        cpus = [self._scheduler.cpus[number] for number in part]
        tasks = idle = utilization = runnable = load = 0
        for cpu in cpus:
            own = without if without and without.cpu is cpu else None
            here = in_queues(cpu) - (own is not None)
            idles = self._scheduler.is_idle(cpu)
            idled = self._scheduler.idle_exit.idled_at(cpu, moment) if past else idles
            if idled and not idles:
                here = 0
            elif idles and not idled:
                here = max(here, 1)  # who ran there was still to be seen
            tasks += here
            idle += idled or (own is not None and here == 0)
            queue = cpu.queue_of(Level.ROOT).load
            if own is None:
                utilization += queue.utilization
                runnable += queue.runnable
                load += queue.load
            else:
                average = own.entity.load
                utilization += max(queue.utilization - average.utilization, 0)
                runnable += max(queue.runnable - average.runnable, 0)
                load += max(queue.load - share_of_load(own), 0)
        kind = self._kind(len(cpus), tasks, utilization, runnable)
        return Group(kind, len(cpus), tasks, idle, utilization, load // len(cpus))

    def _kind(self, cpus: int, tasks: int, utilization: int, runnable: int) -> Kind:
        """`group_classify`: tasks beyond the CPUs count only where these are used, or wanted, beyond what they can."""
        full = utilization * IMBALANCE >= cpus * 1024 * 100
        full |= self._counts_runnable and runnable * 100 > cpus * 1024 * IMBALANCE
        if not full or tasks < cpus:
            return Kind.HAS_SPARE
        return Kind.OVERLOADED if tasks > cpus else Kind.FULLY_BUSY


def in_queues(cpu: Cpu) -> int:
    """How many tasks are in a CPU's run queues (`nr_running`)."""
    return cpu.load + len(cpu.delayed)
