"""The lock of a btrfs tree block before it became an rwsem (`fs/btrfs/locking.c`), generations 2 and 3.

Its holder is **spinning** (it holds the lock inside, must not sleep, and who waits spins) or, once it has converted,
**blocking** (it does not, may sleep, and who waits sleeps).
"""

from __future__ import annotations

from simfs.machine.lock import Attempt, Lock, Mode, Place, Side, Waiting
from simfs.machine.locks.rwlock import Rwlock
from simfs.machine.locks.sleeping import SleepingLock, Spinning
from simfs.machine.locks.waitqueue import WaitQueue
from simfs.machine.task import Steps, Task

POLLS = 512
"""Rounds of `btrfs_spin_on_block`."""

SPINS = 3
"""Attempts of `btrfs_try_spin_lock`."""


class BtrfsTree2(SleepingLock):
    """2009 to Linux 3.0 (2.6.32): a spinlock, a BLOCKING bit and an exclusive wait queue; always exclusive.

    Waiters spin on the spinlock; against the bit they poll 512 times, then sleep. A release wakes exactly **one**
    sleeper, as a **hint**: it competes with those who spin.
    """

    perf_name = "spinlock"
    inner_kind = "lock", "ticket"
    wait_queues = 1

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.blocking = False
        self.queue = WaitQueue(self, *place.queue_locks)

    def try_fast(self, task: Task, side: Side) -> bool:
        """`btrfs_try_tree_lock`: a trylock of the spinlock; fails against the bit."""
        taken = not self._is_blocking(task) and self.wait_lock.try_lock(task, side)
        if taken:
            self.begin_hold(task)
        return taken

    def try_lock_spinning(self, task: Task, side: Side) -> Attempt:
        """`btrfs_try_spin_lock`, which searches use.

        Spins for the spinlock, and polls the bit as long as somebody clears it, three times at most.
        """
        if not self.try_fast(task, side):
            yield from self.waited_for(task, self._spin(task))
        return self.holder is task

    def _spin(self, task: Task) -> Waiting:
        for _ in range(SPINS):
            if not (yield from self._poll_bit(task)):
                break
            yield from self.wait_lock.lock_raw(task)
            if not self._is_blocking(task):
                self.begin_hold(task)
                break
            self.wait_lock.unlock(task)
        return False

    def wait(self, task: Task, side: Side) -> Waiting:
        """`btrfs_tree_lock`."""
        slept = False
        clear = yield from self._poll_bit(task)
        while True:
            if not clear:
                slept = (yield from self._sleep_once(task)) or slept
            yield from self.wait_lock.lock_raw(task)
            if not self._is_blocking(task):
                self.begin_hold(task)
                return slept
            self.wait_lock.unlock(task)
            clear = yield from self._poll_bit(task)

    def release(self, task: Task, side: Side) -> Steps:
        """`btrfs_tree_unlock`."""
        self.end_hold()
        if self.blocking:
            self._set_bit(task, blocking=False)
        else:
            self.wait_lock.unlock(task)
        yield from self.queue.wake_up(task)

    def convert(self, task: Task, side: Side, mode: Mode) -> Steps:
        """`btrfs_set_lock_blocking`, `btrfs_clear_lock_blocking`."""
        if mode is Mode.BLOCKING and not self.blocking:
            self._set_bit(task, blocking=True)
            self.wait_lock.unlock(task)
        elif mode is Mode.SPINNING and self.blocking:
            yield from self.wait_lock.lock_raw(task)
            self._set_bit(task, blocking=False)

    def _is_blocking(self, task: Task) -> bool:
        task.read(self.line)
        return self.blocking

    def _poll_bit(self, task: Task) -> Spinning:
        """`btrfs_spin_on_block`: poll the bit for a while. Whether it is clear."""
        machine = self.machine
        end = machine.now + POLLS * (machine.topology.hit + machine.costs.cpu_relax)
        while True:
            task.read(self.line)
            yield from task.pay()
            if not self.blocking or task.need_resched or machine.now >= end:
                return not self.blocking
            yield from self.poll(task, deadline=end)

    def _sleep_once(self, task: Task) -> Waiting:
        yield from self.queue.prepare(task, exclusive=True)
        sleeps = self._is_blocking(task)
        if sleeps:
            yield from task.park()
        yield from self.queue.finish(task)
        return sleeps

    def _set_bit(self, task: Task, *, blocking: bool) -> None:
        """Write the bit, which those who poll it see when their refetch is served."""
        task.atomic(self.line)
        self.blocking = blocking
        self.tell_pollers(task)


class BtrfsTree3(Lock):
    """Linux 3.16 to 5.10 (5.1): a qrwlock, counts of blocking readers and writers, and two wait queues.

    Who comes while a holder blocks takes the rwlock, sees the count, gives the rwlock back and sleeps. There is no
    other spin policy. The last blocking holder that leaves wakes **everybody** who sleeps, the newest first, as a
    **hint**: readers enter together, writers one by one, and the first to go blocking sends the others back to sleep.
    Left out: a task that reads under its own write lock.
    """

    perf_name = "rwlock"
    inner_kind = "lock", "qrwlock"
    wait_queues = 2
    readers_wait_first = False
    """A reader looks for a blocking writer before it takes the rwlock."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.blocking_readers: set[Task] = set()
        self.blocking_writer = False
        self.behind_readers, self.behind_writer = (WaitQueue(self, guard) for guard in place.queue_locks)

    @property
    def rwlock(self) -> Rwlock:
        """The lock inside."""
        assert isinstance(self.inner, Rwlock)
        return self.inner

    def try_fast(self, task: Task, side: Side) -> bool:
        """The first attempt of the lock calls."""
        return self._is_open(task, side) and self.rwlock.try_fast(task, side) and self._enter(task, side)

    def try_lock(self, task: Task, side: Side) -> bool:
        """`btrfs_try_tree_read_lock`: with a trylock of the rwlock."""
        return self._is_open(task, side) and self.rwlock.try_lock(task, side) and self._enter(task, side)

    def try_lock_spinning(self, task: Task, side: Side) -> Attempt:
        """`btrfs_try_tree_write_lock` and `btrfs_tree_read_lock_atomic`, which searches use.

        They fail against blocking holders, but spin for the rwlock before they look again.
        """
        if not self._is_open(task, side):
            return False
        if not self.rwlock.try_fast(task, side):
            yield from self.waited_for(task, self._spin(task, side), side)
        if self._is_open(task, side):
            return self._enter(task, side)
        yield from self.rwlock.release(task, side)
        return False

    def _spin(self, task: Task, side: Side) -> Waiting:
        yield from self.rwlock.waited_for(task, self.rwlock.wait(task, side), side)
        return False

    def wait(self, task: Task, side: Side) -> Waiting:
        """`btrfs_tree_read_lock`, `btrfs_tree_lock`."""
        slept = False
        if side is Side.WRITE or self.readers_wait_first:
            slept = yield from self._wait_for_blocking(task, side)
        while True:
            yield from self._lock_inner(task, side)
            if self._is_open(task, side):
                self._enter(task, side)
                return slept
            yield from self.rwlock.release(task, side)
            slept = (yield from self._wait_for_blocking(task, side)) or slept

    def release(self, task: Task, side: Side) -> Steps:
        """`btrfs_tree_read_unlock`, `btrfs_tree_read_unlock_blocking`, `btrfs_tree_unlock`."""
        if side is Side.READ:
            self.end_shared(task)
        else:
            self.end_hold()
        if self._is_blocking(task, side):
            yield from self._discount(task, side)
        else:
            yield from self.rwlock.release(task, side)

    def convert(self, task: Task, side: Side, mode: Mode) -> Steps:
        """`btrfs_set_lock_blocking_{read,write}`, `btrfs_clear_lock_blocking_{read,write}`."""
        blocking = self._is_blocking(task, side)
        if mode is Mode.BLOCKING and not blocking:
            task.atomic(self.line)
            if side is Side.READ:
                self.blocking_readers.add(task)
            else:
                self.blocking_writer = True
            yield from self.rwlock.release(task, side)
        elif mode is Mode.SPINNING and blocking:
            yield from self._lock_inner(task, side)
            yield from self._discount(task, side)

    def _is_open(self, task: Task, side: Side) -> bool:
        """Whether no blocking holder keeps this side out."""
        task.read(self.line)
        return not self.blocking_writer and (side is Side.READ or not self.blocking_readers)

    def _enter(self, task: Task, side: Side) -> bool:
        if side is Side.READ:
            self.begin_shared(task)
        else:
            self.begin_hold(task)
        return True

    def _lock_inner(self, task: Task, side: Side) -> Steps:
        yield from self.rwlock.pay_first(task)
        if not self.rwlock.try_fast(task, side):
            yield from self.rwlock.waited_for(task, self.rwlock.wait(task, side), side)

    def _wait_for_blocking(self, task: Task, side: Side) -> Waiting:
        slept = False
        if side is Side.WRITE:
            slept = yield from self.behind_readers.wait_event(task, lambda: not self.blocking_readers)
        return (yield from self.behind_writer.wait_event(task, lambda: not self.blocking_writer)) or slept

    def _is_blocking(self, task: Task, side: Side) -> bool:
        return task in self.blocking_readers if side is Side.READ else self.blocking_writer

    def _discount(self, task: Task, side: Side) -> Steps:
        """One blocking holder less; the last one wakes who waits for it."""
        task.atomic(self.line)
        if side is Side.WRITE:
            self.blocking_writer = False
            yield from self.behind_writer.wake_up(task)
        else:
            self.blocking_readers.remove(task)
            if not self.blocking_readers:
                yield from self.behind_readers.wake_up(task)


class BtrfsTree3Biased(BtrfsTree3):
    """Linux 3.1 to 3.15 (3.6): over the biased rwlock; readers wait before they take it."""

    inner_kind = "lock", "rwlock-2.6"
    readers_wait_first = True
