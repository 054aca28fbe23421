"""CFS (`kernel/sched/fair.c` before Linux 6.6) on the tasks of one CPU, all at equal weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simfs.machine.cpu import Cpu
from simfs.machine.policy import Entering, members
from simfs.machine.task import Task
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.machine import Machine


class Cfs:
    """The task with the least virtual run time runs, for its share of a period; sleepers get half a period of credit.

    `base_vruntime` of a CPU is its `min_vruntime`. Left out: the buddies, which skip the next in line on a yield.
    """

    def __init__(
        self, machine: Machine, latency: Time, min_granularity: Time, wakeup_granularity: Time
    ) -> None:
        self.machine = machine
        self.latency = latency
        """The period that all runnable tasks share (`sched_latency`)."""
        self.min_granularity = min_granularity
        """The least share of it: with more tasks the period grows."""
        self.wakeup_granularity = wakeup_granularity
        """How far behind the current task a woken one must be to preempt it."""

    def _slice(self, tasks: int) -> Time:
        """The share of one of `tasks` (`sched_slice`)."""
        return max(self.latency, tasks * self.min_granularity) // tasks

    def update_current(self, cpu: Cpu) -> None:
        """Bring the current task's virtual run time up to date, and the least one (`update_min_vruntime`)."""
        if cpu.current is not None:
            cpu.current.entity.vruntime += self.machine.now - cpu.exec_start
            cpu.exec_start = self.machine.now
            self._update_least(cpu)

    def _update_least(self, cpu: Cpu) -> None:
        least = min((task.entity.vruntime for task in members(cpu)), default=cpu.base_vruntime)
        cpu.base_vruntime = max(cpu.base_vruntime, least)

    def enter(self, task: Task, cpu: Cpu, entering: Entering) -> None:
        """`place_entity`; who comes from another CPU keeps its distance to the least virtual run time there."""
        base = cpu.base_vruntime
        moved = task.entity.vruntime - task.cpu.base_vruntime + base
        match entering:
            case Entering.NEW:
                task.entity.vruntime = base + self._slice(len(members(cpu)) + 1)
            case Entering.WOKEN:
                task.entity.vruntime = max(moved, base - self.latency // 2)
            case Entering.MOVED:
                task.entity.vruntime = moved

    def leave(self, task: Task, cpu: Cpu) -> None:
        """The least virtual run time may have grown."""
        self._update_least(cpu)

    def sleep(self, task: Task, cpu: Cpu) -> None:
        """As `leave`: who sleeps leaves at once."""
        self.leave(task, cpu)

    def requeue(self, task: Task, cpu: Cpu) -> None:
        """Nobody sleeps in the queue."""
        raise NotImplementedError(f"{task} sleeps in the queue of CPU {cpu.number}")

    def pick(self, cpu: Cpu) -> Task | None:
        """The task with the least virtual run time; the first come of equals."""
        return min(cpu.queue, key=lambda task: task.entity.vruntime, default=None)

    def preempts(self, woken: Task, cpu: Cpu) -> bool:
        """`wakeup_preempt_entity`."""
        if cpu.current is None:
            return False
        return cpu.current.entity.vruntime - woken.entity.vruntime > self.wakeup_granularity

    def slice_ends(self, cpu: Cpu) -> bool:
        """`check_preempt_tick`."""
        first = self.pick(cpu)
        if cpu.current is None or first is None:
            return False
        entity, share = cpu.current.entity, self._slice(len(cpu.queue) + 1)
        ran = entity.vruntime - entity.picked
        ahead = entity.vruntime - first.entity.vruntime
        return ran > share or (ran >= self.min_granularity and ahead > share)
