"""Where a new task starts, and one that begins another program goes on.

`sched_balance_find_dst_cpu`, before 6.9 `find_idlest_cpu`. From the largest domain down, in its parent's part unless
another is idler.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from simfs.machine.cpus.cpu import Cpu, Phase
from simfs.machine.sched.numa import Nodes
from simfs.machine.sched.placement import IMBALANCE
from simfs.machine.sched.sched_group import ALLOWANCE, Group, Groups, Kind
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.sched.scheduler import Scheduler
    from simfs.machine.task import Task


def _rank(group: Group) -> tuple[int, int, int]:
    """A new task should rather go to a group of lower rank (`update_pick_idlest`)."""
    if group.kind is Kind.HAS_SPARE:
        return (group.kind, -group.idle, group.utilization)
    return (group.kind, group.load, 0)


def _beats(group: Group, local: Group) -> bool:
    """Whether a group is so much idler than that of the parent that the task goes there."""
    if group.kind is not local.kind:
        return group.kind < local.kind
    if group.kind is Kind.HAS_SPARE:
        return group.idle > local.idle
    return group.load < local.load + ALLOWANCE and 100 * local.load > IMBALANCE * group.load


class Idlest:
    """Finds CPUs for new tasks."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._topology = scheduler.machine.topology
        self._groups = Groups(scheduler)
        self._nodes = Nodes(scheduler.machine)

    def cpu_at_start(self, parent: Cpu) -> Cpu:
        """The CPU of a task of the load, or of a kernel thread that is there from the beginning.

        All start at one moment, when no average tells the CPUs apart; so they are spread as periodic balancing, which
        is not modelled, would have left them: over the sockets as far as that would have moved them, and over all CPUs
        where the choice is one that has something to do.
        """
        cpu = self._cpu(parent, None, at_start=True)
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

    def _cpu(self, own: Cpu, without: Task | None, *, at_start: bool = False) -> Cpu:
        """The CPU for a task that is on `own`, or is about to be: as if `without`, which is this task, were not."""
        cpu = own.number
        for span, size in self._topology.domains:
            near, *others = self._groups.parts(cpu, span, size)
            moment = self._scheduler.now if at_start else self._looked_at(span, new=without is None)
            groups = [(part, self._groups.seen(part, without, moment)) for part in others]
            if not groups:
                continue
            part, idlest = min(groups, key=lambda group: _rank(group[1]))
            local = self._groups.seen(near, without, self._scheduler.now)
            if _beats(idlest, local) and not self._keeps_new((span, size), local, idlest, at_start=at_start):
                cpu = self._idlest(part, moment)
        return self._scheduler.cpus[cpu]

    def _looked_at(self, span: int, *, new: bool) -> Time:
        """When the CPUs of a domain were looked at, on average, for a task that is queued now, or later by the stopper.

        Who comes to a CPU meanwhile has not been seen, and the task may queue behind it.
        """
        kernel = self._scheduler.machine.kernel
        queued = kernel.queue_new if new else 0
        return max(self._scheduler.now - (span * kernel.seek_cpu // 2 + queued), 0)

    def _keeps_new(self, domain: tuple[int, int], local: Group, idlest: Group, *, at_start: bool) -> bool:
        """Whether a new task stays on its parent's NUMA node though another is idler.

        At the start, only if balancing would have left it there when who sets up has gone.
        """
        others = max(local.tasks - (self._about_to_sleep() if at_start else 0), 0)
        if local.kind is not idlest.kind or not self._nodes.keep_new(
            domain, replace(local, tasks=others), idlest
        ):
            return False
        return not at_start or self._nodes.leave(local, others, idlest)

    def _about_to_sleep(self) -> int:
        """How many tasks want a CPU only as long as somebody sets up.

        Who does, and the kernel threads that it keeps from going to sleep.
        """
        sets_up = self._scheduler.machine.setting_up
        return 0 if sets_up is None else 1 + sum(task.background for task in sets_up.cpu.queue)

    def _idlest(self, part: range, moment: Time) -> int:
        """Of some CPUs the one to take (`sched_balance_find_dst_group_cpu`).

        The idle one that wakes fastest, of equals the one that became idle last; else the least loaded.
        """
        cpus = [self._scheduler.cpus[number] for number in part]
        idle = [cpu for cpu in cpus if self._scheduler.idle_exit.idled_at(cpu, moment)]
        if idle:
            return min(idle, key=self._wakes_fastest).number
        return min(cpus, key=lambda cpu: (cpu.total_load, cpu.number)).number

    def _wakes_fastest(self, cpu: Cpu) -> tuple[Time, Time, int]:
        idles = cpu.phase is Phase.IDLE
        since = cpu.since if idles else self._scheduler.now
        return (self._scheduler.idling.declared_exit(cpu, idles=idles), -since, cpu.number)
