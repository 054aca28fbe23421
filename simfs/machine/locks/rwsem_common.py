"""What the eras of `struct rw_semaphore` share: words, first attempt, releases, grants, optimistic spinning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from simfs.machine.lock import Place, Side
from simfs.machine.locks.osq import Osq
from simfs.machine.locks.sleeping import SleepingLock, Spinning
from simfs.machine.task import Steps, Task
from simfs.machine.time import Time

CLOCK_EVERY = 16
"""Rounds on readers after which a writer reads the clock (`rwsem_optimistic_spin`)."""


@dataclass(eq=False)
class Waiter:
    """A queued reader or writer."""

    task: Task
    side: Side
    since: Time
    handoff: bool = False
    """Marked as the one to get the lock next."""
    no_reader_spin: bool = False
    """5.3: readers were forbidden to spin when this one came."""


class Patience:
    """How long a writer spins on readers.

    The limit is set when it sees them after nobody, or after one writer behind another. Who waits for a single writer
    to go is told the next owner only (`rwsem_spin_on_owner`): if that is readers again, the limit of those before is
    still in force. The clock is read after `every` such time on readers.
    """

    def __init__(self, every: Time) -> None:
        self._every = every
        self.reset()

    def reset(self) -> None:
        """What is seen is nothing to be patient with."""
        self._limit: Time | None = None
        self._spun: Time = 0
        """Time on readers since the limit was set."""
        self._since: Time | None = None
        """Since when readers are seen."""

    def ends(self, now: Time) -> bool:
        """Look up from readers, if it spun on them. Whether it has read the clock meanwhile and the limit is over."""
        before = self._spun
        if self._since is not None:
            self._spun += now - self._since
            self._since = None
        read = self._spun // self._every > before // self._every
        last_read = now - self._spun % self._every
        return read and self._limit is not None and last_read > self._limit

    def on_readers(self, now: Time, wait: Time) -> Time:
        """It sees readers, on which it spins so long. When it reads the clock and the limit is over."""
        if self._limit is None:
            self._limit = now + wait
        self._since = now
        next_read = now + self._every - self._spun % self._every
        return next_read + max(-(-(self._limit + 1 - next_read) // self._every), 0) * self._every


class AnyRwsem(SleepingLock):
    """Queued readers are always **granted** the lock."""

    perf_name = "rwsem"
    shares_line = True
    wakes_under_wait_lock: ClassVar[bool] = False
    """Wake-ups are issued before the wait lock is dropped."""
    writes_owner: ClassVar[frozenset[Side]] = frozenset(Side)
    """On which side who takes the lock says so in the word beside the count (writers since 3.16, readers since 5.3)."""
    reader_looks_at_owner: ClassVar[bool] = True
    """A reader keeps what the owner word forbids (`__rwsem_set_reader_owned` since 5.3)."""
    stops_at_other_owner: ClassVar[bool] = False
    """A spinner that sees another writer take the lock gives up."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.shares = 0
        """Readers in the count word: those that hold it, and those that are still trying."""
        self.uncounted = 0
        """Of them, those who were granted it and whom the granter has not added to the count yet."""
        self.writer: Task | None = None
        """The writer, in the count and owner words."""
        self.arriving_writers = 0
        """To 3.10: writers whose failed first attempt is still in the count."""
        self.reader_owned = False
        """From 5.3: the owner word says that readers have it or had it ..."""
        self.nonspinnable = False
        """... and that writers must not spin on them."""
        self.handoff = False
        self.waiters: list[Waiter] = []
        self.osq = Osq(self)
        self.granted: set[Task] = set()
        """Readers granted but not yet running."""

    @property
    def written(self) -> bool:
        """A writer has it, or is in the count."""
        return self.writer is not None or self.arriving_writers > 0

    @property
    def locked(self) -> bool:
        """The active part of the count is not 0."""
        return self.written or self.shares > 0

    def try_fast(self, task: Task, side: Side) -> bool:
        """The one atomic attempt: nobody holds it against me and nobody waits."""
        task.atomic(self.line)
        if self.waiters or self.handoff or self.written or (side is Side.WRITE and self.shares):
            return False
        if side is Side.READ:
            self.shares += 1
            self.set_reader_owned(task)
        else:
            self.set_writer(task)
        return True

    def settle(self, task: Task, side: Side) -> Steps:
        """Pay, look at the owner word and write to it (`rwsem_set_owner`, `rwsem_set_reader_owned`).

        Who has not queued still has the line, so that this costs nothing.
        """
        yield from task.pay()
        if side is Side.READ and self.reader_looks_at_owner:
            task.read(self.line)
            yield from task.settle()
        if side in self.writes_owner:
            task.store(self.line)

    def settle_owner(self, task: Task, side: Side) -> Steps:
        """The same on a slow path."""
        if task.has_queued:
            yield from self.settle(task, side)

    def look_at_owner(self, task: Task) -> Steps:
        """Who has failed at once reads the owner word, which is in the line that it has lost meanwhile."""
        yield from task.settle()
        task.read(self.line)
        yield from task.settle()

    def set_writer(self, task: Task) -> None:
        """The task takes the free lock for writing."""
        self.writer = task
        self.reader_owned = self.nonspinnable = False
        self.take(task, self.waiters[0].task if self.waiters else None)
        self.tell_pollers(task)  # who polled a free but handed-off lock now has an owner to watch

    def give_share_back(self, task: Task) -> None:
        """A share that was not enough leaves the count, which may leave the lock free for who spins."""
        self.shares -= 1
        if not self.locked:
            self.tell_pollers(task)

    def set_reader_owned(self, task: Task) -> None:
        """The task, whose share is in the count, has the lock for reading, and says so in the owner word."""
        if self.note_reader(task):
            self.tell_pollers(task)  # a writer that spins on the owner

    def note_reader(self, task: Task) -> bool:
        """The same, for the task by itself or by who grants it the lock. Whether the owner word was written."""
        self.begin_shared(task)
        return False

    def release(self, task: Task, side: Side) -> Steps:
        """`up_read`, `up_write`: whoever leaves the lock free wakes those who wait."""
        task.atomic(self.line)
        if side is Side.READ:
            self.end_shared(task)
            self.shares -= 1
            if self.shares == 0:
                self.nonspinnable = self.nonspinnable and not self.waiters
                self.tell_pollers(task)
            leaves = self.shares == 0 and not self.arriving_writers
        else:
            self.end_hold()
            self.writer = None
            self.tell_pollers(task)
            leaves = self.writer_leaves()
        if leaves and self.waiters and (yield from self.lock_to_wake(task)):
            yield from self.mark_fetched(task)

    def lock_to_wake(self, task: Task) -> Spinning:
        """Take the wait lock to wake those who wait. False if somebody else will."""
        task.segment.debt += self.code.rwsem.wake
        yield from self.wait_lock.lock_raw(task)
        return True

    def writer_leaves(self) -> bool:
        """Whether a writer that releases the lock is to wake those who wait."""
        return not self.locked

    # ---- whom to wake -----------------------------------------------------------------------------------------------

    def mark_wake(self, waker: Task, *, readers_only: bool = False) -> list[Task]:
        """Whom to wake, under the wait lock: readers at the head are granted, a writer there is woken."""
        if not self.waiters:
            return []
        first = self.waiters[0]
        if first.side is Side.READ:
            return self._grant_readers(waker, first)
        return [] if readers_only else self.wake_writer(first)

    def mark_fetched(self, waker: Task, *, readers_only: bool = False) -> Steps:
        """Mark whom to wake, drop the wait lock and wake them.

        Readers have the lock as soon as the first of them is seen (`rwsem_mark_wake`: "we prefer to do the first reader
        grant before counting readers"). The others are in the count when the queue has been gone through; what else a
        wake-up needs of them is fetched then.
        """
        if self.wakes_under_wait_lock:
            waker.segment.debt += self.code.rwsem.mark
            self.unlock_and_wake(waker, self.mark_wake(waker, readers_only=readers_only))
            return
        reader = bool(self.waiters) and self.waiters[0].side is Side.READ
        waker.segment.debt += self.code.rwsem.grant if reader else self.code.rwsem.mark
        first = self._line_of_first(waker, readers_only=readers_only)
        waker.segment.debt += first
        yield from waker.pay()
        counting, fetching = self._walk(waker, readers_only=readers_only)
        woken_tasks = self.mark_wake(waker, readers_only=readers_only)
        waker.segment.debt += max(counting - first, 0)
        yield from waker.pay()
        self.uncounted = 0
        waker.segment.debt += fetching
        yield from waker.pay()
        self.unlock_and_wake(waker, woken_tasks, fetched=True)

    def _line_of_first(self, waker: Task, *, readers_only: bool) -> Time:
        """How long it takes to fetch the entry of the first waiter, if it may be woken."""
        first = self.waiters[0] if self.waiters else None
        may = first is not None and (first.side is Side.READ or not readers_only)
        return waker.line_of_waiter(first.task) if first and may else 0

    def _walk(self, waker: Task, *, readers_only: bool) -> tuple[Time, Time]:
        """How long it takes to go through the queue for who is to be woken, and then to fetch their other lines."""
        woken = self._to_be_woken(readers_only=readers_only)
        readers = sum(waiter.side is Side.READ for waiter in woken)
        entries = sum(waker.line_of_waiter(waiter.task) for waiter in woken)
        fetching = sum(waker.lines_of_waiter(waiter.task) for waiter in woken) - entries
        code = self.code.rwsem
        if readers:
            return entries + code.count + readers * code.count_reader, fetching + code.collect
        first = self.waiters[0] if self.waiters else None
        if first and first.side is Side.READ:  # a writer has the lock
            return code.undo + waker.line_of_waiter(first.task), 0
        return entries, fetching

    def _to_be_woken(self, *, readers_only: bool) -> list[Waiter]:
        if not self.waiters:
            return []
        if self.waiters[0].side is Side.READ:
            return [] if self.written else self.phase()
        return [] if readers_only else self.waiters[:1]

    def wake_writer(self, first: Waiter) -> list[Task]:
        """A writer is first: a hint."""
        return [first.task]

    def _grant_readers(self, waker: Task, first: Waiter) -> list[Task]:
        if self.written:
            self.stolen_from(waker, first)
            return []
        readers = self.phase()
        self.waiters = [w for w in self.waiters if w not in readers]
        self.shares += len(readers)
        self.uncounted = max(len(readers) - 1, 0)
        written = [self.note_reader(reader.task) for reader in readers]
        self.granted.update(reader.task for reader in readers)
        self.lock_class.statistics.handoffs += len(readers)
        if any(written):
            self.tell_pollers(waker)  # "an early indication that readers now have the lock"
        return [reader.task for reader in readers]

    def phase(self) -> list[Waiter]:
        """The readers that go together; one is first."""
        raise NotImplementedError

    def stolen_from(self, waker: Task, first: Waiter) -> None:
        """A writer took the lock before the reader that was first could be granted it."""

    def unlock_and_wake(self, waker: Task, woken: list[Task], *, fetched: bool = False) -> None:
        """Drop the wait lock and wake tasks whose lines may be `fetched`; the early eras do it the other way round."""
        if self.wakes_under_wait_lock:
            self.wake_all(waker, woken)
            self.wait_lock.unlock(waker)
        else:
            self.wait_lock.unlock(waker)
            self.wake_all(waker, woken, fetched=fetched)

    def wake_all(self, waker: Task, woken: list[Task], *, fetched: bool = False) -> None:
        """Wake tasks one after the other."""
        for task in woken:
            self.wake(waker, task, fetched=fetched)

    def looks_free(self, task: Task) -> Spinning:
        """Read the count. A release that began later is behind this look in the line's queue: it is not seen."""
        was_locked = self.locked
        task.read(self.line)
        yield from task.pay()
        return not (was_locked or self.locked)

    def sleep_until_granted(self, task: Task) -> Steps:
        """Sleep until a share is granted."""
        while task not in self.granted:
            yield from task.park()
        self.granted.remove(task)
        task.segment.debt += self.code.rwsem.taken

    # ---- optimistic spinning ----------------------------------------------------------------------------------------

    def spin(self, task: Task, side: Side) -> Spinning:
        """`rwsem_optimistic_spin`: spins as long as there is hope."""
        task.preempt_off += 1
        taken = False
        if side is Side.WRITE:
            yield from self.look_at_owner(task)  # rwsem_can_spin_on_owner
        if not task.need_resched and self.may_begin_to_spin(side):
            task.segment.debt += self.code.rwsem.spin
            if (yield from self.osq.lock(task)):
                taken = yield from self._spin_on_owner(task, side)
                self.osq.unlock(task)
            if taken:
                task.segment.debt += self.code.rwsem.taken
        task.preempt_off -= 1
        return taken

    def may_begin_to_spin(self, side: Side) -> bool:
        """`rwsem_can_spin_on_owner`."""
        return self.spinnable(side)

    def spinnable(self, side: Side) -> bool:
        """A running writer, readers that are not marked, or nobody."""
        if self.writer:
            return self.writer.on_cpu
        return side is Side.READ or not self.nonspinnable

    def _spin_on_owner(self, task: Task, side: Side) -> Spinning:
        """At the head of the OSQ: tries whenever something has changed; a writer bears readers for a while only."""
        patience = Patience(max(CLOCK_EVERY * self.machine.costs.cpu_relax, 1))
        watched: Task | None = None
        while True:
            task.read(self.line)
            task.segment.debt += self.code.rwsem.attempt
            yield from task.pay()
            if self.take_unqueued(task, side):
                yield from self.settle_owner(task, side)
                return True
            if task.need_resched or not self.spinnable(side) or self.stops_spinning():
                return False
            another = watched is not None and self.writer not in (None, watched)
            if self.stops_at_other_owner and another:
                return False
            watched = self.writer
            over = patience.ends(self.machine.now)
            if another or not (self.writer or self.reader_owned):
                patience.reset()
            bounded = side is Side.WRITE and self.reader_owned
            if bounded and over:
                self.forbid_spinning()
                return False
            deadline = patience.on_readers(self.machine.now, self._reader_spin()) if bounded else None
            yield from self.poll(task, self.writer, deadline=deadline)

    def stops_spinning(self) -> bool:
        """Who spins goes to sleep, whoever has the lock."""
        return False

    def _reader_spin(self) -> Time:
        """`rwsem_rspin_threshold`: how long a writer spins on these readers, by what the count has of them.

        Of readers that were just granted it has one at first.
        """
        kernel = self.machine.kernel
        counted = max(self.shares - self.uncounted, 0)
        wait = kernel.rwsem_reader_spin_base + kernel.rwsem_reader_spin_per_reader * counted
        return min(wait, kernel.rwsem_reader_spin_cap)

    def forbid_spinning(self) -> None:
        """A writer has spun on these readers long enough."""
        self.nonspinnable = True

    def take_unqueued(self, task: Task, side: Side) -> bool:
        """`rwsem_try_{read,write}_lock_unqueued`: takes the lock past the queue unless a hand-off is marked."""
        if self.handoff or (self.written if side is Side.READ else self.locked):
            return False
        task.atomic(self.line)
        if side is Side.READ:
            self.shares += 1
            self.set_reader_owned(task)
        else:
            self.set_writer(task)
        return True
