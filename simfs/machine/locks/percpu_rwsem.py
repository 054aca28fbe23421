"""`percpu_rw_semaphore` (`kernel/locking/percpu-rwsem.c`): freeze protection (`sb_start_write`)."""

from __future__ import annotations

from collections import deque

from simfs.machine.lock import Lock, Place, Side, Waiting
from simfs.machine.task import Steps, Task


class PercpuRwsem(Lock):
    """Readers count on their own CPU: no shared line, nothing to contend for.

    A writer blocks new readers, waits for a grace period and then for the last reader; waiting tasks are **granted**
    when it leaves, up to the next writer.
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

    def try_fast(self, task: Task, side: Side) -> bool:
        """Readers enter unless a writer blocks; writers always take the slow path."""
        if side is Side.WRITE or self.blocked:
            return False
        self.inside += 1
        self.begin_shared(task)
        return True

    def wait(self, task: Task, side: Side) -> Waiting:
        """Readers wait for the writer to leave, a writer for its turn and for the readers to leave."""
        task.forget_wakeups()
        if self.blocked:
            self.waiters.append((task, side))
            while task not in self.let_in:
                yield from task.park()
            self.let_in.remove(task)
        else:
            self.blocked = True
        if side is Side.WRITE:
            yield from self._drain_readers(task)
        return True

    def _drain_readers(self, task: Task) -> Steps:
        yield from task.sleep(self.machine.kernel.grace_period)
        self.draining = task
        while self.inside:
            yield from task.park()
        self.draining = None
        self.begin_hold(task)

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
