"""`rwlock_t`: readers and writers that spin. Holders and spinners run with preemption off.

A failed attempt undoes itself at once here, so it makes nobody else fail.
"""

from __future__ import annotations

from typing import ClassVar

from simfs.machine.lock import Lock, Place, Side, Waiting
from simfs.machine.locks.sleeping import guard_of
from simfs.machine.locks.spinlock import Spinlock
from simfs.machine.task import Steps, Task


class Rwlock(Lock):
    """What both rwlocks share."""

    perf_name = "rwlock"
    spins = True
    writers_put_back: ClassVar[bool]
    """A writer takes before it looks, and has to put back what was not there."""

    def is_open(self, side: Side) -> bool:
        """Whether a newcomer may enter."""
        return self.is_free(side)

    def is_free(self, side: Side) -> bool:
        """Whether the present holders leave room."""
        return self.holder is None and (side is Side.READ or not self.readers)

    def try_fast(self, task: Task, side: Side) -> bool:
        """The first attempt, made without looking."""
        task.atomic(self.line)
        if self.is_open(side):
            self.enter(task, side)
            return True
        if side is Side.READ or self.writers_put_back:
            task.atomic(self.line)
        return False

    def try_lock(self, task: Task, side: Side) -> bool:
        """`read_trylock`, `write_trylock`: look first."""
        task.read(self.line)
        if not self.is_open(side):
            return False
        task.atomic(self.line)
        self.enter(task, side)
        return True

    def enter(self, task: Task, side: Side) -> None:
        """Hold the lock from now on."""
        task.preempt_off += 1
        if side is Side.READ:
            self.begin_shared(task)
        else:
            self.begin_hold(task)

    def wait(self, task: Task, side: Side) -> Waiting:
        """Wait on the CPU."""
        task.preempt_off += 1
        yield from self.wait_for_turn(task, side)
        task.preempt_off -= 1
        return False

    def release(self, task: Task, side: Side) -> Steps:
        """Those who poll the word see that it is free when their refetch is served."""
        yield from ()
        if side is Side.WRITE and not self.writers_put_back:
            task.store(self.line)
        else:
            task.atomic(self.line)
        if side is Side.READ:
            self.end_shared(task)
        else:
            self.end_hold()
        task.preempt_off -= 1
        if not self.readers:
            self.tell_pollers(task)

    def wait_for_turn(self, task: Task, side: Side) -> Steps:
        """Poll until the lock is free, and enter."""
        raise NotImplementedError


class BiasedRwlock(Rwlock):
    """x86 rwlock before 3.16 (`arch/x86/include/asm/rwlock.h`): one counter that all waiters poll, and no queue.

    A reader takes 1 from the counter, a writer all of it; who finds that it was not there puts it back: two atomic
    operations for every failed attempt. Readers enter whenever no writer holds it, so a stream of them starves writers.
    """

    has_wait_lock = False
    writers_put_back = True

    def wait_for_turn(self, task: Task, side: Side) -> Steps:  # noqa: D102
        self.pollers.append(task)
        yield from task.spin()
        while not self.is_free(side):
            yield from task.spin()
        task.atomic(self.line)
        self.pollers.remove(task)
        self.enter(task, side)

    def tell_pollers(self, writer: Task) -> None:  # noqa: D102
        self.show_in_random_order(writer, self.pollers)


class Qrwlock(Rwlock):
    """qrwlock (3.16 and later, `kernel/locking/qrwlock.c` as of 6.12): FIFO through a raw spinlock.

    Who does not enter at once queues in the spinlock, whose holder alone polls the word. A writer there marks the word,
    so that later readers queue behind it; a reader there counts itself and waits for the writer to leave. Only who
    finds the word free passes the queue. Left out: readers in interrupts, who may always.
    """

    writers_put_back = False  # they compare before they exchange
    readers_count_last: ClassVar[bool] = False
    """A reader at the head counts itself only once it has seen the lock free."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.head: tuple[Task, Side] | None = None
        """Who polls the word, and as what it has counted or marked itself in it."""

    @property
    def wait_lock(self) -> Spinlock:
        """The raw spinlock that is the queue."""
        return guard_of(self)

    def is_open(self, side: Side) -> bool:  # noqa: D102
        passes = self.head is None or (side is Side.READ and self.head[1] is Side.READ)
        return passes and self.is_free(side)

    def wait_for_turn(self, task: Task, side: Side) -> Steps:
        """`queued_read_lock_slowpath` and `queued_write_lock_slowpath`."""
        code = self.machine.lock_code.qrwlock
        task.segment.debt += code.ask
        yield from self.wait_lock.lock_raw(task)
        task.segment.debt += code.count
        counts_last = side is Side.READ and self.readers_count_last
        if counts_last:
            task.read(self.line)
        else:
            task.atomic(self.line)
        self.head = task, side
        while not self.is_free(side):
            yield from task.spin()
        task.segment.debt += code.enter
        if side is Side.WRITE or counts_last:
            task.atomic(self.line)  # else a reader has counted itself already
        if side is Side.WRITE:
            task.segment.debt += code.leave
        self.head = None
        self.enter(task, side)
        self.wait_lock.unlock(task)
        task.segment.debt += code.taken

    def tell_pollers(self, writer: Task) -> None:  # noqa: D102
        if self.head is not None:
            self.show(writer, self.head[0])


class Qrwlock316(Qrwlock):
    """qrwlock of 3.16 to 4.2: a reader at the head waits for the writer to leave before it counts itself.

    The same, but its addition comes after the look that finds the lock free (until ffffeaf318bd).
    """

    readers_count_last = True

    def is_open(self, side: Side) -> bool:
        """A writer may come before a reader of which the word does not tell yet."""
        passes = self.head is None or self.head[1] is Side.READ
        return passes and self.is_free(side)
