"""EEVDF (`kernel/sched/fair.c`, Linux 6.6 and later) on the tasks of one CPU, all at equal weight.

Virtual run time, lag, deadlines, run to parity, delayed dequeue. All virtual times are picoseconds.

From 6.12 on (`DELAY_DEQUEUE`) a task that goes to sleep ahead of the average stays in the queue's average, and competes
until it has fallen behind: then it is picked and leaves without lag. Who is woken before that goes on where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from simfs.machine.cpu import Cpu
from simfs.machine.policy import Entering, members
from simfs.machine.task import Task

if TYPE_CHECKING:
    from simfs.machine.machine import Machine


class Eevdf:
    """Decides which of a CPU's tasks runs."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def update_current(self, cpu: Cpu) -> None:
        """Bring the current task's virtual run time up to date; a used-up slice starts a new request."""
        if cpu.current is None:
            return
        ran = self.machine.now - cpu.exec_start
        cpu.exec_start = self.machine.now
        entity = cpu.current.entity
        entity.vruntime += ran
        if entity.vruntime >= entity.deadline:
            entity.deadline = entity.vruntime + self.machine.kernel.base_slice
            entity.protected = False
        cpu.base_vruntime = entity.vruntime

    def _average(self, cpu: Cpu) -> tuple[int, int]:
        """The queue's average virtual run time (`avg_vruntime`), and over how many tasks."""
        tasks = [*members(cpu), *cpu.delayed]
        base, count = cpu.base_vruntime, len(tasks)
        total = sum(task.entity.vruntime - base for task in tasks)
        return base + (total // count if count else 0), count

    def enter(self, task: Task, cpu: Cpu, entering: Entering) -> None:
        """Place a task that enters a queue (`place_entity`).

        Its lag is kept, scaled so that entering does not shrink it. A new task has half a slice to begin with.
        """
        average, count = self._average(cpu)
        entity = task.entity
        lag = _toward_zero(entity.lag * (count + 1), count) if count else 0
        entity.vruntime = average - lag
        base_slice = self.machine.kernel.base_slice
        half = base_slice // 2 if entering is Entering.NEW else 0  # PLACE_DEADLINE_INITIAL
        entity.deadline = entity.vruntime + base_slice - half

    def leave(self, task: Task, cpu: Cpu) -> None:
        """Remember the service that a task, which has just left the queue, is still owed (`update_entity_lag`)."""
        average, count = self._average(cpu)
        limit = max(2 * self.machine.kernel.base_slice, self.machine.kernel.tick)
        entity = task.entity
        with_itself = (average * count + entity.vruntime) // (count + 1)
        entity.lag = min(max(with_itself - entity.vruntime, -limit), limit)
        if count == 0:
            cpu.base_vruntime = entity.vruntime

    def sleep(self, task: Task, cpu: Cpu) -> None:
        """Note that a task, which has just left its CPU, sleeps (`dequeue_entity`)."""
        self.leave(task, cpu)
        if self.machine.kernel.delay_dequeue and task.entity.lag < 0:
            task.entity.delayed = True
            cpu.delayed.append(task)

    def requeue(self, task: Task, cpu: Cpu) -> None:
        """A delayed task is awake again: what it has gained while asleep is forfeit (`requeue_delayed_entity`)."""
        cpu.delayed.remove(task)
        self.leave(task, cpu)
        task.entity.delayed = False
        if task.entity.lag > 0:
            task.entity.lag = 0
            self.enter(task, cpu, Entering.WOKEN)

    def pick(self, cpu: Cpu) -> Task | None:
        """The task that should run, after those who only compete for the end of their delay have left."""
        while (picked := self._pick(cpu)) in cpu.delayed:
            assert picked is not None
            cpu.delayed.remove(picked)
            self.leave(picked, cpu)
            picked.entity.delayed = False
            picked.entity.lag = min(picked.entity.lag, 0)  # DELAY_ZERO
        return picked

    def _pick(self, cpu: Cpu) -> Task | None:
        """The task that is next (`pick_eevdf`).

        Of those not ahead of the average, the one with the earliest deadline; the current one, if it is not ahead,
        stays while its slice is protected.
        """
        if not cpu.queue and not cpu.delayed:
            return cpu.current
        tasks = [*members(cpu), *cpu.delayed]
        average, _ = self._average(cpu)
        if self._is_protected(cpu.current) and cpu.current.entity.vruntime <= average:
            return cpu.current
        eligible = [task for task in tasks if task.entity.vruntime <= average]
        if eligible:
            return min(eligible, key=lambda task: task.entity.deadline)
        return min(tasks, key=lambda task: task.entity.vruntime)

    def preempts(self, woken: Task, cpu: Cpu) -> bool:
        """Whether a task that has just been queued should run at once."""
        return self._pick(cpu) is woken

    def slice_ends(self, cpu: Cpu) -> bool:
        """Whether the tick finds that another task should run."""
        return not self._is_protected(cpu.current) and self.pick(cpu) is not cpu.current

    def _is_protected(self, task: Task | None) -> TypeGuard[Task]:
        """Whether it runs to parity: until it is ahead of the average, which does not by itself end its slice."""
        return task is not None and self.machine.kernel.run_to_parity and task.entity.protected


def _toward_zero(a: int, b: int) -> int:
    """Division as C does it."""
    return a // b if a >= 0 else -(-a // b)
