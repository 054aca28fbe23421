"""`struct mutex` of Linux 4.10 and later (`kernel/locking/mutex.c`)."""

from __future__ import annotations

from collections import deque

from simfs.machine.lock import Place, Side, Waiting
from simfs.machine.locks.osq import Osq
from simfs.machine.locks.sleeping import SleepingLock, Spinning
from simfs.machine.task import Steps, Task
from simfs.machine.time import Time


class Mutex(SleepingLock):
    """Owner word with flags, OSQ spinning, stealing, and hand-off.

    A wake-up is a **hint**: the lock is free meanwhile and a spinner or newcomer may take it, until the first sleeper
    asks for a hand-off after its first failed attempt following a wake-up.
    """

    perf_name = "mutex"
    shares_line = True

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.waiters: deque[Task] = deque()
        self.handoff = False
        """The first waiter asks for the lock itself."""
        self.pickup: Task | None = None
        """Ownership waits for this task to pick it up."""
        self.osq = Osq(self)

    def try_fast(self, task: Task, side: Side) -> bool:
        """`__mutex_trylock_fast`: only when no flag is set."""
        task.atomic(self.line)
        if self.holder is not None or self.waiters or self.handoff or self.pickup:
            return False
        self.begin_hold(task)
        return True

    def try_lock(self, task: Task, side: Side = Side.WRITE) -> bool:
        """`__mutex_trylock`: takes a free lock whoever waits (stealing), unless it is kept for somebody else."""
        task.atomic(self.line)
        if self.pickup is task:
            self.pickup = None
            return self.take_grant(task)  # ownership was handed over already
        if self.holder is not None or self.pickup:
            return False
        self.take(task, self.waiters[0] if self.waiters else None)
        return True

    def wait(self, task: Task, side: Side) -> Waiting:
        """`mutex_lock` when the fast path failed: spin, else queue."""
        task.preempt_off += 1
        yield from task.settle()
        taken = self.try_lock(task) or (yield from self._spin_as_newcomer(task))
        task.preempt_off -= 1
        if taken:
            return False
        yield from task.reschedule()  # the spinner gave up because its CPU is wanted
        return (yield from self._wait_in_queue(task))

    # ---- optimistic spinning ----------------------------------------------------------------------------------------

    def _spin_as_newcomer(self, task: Task) -> Spinning:
        if not self._may_spin(task):
            return False
        task.segment.debt += self.code.mutex.spin
        if not (yield from self.osq.lock(task)):
            return False
        taken = yield from self._spin_on_owner(task)
        self.osq.unlock(task)
        if taken:
            task.segment.debt += self.code.mutex.taken
        return taken

    def _spin_as_first_waiter(self, task: Task) -> Spinning:
        """The first waiter spins beside the OSQ head."""
        if not self._may_spin(task):
            return False
        task.preempt_off += 1
        taken = yield from self._spin_on_owner(task)
        task.preempt_off -= 1
        return taken

    def _may_spin(self, task: Task) -> bool:
        """`mutex_can_spin_on_owner`: the owner runs and nobody wants my CPU."""
        return not task.need_resched and (self.holder is None or self.holder.on_cpu)

    def _spin_on_owner(self, task: Task) -> Spinning:
        """Try for the lock as long as its owner runs and nobody wants the CPU.

        After one `cpu_relax` if it was not free at first (`mutex_optimistic_spin`).
        """
        relax: Time = 0
        while True:
            task.read(self.line)
            task.segment.debt += self.code.mutex.attempt + relax
            yield from task.pay()
            relax = self.machine.costs.cpu_relax
            if (self.holder is None or self.pickup is task) and self.try_lock(task):
                yield from task.settle()
                return True
            if not self._may_spin(task):
                return False
            yield from self.poll(task, self.holder)

    # ---- the queue --------------------------------------------------------------------------------------------------

    def _wait_in_queue(self, task: Task) -> Waiting:
        task.segment.debt += self.code.mutex.ask
        yield from self.lock_to_wait(task, self.code.mutex.queue)
        if self.try_lock(task):
            self.wait_lock.unlock(task)
            return False
        task.forget_wakeups()
        self.waiters.append(task)
        taken = False
        while not taken and not self.try_lock(task):
            self.wait_lock.unlock(task)
            yield from task.park()
            task.segment.debt += self.code.mutex.woken
            taken = self.try_lock(task)
            first = self.waiters[0] is task
            self.handoff |= first and not taken
            taken = taken or (first and (yield from self._spin_as_first_waiter(task)))
            yield from self.lock_to_wait(task, self.code.mutex.take if taken else self.code.mutex.look)
        if not taken:
            task.segment.debt += self.code.mutex.take
            yield from task.pay()
        self.waiters.remove(task)
        self.handoff &= bool(self.waiters)
        self.wait_lock.unlock(task)
        task.segment.debt += self.code.mutex.taken
        return True

    def release(self, task: Task, side: Side) -> Steps:
        """`mutex_unlock`: frees the lock and wakes the first waiter, or hands it over if that was asked for."""
        task.atomic(self.line)
        self.end_hold()
        if not self.waiters:
            self.tell_pollers(task)
            return
        if not self.handoff:
            self.tell_pollers(task)  # free from here on
        else:
            self.pickup, self.handoff = self.waiters[0], False
            self.grant(self.pickup)
        task.segment.debt += self.code.mutex.wake
        yield from self.wait_lock.lock_raw(task)
        first = self.waiters[0] if self.waiters else None
        task.segment.debt += self.code.mutex.mark
        if first:
            task.segment.debt += task.lines_of_waiter(first)
        yield from task.pay()
        self.wait_lock.unlock(task)
        self.tell_pollers(task)
        if first:
            self.wake(task, first, fetched=True)
