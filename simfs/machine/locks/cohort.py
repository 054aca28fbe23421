"""Spinlocks that stay on a socket for a while: a queue a socket, and a lock above them.

Only the head of each queue competes for the upper lock. Who releases passes both to the next of its own socket, up to
`cohort_handoffs` times in a row; then it releases the upper lock, and the next of its socket asks for that again.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

from simfs.machine.caches.line import Line
from simfs.machine.lock import Lock, Place, Side, Waiting
from simfs.machine.task import Steps, Task


class Queue:
    """The queue of a socket."""

    def __init__(self) -> None:
        self.line = Line()
        """Its tail."""
        self.head: Task | None = None
        """Who has the lower lock: the holder, or who asks for the upper one."""
        self.waiters: deque[Task] = deque()
        self.passed = 0
        """Hand-offs since it has the upper lock."""


class Cohort(Lock):
    """C-TKT-MCS (D. Dice, V. Marathe, N. Shavit, Lock Cohorting, PPoPP 2012): MCS queues below a ticket lock.

    The heads of the queues poll the word of the ticket lock, which is the lock's line.
    """

    perf_name = "spinlock"
    spins = True
    has_wait_lock = False

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.cohorts: defaultdict[int, Queue] = defaultdict(Queue)
        """By socket."""
        self.queue: deque[int] = deque()
        """Sockets whose heads wait for the upper lock."""
        self.owner: int | None = None
        """The socket that has the upper lock."""

    @property
    def is_open(self) -> bool:
        """Nobody has the upper lock or waits for it."""
        return self.owner is None and not self.queue

    def try_fast(self, task: Task, side: Side) -> bool:
        """Take both locks if nobody has them or waits."""
        socket = self.machine.topology.socket(task.cpu.number)
        cohort = self.cohorts[socket]
        task.atomic(cohort.line)
        if cohort.head is not None:
            return False
        task.atomic(self.line)
        if not self.is_open:
            return False
        task.preempt_off += 1
        cohort.head = task
        self._take_for(task, socket)
        return True

    def _take_for(self, task: Task, socket: int) -> None:
        self.owner = socket
        self.begin_hold(task)

    def wait(self, task: Task, side: Side) -> Waiting:
        """Join the queue of its socket, or that of sockets, and poll."""
        task.preempt_off += 1
        socket = self.machine.topology.socket(task.cpu.number)  # a host may move the task later
        cohort = self.cohorts[socket]
        if cohort.head is None:
            cohort.head = task
            self.queue.append(socket)
        else:
            cohort.waiters.append(task)
        while True:
            yield from task.spin()
            if self._has_its_turn(task, socket):
                break
        self._take_for(task, socket)
        return False

    def _has_its_turn(self, task: Task, socket: int) -> bool:
        """Whether the lock was passed to `task`, or it is its socket's turn. A new head asks for the upper lock."""
        if self.cohorts[socket].head is not task:
            return False
        if self.owner != socket and socket not in self.queue:
            task.atomic(self.line)
            if not self.is_open:
                self.queue.append(socket)
                return False
        elif self.owner is None and self.queue[0] == socket:
            self.queue.popleft()  # its ticket is up
        elif self.owner != socket:
            return False
        return True

    def release(self, task: Task, side: Side) -> Steps:
        """Pass the lock on within the socket, or let another socket have it."""
        yield from ()
        assert self.owner is not None, "somebody holds it"
        cohort = self.cohorts[self.owner]
        following = cohort.waiters.popleft() if cohort.waiters else None
        stays = following is not None and cohort.passed < self.machine.kernel.cohort_handoffs
        cohort.passed = cohort.passed + 1 if stays else 0
        cohort.head = following
        if not stays:
            self.release_upper(task)
        if following is not None:
            task.store_to_node(following)
        else:
            task.atomic(cohort.line)
        self.end_hold()
        task.preempt_off -= 1
        if not stays:
            self.show_in_random_order(task, self.word_pollers)

    def release_upper(self, task: Task) -> None:
        """Let another socket have the lock: the one whose ticket is up."""
        self.owner = None
        task.store(self.line)

    @property
    def word_pollers(self) -> Iterable[Task]:
        """Who polls the word of the upper lock."""
        return [head for socket in self.queue if (head := self.cohorts[socket].head)]


class Hmcs(Cohort):
    """HMCS (M. Chabbi, M. Fagan, J. Mellor-Crummey, PPoPP 2015) of two levels.

    The upper lock is an MCS queue of sockets, so that a hand-over to another socket is one store too.
    """

    def release_upper(self, task: Task) -> None:
        """Pass the upper lock to the next socket, or clear its tail if none waits."""
        self.owner = self.queue.popleft() if self.queue else None
        head = None if self.owner is None else self.cohorts[self.owner].head
        if head is None:
            task.atomic(self.line)
        else:
            task.store_to_node(head)

    @property
    def word_pollers(self) -> Iterable[Task]:
        """Nobody: each waits at its own node."""
        return []
