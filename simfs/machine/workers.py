"""Workers that are bound to a CPU share its pool (`kernel/workqueue.c`).

As long as one of them is at work, no other is woken for more of it. When the last one falls asleep, it first has the
next one woken.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simfs.machine.cpus.cpu import Cpu
from simfs.machine.task import Task

if TYPE_CHECKING:
    from simfs.machine.sched.scheduler import Scheduler


@dataclass
class Pool:
    """That of a CPU."""

    at_work: int = 0
    """Workers that are awake, except those that have slept at their work and not run since (`nr_running`)."""
    held_back: deque[Task] = field(default_factory=deque)
    """There is work for these, which rest until somebody else sleeps (`worklist`)."""


class Workers:
    """The pools of all CPUs."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._pools = [Pool() for _ in scheduler.cpus]

    def _pool(self, cpu: Cpu) -> Pool:
        return self._pools[cpu.number]

    def rests_on(self, task: Task) -> bool:
        """Whether a task that is about to be woken has to rest on (`need_more_worker` in `kick_pool`).

        There is work for it, and another worker is at work. If not, it is at work from now on.
        """
        if not task.resting or not task.pinned:
            return False
        pool = self._pool(task.cpu)
        if pool.at_work == 0:
            self._begins_work(task)
            return False
        if task not in pool.held_back:
            pool.held_back.append(task)
        return True

    def _begins_work(self, task: Task) -> None:
        self._pool(task.cpu).at_work += 1
        task.resting, task.at_work, task.is_worker = False, True, True

    def runs(self, task: Task) -> None:
        """A worker that slept at its work runs again (`wq_worker_running`)."""
        if task.is_worker and not task.at_work:
            self._begins_work(task)

    def sleeps(self, task: Task) -> None:
        """A worker is about to sleep: if it was the last at work, the next is woken (`wq_worker_sleeping`).

        Its CPU pays for that.
        """
        if not task.at_work:
            return
        pool = self._pool(task.cpu)
        task.at_work = False
        pool.at_work -= 1
        if pool.at_work == 0 and pool.held_back:
            following = pool.held_back.popleft()
            self._begins_work(following)
            task.cpu.before_switch += self._scheduler.machine.costs.wakeup
            self._scheduler.wakeups.wake(following, None)
