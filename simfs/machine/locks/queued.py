"""Queued spinlocks: FIFO, and each waiter but the next polls a line of its own, its *node*.

A hand-over moves one or two lines, however many wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Any

import simpy

from simfs.machine.lock import Place, Side, Waiting
from simfs.machine.lock_code import QspinlockCode
from simfs.machine.locks.spinlock import Spinlock
from simfs.machine.task import Steps, Task
from simfs.machine.time import Time


class Mcs(Spinlock):
    """MCS lock (`kernel/locking/mcs_spinlock.h`): the tail in the word, ownership passed by a store to the next node.

    The word is written by who comes, and by who leaves without a successor.
    """

    takes_by_write = False
    all_poll = False

    def unlock(self, task: Task) -> None:
        """Pass the lock on, or clear the tail if nobody waits."""
        if self.waiters:
            task.store_to_node(self.waiters[0])
        else:
            task.atomic(self.line)
        self.end_hold()
        task.preempt_off -= 1


class Qspinlock(Spinlock):
    """qspinlock (x86 from 4.2, `kernel/locking/qspinlock.c`).

    The first waiter is *pending* and polls the word. Who comes while it is about to take the lock waits for that. The
    second queues and, as head of the queue, polls the word too; all others poll their nodes. Who comes changes the word
    twice: an attempt that fails, the pending bit or tail. Who takes the lock from the head of the queue makes the next
    one head by a store to its node, which overlaps with the critical section.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.pending: Task | None = None
        self.watchers: list[Task] = []
        """Who polls the word until the pending waiter has taken the lock."""
        self.head_polls = False

    @property
    def code(self) -> QspinlockCode:
        """What its code takes where it is contended."""
        return self.machine.lock_code.qspinlock

    @property
    def is_queued_for(self) -> bool:
        """Whether a newcomer must wait even if the lock is free."""
        return self.pending is not None or bool(self.waiters)

    @property
    def is_free(self) -> bool:
        """What the head waits for (`_Q_LOCKED_PENDING_MASK`)."""
        return self.holder is None and self.pending is None

    def wait(self, task: Task, side: Side) -> Waiting:
        """Wait as the pending waiter, or in the queue."""
        task.preempt_off += 1
        failed = self.machine.now + task.segment.debt
        for poller in self.word_pollers:  # they fetch the word back from the attempt that failed
            self.refetch(poller, failed)
        yield from self._let_pending_take(task)
        task.segment.debt += self.code.queue if self.is_queued_for else self.code.pend
        if not self.is_queued_for or not self.joins_apart:
            task.atomic(self.line)
            task.segment.debt += self.code.joined
        yield from self._wait_in_queue(task) if self.is_queued_for else self._wait_pending(task)
        return False

    def _let_pending_take(self, task: Task) -> Steps:
        """Who finds the lock free, a pending waiter and no queue polls the word until that one has taken the lock.

        It does not join a queue (`queued_spin_lock_slowpath`, since 4.2). Left out: after 512 looks it would (4.18).
        """
        while self.holder is None and self.pending is not None and not self.waiters:
            if task not in self.watchers:
                self.watchers.append(task)
            yield from task.spin()

    def _wait_pending(self, task: Task) -> Steps:
        self.pending = task
        while self.holder is not None:
            yield from task.spin()
        task.segment.debt += self.code.pending_take
        task.store(self.line)
        self.pending = None
        self.begin_hold(task)
        watchers, self.watchers = self.watchers, []
        for watcher in watchers:
            self.show(task, watcher)
        task.segment.debt += self.code.pending_taken

    def _wait_in_queue(self, task: Task) -> Steps:
        self.join(task)
        if self.waiters[0] is not task:
            while self.waiters[0] is not task:
                yield from task.spin()
            task.segment.debt += self.code.head
            task.read(self.line)  # promoted: the first look at the word
            yield from task.pay()
            while not self.is_free and not self.line.has_copy(
                task.cpu.number
            ):  # it was held, and was written to since
                task.read(self.line)
                if not task.debt:
                    break  # hits are free, and it keeps its copy until the request of who wrote has come
                yield from task.pay()
        self.begin_as_head(task)
        while not self.is_free:
            if not (yield from self.sort(task)):
                self.head_polls = True
                yield from task.spin()
                self.head_polls = False
        task.segment.debt += self.code.take
        self.leave_queue(task)
        task.segment.debt += self.code.taken

    def leave_queue(self, task: Task) -> None:
        """The head takes the lock and makes the next one head."""
        self.take_word(task)
        self.begin_hold(task)
        self.waiters.popleft()
        self.choose_next()
        if self.waiters:
            task.store_to_node(self.waiters[0])

    def take_word(self, task: Task) -> None:
        """The head writes to the word; the last one clears the tail as well."""
        if len(self.waiters) == 1:
            task.atomic(self.line)
        else:
            task.store(self.line)

    def tell_pollers(self, writer: Task) -> None:
        """Who polls the word sees it when its refetch is served."""
        for poller in self.word_pollers:
            self.show(writer, poller)

    @property
    def word_pollers(self) -> list[Task]:
        """The pending waiter, the head of the queue while it polls, and who watches the pending one."""
        pending = [] if self.pending is None else [self.pending]
        head = [self.waiters[0]] if self.waiters and self.head_polls else []
        return pending + head + self.watchers

    # ---- what a NUMA-aware lock does otherwise ----------------------------------------------------------------------

    @property
    def joins_apart(self) -> bool:
        """Who joins a queue that there is leaves the word alone."""
        return False

    def join(self, task: Task) -> None:
        """Join the queue."""
        self.waiters.append(task)

    def begin_as_head(self, task: Task) -> None:
        """`task` has become head of the queue."""

    def sort(self, task: Task) -> Generator[simpy.Event, Any, bool]:
        """Use the time until the lock is free to put the queue in order. False once there is nothing to do."""
        yield from ()
        return False

    def choose_next(self) -> None:
        """The head has left the queue to hold the lock: see to it that the right task is first."""


SORT_ONE_IN = 1 << 7
"""`SHUFFLE_REDUCTION_PROB_ARG`: while the secondary queue is empty, so few heads begin to sort."""


class Cna(Qspinlock):
    """CNA, the compact NUMA-aware lock (never merged; version 15 of the series, A. Kogan, 14 May 2021, linux-arch).

    A qspinlock whose head, while it polls the word, moves the waiters of other sockets right behind it to a *secondary
    queue*, so that the lock stays on a socket. The secondary queue is put back in front when its first waiter has been
    in it longer than a threshold (1 ms), or when the main queue runs empty. Left out: the priority of waiters that run
    with interrupts off.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.secondary: deque[Task] = deque()
        self.secondary_since: Time = 0
        self.preferred = 0
        """The socket that the lock is to stay on."""
        self.sorts = self.flushes = False
        """What the present head does."""

    def join(self, task: Task) -> None:
        """The head polls its queue as well: now it can move the one between."""
        super().join(task)
        if self.head_polls and self.sorts and len(self.waiters) == 3:
            task.store_to_node(self.waiters[0])

    def begin_as_head(self, task: Task) -> None:
        """Decide whether to sort the queue, or to let those of other sockets have their turn."""
        self.sorts = self.flushes = False
        if self.secondary:
            since, threshold = self.secondary_since, self.machine.kernel.numa_spinlock_threshold
            self.flushes = self.machine.now - since > threshold
            self.sorts = not self.flushes
        else:
            self.preferred = self.machine.topology.socket(task.cpu.number)
            self.sorts = self.machine.random.next_u64() % SORT_ONE_IN == 0

    def sort(self, task: Task) -> Generator[simpy.Event, Any, bool]:
        """Look at the next waiter: if it is of another socket and not the last, it goes to the secondary queue.

        A look once begun is completed, also if the lock becomes free meanwhile (`cna_order_queue`).
        """
        if not self.sorts or len(self.waiters) < 3:
            return False
        follower = self.waiters[1]
        task.read_node(follower)
        yield from task.pay()
        if self.machine.topology.socket(follower.cpu.number) == self.preferred:
            self.sorts = False
            return True  # the word may have become free meanwhile
        if not self.secondary:
            self.secondary_since = self.machine.now
        self.waiters.remove(follower)
        self.secondary.append(follower)
        return True

    def choose_next(self) -> None:
        """Put the secondary queue back in front if its time has come or nobody else waits."""
        if self.flushes or not self.waiters:
            self.waiters.extendleft(reversed(self.secondary))
            self.secondary.clear()
