"""HQ spinlock, a qspinlock that keeps a queue a socket where many wait."""

from __future__ import annotations

from collections import defaultdict, deque

from simfs.machine.caches.line import Line
from simfs.machine.lock import Place
from simfs.machine.locks.queued import Qspinlock
from simfs.machine.task import Task


class Queue:
    """The queue of a socket (`struct numa_queue`); the head of the lock, if it is of this socket, stands first."""

    def __init__(self) -> None:
        self.tail = Line()
        self.waiters: deque[Task] = deque()
        self.not_head = 0
        """Hand-offs between sockets since the first in line was served (`handoffs_not_head`)."""


class Hqlock(Qspinlock):
    """*hqlock* (A. Stepanov and N. Fedorov, [RFC PATCH v2 0/5], December 2025, linux-arch; never merged).

    It keeps a queue a socket once a queue has seen more than `hqlock_general_handoffs_turn_numa` hand-offs. Then who
    comes joins the queue of its own socket and leaves the word alone; queues stand in line in the order in which they
    began. The head, alone, polls the word. Who takes the lock makes the next of its socket head, until
    `hqlock_fairness_threshold` hand-offs in a row; then, or where none of its socket waits, the head of the next queue.

    Left out: two locks that fall into the same metadata, so that one stays a qspinlock. Version 3 (April 2026) goes
    back to one queue when hand-offs between sockets become few; version 2, as here, does not.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.by_socket = False
        """It keeps a queue a socket."""
        self.handoffs = 0
        """Hand-offs of one queue, or in a row within a socket (`general_handoffs`)."""
        self.before: Task | None = None
        """Who was head before."""
        self.order: list[int] = []
        """Queues in line (`lock_metadata`)."""
        self.meta = Line()
        """The line that this is in."""
        self.sockets: defaultdict[int, Queue] = defaultdict(Queue)

    @property
    def joins_apart(self) -> bool:
        """Who comes leaves the word alone."""
        return self.by_socket

    def join(self, task: Task) -> None:
        """Join the queue of its socket (`try_update_tail_hqlock_mode`); the first of all is head of the lock."""
        if not self.by_socket:
            super().join(task)
            return
        socket = self.machine.topology.socket(task.cpu.number)
        queue = self.sockets[socket]
        task.atomic(queue.tail)
        queue.waiters.append(task)
        if len(queue.waiters) > 1:
            return
        queue.not_head = 0
        first = not self.order
        self.order.append(socket)
        task.atomic(self.meta)
        if first:
            self.waiters.append(task)

    def leave_queue(self, task: Task) -> None:
        """The head takes the lock and makes another one head."""
        if self.by_socket:
            task.store(self.line)
        else:
            self.take_word(task)
        self.begin_hold(task)
        self.waiters.popleft()
        following = self._hand_off_by_socket(task) if self.by_socket else self._hand_off_in_turn()
        self.before = task if following else None
        if following:
            task.store_to_node(following)

    def _hand_off_in_turn(self) -> Task | None:
        """The next in the one queue; the last of a queue that saw many hand-offs turns to queues by socket."""
        if self.waiters:
            self.handoffs += self.before is not self.waiters[0]
            return self.waiters[0]
        self.by_socket = self.handoffs > self.machine.kernel.hqlock_turn_numa
        self.handoffs = 0
        return None

    def _hand_off_by_socket(self, task: Task) -> Task | None:
        """`hqlock_try_clear_tail` and `hqlock_handoff`."""
        socket = next(n for n, queue in self.sockets.items() if queue.waiters and queue.waiters[0] is task)
        self.sockets[socket].waiters.popleft()
        if not self.sockets[socket].waiters:
            return self._leave_line(task, socket)
        threshold = self.machine.kernel.hqlock_fairness_threshold
        if self.handoffs > threshold and len(self.order) > 1:
            return self._make_head(self._pass_on(socket, self._after(socket)))
        self.handoffs = 1 if self.handoffs > threshold else self.handoffs + 1
        return self._make_head(socket)

    def _after(self, socket: int) -> int | None:
        """The queue that follows in line, if any (`next_node`)."""
        at = self.order.index(socket) + 1
        return self.order[at] if at < len(self.order) else None

    def _leave_line(self, task: Task, socket: int) -> Task | None:
        """The last waiter of `socket` takes its queue out of the line; the last of all gives the metadata back."""
        following = self._after(socket)
        self.order.remove(socket)
        task.atomic(self.meta)
        task.atomic(self.sockets[socket].tail)
        if self.order:
            return self._make_head(self._pass_on(socket, following))
        self.handoffs = 0
        for each in range(self.machine.topology.sockets):
            task.atomic(self.sockets[each].tail)
        task.atomic(self.line)
        return None

    def _pass_on(self, origin: int, following: int | None) -> int:
        """`handoff_remote`: which queue is served.

        It is the one that follows in line, or the first where as many were served since as there are sockets.
        """
        waited, first = self.sockets[origin].not_head, self.order[0]
        if following is not None and waited < self.machine.topology.sockets:
            to, not_head = following, waited + (first != origin)
        else:
            to, not_head = first, 0
        self.sockets[to].not_head = not_head
        self.handoffs = 0
        return to

    def _make_head(self, socket: int) -> Task:
        """The first waiter of `socket` becomes the head of the lock."""
        head = self.sockets[socket].waiters[0]
        self.waiters.append(head)
        return head
