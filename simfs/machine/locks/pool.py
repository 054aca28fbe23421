"""Unbound workqueues (`WQ_UNBOUND`) have no workers of their own: those with the same attributes share a pool.

There is one in each pod of CPUs (`struct worker_pool`, `kernel/workqueue.c` 6.12). Who queues work wakes the first idle
worker, which went to sleep last; a worker that begins a piece of work wakes the next one if there is more
(`kick_pool`), and goes on until nothing is left.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simfs.machine.chains import Reason
from simfs.machine.task import Steps, Task

if TYPE_CHECKING:
    from simfs.machine.locks.completion import Completion


@dataclass(eq=False)
class Work:
    """What a workqueue has in a pod (`struct pool_workqueue`), or one piece that is queued again and again."""

    pool: Pool
    most: int
    """So many pieces may be in the work list or at work (`max_active`); others wait."""
    is_one: bool
    completion: Completion
    active: int = 0
    inactive: int = 0
    pending: bool = False
    """Of one piece: it is queued (`WORK_STRUCT_PENDING`)."""
    executing: bool = False
    again: bool = False
    """Of one piece: the worker who does it is to do it again."""

    def insert(self) -> Task | None:
        """Queue a piece (`__queue_work`). Returns who is to be woken for it."""
        if self.is_one:
            if self.pending:
                return None
            self.pending = True
        if self.active >= self.most:
            self.inactive += 1
            return None
        self.active += 1
        self.pool.worklist.append(self)
        return self.pool.kick()

    def queue(self, task: Task) -> Steps:
        """`queue_work`."""
        home = self.pool.home
        yield from home.wait_lock.lock_raw(task)
        if worker := self.insert():
            home.wake(task, worker)
        home.wait_lock.unlock(task)

    def finish(self) -> bool:
        """A worker has done a piece (`pwq_dec_nr_in_flight`). Returns whether he is to do it again at once."""
        self.executing = False
        if self.again:
            self.again = self.pending = False
            self.executing = True
            return True
        self.active -= 1
        if self.inactive:
            self.inactive -= 1
            self.active += 1
            self.pool.worklist.append(self)
        return False


@dataclass(eq=False)
class Pool:
    """The pool of a pod; its lock is the one inside `home`."""

    home: Completion
    worklist: deque[Work] = field(default_factory=deque)
    """What is to be done."""
    idle: list[tuple[Task, bool]] = field(default_factory=list)
    """Workers that wait for work, and whether they have been woken and have not come to run (`idle_list`)."""

    def kick(self) -> Task | None:
        """The first idle worker, if there is work and he has not been woken yet (`kick_pool`)."""
        if not self.idle or not self.worklist:
            return None
        worker, woken = self.idle[-1]
        self.idle[-1] = worker, True
        return None if woken else worker

    def take(self) -> Work | None:
        """The next piece that nobody is doing.

        One that somebody is doing he does once more (`find_worker_executing_work`).
        """
        while self.worklist:
            work = self.worklist.popleft()
            if work.is_one and work.executing:
                work.again = True
                work.active -= 1  # his piece counts
                continue
            work.pending, work.executing = False, True
            return work
        return None

    def wait_for_work(self, task: Task) -> Steps:
        """The worker has done what he did, and waits until there is something to do (`worker_thread`)."""
        yield from self.home.wait_lock.lock_raw(task)
        done, task.work = task.work, None
        again = done is not None and done.finish()
        task.forget_wakeups()
        if again:
            task.work = done
        else:
            yield from self._wait(task)
        task.function = ""
        if worker := self.kick():
            self.home.wake(task, worker)
        self.home.wait_lock.unlock(task)

    def _wait(self, task: Task) -> Steps:
        while (work := self.take()) is None:
            self.idle.append((task, False))
            self.home.wait_lock.unlock(task)
            yield from task.park(lambda: Reason.COMPLETION)
            yield from self.home.wait_lock.lock_raw(task)
            self.idle = [one for one in self.idle if one[0] is not task]
        task.work = work
