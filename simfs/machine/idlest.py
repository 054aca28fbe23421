"""Where a new task starts, and one that begins another program goes on.

`sched_balance_find_dst_cpu`, before 6.9 `find_idlest_cpu`. From the largest domain down, in its parent's part unless
another is idler.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from simfs.machine.cpu import Cpu, Phase
from simfs.machine.placement import IMBALANCE, share_of_load
from simfs.machine.run_queue import Level
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.scheduler import Scheduler
    from simfs.machine.task import Task


class Kind(IntEnum):
    """How busy CPUs are together (`group_type`)."""

    HAS_SPARE = 0
    FULLY_BUSY = 1
    OVERLOADED = 2


@dataclass(frozen=True)
class Group:
    """What is known of some CPUs (`sg_lb_stats`)."""

    kind: Kind
    idle: int
    utilization: int
    load: int
    """Average of a CPU."""

    @property
    def rank(self) -> tuple[int, int, int]:
        """A new task should rather go to a group of lower rank (`update_pick_idlest`)."""
        if self.kind is Kind.HAS_SPARE:
            return (self.kind, -self.idle, self.utilization)
        return (self.kind, self.load, 0)

    def beats(self, local: Group) -> bool:
        """Whether it is so much idler than the group of the parent that the task goes there."""
        if self.kind is not local.kind:
            return self.kind < local.kind
        if self.kind is Kind.HAS_SPARE:
            return self.idle > local.idle
        imbalance = 1024 * (IMBALANCE - 100) // 100
        return self.load < local.load + imbalance and 100 * local.load > IMBALANCE * self.load


class Idlest:
    """Finds CPUs for new tasks."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._topology = scheduler.machine.topology

    def cpu_of_load(self, parent: Cpu) -> Cpu:
        """The CPU of a task of the load.

        All start at one moment, when no average tells the CPUs apart; so where the choice is a CPU that has
        something to do, they are spread as periodic balancing would have left them, which is not modelled.
        """
        cpu = self.cpu_for_new(parent)
        return min(self._scheduler.cpus, key=self._load_that_stays) if self._load_that_stays(cpu) else cpu

    def _load_that_stays(self, cpu: Cpu) -> int:
        """Number of tasks that want `cpu`, without the one that sets up and goes now."""
        running = cpu.executing_task
        return len(cpu.queue) + (running is not None and running is not self._scheduler.machine.setting_up)

    def cpu_for_new(self, parent: Cpu) -> Cpu:
        """The CPU of a new task whose parent runs on `parent`."""
        return self._cpu(parent, None)

    def cpu_for_exec(self, task: Task) -> Cpu:
        """The CPU on which a running task goes on when it begins another program (`sched_exec`)."""
        return task.cpu if task.pinned else self._cpu(task.cpu, task)

    def _cpu(self, own: Cpu, without: Task | None) -> Cpu:
        """The CPU for a task that is on `own`, or is about to be: as if `without`, which is this task, were not."""
        cpu = own.number
        for span, size in self._topology.domains:
            near, *others = self._parts(cpu, span, size)
            groups = [(part, self._group(part, without)) for part in others]
            if not groups:
                continue
            part, idlest = min(groups, key=lambda group: group[1].rank)
            if idlest.beats(self._group(near, without)):
                cpu = self._idlest(part)
        return self._scheduler.cpus[cpu]

    def _parts(self, cpu: int, span: int, size: int) -> Iterator[range]:
        """The parts of the domain of `cpu`, its own first and then around."""
        domain = self._topology.group(cpu, span)
        parts = [self._topology.group(first, size) for first in range(domain.start, domain.stop, size)]
        own = (cpu - domain.start) // size
        yield from parts[own:]
        yield from parts[:own]

    def _group(self, part: range, without: Task | None) -> Group:
        """`update_sg_wakeup_stats`."""
        cpus = [self._scheduler.cpus[number] for number in part]
        running = idle = utilization = load = 0
        for cpu in cpus:
            own = without if without and without.cpu is cpu else None
            tasks = cpu.load - (own is not None)
            running += tasks
            idle += self._scheduler.is_idle(cpu) or (own is not None and tasks == 0)
            of_own, share = (own.entity.load.utilization, share_of_load(own)) if own else (0, 0)
            utilization += max(cpu.queue_of(Level.ROOT).load.utilization - of_own, 0)
            load += max(cpu.total_load - share, 0)
        if running < len(cpus) or len(cpus) * 1024 * 100 > utilization * IMBALANCE:
            kind = Kind.HAS_SPARE
        else:
            kind = Kind.OVERLOADED if running > len(cpus) else Kind.FULLY_BUSY
        return Group(kind, idle, utilization, load // len(cpus))

    def _idlest(self, part: range) -> int:
        """Of some CPUs the one to take (`sched_balance_find_dst_group_cpu`).

        The idle one that wakes fastest, of equals the one that became idle last; else the least loaded.
        """
        cpus = [self._scheduler.cpus[number] for number in part]
        idle = [cpu for cpu in cpus if self._scheduler.is_idle(cpu)]
        if idle:
            return min(idle, key=self._wakes_fastest).number
        return min(cpus, key=lambda cpu: (cpu.total_load, cpu.number)).number

    def _wakes_fastest(self, cpu: Cpu) -> tuple[Time, Time, int]:
        since = cpu.since if cpu.phase is Phase.IDLE else self._scheduler.now
        return (self._scheduler.ladder.exit(self._scheduler.now - since), -since, cpu.number)
