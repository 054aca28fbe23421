"""OSQ, the cancellable MCS queue of optimistic spinners inside mutexes and rwsems (`kernel/locking/osq_lock.c`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Any

import simpy

from simfs.machine.lock import Lock
from simfs.machine.task import Steps, Task


class Osq:
    """Only the head of the queue looks at the lock; the others poll their own node until they become head.

    They give up when the scheduler wants their CPU. Spinners run with preemption off.
    """

    def __init__(self, lock: Lock) -> None:
        self.lock_ = lock
        self.queue: deque[Task] = deque()

    def _join(self, task: Task) -> None:
        task.atomic(self.lock_.line)  # exchange of the tail, in the lock's line
        self.lock_.fetch_back(task)
        self.queue.append(task)

    def lock(self, task: Task) -> Generator[simpy.Event, Any, bool]:
        """Join the queue and wait to be its head. False if the CPU was wanted first."""
        self._join(task)
        while True:
            yield from task.pay()
            if self.queue[0] is task:
                return True
            if task.need_resched:
                self.queue.remove(task)
                return False
            yield from task.spin(until_resched=True)

    def lock_uncancellable(self, task: Task) -> Steps:
        """The same of kernels before 3.15 (a plain MCS queue): wait whoever wants the CPU."""
        self._join(task)
        yield from task.pay()
        while self.queue[0] is not task:
            yield from task.spin()

    def unlock(self, task: Task) -> None:
        """Leave the queue as its head (`osq_unlock`).

        A compare-and-exchange of the tail, which fails if others are behind, and then a store to the next node.
        """
        task.atomic(self.lock_.line)
        self._leave(task)

    def unlock_uncancellable(self, task: Task) -> None:
        """The same before 3.15 (`mspin_unlock`): who knows who is next leaves the tail alone."""
        if len(self.queue) == 1:
            task.atomic(self.lock_.line)
        self._leave(task)

    def _leave(self, task: Task) -> None:
        self.queue.popleft()
        if self.queue:
            task.store_to_node(self.queue[0])
