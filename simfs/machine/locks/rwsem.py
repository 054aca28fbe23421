"""`struct rw_semaphore` since Linux 5.3 (`kernel/locking/rwsem.c`): owner word for readers, phases, hand-off."""

from __future__ import annotations

from typing import ClassVar

from simfs.machine.lock import Place, Side, Waiting
from simfs.machine.locks.rwsem_common import AnyRwsem, Waiter
from simfs.machine.locks.sleeping import Spinning
from simfs.machine.task import Steps, Task
from simfs.machine.time import Time


class Rwsem(AnyRwsem):
    """5.16 and later: writers spin and steal, readers are granted in phases.

    Writers spin (OSQ) on a running writer, and for 10 to 25 us on readers; they steal. Readers never spin; they steal
    once, on entry, when not crowded. Queued readers are **granted**, all of them (up to 256) in one phase; a queued
    writer gets a **hint**. Who has waited 4 ms marks the first waiter for a hand-off, which stops stealing.
    """

    only_first_asks: ClassVar[bool] = False
    """Only the first waiter may ask for a hand-off."""
    sleeps_at_handoff: ClassVar[bool] = False
    """A marked hand-off sends all who spin on a writer to sleep, and the marked writer does not spin."""

    def wait(self, task: Task, side: Side) -> Waiting:
        """The slow path of either side."""
        return self.down_read_slow(task) if side is Side.READ else self.down_write_slow(task)

    def writer_leaves(self) -> bool:
        """Readers that are still trying do not keep a writer from waking."""
        return True

    def note_reader(self, task: Task) -> bool:
        """The nonspinnable mark outlives a change of readers."""
        if not self.reader_owned:
            self.reader_owned, self.nonspinnable = True, False
        self.begin_shared(task)
        return True

    # ---- readers ----------------------------------------------------------------------------------------------------

    def down_read_slow(self, task: Task) -> Waiting:
        """`rwsem_down_read_slowpath`: steal, else queue."""
        self.shares += 1  # left behind by the fast path's add
        # in the count that it returned
        beside, queued = self.shares > 1, len(self.waiters) > 0
        closed = self.writer is not None or self.handoff
        yield from self.look_at_owner(task)
        if not closed and not (beside and self.reader_owned):
            self.set_reader_owned(task)
            yield from self.settle_owner(task, Side.READ)
            if queued and not beside:
                yield from self.wake_queued_readers(task)
            return False
        return (yield from self.wait_as_reader(Waiter(task, Side.READ, 0), share=1))

    def wake_queued_readers(self, task: Task) -> Steps:
        """A reader that passed the queue lets the queued readers in as well."""
        task.segment.debt += self.code.rwsem.wake
        yield from self.wait_lock.lock_raw(task)
        yield from self.mark_fetched(task, readers_only=True)

    def wait_as_reader(self, me: Waiter, share: int) -> Waiting:
        """Queue, unless the share in the count (if there is one) will do; sleep until granted."""
        task = me.task
        task.segment.debt += self.code.rwsem.ask
        yield from self.lock_to_wait(task, self.code.rwsem.queue)
        if share and not self.waiters and not self.writer and not self.handoff:
            self.set_reader_owned(task)
            self.wait_lock.unlock(task)
            return False
        task.forget_wakeups()
        me.since = self.machine.now
        self.waiters.append(me)
        if share:
            self.give_share_back(task)
        self.unlock_and_wake(task, self.wake_after_queueing(me))
        yield from self.sleep_until_granted(task)
        return True

    # ---- writers ----------------------------------------------------------------------------------------------------

    def down_write_slow(self, task: Task) -> Waiting:
        """`rwsem_down_write_slowpath`: spin, else queue."""
        if (yield from self.spin(task, Side.WRITE)):
            return False
        yield from task.reschedule()
        return (yield from self.wait_as_writer(task))

    def wait_as_writer(self, task: Task) -> Waiting:
        """Queue, sleep, and try whenever woken."""
        task.segment.debt += self.code.rwsem.ask
        yield from self.lock_to_wait(task, self.code.rwsem.queue)
        task.forget_wakeups()
        me = Waiter(task, Side.WRITE, self.machine.now)
        self.waiters.append(me)
        if woken := self.wake_after_queueing(me):
            self.unlock_and_wake(task, woken)
            yield from self.lock_to_wait(task, self.code.rwsem.look)
        slept = False
        tried: Time | None = None
        while not self._try_as_queued_writer(me):
            self.wait_lock.unlock(task)
            at_once, tried = tried == self.machine.now, self.machine.now
            spins = me.handoff and not self.sleeps_at_handoff
            if not (spins and (yield from self.spin_for_handoff(task, at_once=at_once))):
                yield from self.sleep_until_hope(me)
                slept = True
            task.segment.debt += self.code.rwsem.woken
            yield from self.lock_to_wait(task, self.code.rwsem.look)
        task.segment.debt += self.code.rwsem.take
        yield from task.pay()
        self.wait_lock.unlock(task)
        task.segment.debt += self.code.rwsem.taken
        return slept

    def sleep_until_hope(self, me: Waiter) -> Steps:
        """Sleep until woken."""
        yield from me.task.park()

    def impatient(self, me: Waiter) -> bool:
        """It has waited long enough to ask for a hand-off."""
        kernel = self.machine.kernel  # the clock that it looks at, `jiffies`, moves by ticks
        return self.machine.now // kernel.tick - me.since // kernel.tick > kernel.rwsem_handoff_ticks

    def _try_as_queued_writer(self, me: Waiter) -> bool:
        """`rwsem_try_write_lock`: takes the lock, or marks the first waiter for a hand-off after 4 ms."""
        first = self.waiters[0]
        if self.handoff and first.handoff and first is not me:
            return False
        if self.locked:
            may_ask = first is me or not self.only_first_asks
            if may_ask and not self.handoff and self.impatient(me):
                self.ask_for_handoff(me.task)
            return False
        self.handoff = False
        me.task.atomic(self.line)
        self.set_writer(me.task)
        self.waiters.remove(me)
        return True

    def spin_for_handoff(self, task: Task, *, at_once: bool = False) -> Spinning:
        """The marked waiter spins on a running writer. True if it should try again.

        Somebody who still tries may be in the count of a lock that nobody owns (`OWNER_NULL`). Attempts take turns with
        that one's way to the wait lock. If they cost no time, the one that came `at_once` after another has shown all
        that there is to see in this instant, and nobody else would ever have a turn.
        """
        yield from task.pay()
        owner = self.writer
        if owner is None and not self.reader_owned and at_once and self.locked:
            yield from self.poll(task)
            return True
        while owner is not None and owner is self.writer:
            if not owner.on_cpu or task.need_resched:
                return False
            yield from self.poll(task, owner)
        return self.writer is None and not self.reader_owned

    # ---- whom to wake -----------------------------------------------------------------------------------------------

    def wake_after_queueing(self, me: Waiter) -> list[Task]:
        """`rwsem_cond_wake_waiter`: beside a writer nobody, beside readers queued readers, in a free lock anybody."""
        alone = len(self.waiters) == 1
        if self.written or (alone and me.side is Side.WRITE):
            return []
        if self.shares and not self.may_join(me, alone=alone):
            return []
        readers_only = self.shares > 0
        self.nonspinnable = self.nonspinnable and readers_only
        woken = self.mark_wake(me.task, readers_only=readers_only)
        self.uncounted = 0
        return woken

    def may_join(self, me: Waiter, *, alone: bool) -> bool:
        """Whether queued readers may join readers inside because this one came."""
        del me, alone
        return True

    def phase(self) -> list[Waiter]:
        """All queued readers, wherever they are, up to the batch limit."""
        return [w for w in self.waiters if w.side is Side.READ][: self.machine.kernel.rwsem_reader_batch]

    def _grant_readers(self, waker: Task, first: Waiter) -> list[Task]:
        if not self.written:
            self.handoff = False
        return super()._grant_readers(waker, first)

    def stolen_from(self, waker: Task, first: Waiter) -> None:
        """The reader asks for a hand-off once it has waited long enough."""
        if self.impatient(first) and not self.handoff:
            self.ask_for_handoff(waker)

    def ask_for_handoff(self, task: Task) -> None:
        """The first waiter is the next to have the lock: `task` says so in the count."""
        self.handoff = self.waiters[0].handoff = True
        if self.sleeps_at_handoff:
            self.tell_pollers(task)


class Rwsem511(Rwsem):
    """5.11 to 5.15: a woken writer sleeps on while the lock is taken, and only the first waiter asks for a hand-off."""

    only_first_asks = True

    def sleep_until_hope(self, me: Waiter) -> Steps:
        """Sleep on while the lock is taken and there is no hand-off to ask for."""
        while True:
            yield from me.task.park()
            free = yield from self.looks_free(me.task)
            if free or (self.waiters[0] is me and self.impatient(me)):
                return

    def may_join(self, me: Waiter, *, alone: bool) -> bool:
        """A reader only if it is first."""
        return alone or me.side is Side.WRITE


class Rwsem54(Rwsem511):
    """5.4 to 5.10: readers spin too, on a running writer, in the writers' OSQ, and steal while they spin.

    A writer that has spun on readers in vain marks them for both sides. A writer that had to sleep after such a mark
    keeps readers from spinning on it, and readers that came under it keep the mark when they are granted.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.no_reader_spin = False
        """Readers must not spin."""
        self.last_reader: Task | None = None
        """The reader in the owner word."""

    def set_writer(self, task: Task) -> None:
        """The owner word is new, without marks."""
        self.no_reader_spin = False
        super().set_writer(task)

    def release(self, task: Task, side: Side) -> Steps:
        """A writer clears the owner word."""
        if side is Side.WRITE:
            self.no_reader_spin = False
        yield from super().release(task, side)

    def note_reader(self, task: Task) -> bool:
        """The mark for writers goes, the one for readers stays."""
        self.reader_owned, self.nonspinnable, self.last_reader = True, False, task
        self.begin_shared(task)
        return True

    def spinnable(self, side: Side) -> bool:
        """Readers heed their own mark, whoever owns the lock."""
        return not (side is Side.READ and self.no_reader_spin) and super().spinnable(side)

    def forbid_spinning(self) -> None:
        """For both sides."""
        self.nonspinnable = self.no_reader_spin = True

    def down_read_slow(self, task: Task) -> Waiting:
        """Give the share back and spin; else queue."""
        self.shares += 1
        yield from self.look_at_owner(task)
        me = Waiter(task, Side.READ, 0, no_reader_spin=self.no_reader_spin)
        if task.need_resched or not self.may_begin_to_spin(Side.READ):
            return (yield from self.wait_as_reader(me, share=1))
        task.atomic(self.line)
        self.give_share_back(task)
        yield from task.settle()
        before = self.last_reader if self.reader_owned else None
        if (yield from self.spin(task, Side.READ)):
            if self.waiters:
                yield from self.wake_queued_readers(task)
            return False
        new_phase = self.reader_owned and self.last_reader is not before
        if new_phase and self.take_unqueued(task, Side.READ):  # rwsem_reader_phase_trylock
            return False
        return (yield from self.wait_as_reader(me, share=0))

    def down_write_slow(self, task: Task) -> Waiting:
        """Spin, else queue, and remember that spinning on readers was in vain."""
        if (yield from self.spin(task, Side.WRITE)):
            return False
        in_vain = self.no_reader_spin or self.nonspinnable
        yield from task.reschedule()
        slept = yield from self.wait_as_writer(task)
        self.no_reader_spin = self.no_reader_spin or in_vain
        return slept

    def mark_wake(self, waker: Task, *, readers_only: bool = False) -> list[Task]:
        """Granted readers pass on the mark under which the first of them came."""
        first = self.waiters[0] if self.waiters else None
        woken = super().mark_wake(waker, readers_only=readers_only)
        if first and woken and first.side is Side.READ:
            self.last_reader, self.no_reader_spin = first.task, first.no_reader_spin
        return woken


class Rwsem53(Rwsem54):
    """5.3: nobody spins on a writer while a hand-off is marked (until 91d2a812dfb9)."""

    sleeps_at_handoff = True

    def stops_spinning(self) -> bool:
        """The lock that a writer has is going to somebody else (`rwsem_spin_on_owner`)."""
        return self.handoff and self.writer is not None
