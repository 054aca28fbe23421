"""`struct mutex` before Linux 4.10 (`kernel/mutex.c`): a counter, an owner field in the same line, a FIFO of sleepers.

The counter is 1 when free, 0 when held, less when held and somebody may wait. An attempt takes 1 from it without
looking, so a failed one makes it negative, and the next unlock takes the slow path even if nobody sleeps: the inner raw
spinlock, then the store that frees the mutex. A wake-up is a **hint** and there is no hand-off: a sleeper may lose
against newcomers for ever. The eras differ in who spins; all spin as long as the owner runs and nobody wants the CPU.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from simfs.machine.lock import Place, Side, Waiting
from simfs.machine.locks.osq import Osq
from simfs.machine.locks.sleeping import SleepingLock, Spinning
from simfs.machine.task import Steps, Task


class Mutex2616(SleepingLock):
    """2.6.16: nobody spins."""

    perf_name = "mutex"
    shares_line = True
    has_owner: ClassVar[bool] = False
    """Who holds it says so in a word beside the counter (since 2.6.30)."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.count = 1
        self.waiters: deque[Task] = deque()

    def try_fast(self, task: Task, side: Side) -> bool:
        """`__mutex_fastpath_lock`: takes 1; it was free if nothing is missing."""
        task.atomic(self.line)
        self.count -= 1
        return self.count >= 0 and self._become_owner(task)

    def try_lock(self, task: Task, side: Side = Side.WRITE) -> bool:
        """`mutex_trylock`, and a spinner's attempt: 1 becomes 0."""
        task.atomic(self.line)
        if self.count != 1:
            return False
        self.count = 0
        return self._become_owner(task)

    def _become_owner(self, task: Task) -> bool:
        self.take(task, self.waiters[0] if self.waiters else None)
        return True

    def wait(self, task: Task, side: Side) -> Waiting:
        """`__mutex_lock_common`: spin, else queue."""
        task.preempt_off += 1
        yield from task.settle()
        taken = yield from self.spin(task)
        task.preempt_off -= 1
        return not taken and (yield from self._wait_in_queue(task))

    def settle(self, task: Task, side: Side) -> Steps:
        """Pay, and write to the owner word beside the counter (`mutex_set_owner`), whose line is lost meanwhile."""
        yield from task.pay()
        if self.has_owner:
            task.store(self.line)

    def spin(self, task: Task) -> Spinning:
        """Take the lock without sleeping, if that can be."""
        yield from ()
        return False

    # ---- the queue --------------------------------------------------------------------------------------------------

    def _wait_in_queue(self, task: Task) -> Waiting:
        task.segment.debt += self.code.mutex.ask
        yield from self.lock_to_wait(task, self.code.mutex.queue)
        task.forget_wakeups()
        self.waiters.append(task)
        slept = False
        while not self._take_as_waiter(task):
            self.wait_lock.unlock(task)
            yield from task.park()
            slept = True
            yield from self.lock_to_wait(task, self.code.mutex.look)
        task.segment.debt += self.code.mutex.take
        yield from task.pay()
        self.wait_lock.unlock(task)
        task.segment.debt += self.code.mutex.taken
        return slept

    def _take_as_waiter(self, task: Task) -> bool:
        """Exchange the counter for -1 (somebody waits); it was free if that was 1."""
        self.mark_waiter(task)
        free = self.count == 1
        self.count = min(self.count, -1)
        if free:
            self._become_owner(task)
            self.waiters.remove(task)
            self.count = self.count if self.waiters else 0
        return free

    def tell_pollers(self, writer: Task) -> None:
        """In random order: whoever fetches the line first tries first."""
        self.show_in_random_order(writer, self.pollers)

    def mark_waiter(self, task: Task) -> None:
        """The access to the counter that says that somebody waits."""
        task.atomic(self.line)

    def release(self, task: Task, side: Side) -> Steps:
        """`mutex_unlock`: give 1 back; if that does not free it, set the counter to 1 and wake the first sleeper."""
        task.atomic(self.line)
        self.end_hold()
        self.count += 1
        freed = self.count > 0
        self.tell_pollers(task)
        if freed:
            return
        task.segment.debt += self.code.mutex.wake
        yield from self.wait_lock.lock_raw(task)
        task.segment.debt += self.code.mutex.mark
        task.store(self.line)
        self.count = 1
        self.tell_pollers(task)
        if self.waiters:
            self.wake(task, self.waiters[0])
        self.wait_lock.unlock(task)


class Mutex2630(Mutex2616):
    """2.6.30: everybody spins, all at once, on the owner field and the counter in one line, also on the next owner."""

    has_owner = True
    quits_on_change: ClassVar[bool] = False
    """Who sees another owner than the one it spun on gives up and sleeps."""

    def spin(self, task: Task) -> Spinning:  # noqa: D102
        while (yield from self.owner_leaves(task)):
            if self.try_lock(task):
                yield from self.settle_owner(task)
                return True
            if not (yield from self.counter_changes(task)):
                return False
        return False

    def settle_owner(self, task: Task) -> Steps:
        """The same of a spinner."""
        if task.has_queued:
            yield from self.settle(task, Side.WRITE)

    def owner_leaves(self, task: Task) -> Spinning:
        """`mutex_spin_on_owner`: poll while the owner runs and nobody wants the CPU. True if there is no owner."""
        spun_on: Task | None = None
        while True:
            task.read(self.line)
            yield from task.pay()
            owner = self.holder
            if owner is None:
                return True
            changed = spun_on is not None and spun_on is not owner
            if (changed and self.quits_on_change) or not owner.on_cpu or task.need_resched:
                return False
            spun_on = owner
            yield from self.poll(task, owner)

    def counter_changes(self, task: Task) -> Spinning:
        """The owner is gone, but the counter not yet 1, or taken: wait for a store. False if the CPU is wanted."""
        if task.need_resched:
            return False
        if self.holder is None:
            yield from self.poll(task)
        return True


class Mutex30(Mutex2630):
    """3.0: as 2.6.30, but who sees another owner sleeps (`mutex_spin_on_owner` returns `owner == NULL`)."""

    quits_on_change = True


class Mutex310(Mutex30):
    """3.10 to 3.14: only the head of an MCS queue spins, whose members cannot leave it, and reads before it tries."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.spinners = Osq(self)

    def spin(self, task: Task) -> Spinning:  # noqa: D102
        if self.holder is not None and not self.holder.on_cpu:
            return False
        while True:
            yield from self.spinners.lock_uncancellable(task)
            free = yield from self.owner_leaves(task)
            taken = free and self.count == 1 and self.try_lock(task)
            if taken:
                yield from self.settle_owner(task)
            goes_on = not taken and free and (yield from self.counter_changes(task))
            self.spinners.unlock_uncancellable(task)
            if not goes_on:
                return taken

    def mark_waiter(self, task: Task) -> None:  # noqa: D102
        if self.count < 0:
            task.read(self.line)
        else:
            task.atomic(self.line)
