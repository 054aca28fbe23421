"""`struct rw_semaphore` of Linux 5.11 and later (`kernel/locking/rwsem.c`)."""

from __future__ import annotations

from dataclasses import dataclass

from simfs.machine.lock import Place, Side, Waiting
from simfs.machine.locks.osq import Osq
from simfs.machine.locks.sleeping import SleepingLock, Spinning
from simfs.machine.task import Steps, Task
from simfs.machine.time import Time


@dataclass(eq=False)
class Waiter:
    """A queued reader or writer."""

    task: Task
    side: Side
    since: Time
    handoff: bool = False
    """Marked as the one to get the lock next."""


class Rwsem(SleepingLock):
    """Writers spin and steal, readers are granted in phases.

    Writers spin (OSQ) on a running writer, and for 10 to 25 us on readers; they steal. Readers never spin; they steal
    once, on entry, when not crowded. Queued readers are **granted**, all of them (up to 256) in one phase; a queued
    writer gets a **hint**. Who is first and has waited 4 ms marks a hand-off, which stops stealing.
    """

    perf_name = "rwsem"

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.shares = 0
        """Readers in the count word: those that hold it, and those that are still trying."""
        self.writer: Task | None = None
        """The writer in the owner word."""
        self.reader_owned = False
        """The owner word says that readers have it or had it ..."""
        self.nonspinnable = False
        """... and that writers must not spin on them."""
        self.handoff = False
        self.waiters: list[Waiter] = []
        self.osq = Osq(self)
        self.pollers: list[Task] = []
        """Spinners that look at the count and owner words."""
        self.granted: set[Task] = set()
        """Readers granted but not yet running."""

    def try_fast(self, task: Task, side: Side) -> bool:
        """The one atomic attempt: nobody holds it against me and nobody waits."""
        task.write(self.line)
        if self.waiters or self.handoff or self.writer:
            return False
        if side is Side.READ:
            self.shares += 1
            self._set_reader_owned(task)
        elif self.shares:
            return False
        else:
            self._set_writer(task)
        return True

    def wait(self, task: Task, side: Side) -> Waiting:
        """The slow path of either side."""
        return self._down_read_slow(task) if side is Side.READ else self._down_write_slow(task)

    def release(self, task: Task, side: Side) -> Steps:
        """`up_read`, `up_write`: whoever leaves the lock free wakes those who wait."""
        task.write(self.line)
        if side is Side.READ:
            self.end_shared(task)
            self.shares -= 1
            if self.shares == 0:
                self.nonspinnable = False
                self._tell_pollers(task)
        else:
            self.end_hold()
            self.writer = None
            self._tell_pollers(task)
        if self.shares == 0 and self.waiters:
            yield from self.wait_lock.lock_raw(task)
            woken = self._mark_wake_any()
            self.wait_lock.unlock(task)
            self._wake_all(task, woken)

    def _set_writer(self, task: Task) -> None:
        self.writer = task
        self.reader_owned = self.nonspinnable = False
        self.lock_class.statistics.steals += bool(self.waiters) and self.waiters[0].task is not task
        self.begin_hold(task)
        self._tell_pollers(task)  # who polled a free but handed-off lock now has an owner to watch

    def _set_reader_owned(self, task: Task) -> None:
        if not self.reader_owned:
            self.reader_owned, self.nonspinnable = True, False
        self.begin_shared(task)

    def _tell_pollers(self, writer: Task) -> None:
        """The count or owner word changed: pollers see it when their refetch is served."""
        for poller in self.pollers:
            self.show(writer, poller)

    # ---- readers ----------------------------------------------------------------------------------------------------

    def _down_read_slow(self, task: Task) -> Waiting:
        """`rwsem_down_read_slowpath`."""
        self.shares += 1  # left behind by the fast path's add
        crowded = not self.writer and self.reader_owned and self.shares > 1
        if not crowded and not self.writer and not self.handoff:
            yield from self._steal_as_reader(task)
            return False
        yield from self.wait_lock.lock_raw(task)
        if not self.waiters and not self.writer and not self.handoff:
            self._set_reader_owned(task)
            self.wait_lock.unlock(task)
            return False
        task.forget_wakeups()
        self.waiters.append(Waiter(task, Side.READ, self.machine.now))
        self.shares -= 1
        woken = self._cond_wake()
        self.wait_lock.unlock(task)
        self._wake_all(task, woken)
        while task not in self.granted:
            yield from task.park()
        self.granted.remove(task)
        return True

    def _steal_as_reader(self, task: Task) -> Steps:
        """Enter past the queue; the first reader lets the queued readers in as well."""
        self._set_reader_owned(task)
        if self.shares == 1 and self.waiters:
            yield from self.wait_lock.lock_raw(task)
            woken = self._mark_wake_readers()
            self.wait_lock.unlock(task)
            self._wake_all(task, woken)

    # ---- writers ----------------------------------------------------------------------------------------------------

    def _down_write_slow(self, task: Task) -> Waiting:
        """`rwsem_down_write_slowpath`: spin, else queue."""
        task.preempt_off += 1
        taken = yield from self._spin_as_writer(task)
        task.preempt_off -= 1
        if taken:
            return False
        yield from task.reschedule()
        return (yield from self._wait_as_writer(task))

    def _spin_as_writer(self, task: Task) -> Spinning:
        if task.need_resched or not self._spinnable() or not (yield from self.osq.lock(task)):
            return False
        taken = yield from self._spin_on_owner(task)
        self.osq.unlock(task)
        return taken

    def _spinnable(self) -> bool:
        """`rwsem_can_spin_on_owner`: a running writer, readers not marked, or nobody."""
        if self.writer:
            return self.writer.on_cpu
        return not self.nonspinnable

    def _spin_on_owner(self, task: Task) -> Spinning:
        """`rwsem_optimistic_spin`, at the head of the OSQ."""
        kernel, patience = self.machine.kernel, None  # until when to spin on readers
        while True:
            task.read(self.line)
            yield from task.pay()
            if self._steal_as_writer(task):
                return True
            if task.need_resched or not self._spinnable():
                return False
            if not self.reader_owned:
                patience = None
            elif patience is None:
                wait = kernel.rwsem_reader_spin_base + kernel.rwsem_reader_spin_per_reader * self.shares
                patience = self.machine.now + min(wait, kernel.rwsem_reader_spin_cap)
            if patience is not None and self.machine.now >= patience:
                self.nonspinnable = True
                return False
            self.pollers.append(task)
            yield from task.spin(self.writer, until_resched=True, deadline=patience)
            self.pollers.remove(task)

    def _steal_as_writer(self, task: Task) -> bool:
        """`rwsem_try_write_lock_unqueued`: takes a free lock past the queue unless a hand-off is marked."""
        if self.writer or self.shares or self.handoff:
            return False
        task.write(self.line)
        self._set_writer(task)
        return True

    def _wait_as_writer(self, task: Task) -> Waiting:
        yield from self.wait_lock.lock_raw(task)
        task.forget_wakeups()
        me = Waiter(task, Side.WRITE, self.machine.now)
        self.waiters.append(me)
        if len(self.waiters) > 1 and (woken := self._cond_wake()):
            self.wait_lock.unlock(task)
            self._wake_all(task, woken)
            yield from self.wait_lock.lock_raw(task)
        slept = False
        while not self._try_as_queued_writer(me):
            self.wait_lock.unlock(task)
            if not (me.handoff and (yield from self._spin_for_handoff(task))):
                yield from task.park()
                slept = True
            yield from self.wait_lock.lock_raw(task)
        self.wait_lock.unlock(task)
        return slept

    def _try_as_queued_writer(self, me: Waiter) -> bool:
        """`rwsem_try_write_lock`: takes the lock, or marks the first waiter for a hand-off after 4 ms."""
        first = self.waiters[0]
        if self.handoff and first.handoff and first is not me:
            return False
        if self.writer or self.shares:
            if not self.handoff and self.machine.now - me.since > self.machine.kernel.rwsem_handoff_wait:
                self.handoff = first.handoff = True
            return False
        self.handoff = False
        me.task.write(self.line)
        self._set_writer(me.task)
        self.waiters.remove(me)
        return True

    def _spin_for_handoff(self, task: Task) -> Spinning:
        """The marked waiter spins on a running writer. True if it should try again at once."""
        yield from task.pay()
        owner = self.writer
        if owner is None:
            return not self.reader_owned
        if not owner.on_cpu or task.need_resched:
            return False
        self.pollers.append(task)
        yield from task.spin(owner, until_resched=True)
        self.pollers.remove(task)
        return self.writer is None and not self.reader_owned

    # ---- whom to wake -----------------------------------------------------------------------------------------------

    def _cond_wake(self) -> list[Task]:
        """`rwsem_cond_wake_waiter`: beside a writer nobody, beside readers queued readers, in a free lock anybody."""
        if self.writer:
            return []
        if self.shares:
            return self._mark_wake_readers()
        self.nonspinnable = False
        return self._mark_wake_any()

    def _mark_wake_any(self) -> list[Task]:
        """`rwsem_mark_wake(RWSEM_WAKE_ANY)`: a writer at the head is woken, readers are granted."""
        if self.waiters and self.waiters[0].side is Side.WRITE:
            return [self.waiters[0].task]
        return self._mark_wake_readers()

    def _mark_wake_readers(self) -> list[Task]:
        """If a reader is first: grants all queued readers, up to the batch limit."""
        kernel = self.machine.kernel
        if not self.waiters or self.waiters[0].side is Side.WRITE:
            return []
        first = self.waiters[0]
        if self.writer:
            # A writer stole it: the reader asks for a hand-off once it has waited long enough.
            if self.machine.now - first.since > kernel.rwsem_handoff_wait and not self.handoff:
                self.handoff = first.handoff = True
            return []
        readers = [w for w in self.waiters if w.side is Side.READ][: kernel.rwsem_reader_batch]
        self.waiters = [w for w in self.waiters if w not in readers]
        self.handoff = False
        self.shares += len(readers)
        for reader in readers:
            self._set_reader_owned(reader.task)
        self.granted.update(reader.task for reader in readers)
        self.lock_class.statistics.handoffs += len(readers)
        return [reader.task for reader in readers]

    def _wake_all(self, waker: Task, tasks: list[Task]) -> None:
        for task in tasks:
            self.wake(waker, task)
