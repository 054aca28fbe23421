"""What all locks have in common, and how to write one.

A lock is a class with four methods. `try_fast` is the one atomic attempt that comes before any waiting; `wait` is what
a task does when that failed; `release` gives the lock back; `try_lock` is what trylock does where that differs from
`try_fast`. They are written in the primitives of `Task`: read or write the lock's line, pay, spin, park, wake. Who gets
or gives back the lock says so with `begin_hold` and `end_hold` (readers: `begin_shared` and `end_shared`), which keep
the statistics and check that nobody holds it beside a writer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

import simpy

from simfs.machine.caches.line import Line
from simfs.machine.statistics import ClassStatistics, HoldTimes
from simfs.machine.task import Steps, Task
from simfs.machine.task_state import StateTimes, Status
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.machine import Machine

Waiting = Generator[simpy.Event, Any, bool]
"""What `wait` is: it takes simulated time, and says at its end whether the task has slept."""
Attempt = Generator[simpy.Event, Any, bool]
"""What `try_lock_spinning` is: it takes simulated time, and says at its end whether the task has the lock."""


class Side(Enum):
    """Which side of a lock is taken; exclusive locks know only WRITE."""

    READ = "read"
    WRITE = "write"


class Mode(Enum):
    """How a btrfs tree lock is held: by who must not sleep, or by who may."""

    SPINNING = "spinning"
    BLOCKING = "blocking"


FOR_IO = frozenset({"mm.folio_lock", "ext4.buffer", "ext4.j_checkpoint_mutex"})
"""Roles of locks that say that there may be I/O: who sleeps for one waits for I/O, whoever has it.

`folio_wait_bit_common`, `wait_on_bit_lock_io` of `lock_buffer`, `mutex_lock_io`, which the checkpoint has since 4.11.
"""


@dataclass(eq=False)
class LockClass:
    """Locks of one name (`xfs.AGI`) and role in the kernel profile (`xfs.buffer`)."""

    name: str
    role: str
    kind: type[Lock]
    statistics: ClassStatistics
    instances: int = 0


@dataclass
class Place:
    """Where a lock is: its machine, number and class, and its inner raw spinlock if it sleeps."""

    machine: Machine
    number: int
    lock_class: LockClass
    wait_lock: Lock | None
    queue_locks: tuple[Lock, ...] = ()
    """The raw spinlocks of its wait queues."""


class Lock:
    """A free lock."""

    perf_name: ClassVar[str] = "other"
    """The type as `perf lock contention` prints it."""
    spins: ClassVar[bool] = False
    """A spinlock: who waits for it or holds it never leaves its CPU."""
    has_wait_lock: ClassVar[bool] = True
    """It contains a raw spinlock that guards its queue."""
    shares_line: ClassVar[bool] = False
    """Its wait lock lies in its line: a mutex has 32 to 40 bytes, an rwsem 40, a semaphore 24, a seqlock 8."""
    inner_kind: ClassVar[tuple[str, str]] = ("wait_lock", "qspinlock")
    """What that is called, and its kind, where it is not the usual one."""
    inner_role: ClassVar[str | None] = None
    """The role whose kind in the kernel profile it has, if that says one."""
    readers_hold: ClassVar[bool] = True
    """Its readers keep writers out; where not, nobody waits for readers."""
    wait_queues: ClassVar[int] = 0
    """How many wait queues it contains, each with a raw spinlock of its own."""

    def __init__(self, place: Place) -> None:
        self.machine = place.machine
        self.number = place.number
        self.lock_class = place.lock_class
        self.inner = place.wait_lock
        """The raw spinlock inside it."""
        self.line = Line()
        """The cache line of its word."""
        self.lies_in_another = False
        """It is the wait lock of a lock in whose line it lies."""
        if self.inner and self.shares_line:
            self.inner.line, self.inner.lies_in_another = self.line, True
        self.holder: Task | None = None
        """Who holds it exclusively; a granted waiter that still sleeps included."""
        self.readers = 0
        self._readers_since: Time = 0
        """How many hold it shared."""
        self.granted_readers: list[Task] = []
        """The readers among them that were given it and have not run since."""
        self.pollers: list[Task] = []
        """Who polls its line and looks again when somebody has written to it, in the order of coming."""
        self.left: tuple[Time, Task] | None = None
        """The first release since somebody was woken for it, or fell asleep: when, and by whom."""
        self._granted: Task | None = None
        self._held_since: Time = 0
        self._booked = StateTimes()
        """The holder's times when the present hold was last booked."""
        self._hold = HoldTimes()
        """The present hold, up to then."""
        self.held_total: Time = 0
        """All time held exclusively in the measured window."""
        self._contended = False
        self.held_by_device = False
        """A device holds the lock."""

    def __str__(self) -> str:
        return f"{self.lock_class.name}#{self.number}"

    # ---- what a kind of lock defines --------------------------------------------------------------------------------

    def try_fast(self, task: Task, side: Side) -> bool:
        """The one atomic attempt before any waiting."""
        raise NotImplementedError

    def wait(self, task: Task, side: Side) -> Waiting:
        """Wait until the task has the lock. Returns whether it slept."""
        raise NotImplementedError

    def release(self, task: Task, side: Side) -> Steps:
        """Give the lock back."""
        raise NotImplementedError

    def try_lock(self, task: Task, side: Side) -> bool:
        """Take the lock if that needs no waiting."""
        return self.try_fast(task, side)

    def try_lock_spinning(self, task: Task, side: Side) -> Attempt:
        """Take the lock if that needs no sleep; only btrfs's tree locks of old wait, for holders that spin."""
        yield from ()
        return self.attempt(task, side)

    def convert(self, task: Task, side: Side, mode: Mode) -> Steps:
        """Change the mode in which the task holds the lock; only btrfs's tree locks of old have modes."""
        yield from ()

    # ---- acquiring --------------------------------------------------------------------------------------------------

    def acquire(self, task: Task, side: Side) -> Steps:
        """Acquire the lock, waiting by its rules. A lock that only this CPU uses takes no simulated step."""
        if task.need_resched and not self.spins:
            yield from task.might_sleep()  # a task gives way where it asks for a lock that may sleep
        yield from self.pay_first(task)
        if not self._taken(task, self.try_fast, side):
            yield from self.waited_for(task, self.wait(task, side), side)
        elif task.has_queued:
            yield from self.settle(task, side)
        if self.holder is not task and not self.readers and self.readers_hold:
            self.machine.broken("mutual exclusion", f"{task} has acquired {self} and does not hold it")

    def attempt(self, task: Task, side: Side) -> bool:
        """Acquire the lock if that needs no waiting."""
        task.drain()
        return self._taken(task, self.try_lock, side)

    def attempt_spinning(self, task: Task, side: Side) -> Attempt:
        """Acquire the lock if that needs no sleep."""
        yield from self.pay_first(task)
        return (yield from self.try_lock_spinning(task, side))

    def pay_first(self, task: Task) -> Steps:
        """Before an attempt: who has to fetch the line pays first what it owes.

        So nobody waits for a holder that is not there yet. Who has the line to itself was the last to use the lock and
        goes on in debt: nobody is about to ask for it, and that saves an event.
        """
        task.drain()
        cpu, locks = task.cpu.number, [self, self.inner] if self.inner else [self]
        if any(lock.line.is_elsewhere(cpu) for lock in locks):
            yield from task.pay()

    def settle(self, task: Task, side: Side) -> Steps:
        """Who has the lock and queued for the line pays: those who come until the line is there find the lock held."""
        del side
        yield from task.pay()

    def _taken(self, task: Task, attempt: Callable[[Task, Side], bool], side: Side) -> bool:
        """Make an attempt. The hold of a lock that is taken in debt begins when that is paid."""
        owed, task.queued_until = task.debt, 0
        taken = attempt(task, side)
        if taken and owed:
            self._begins_later(task, owed)
            if self.inner:
                self.inner._begins_later(task, owed)
        return taken

    def _begins_later(self, task: Task, owed: Time) -> None:
        if self.holder is task:
            self._held_since += owed
            self._booked = self._booked._replace(since=self._booked.since + owed)
        elif self.readers:
            statistics = self.lock_class.statistics
            statistics.hold_shared_total = max(statistics.hold_shared_total - owed, 0)

    def waited_for(self, task: Task, waiting: Waiting, side: Side = Side.WRITE) -> Waiting:
        """Carry out one wait, from asking to having; says whether the task has slept."""
        machine, statistics = self.machine, self.lock_class.statistics
        since, held = machine.now, self.holder is not None or self.readers > 0
        self._contended = True
        statistics.begin_wait(since)
        task.waits.append((self, since, side))
        machine.waiting.add(task)
        machine.note("wait", task, self)
        for_io = self.lock_class.role in FOR_IO
        task.in_iowait = task.in_iowait or for_io
        slept = yield from waiting
        task.in_iowait = task.in_iowait and not for_io
        task.waits.pop()
        if not task.waits:
            machine.waiting.remove(task)
        if task in self.granted_readers:
            self.granted_readers.remove(task)
        wait = machine.now - max(since, machine.window_start)
        statistics.end_wait(machine.now, wait, statistics.at(task.site, task.kind), slept=slept, held=held)
        return slept

    # ---- holding ----------------------------------------------------------------------------------------------------

    def begin_hold(self, task: Task) -> None:
        """`task` becomes the exclusive holder."""
        if self.holder is not None or self.readers:
            present = f"{self.holder or f'{self.readers} readers'} hold{'s' if self.holder else ''} it"
            self._intrusion(task, present)
        self.holder, self._granted = task, None
        self._held_since, self._booked = self.machine.now, task.times_now()
        self._contended = self.held_by_device = False
        self.lock_class.statistics.at(task.site, task.kind).acquired += 1
        self.machine.note("acquire", task, self)

    def end_hold(self) -> None:
        """The exclusive hold ends, whoever ends it."""
        holder, now = self.holder, self.machine.now
        if holder is None:
            self.machine.broken("mutual exclusion", f"{self} is released at {now} ps and nobody holds it")
            return
        self._book_hold(holder)
        self.holder = None
        self._leave(holder)
        self.machine.note("release", holder, self)

    def book(self) -> None:
        """Book all holds up to now: the window begins or ends."""
        self._book_readers()
        if self.holder is not None:
            self._book_hold(self.holder)

    def _book_hold(self, holder: Task) -> None:
        """Book the exclusive hold up to now in the statistics of the class."""
        self._book_part(holder)
        hold, self._hold = self._hold, HoldTimes()
        self.held_total += hold.total
        lasted = max(self.machine.now - max(self._held_since, self.machine.window_start), 0)
        self.lock_class.statistics.end_hold(holder.kind, hold, lasted, contended=self._contended)

    def _book_part(self, holder: Task) -> None:
        """Book the time of the present hold since it was last booked, by what the holder did."""
        before, times = self._booked, holder.times_now()
        span = max(times.since - before.since, 0)
        self._booked = times._replace(since=before.since + span)  # a hold that begins later still does
        if self.held_by_device:
            self._hold.device += span
            return
        # a task that ended with the lock may have left its number to another one
        blocked = min(max(times.sleeping - before.sleeping, 0), span)
        runnable = min(max(times.runnable - before.runnable, 0), span - blocked)
        self._hold.blocked += blocked
        self._hold.running += span - blocked - runnable
        if self._granted is None:
            self._hold.preempted += runnable
        else:
            idle = min(max(times.cpu_idle - before.cpu_idle, 0), runnable)
            self._hold.granted_idle += idle
            self._hold.granted_behind += runnable - idle

    def begin_shared(self, task: Task) -> None:
        """`task` becomes one of the readers that hold the lock."""
        self._book_readers()
        self.readers += 1
        if not task.on_cpu:
            self.granted_readers.append(task)
        self.lock_class.statistics.at(task.site, task.kind).acquired += 1
        self.lock_class.statistics.acquired_shared += 1
        if self.holder is not None:
            self._intrusion(task, f"{self.holder} holds it")
        self.machine.note("acquire shared", task, self)

    def end_shared(self, task: Task) -> None:
        """`task` is no longer one of the readers that hold the lock."""
        self._book_readers()
        self.readers -= 1
        if not self.readers:
            self._leave(task)
        self.machine.note("release shared", task, self)

    def begin_reading(self, task: Task) -> None:
        """`task` begins to read what the lock guards, beside whoever holds it: a reader that nobody waits for."""
        self.lock_class.statistics.at(task.site, task.kind).acquired += 1
        self.lock_class.statistics.acquired_shared += 1
        self.machine.note("acquire shared", task, self)

    def end_reading(self, task: Task) -> None:
        """`task` has read it."""
        self.machine.note("release shared", task, self)

    def _leave(self, task: Task) -> None:
        self.left = self.left or (self.machine.now, task)

    def _book_readers(self) -> None:
        """The time that readers have held it, before one more or less does."""
        now = self.machine.now
        since = min(max(self._readers_since, self.machine.window_start), now)
        self.lock_class.statistics.hold_shared_total += self.readers * (now - since)
        self.lock_class.statistics.held_shared += (self.readers > 0) * (now - since)
        self._readers_since = now

    def _intrusion(self, task: Task, present: str) -> None:
        detail = f"{task} takes {self} at {self.machine.now} ps while {present}"
        self.machine.broken("mutual exclusion", detail)

    def hand_to_device(self) -> None:
        """From now on a device holds the lock, which a task has taken."""
        if self.holder is not None:
            self._book_part(self.holder)
            self.held_by_device = True
            self.machine.note("hand to device", self.holder, self)

    # ---- granting and waking ----------------------------------------------------------------------------------------

    def take(self, task: Task, first: Task | None) -> None:
        """`task` takes the free lock, which is stealing where somebody else is `first` in the queue."""
        self.lock_class.statistics.steals += first is not None and first is not task
        self.begin_hold(task)

    def grant(self, task: Task) -> None:
        """The lock, just released, becomes the property of `task`, which still sleeps or spins."""
        self.begin_hold(task)
        self._granted, self.left = task, None
        self.lock_class.statistics.handoffs += 1

    def take_grant(self, task: Task) -> bool:
        """Whether the lock was given to the running `task`; if so the task takes note, once."""
        if self._granted is not task:
            return False
        self._book_part(task)
        self._granted = None
        waited = self.machine.now - max(self._held_since, self.machine.window_start)
        self.lock_class.statistics.granted_task_runs(task.kind, waited)
        return True

    def wake(self, waker: Task, waiter: Task, *, fetched: bool = False) -> None:
        """Wake a task that waits for the lock; the waker pays, unless it has `fetched` the task's lines already."""
        self.lock_class.statistics.wakeups += 1
        if waiter.status in (Status.RUNNING, Status.RUNNABLE):
            waker.segment.debt += self.machine.lock_code.awake
        if any(lock is self for lock, *_ in waiter.waits):
            self.left = None
        self.machine.scheduler.wakeups.wake(waiter, waker, waker.lines_of_waiter(waiter) if fetched else 0)

    def poll(self, task: Task, owner: Task | None = None, *, deadline: Time | None = None) -> Steps:
        """Poll the line as an optimistic spinner: until somebody tells the pollers what it wrote.

        Also until `owner` leaves its CPU, until another task wants this CPU, until the `deadline`.
        """
        self.pollers.append(task)
        yield from task.spin(owner, until_resched=True, deadline=deadline)
        self.pollers.remove(task)

    def tell_pollers(self, writer: Task) -> None:
        """Who polls the line sees what `writer` has just written."""
        for poller in self.pollers:
            self.show(writer, poller)

    def show_in_random_order(self, writer: Task, pollers: Iterable[Task]) -> None:
        """All pollers see what `writer` has just written, one after the other in random order."""
        order = list(pollers)
        for i in range(len(order) - 1, 0, -1):
            j = self.machine.random.next_u64() % (i + 1)
            order[i], order[j] = order[j], order[i]
        for nth, poller in enumerate(order):
            self.show(writer, poller, nth, len(order))

    def show(self, writer: Task, poller: Task, nth: int = 0, of: int = 1) -> None:
        """`poller` sees what `writer` has just written to the lock's line when it looks and its refetch is served.

        It is the `nth` `of` all who are told, in the order in which they look.
        """
        if not poller.on_cpu:
            return  # the host has taken its CPU
        written = max(self.machine.now + writer.segment.debt, writer.stores_until)  # stores are seen in order
        if self.machine.kernel.turns:
            at = self._next_turn(writer, poller, written)
        else:
            at = written + self.machine.next_look(nth, of)
        poller.look_at(self.refetch(poller, at))

    def fetch_back(self, writer: Task) -> None:
        """Who polls the line fetches it back from `writer`, who has written to it nothing that they look for.

        Where CPUs take turns there are no caches.
        """
        written = self.machine.now + writer.segment.debt
        for poller in self.pollers:
            if poller.on_cpu and not self.machine.kernel.turns:
                self.refetch(poller, written)

    def _next_turn(self, writer: Task, poller: Task, written: Time) -> Time:
        """When `poller` looks where CPUs take turns, one after the other in each round, in the order of their numbers.

        A hold that began in the turn in which it ends was met by nobody. After another, who has had its turn before the
        writer's looks in the next round.
        """
        around = max(self.machine.costs.cpu_relax, 1)
        begins = written - written % around
        was_met = self._held_since < begins
        had_its_turn = poller.cpu.number < writer.cpu.number
        return begins + around if was_met and had_its_turn else written

    def refetch(self, poller: Task, at: Time) -> Time:
        """When `poller` has the line again, which it asks for at `at`."""
        return self.line.refetch(self.machine.topology, poller.cpu.number, at)
