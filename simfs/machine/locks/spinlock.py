"""Spinlocks whose waiters all poll the lock word, and what these share with the queued ones (`queued.py`).

The holder and those who wait run with preemption off and never leave their CPU (locks of `include/linux/spinlock.h`).
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from simfs.machine.lock import Lock, Place, Side, Waiting
from simfs.machine.task import Steps, Task


class Spinlock(Lock):
    """What all spinlocks share: one word, polled until it is my turn."""

    perf_name = "spinlock"
    spins = True
    has_wait_lock = False
    fifo: ClassVar[bool] = True
    """Waiters are served in the order of their coming."""
    takes_by_write: ClassVar[bool] = True
    """Who finds the lock free has to write the word to have it."""

    all_poll: ClassVar[bool] = True
    """All waiters poll the word."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.waiters: deque[Task] = deque()

    @property
    def is_queued_for(self) -> bool:
        """Whether a newcomer must wait even if the lock is free."""
        return self.fifo and bool(self.waiters)

    def acquire(self, task: Task, side: Side) -> Steps:
        """Where owners are checked, who asks reads the owner first (`debug_spin_lock_before`)."""
        if self.machine.kernel.debug_spinlock:
            task.read(self.line)
        yield from super().acquire(task, side)

    def try_fast(self, task: Task, side: Side) -> bool:
        """One atomic attempt: fails if the lock is held or, where there is a queue, somebody is in it."""
        task.atomic(self.line)
        if self.holder is not None or self.is_queued_for:
            return False
        task.preempt_off += 1
        self.begin_hold(task)
        return True

    def wait(self, task: Task, side: Side) -> Waiting:
        """Poll until it is my turn."""
        task.preempt_off += 1
        failed = self.machine.now + task.segment.debt
        for poller in self.waiters:  # they fetch the word back from the attempt that failed
            if self.all_poll and poller.on_cpu and not self.machine.kernel.turns:
                self.refetch(poller, failed)
        self.waiters.append(task)
        while True:
            yield from task.spin()
            if self.holder is None and (not self.fifo or self.waiters[0] is task):
                break
        self.waiters.remove(task)
        if self.takes_by_write:
            task.atomic(self.line)
        self.begin_hold(task)
        return False

    def unlock(self, task: Task) -> None:
        """Release by one store, which the pollers see when their refetch is served."""
        task.store(self.line)
        self.end_hold()
        task.preempt_off -= 1
        self.tell_pollers(task)

    def release(self, task: Task, side: Side) -> Steps:
        """As `unlock`; where owners are checked, the owner is read before (`debug_spin_unlock`)."""
        if self.machine.kernel.debug_spinlock:
            task.read(self.line)
            yield from task.pay()
        self.unlock(task)

    def lock_raw(self, task: Task) -> Steps:
        """Take a raw spinlock inside another lock."""
        yield from self.pay_first(task)
        if not self._taken(task, self.try_fast, Side.WRITE):
            yield from self.waited_for(task, self.wait(task, Side.WRITE))
        else:
            yield from task.settle()

    def tell_pollers(self, writer: Task) -> None:
        """All waiters poll the word; their refetches are served in random order."""
        self.show_in_random_order(writer, self.waiters)


class TestAndSet(Spinlock):
    """Test-and-set (x86 before 2.6.25; `virt_spin_lock` in guests): the first to refetch the word takes it.

    No queue, no fairness.
    """

    fifo = False


class Ticket(Spinlock):
    """Ticket lock (x86 2.6.25 to 4.1): FIFO, but every waiter polls the word.

    After a release the next in line is on average k/2 refetches away; it has read that its ticket is up and writes
    nothing.
    """

    takes_by_write = False
