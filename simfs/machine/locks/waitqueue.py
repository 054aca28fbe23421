"""Wait queues (`kernel/sched/wait.c`): the list under `wait_event` and `wake_up`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from simfs.machine.lock import Lock, Waiting
from simfs.machine.locks.spinlock import Spinlock
from simfs.machine.task import Steps, Task


class WaitQueue:
    """A queue inside a lock, with a raw spinlock of its own.

    Non-exclusive entries go to the **head**, exclusive ones to the **tail**. A wake-up goes from head to tail, wakes
    every non-exclusive entry (so the newest first) and one exclusive one. It only says that something has changed:
    whoever is woken looks again.
    """

    def __init__(self, lock: Lock, guard: Lock) -> None:
        assert isinstance(guard, Spinlock)
        self.lock, self.guard = lock, guard
        self.entries: deque[tuple[Task, bool]] = deque()
        """Who waits, and whether exclusively."""

    def __contains__(self, task: Task) -> bool:
        return any(waiter is task for waiter, _ in self.entries)

    def prepare(self, task: Task, *, exclusive: bool) -> Steps:
        """`prepare_to_wait`: enter the queue, unless still in it. From here on no wake-up is lost."""
        yield from self.guard.lock_raw(task)
        task.forget_wakeups()
        if task not in self:
            if exclusive:
                self.entries.append((task, True))
            else:
                self.entries.appendleft((task, False))
        self.guard.unlock(task)

    def finish(self, task: Task) -> Steps:
        """`finish_wait`: leave the queue, unless a wake-up has removed the task already."""
        if task in self:
            yield from self.guard.lock_raw(task)
            self.entries = deque(entry for entry in self.entries if entry[0] is not task)
            self.guard.unlock(task)

    def wait_event(self, task: Task, done: Callable[[], bool]) -> Waiting:
        """`wait_event`: sleep, as a non-exclusive waiter, until something is so. Returns whether it slept."""
        slept = False
        task.read(self.lock.line)
        if done():
            return slept
        while True:
            yield from self.prepare(task, exclusive=False)
            task.read(self.lock.line)
            if done():
                break
            yield from task.park()
            slept = True
        yield from self.finish(task)
        return slept

    def wake_up(self, waker: Task) -> Steps:
        """`wake_up`, if anybody waits: all non-exclusive waiters and the first exclusive one."""
        waker.read(self.lock.line)
        if not self.entries:
            return
        yield from self.guard.lock_raw(waker)
        exclusive = False
        while self.entries and not exclusive:
            task, exclusive = self.entries.popleft()
            self.lock.wake(waker, task)
        self.guard.unlock(waker)
