"""`struct rw_semaphore` to Linux 5.2 (`lib/rwsem.c`, `kernel/locking/rwsem-xadd.c`): the count is a sum of biases.

A failed first attempt leaves its bias in the count until it is taken back under the wait lock, and until then nobody
can take a lock that is otherwise free. Readers are granted in order: the run of them at the head of the queue.
"""

from __future__ import annotations

from itertools import takewhile

from simfs.machine.lock import Side, Waiting
from simfs.machine.locks.rwsem_common import AnyRwsem, Waiter
from simfs.machine.locks.sleeping import Spinning
from simfs.machine.task import Steps, Task


class Rwsem310(AnyRwsem):
    """3.10 to 3.15: a woken writer must still take the lock, and other writers may steal it. Nobody spins."""

    wakes_under_wait_lock = True
    writes_owner = frozenset()
    reader_looks_at_owner = False
    first_reader_joins = True
    """A reader that finds readers inside and nobody waiting is granted at once, with itself."""

    def wait(self, task: Task, side: Side) -> Waiting:
        """`rwsem_down_{read,write}_failed`."""
        return self.down_read_failed(task) if side is Side.READ else self.down_write_failed(task)

    def phase(self) -> list[Waiter]:
        """The run of readers at the head."""
        return list(takewhile(lambda waiter: waiter.side is Side.READ, self.waiters))

    def down_read_failed(self, task: Task) -> Waiting:
        """Queue behind everybody and sleep until granted."""
        self.shares += 1  # left behind by the fast path's add
        task.segment.debt += self.code.rwsem.ask
        yield from self.lock_to_wait(task, self.code.rwsem.queue)
        alone = self.enqueue(task, Side.READ)
        self.give_share_back(task)
        joins = alone and self.first_reader_joins and not self.written
        self.unlock_and_wake(task, self.mark_wake(task) if joins or not self.locked else [])
        yield from self.sleep_until_granted(task)
        return True

    def down_write_failed(self, task: Task) -> Waiting:
        """Queue, let readers ahead join readers inside, and take the lock when woken."""
        self.arriving_writers += 1
        return (yield from self.wait_as_writer(task, bias=1))

    def enqueue(self, task: Task, side: Side) -> bool:
        """Append the task. Whether nobody was there."""
        task.forget_wakeups()
        task.atomic(self.line)
        self.waiters.append(Waiter(task, side, self.machine.now))
        return len(self.waiters) == 1

    def wait_as_writer(self, task: Task, bias: int) -> Waiting:
        """Sleep whenever the lock is not free."""
        task.segment.debt += self.code.rwsem.ask
        yield from self.lock_to_wait(task, self.code.rwsem.queue)
        alone = self.enqueue(task, Side.WRITE)
        self.arriving_writers -= bias
        self.wake_all(task, self.readers_ahead(task, alone=alone))
        slept = False
        while self.locked:
            self.wait_lock.unlock(task)
            yield from self._sleep_until_free(task)
            slept = True
            task.segment.debt += self.code.rwsem.woken
            yield from self.lock_to_wait(task, self.code.rwsem.look)
        task.atomic(self.line)
        self.set_writer(task)
        self.waiters = [w for w in self.waiters if w.task is not task]
        task.segment.debt += self.code.rwsem.take
        yield from task.pay()
        self.wait_lock.unlock(task)
        task.segment.debt += self.code.rwsem.taken
        return slept

    def readers_ahead(self, task: Task, *, alone: bool) -> list[Task]:
        """Readers that were queued before a writer may join readers inside."""
        read_owned = self.locked and not self.written
        return self.mark_wake(task, readers_only=True) if read_owned and not alone else []

    def _sleep_until_free(self, task: Task) -> Steps:
        while True:
            yield from task.park()
            if (yield from self.looks_free(task)):
                return


class Rwsem26(Rwsem310):
    """To 3.8: writers are **granted** the lock as well. Strictly first come, first served; nobody steals."""

    first_reader_joins = False

    def wake_writer(self, first: Waiter) -> list[Task]:
        """Give the lock to the writer, unless somebody is in the count, who will look again under the wait lock."""
        if self.locked:
            return []
        self.waiters.pop(0)
        self.writer = first.task
        self.grant(first.task)
        return [first.task]

    def wait_as_writer(self, task: Task, bias: int) -> Waiting:
        """Sleep until granted."""
        task.segment.debt += self.code.rwsem.ask
        yield from self.lock_to_wait(task, self.code.rwsem.queue)
        alone = self.enqueue(task, Side.WRITE)
        self.arriving_writers -= bias
        self.unlock_and_wake(
            task, self.readers_ahead(task, alone=alone) if self.locked else self.mark_wake(task)
        )
        while not self.take_grant(task):
            yield from task.park()
        task.segment.debt += self.code.rwsem.taken
        return True


class Rwsem316(Rwsem310):
    """3.16 to 4.7: writers spin (OSQ) on a running writer, and steal. No hand-off: who sleeps may starve.

    An owner word without a task may mean readers, so nobody begins to spin then; but who spins already goes on.
    """

    stops_at_other_owner = True
    writes_owner = frozenset({Side.WRITE})

    def may_begin_to_spin(self, side: Side) -> bool:
        """Only on a running writer."""
        return self.writer is not None and self.spinnable(side)

    def down_write_failed(self, task: Task) -> Waiting:
        """Spin, else queue."""
        task.preempt_off += 1
        yield from self._take_bias_back(task)
        taken = yield from self.spin(task, Side.WRITE)
        task.preempt_off -= 1
        if taken:
            return False
        yield from task.reschedule()
        return (yield from self.wait_as_writer(task, bias=0))

    def _take_bias_back(self, task: Task) -> Steps:
        """The first attempt's add keeps others from a lock that is otherwise free, until it is undone."""
        self.arriving_writers += 1
        yield from task.pay()
        task.atomic(self.line)
        self.arriving_writers -= 1
        self.tell_pollers(task)


class Rwsem48(Rwsem316):
    """4.8 to 5.2: who spins goes on when another writer takes the lock (since 4.0), and may begin with a free lock.

    The owner word says that readers have the lock or had it, until the next writer; nobody spins on them. Wake-ups are
    issued after the wait lock is dropped. A releaser that finds spinners wakes sleepers only if the wait lock is free
    (since 4.2): the spinner will do it when it releases.
    """

    wakes_under_wait_lock = False
    stops_at_other_owner = False

    def may_begin_to_spin(self, side: Side) -> bool:
        """On a running writer or nobody."""
        return self.spinnable(side)

    def spinnable(self, side: Side) -> bool:
        """Not while the owner word says readers."""
        return not self.reader_owned and super().spinnable(side)

    def note_reader(self, task: Task) -> bool:
        """The owner word forgets only with the next writer; a reader writes only what is not there yet."""
        new, self.reader_owned = not self.reader_owned, True
        super().note_reader(task)
        return new

    def lock_to_wake(self, task: Task) -> Spinning:
        """Leave it to a spinner if somebody else has the wait lock."""
        if not self.osq.queue:
            return (yield from super().lock_to_wake(task))
        task.segment.debt += self.code.rwsem.wake
        return self.wait_lock.try_fast(task, Side.WRITE)
