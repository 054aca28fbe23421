"""From which CPU an idle one takes a task.

`sched_balance_find_src_group` and `sched_balance_find_src_rq`, before 6.9 `find_busiest_group` and
`find_busiest_queue`; as since 5.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simfs.machine.cpus.cpu import Cpu
from simfs.machine.sched.numa import Nodes
from simfs.machine.sched.placement import IMBALANCE
from simfs.machine.sched.sched_group import Group, Groups, Kind, in_queues

if TYPE_CHECKING:
    from simfs.machine.sched.scheduler import Scheduler


class Busiest:
    """Finds CPUs to take a task from."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._topology = scheduler.machine.topology
        self._groups = Groups(scheduler)
        self._nodes = Nodes(scheduler.machine)

    def cpu_in(self, domain: tuple[int, int], idle: Cpu) -> Cpu | None:
        """The CPU in a domain from which `idle` takes a task, if it may."""
        span, size = domain
        near, *others = self._groups.parts(idle.number, span, size)
        local = self._groups.of(near)
        groups = [(part, self._groups.of(part)) for part in others]
        average = (local.load + sum(group.load for _, group in groups)) // (1 + len(groups))
        give = [(part, group) for part, group in groups if group.tasks and not self._has_bound_only(part)]
        if not give:
            return None
        part, busiest = max(give, key=lambda found: _rank(found[1]))
        if not _gives(busiest, local, average, spreads=size > 1) or self._leaves(domain, local, busiest):
            return None
        cpu = max((self._scheduler.cpus[number] for number in part), key=in_queues)
        return cpu if in_queues(cpu) > 1 else None

    def _leaves(self, domain: tuple[int, int], local: Group, busiest: Group) -> bool:
        """Whether `local` takes nothing from `busiest`, another NUMA node, because it is little busier."""
        few = local.kind is Kind.HAS_SPARE and busiest.kind is not Kind.OVERLOADED
        even = max(busiest.tasks - local.tasks, 0) // 2
        return few and self._topology.is_numa(domain) and self._nodes.tolerate(busiest, local.tasks, even)

    def most_waiting(self, idle: Cpu) -> Cpu | None:
        """The CPU under the same last-level cache with most waiting tasks.

        Before 5.5 loads were compared, which comes to that.
        """
        near = self._topology.llc(idle.number)
        cpus = (
            self._scheduler.cpus[number]
            for number in near
            if not self._has_bound_only(range(number, number + 1))
        )
        busy = [cpu for cpu in cpus if cpu is not idle and cpu.executing_task and cpu.queue]
        return max(busy, key=lambda cpu: len(cpu.queue), default=None)

    def _has_bound_only(self, part: range) -> bool:
        """Whether each CPU has several tasks, all bound (`LBF_ALL_PINNED`: then the search goes on without it)."""
        return all(_has_bound_only(self._scheduler.cpus[number]) for number in part)


def _has_bound_only(cpu: Cpu) -> bool:
    running = cpu.executing_task
    return cpu.load > 1 and all(task.pinned for task in [*cpu.queue, *([running] if running else [])])


def _rank(group: Group) -> tuple[int, int, int]:
    """Who is highest is the busiest, of equals the first (`update_sd_pick_busiest`)."""
    match group.kind:
        case Kind.OVERLOADED:
            return (group.kind, group.load, 0)
        case Kind.FULLY_BUSY:
            return (group.kind, 0, 0)
        case Kind.HAS_SPARE:
            return (group.kind, -group.idle, group.tasks)


def _gives(busiest: Group, local: Group, average: int, *, spreads: bool) -> bool:
    """Whether `local` takes a task of the busiest group.

    CPUs have so much load on `average`. It `spreads` tasks where the parts of the domain are cores of several CPUs
    (`SD_PREFER_SIBLING`).
    """
    if local.kind > busiest.kind:
        return False
    by_tasks = busiest.tasks > local.tasks + 1
    if spreads and local.kind is Kind.HAS_SPARE and by_tasks:
        return True
    keeps = busiest.tasks == 1 or (busiest.cpus > 1 and local.idle <= busiest.idle + 1)
    if busiest.kind is not Kind.OVERLOADED and keeps:
        return False
    match local.kind:
        case Kind.HAS_SPARE:
            return by_tasks if busiest.cpus == 1 or spreads else local.idle > busiest.idle + 1
        case Kind.FULLY_BUSY:
            return local.load < busiest.load and local.load < average
        case Kind.OVERLOADED:
            return local.load < average and 100 * busiest.load > IMBALANCE * local.load
