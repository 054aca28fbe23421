"""One task: its place in the scheduler, what it is doing, and the primitives that locks are written in.

What the task *means* to do is its program, a generator. A primitive that takes simulated time is a generator too and is
called with `yield from`; everything else happens at once, and its cost is added to what the task owes (`debt`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import simpy

from simfs.machine.caches.line import Access, Line, without_transfer
from simfs.machine.chains import Reason
from simfs.machine.clock import What
from simfs.machine.cpus.cpu import KERNEL_MM, Account, Cpu
from simfs.machine.cpus.turns import Turns
from simfs.machine.labels import name_of
from simfs.machine.plug import Plug
from simfs.machine.sched.entity import Entity
from simfs.machine.sched.run_queue import Level
from simfs.machine.statistics import TaskKind
from simfs.machine.task_state import Segment, StateTimes, Status
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.caches.warmth import Missing
    from simfs.machine.lock import Lock, Side
    from simfs.machine.locks.pool import Work
    from simfs.machine.machine import Machine

Steps = Generator[simpy.Event, Any, None]
"""What a primitive is: it waits for SimPy events and returns nothing."""


@dataclass(eq=False)
class Task:
    """One task."""

    machine: Machine
    number: int
    """Its place among all threads, which another one gets when it has ended."""
    cpu: Cpu
    """Where it runs, is queued, or ran last."""
    pinned: bool = False
    """It may use no other CPU."""
    background: bool = False
    """The run may end while it sleeps."""
    kind: TaskKind = TaskKind.LOAD
    """What sort of task it is."""
    times: StateTimes = field(default_factory=StateTimes)
    label: int = 0
    """What it is called (`name_of`)."""
    recent_used_cpu: Cpu | None = None
    """The CPU before that."""
    last_wakee: int | None = None
    """The task it woke last."""
    wakee_flips: int = 0
    """How often it woke another one than before, lately."""
    flips_since: Time = 0
    """Since when."""
    generation: int = 0
    """Outdates happenings of an earlier segment, spin or sleep."""
    status: Status = Status.SLEEPING
    in_segment: bool = False
    """It has part of a segment left to run (otherwise its program takes the next step)."""
    segment: Segment = field(default_factory=Segment)
    beside: int = 0
    """The segment's own time is what it takes while so many siblings execute too."""
    account: Account = Account.SYSTEM
    """Where the segment's own time is booked."""
    turns: Turns | None = None
    """The segment is user time with kernel time in turns."""
    started: Time = 0
    """When the running segment or spin started."""
    woken: bool = False
    """A wake-up came before the sleep."""
    timer: Time | None = None
    """When its timer rings that ends a park."""
    kicked: bool = False
    """Another program woke it while it was not parked."""
    parked: bool = False
    """It sleeps in `park_program`."""
    resting: bool = False
    """It is one of its CPU's pool, and sleeps until there is work for it."""
    is_worker: bool = False
    """It is a worker of its CPU's pool."""
    at_work: bool = False
    """It counts among those of its pool that are at work."""
    spinning: bool = False
    """It stays on its CPU and waits for a look at a lock."""
    look_due: bool = False
    """A store that it spins on was made and is on its way to it."""
    sleeps_for: Lock | None = None
    """The lock for which somebody has to wake it."""
    spins_until_resched: bool = False
    """It gives up spinning when its CPU is wanted."""
    preempt_off: int = 0
    """Depth of preempt-disabled sections."""
    watchers: list[Task] = field(default_factory=list)
    """Tasks that spin as long as this one stays on its CPU."""
    stores_until: Time = 0
    """When all its stores are done."""
    queued_until: Time = 0
    """When the line is there for which it last queued behind others: those behind it take the line away at once."""
    waits: list[tuple[Lock, Time, Side]] = field(default_factory=list)
    """What it waits for, since when and on which side: a lock, and inside that perhaps the raw spinlock of the lock."""
    reason: Reason = Reason.WAKE_UP
    """Why it does not run, if it does not."""
    in_iowait: bool = False
    """Where it sleeps now, it waits for I/O."""
    function: str = ""
    """The function in which it sleeps next (`wchan`)."""
    work: Work | None = None
    """What it does, as a worker of a pool."""
    mm: int = KERNEL_MM
    """Its address space (`mm`)."""
    level: Level = Level.ROOT
    """The run queue it belongs to."""
    entity: Entity = field(default_factory=Entity)
    last_ran: Time = 0
    """When it last left a CPU."""
    woken_at: Time | None = None
    """When it was woken, as long as it has not run since."""
    woken_busy: bool = False
    """Whether its CPU was busy then."""
    site: str = ""
    """What it is doing, for the statistics of lock waits by place."""
    interrupted: str = ""
    """What it was doing before an exception."""
    missing: Missing | None = None
    """What the call that it is in misses in the caches; nothing is known outside calls."""
    operation_began: Time = 0
    operations: int = 0
    """Completed in the measured window."""

    def __post_init__(self) -> None:
        self._turn: simpy.Event = self.machine.clock.env.event()
        self.entity.task = self
        self._idle_clock: Time = 0
        """For how long its CPU had idled when its state last changed."""
        self.recent_used_cpu = self.cpu
        self.plug = Plug(self)
        self.flips_since = self.machine.now

    def __repr__(self) -> str:
        return name_of(self.label)

    # ---- going on ---------------------------------------------------------------------------------------------------

    def suspend(self) -> Generator[simpy.Event, Any, None]:
        """Wait until the machine lets the program go on."""
        self._turn = self.machine.clock.env.event()
        yield self._turn

    def resume(self) -> simpy.Event:
        """Let the program go on, which it has done when what is returned is processed; the machine calls this."""
        return self._turn.succeed()

    @property
    def waits_for(self) -> Lock | None:
        """The lock that it waits for now."""
        return self.waits[-1][0] if self.waits else None

    def become(self, status: Status) -> None:
        """Book the time since the last change of state, then change it."""
        self.times = self.times_now()
        self.status = status
        self._idle_clock = self.cpu.idle_clock(self.machine.now)

    def note_move(self, cpu: Cpu) -> None:
        """Note that the task, which waits, is about to be moved into the queue of another CPU."""
        self.times = self.times_now()
        self._idle_clock = cpu.idle_clock(self.machine.now)

    def times_now(self) -> StateTimes:
        """The time by state as it stands."""
        now = self.machine.now
        runnable, idle, sleeping, since = self.times
        match self.status:
            case Status.RUNNING:
                return StateTimes(runnable, idle, sleeping, now)
            case Status.RUNNABLE:
                idle += self.cpu.idle_clock(now) - self._idle_clock
                return StateTimes(runnable + now - since, idle, sleeping, now)
            case _:
                return StateTimes(runnable, idle, sleeping + now - since, now)

    # ---- primitives for locks and programs --------------------------------------------------------------------------

    def access(self, line: Line, access: Access) -> None:
        """Access a line after what the task owes; what it waits for is added to that.

        A store waits in the store buffer, also that of a load and a store; an atomic access waits for all of them
        (x86).
        """
        now, topology, cpu = self.machine.now, self.machine.topology, self.cpu.number
        if access is Access.WRITE and not line.has_copy(cpu):
            self._load_and_store(line)
            return
        at = now + self.segment.debt
        if access is Access.ATOMIC:
            at = max(at, self.stores_until)
        queues = line.busy_until > at
        done = at + line.access(topology, cpu, at, access)
        if access in (Access.STORE, Access.WRITE):
            self.stores_until = max(self.stores_until, done)
            done = at + topology.hit
        elif done > at + without_transfer(topology, access):
            line.waited += done - at
            if queues:
                self.queued_until = done
        self.segment.debt = done - now

    def _load_and_store(self, line: Line) -> None:
        """Load from a line of which it has no copy, and store to it.

        The load brings a copy, and the store takes the others away.
        """
        self.access(line, Access.READ)
        topology, loaded = self.machine.topology, self.machine.now + self.segment.debt
        stored = loaded + line.access(topology, self.cpu.number, loaded, Access.STORE)
        self.stores_until = max(self.stores_until, stored)

    def drain(self) -> None:
        """What it does next is atomic, as taking a lock: that begins when all its stores are done."""
        self.segment.debt = max(self.segment.debt, self.stores_until - self.machine.now)

    def read(self, line: Line) -> None:
        """Load from a line."""
        self.access(line, Access.READ)

    def write(self, line: Line) -> None:
        """Load from a line and store to it."""
        self.access(line, Access.WRITE)

    def store(self, line: Line) -> None:
        """Store to a line."""
        self.access(line, Access.STORE)

    def atomic(self, line: Line) -> None:
        """Read, modify and write a line in one instruction."""
        self.access(line, Access.ATOMIC)

    def store_to_node(self, poller: Task) -> None:
        """Store to the queue node that `poller` polls.

        Its copy goes, the store is done after those before it, and the line comes back when the poller looks.
        """
        transfer = self.machine.topology.transfer(self.cpu.number, poller.cpu.number)
        self.stores_until = max(self.stores_until, self.machine.now + self.segment.debt + transfer)
        looks = 0 if self.machine.kernel.turns else self.machine.next_look()
        poller.look_at(self.stores_until + transfer + looks)

    def lines_of_waiter(self, waiter: Task) -> Time:
        """How long it takes to fetch the lines of `waiter` that the task needs before it wakes it.

        Its entry in the queue, the task's count of references and its `wake_q` (`wake_q_add`, under the wait lock). A
        wake-up as it was measured has them in it.
        """
        return 3 * self.line_of_waiter(waiter)

    def line_of_waiter(self, waiter: Task) -> Time:
        """The same for one of them."""
        return self.machine.topology.transfer(waiter.cpu.number, self.cpu.number)

    def read_node(self, other: Task) -> None:
        """Read the queue node of `other`."""
        self.segment.debt += self.machine.topology.transfer(other.cpu.number, self.cpu.number)

    def run(self, account: Account, time: Time) -> Steps:
        """Use CPU time."""
        self.machine.scheduler.segments.start(self, account, time)
        yield from self.suspend()

    def run_turns(self, count: int, user: Time, kernel: Time) -> Steps:
        """Use user time and then kernel time, `count` times over."""
        self.machine.scheduler.segments.start_turns(self, count, user, kernel)
        yield from self.suspend()

    def pay(self) -> Steps:
        """Spend the CPU time that the task owes."""
        if self.debt > 0:
            yield from self.run(Account.SYSTEM, 0)

    @property
    def has_queued(self) -> bool:
        """Whether it has queued for a line, and the time at which it has it is not here yet."""
        return self.queued_until > self.machine.now

    def settle(self) -> Steps:
        """If so, pay what it owes: who comes meanwhile is behind it in the queue, and before what it does next."""
        if self.has_queued:
            yield from self.pay()

    @property
    def debt(self) -> Time:
        """The CPU time that the task owes."""
        return self.segment.total

    def spin(
        self, owner: Task | None = None, *, until_resched: bool = False, deadline: Time | None = None
    ) -> Steps:
        """Stay on the CPU until a lock asks for a look (`look_at`), and at least until what is owed is paid.

        Also until `owner` leaves its CPU, until another task wants this CPU, until the `deadline`.
        """
        machine = self.machine
        self.generation += 1
        self.in_segment, self.spinning = False, True
        self.started, self.spins_until_resched = machine.now, until_resched
        machine.scheduler.siblings.set_executing(self.cpu, False)
        if owner is not None:
            owner.watchers.append(self)
        if deadline is not None:
            self.look_at(max(deadline, machine.now))
        self.look_due = False
        yield from self.suspend()
        if owner is not None:
            owner.watchers = [watcher for watcher in owner.watchers if watcher is not self]

    def look_at(self, time: Time) -> None:
        """If the task spins, let it look again at `time`, or when it has paid what it owes."""
        if self.spinning:
            self.look_due = True
            at = max(time, self.machine.now, self.started + self.segment.irq + self.segment.debt)
            generation = self.generation
            self.machine.clock.at(at, What.SPIN_CHECK, self.number, lambda: self._look(generation))

    def _look(self, generation: int) -> None:
        if self.generation != generation or not self.spinning:
            return  # a stale check: the spin it was for is over
        self.generation += 1
        self.spinning = self.spins_until_resched = False
        self.machine.scheduler.siblings.set_executing(self.cpu, True)
        self.machine.scheduler.segments.book_spin(self)
        self.machine.note("look", self)
        self.resume()

    def park(self, why: Callable[[], Reason] = lambda: Reason.LOCK) -> Steps:
        """Sleep until woken; `why` says what for. A wake-up since the last `forget_wakeups` ends it at once."""
        yield from self.pay()
        if self.woken:
            self.woken = False
            return
        self.sleeps_for = self.waits_for
        if self.sleeps_for:
            self.sleeps_for.left = None
        self.machine.scheduler.sleep(self, why())
        yield from self.suspend()
        self.woken, self.sleeps_for = False, None

    def forget_wakeups(self) -> None:
        """Wake-ups so far were for something else."""
        self.woken = False

    def reschedule(self) -> Steps:
        """Give way if the scheduler wants the CPU."""
        yield from self.pay()
        if self.need_resched and (other := self.machine.scheduler.replacement(self.cpu)):
            self.machine.scheduler.yield_cpu(self, other)
            yield from self.suspend()

    def might_sleep(self) -> Steps:
        """Give way here, if the kernel is preempted voluntarily and the task holds no spinlock."""
        if self.machine.kernel.preemption == "voluntary" and not self.preempt_off and self.need_resched:
            yield from self.reschedule()

    def exit_to_user_mode(self) -> Steps:
        """Give way before a system call returns, if the scheduler wants the CPU (`exit_to_user_mode_loop`)."""
        if self.need_resched:
            yield from self.reschedule()

    @property
    def need_resched(self) -> bool:
        """Whether another task should have this one's CPU."""
        return self.cpu.need_resched

    @property
    def sleeps(self) -> bool:
        """Whether it waits for a wake-up."""
        return self.status is Status.SLEEPING

    @property
    def has_ended(self) -> bool:
        """Whether its program has."""
        return self.status is Status.DEAD

    @property
    def on_cpu(self) -> bool:
        """Whether the task is executing now."""
        return self.status is Status.RUNNING

    # ---- what only programs use -------------------------------------------------------------------------------------

    def sleep(self, time: Time) -> Steps:
        """Sleep for a time."""
        yield from self.pay()
        machine = self.machine
        machine.scheduler.sleep(self, Reason.TIMER)
        generation = self.generation
        machine.scheduler.idling.note_timer(self.cpu, machine.now + time)
        machine.clock.at(machine.now + time, What.TIMER, self.number, lambda: self._time_is_up(generation))
        yield from self.suspend()
        self.function = ""

    def _time_is_up(self, generation: int) -> None:
        if self.generation == generation:
            self.machine.note("timer", self)
            self.machine.scheduler.wakeups.wake(self, None)

    def exec(self) -> Steps:
        """Begin another program; the scheduler may move the task to an idler CPU first (`sched_exec`)."""
        yield from self.pay()
        scheduler = self.machine.scheduler
        cpu = scheduler.idlest.cpu_for_exec(self)
        if cpu is not self.cpu:
            scheduler.move_running(self, cpu)
            yield from self.suspend()

    def park_program(self) -> Steps:
        """Sleep until `kick`; an earlier one is not lost."""
        yield from self.pay()
        if self.kicked:
            self.kicked = False
        else:
            self.parked = True
            self.machine.scheduler.sleep(self, Reason.WAKE_UP if self.timer is None else Reason.TIMER)
            yield from self.suspend()
        self.function = ""

    def rest(self) -> Steps:
        """Do the same as a worker of its CPU's pool, whose work is done."""
        self.resting = True
        yield from self.park_program()
        self.resting = False

    def kick(self, waker: Task | None) -> None:
        """Wake the task if it is parked; else its next park ends at once. Its timer is stopped."""
        self.timer = None
        if self.parked:
            self.parked = False
            self.machine.scheduler.wakeups.wake(self, waker)
        else:
            self.kicked = True
