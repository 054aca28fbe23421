"""One CPU: what it does now, what it has done (exact time accounts), and how deeply it idles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any

from simfs.machine.cpus.governor import Governor
from simfs.machine.cpus.polling import ENDLESS
from simfs.machine.sched.entity import Entity
from simfs.machine.sched.run_queue import Level, RunQueue
from simfs.machine.time import Time, from_ns

if TYPE_CHECKING:
    from simfs.machine.sched.resched import Waker
    from simfs.machine.task import Task


class Account(StrEnum):
    """The accounts into which every picosecond of a CPU goes."""

    USER = "user"
    SYSTEM = "system"
    """Kernel code, line transfers included."""
    SPIN = "spin"
    """Waiting for a lock on the CPU."""
    SWITCH = "switch"
    IRQ = "irq"
    IDLE = "idle"
    """Nothing to run, idle exit included."""


KERNEL_MM = 0
"""The kernel's own address space (`init_mm`), of which kernel threads say that they have none."""


class Phase(Enum):
    """What a CPU is doing."""

    IDLE = "idle"
    IDLE_EXIT = "idle exit"
    """Leaving its idle state; the woken task is in its run queue."""
    SWITCHING = "switching"
    """To `next`, or to idle."""
    RUNNING = "running"


@dataclass(eq=False, repr=False)
class Cpu:
    """One CPU, idle at time 0, which counts on idling for `average_idle`."""

    number: int
    average_idle: Time
    """How long it idles on average (`rq->avg_idle`)."""
    governor: Governor
    """What the governor of idle states knows of it."""
    current: Task | None = None
    next: Task | None = None
    """To which task it is switching."""
    phase: Phase = Phase.IDLE
    io_waiters: int = 0
    """How many tasks sleep here until a device has done a request (`rq->nr_iowait`)."""
    idles_for_io: int = 0
    """How many did when it had nothing to run last, where its governor minds."""
    next_timer: Time = 0
    """When the soonest of its timers rings that were armed, if that is to come."""
    since: Time = 0
    """Since when it idles or leaves idle."""
    queue: list[Task] = field(default_factory=list)
    """Runnable tasks other than the current one, in order of arrival, of both run queues."""
    delayed: list[Task] = field(default_factory=list)
    """Sleepers that have not left their run queue yet."""
    _run_queues: dict[Level, RunQueue] = field(init=False)
    group: Entity = field(default_factory=Entity)
    """The load's group on this CPU, a member of the root's run queue while it has tasks."""
    group_is_next: bool = False
    """The group's task has gone to sleep and left others (`cfs_rq->next`)."""
    need_resched: bool = False
    resched_sent: bool = False
    """An interrupt that sets it is under way, and the CPU has not looked for another task since that was sent."""
    resched: int = 0
    """Counts these interrupts."""
    arrivals: list[tuple[Task, Waker]] = field(default_factory=list)
    """Tasks woken here while the CPU switches to another one, and by whom."""
    before_switch: Time = 0
    """Time that wake-ups that were left to this CPU, and a task that was taken, take before the next switch."""
    errand: Callable[[], None] | None = None
    """What it has done when the time between two tasks is over, other than to switch."""
    looks: bool = False
    """It is about to idle and looks for a task to take."""
    generation: int = 0
    """Outdates happenings of an earlier switch or idle exit, and counts these."""
    leaving: Task | None = None
    """The task that went to sleep last, until the CPU has switched from it (`on_cpu` of that task)."""
    leaves_at: Time = 0
    """When it has; later if it is about to idle and looks into more than one domain."""
    active_mm: int = KERNEL_MM
    """Whose page tables it uses."""
    softirq_until: Time = 0
    """Until when it has softirqs."""
    in_softirq: bool = False
    """Whether it is for them that it does not idle."""
    next_tick: Time | None = None
    """When it ticks next, if it does."""
    exec_start: Time = 0
    """Up to when the virtual run time of the executing task is up to date."""
    skips_clock: bool = False
    """A wake-up has read the clock of the run queues and told the CPU to look for another task.

    It does so without reading that again (`RQCF_REQ_SKIP`).
    """
    behind: Time = 0
    """How far that clock is behind while it looks."""
    idles_since: Time = 0
    """When it had nothing to run last."""
    idled_until: Time = 0
    """And until when."""
    owed_irq: Time = 0
    """Time of interrupts that came while nobody ran; who runs next pays it."""
    interrupted: Time = 0
    """When the interrupt arrives that was sent while the CPU switched to idle."""
    idle_stamp: Time | None = None
    """When it last was about to idle, if nobody has woken here since (`rq->idle_stamp`)."""
    next_balance: Time = 0
    """When it may look again for a task to take while it idles (`rq->next_balance`)."""
    scan_cost: Time = 0
    """How long a search for an idle CPU takes on average (`sd->avg_scan_cost`)."""
    scans: int = 0
    """Of the first CPU under a cache: how many CPUs a wake-up there looks at (`nr_idle_scan`)."""
    scan_until: Time = 0
    """Until when `scans` is believed."""
    idle_cores: bool = False
    """Of the first CPU under a cache: whether a core there is said to idle altogether (`has_idle_cores`)."""
    accounts: dict[Account, Time] = field(default_factory=lambda: dict.fromkeys(Account, 0))
    """In the measured window."""
    _idled: Time = field(default=0, init=False)
    """Time that it idled before that window."""
    accounted: Time = 0
    """Until when the accounts are complete."""
    executing: bool = False
    """It uses the execution units that it shares with its siblings; kept up to date only where there are any."""

    def __post_init__(self) -> None:
        """It has a run queue of each level."""
        self._run_queues = {level: RunQueue(self, level) for level in Level}

    def queue_of(self, level: Level) -> RunQueue:
        """One of its run queues."""
        return self._run_queues[level]

    def clear_next(self, entity: Entity) -> None:
        """The group, if it is that, need not be picked again (`clear_buddies`)."""
        self.group_is_next = self.group_is_next and entity is not self.group

    @property
    def executing_task(self) -> Task | None:
        """The task that has this CPU, from the moment at which it was picked."""
        return self.current or self.next

    @property
    def between_tasks(self) -> Account:
        """What the time is booked as in which it has no task."""
        return Account.IRQ if self.in_softirq else Account.SWITCH

    def in_tick(self, now: Time) -> bool:
        """Whether it is in the tick's interrupt, to which timers and softirqs belong."""
        return (self.next_tick is not None and self.next_tick <= now) or self.softirq_until > now

    @property
    def load(self) -> int:
        """Number of tasks that want this CPU."""
        return len(self.queue) + (self.executing_task is not None)

    def reset_accounts(self) -> None:
        """Start the measured window: all accounts begin anew."""
        self._idled += self.accounts[Account.IDLE]
        self.accounts = dict.fromkeys(Account, 0)

    def idle_clock(self, now: Time) -> Time:
        """For how long it has idled up to `now`, the ways out of idle states included."""
        idles = self.phase in (Phase.IDLE, Phase.IDLE_EXIT)
        return self._idled + self.accounts[Account.IDLE] + (now - self.accounted if idles else 0)

    @property
    def busy(self) -> bool:
        """Whether a task runs here, or is about to."""
        return self.phase is Phase.RUNNING or (self.phase is Phase.SWITCHING and self.next is not None)

    @property
    def total_load(self) -> int:
        """The average load of its tasks and groups (`cpu_load`)."""
        return self.queue_of(Level.ROOT).load.load

    def account(self, now: Time, account: Account) -> None:
        """Book the time since the last booking."""
        self.accounts[account] += now - self.accounted
        self.accounted = now


@dataclass(frozen=True)
class IdleState:
    """An idle state: from which stay on it is chosen, and how long it takes to leave it.

    `core_exit` is the time while another CPU of the socket is awake, `exit` the time while the package may sleep.
    """

    residency: Time
    core_exit: Time
    exit: Time
    watts: float
    target: Time
    """The residency as its driver declares it, also for the shallowest."""

    def pays_from(self, waiters: int) -> Time:
        """How long a CPU has to idle for it, if `waiters` wait for I/O there.

        `performance_multiplier` of `menu.c` up to 6.12.
        """
        return max(self.residency, (1 + 10 * waiters) * self.exit if waiters else 0)


class IdleLadder:
    """The idle states of a machine and what they cost. A machine without any wakes at once and saves nothing.

    The first state is to poll (`poll_idle`), which only who waits for I/O does here.
    """

    def __init__(self, machine: Mapping[str, Any], polls_for: Time = ENDLESS) -> None:
        self._polls_for = polls_for
        """For how long a CPU polls before its governor chooses again."""
        self.watts_active: float = machine["watts_active"]
        states = [
            IdleState(
                from_ns(s["residency_ns"]),
                from_ns(s.get("core_exit_ns", s["exit_ns"])),
                from_ns(s["exit_ns"]),
                float(s["watts"]),
                from_ns(s["residency_ns"]),
            )
            for s in machine["idle_states"]
        ] or [IdleState(0, 0, 0, self.watts_active, 0)]
        polls = IdleState(0, 0, 0, self.watts_active, 0)
        self._states = [
            polls,
            replace(states[0], residency=0),
            *states[1:],
        ]  # it is at least in the shallowest

    @property
    def has_choice(self) -> bool:
        """Whether there is more than one."""
        return len(self._states) > 2

    def __len__(self) -> int:
        """How many states there are, polling included."""
        return len(self._states)

    def target(self, state: int) -> Time:
        """The residency that a state's driver declares."""
        return self._states[state].target

    def core_exit(self, state: int) -> Time:
        """Time to leave a state where another CPU keeps the package awake."""
        return self._states[state].core_exit

    def deepest(self, idle: Time, waiters: int = 0) -> int:
        """The deepest state that pays for a stay of `idle` where `waiters` wait for I/O."""
        return sum(1 for _ in takewhile(lambda state: state.pays_from(waiters) <= idle, self._states)) - 1

    def polls_until(self, since: Time) -> Time:
        """When a CPU that polls since `since` gives that up."""
        return since + self._polls_for

    def _begins(self, state: int, waiters: int) -> Time:
        """From when on a CPU is in a state, where nobody guesses and `waiters` wait for I/O.

        Who has polled in vain idles in the shallowest state, though it does not pay: the kernel takes it that the guess
        was wrong (`poll_time_limit` in `menu_update`).
        """
        pays = self._states[state].pays_from(waiters)
        return min(pays, self._polls_for) if state == 1 else pays

    def after(self, idle: Time, waiters: int = 0) -> int:
        """The state that a CPU is in after `idle`, where nobody guesses and `waiters` wait for I/O."""
        deeper = range(1, len(self._states))
        return sum(1 for _ in takewhile(lambda state: self._begins(state, waiters) <= idle, deeper))

    def declared_exit(self, state: int) -> Time:
        """Time to leave a state as its driver declares it: the package sleeps, too."""
        return self._states[state].exit

    def exit_where(self, number: int, package_sleeps: Callable[[], bool]) -> Time:
        """The same, unless `package_sleeps` says no: then only the core wakes."""
        state = self._states[number]
        return state.core_exit if state.core_exit < state.exit and not package_sleeps() else state.exit

    def stay_joules(self, state: int, time: Time) -> float:
        """Energy of a stay in a state."""
        return self._states[state].watts * float(time) * 1e-12

    def exit_joules(self, time: Time) -> float:
        """Energy of leaving an idle state for `time`: the CPU is powered and does nothing yet."""
        return self.watts_active * float(time) * 1e-12

    def joules(self, start: Time, end: Time, waiters: int) -> float:
        """Energy of an idle period from `start` to `end` after its beginning, where `waiters` wait for I/O."""
        begins = [self._begins(number, waiters) for number in range(len(self._states))] + [2**64]
        energy = 0.0
        for state, (since, until) in zip(self._states, pairwise(begins), strict=True):
            span = max(min(end, until) - max(start, since), 0)
            energy += state.watts * float(span) * 1e-12
        return energy
