"""*pvqspinlock*, the queued spinlock of a guest (`kernel/locking/qspinlock_paravirt.h`, since 4.2; as since 4.15)."""

from __future__ import annotations

from collections import deque

from simfs.machine.cpus.cpu import Account
from simfs.machine.lock import Lock, Place, Side, Waiting
from simfs.machine.task import Steps, Task
from simfs.machine.time import Time

SPIN_THRESHOLD = 1 << 15
"""Rounds of polling (`include/asm/spinlock.h`)."""
PREVIOUS_EVERY = 1 << 8
"""Rounds between two looks at the one before (`PV_PREV_CHECK_MASK`)."""


class Pvqspinlock(Lock):
    """A waiter that has polled for long halts its virtual CPU, and a release kicks it.

    Where tasks stand for virtual CPUs, as a host preempts them (`preemption: host`), who halts sleeps, and a kick is a
    wake-up, which the kicker pays. Elsewhere nobody halts.

    Who comes takes a free lock also past the queue, as long as the head does not poll
    (`pv_hybrid_queued_unfair_trylock`). In the queue all poll their nodes for `SPIN_THRESHOLD` rounds, and for less
    where the one before has halted (`pv_wait_node`). The head polls the word for as many rounds, with the *pending* bit
    set, which keeps newcomers out; then it halts, once, until the holder kicks it (`pv_wait_head_or_lock`,
    `__pv_queued_spin_unlock_slowpath`). Who becomes head while it is halted sleeps on until then (`pv_kick_node`). Who
    makes the next one head looks by an atomic access whether that has halted, and so waits for its store.
    """

    perf_name = "spinlock"
    spins = True
    has_wait_lock = False

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.waiters: deque[Task] = deque()
        self.halted: set[Task] = set()
        """Who of these has halted."""
        self.pending = False
        """The head polls the word."""
        self.kicked: Task | None = None
        """Whom the next release kicks."""
        self.unfair: list[Task] = []
        """Who would take the lock past the queue."""

    def _polled_until(self, rounds: int) -> Time:
        return self.machine.now + rounds * self.machine.costs.cpu_relax

    @property
    def _may_halt(self) -> bool:
        """Whether tasks stand for virtual CPUs, which can halt."""
        return self.machine.kernel.preemption == "host"

    def acquire(self, task: Task, side: Side) -> Steps:
        """Where owners are checked, who asks reads the owner first (`debug_spin_lock_before`)."""
        if self.machine.kernel.debug_spinlock:
            task.read(self.line)
        yield from super().acquire(task, side)

    def try_fast(self, task: Task, side: Side) -> bool:
        """One atomic attempt: fails if the lock is held or somebody is in the queue."""
        task.atomic(self.line)
        if self.holder is not None or self.waiters:
            return False
        task.preempt_off += 1
        self.begin_hold(task)
        return True

    def wait(self, task: Task, side: Side) -> Waiting:
        """Wait past the queue or in it. Says whether its virtual CPU has halted."""
        task.preempt_off += 1
        if (yield from self._steals(task)):
            return False
        task.atomic(self.line)
        self.waiters.append(task)
        halted = yield from self._wait_in_queue(task)
        slept = yield from self._wait_as_head(task, halted=halted)
        self._leave_queue(task)
        return slept or halted

    def _steals(self, task: Task) -> Waiting:
        """Take the lock past the queue, unless its head polls or there is none."""
        while True:
            if self.holder is None and not self.pending:
                yield from self._attempt(task)
                if self.holder is None:
                    self.take(task, self.waiters[0] if self.waiters else None)
                    return True
            if self.pending or not self.waiters:
                return False
            self.unfair.append(task)
            yield from task.spin()
            self.unfair.remove(task)

    def _attempt(self, task: Task) -> Steps:
        """Fetch the word for an atomic access; others may have it before, also where it takes no time."""
        task.atomic(self.line)
        yield from task.run(Account.SYSTEM, 0)

    def _wait_in_queue(self, task: Task) -> Waiting:
        """Until it is the head of the queue. Says whether it has halted and been made head since."""
        if not self._may_halt:
            while self.waiters[0] is not task:
                yield from task.spin()
            return False
        until = self._deadline(task)
        while self.waiters[0] is not task:
            yield from task.spin(deadline=until)
            until = min(until, self._deadline(task))
            if self.machine.now >= until and self.waiters[0] is not task:
                yield from self._halt(task)
                return True
        return False

    def _deadline(self, task: Task) -> Time:
        """When `task` has polled its node for long enough."""
        at = self.waiters.index(task)
        early = at > 0 and self.waiters[at - 1] in self.halted
        return self._polled_until(PREVIOUS_EVERY if early else SPIN_THRESHOLD)

    def _wait_as_head(self, task: Task, *, halted: bool) -> Waiting:
        """Until the head has the lock; `halted`: it is to be kicked already, or has been. Says whether it halts."""
        may_halt, slept = self._may_halt and not halted, False
        while True:
            yield from self._begin_as_head(task)
            until = self._polled_until(SPIN_THRESHOLD)
            while self.holder is not None and (not may_halt or self.machine.now < until):
                yield from task.spin(deadline=until if may_halt else None)
                yield from self._attempt_if_free(task)
            if self.holder is None:
                return slept
            may_halt = False
            if self._asks_to_be_kicked(task):
                return slept
            yield from self._halt(task)
            slept = True

    def _attempt_if_free(self, task: Task) -> Steps:
        if self.holder is None:
            yield from self._attempt(task)

    def _begin_as_head(self, task: Task) -> Steps:
        """Set the pending bit, which those see who would take the lock past the queue; they may until it is set."""
        task.store(self.line)
        task.drain()
        yield from task.run(Account.SYSTEM, 0)
        self.pending = True
        if self.holder is not None:  # else it takes the lock before others have the line
            self.show_in_random_order(task, self.unfair)

    def _asks_to_be_kicked(self, task: Task) -> bool:
        """Clear the pending bit and have the holder kick it, unless there is none any more: the lock is its own."""
        task.atomic(self.line)
        self.pending = False
        free = self.holder is None
        self.kicked = None if free else task
        return free

    def _halt(self, task: Task) -> Steps:
        """`pv_wait`: halt until kicked. The guest does not know, so spinlocks that the task holds are no matter."""
        task.forget_wakeups()
        self.halted.add(task)
        after = self.waiters.index(task) + 1
        if after < len(self.waiters):
            self.waiters[after].look_at(self.machine.now)
        preempt_off, task.preempt_off = task.preempt_off, 0
        yield from task.park()
        task.preempt_off += preempt_off
        self.halted.remove(task)

    def _leave_queue(self, task: Task) -> None:
        """Take the lock and make the next one head; if that has halted, the release is to kick it (`pv_kick_node`)."""
        task.atomic(self.line)
        self.begin_hold(task)
        self.pending = False
        self.waiters.popleft()
        if not self.waiters:
            self.show_in_random_order(task, self.unfair)
            return
        following = self.waiters[0]
        task.store_to_node(following)
        task.drain()
        if following in self.halted:
            task.store(self.line)
            self.kicked = following

    def release(self, task: Task, side: Side) -> Steps:
        """Release the lock by an atomic access, and kick the head if it has halted."""
        if self.machine.kernel.debug_spinlock:
            task.read(self.line)
            yield from task.run(Account.SYSTEM, 0)
        yield from self._attempt(task)
        self.end_hold()
        task.preempt_off -= 1
        kicked, self.kicked = self.kicked, None
        if self.pending:
            self.show(task, self.waiters[0])
        self.show_in_random_order(task, self.unfair)
        if kicked:
            self.wake(task, kicked)
