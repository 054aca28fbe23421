"""`percpu_rw_semaphore` (`kernel/locking/percpu-rwsem.c`): freeze protection (`sb_start_write`)."""

from __future__ import annotations

from collections import deque

from simfs.machine.lock import Lock, Place, Side, Waiting
from simfs.machine.task import Steps, Task
from simfs.machine.time import Time


class PercpuRwsem(Lock):
    """Readers count on their own CPU: no shared line, nothing to contend for.

    A writer that comes after a time without writers waits for a grace period, in which readers go on; then it blocks
    new readers and waits for the last one inside. Waiting tasks are **granted** when it leaves, up to the next writer.
    Writers that follow within a grace period of the last one wait for none.
    """

    perf_name = "percpu-rwsem"
    has_wait_lock = False

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.inside = 0
        """Readers on all CPUs together."""
        self.blocked = False
        """A writer has it or waits for the readers to leave."""
        self.draining: Task | None = None
        """The writer that waits for the readers to leave."""
        self.waiters: deque[tuple[Task, Side]] = deque()
        self.let_in: set[Task] = set()
        """Granted and not yet running."""
        self.writers = 0
        """Writers that have it, wait for it, or wait until readers know of them."""
        self.readers_know: Time = 0
        """When readers know of the writers."""
        self.readers_forget: Time = 0
        """When readers, without writers, have forgotten."""

    def try_fast(self, task: Task, side: Side) -> bool:
        """Readers enter unless a writer blocks; writers always take the slow path."""
        if side is Side.WRITE or self.blocked:
            return False
        self.inside += 1
        self.begin_shared(task)
        return True

    def wait(self, task: Task, side: Side) -> Waiting:
        """Readers wait for the writer to leave, a writer for the grace period, its turn and the readers."""
        slept = False
        if side is Side.WRITE:
            slept = yield from self._sync_with_readers(task)
        task.forget_wakeups()
        if self.blocked:
            self.waiters.append((task, side))
            while task not in self.let_in:
                yield from task.park()
            self.let_in.remove(task)
            slept = True
        else:
            self.blocked = True
        if side is Side.WRITE:
            slept = (yield from self._drain_readers(task)) or slept
        return slept

    def _sync_with_readers(self, task: Task) -> Waiting:
        """`rcu_sync_enter`."""
        now = self.machine.now
        if not self.writers and now >= self.readers_forget:
            self.readers_know = now + self.machine.kernel.grace_period
        self.writers += 1
        left = max(self.readers_know - now, 0)
        if left:
            yield from task.sleep(left)
        return left > 0

    def _drain_readers(self, task: Task) -> Waiting:
        self.draining = task
        slept = False
        while self.inside:
            yield from task.park()
            slept = True
        self.draining = None
        self.begin_hold(task)
        return slept

    def release(self, task: Task, side: Side) -> Steps:
        """The last reader pokes a waiting writer; a writer lets in those who wait up to the next writer."""
        yield from ()
        if side is Side.READ:
            self.inside -= 1
            self.end_shared(task)
            if self.draining and not self.inside:
                self.wake(task, self.draining)
            return
        self.end_hold()
        self.blocked = False
        self.writers -= 1
        self.readers_forget = self.machine.now + self.machine.kernel.grace_period  # rcu_sync_exit
        while self.waiters and not self.blocked:
            waiter, wanted = self.waiters.popleft()
            self.let_in.add(waiter)
            self.lock_class.statistics.handoffs += 1
            if wanted is Side.READ:
                self.inside += 1
                self.begin_shared(waiter)
            else:
                self.blocked = True
            self.wake(task, waiter)
