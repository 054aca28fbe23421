"""What the engine returns for one run: the second seam of `docs/seams.md`, as models.

Times are nanoseconds, energies joules, everything else counts inside the measured window.
"""

from typing import Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)


class Strict(BaseModel):
    """A frozen model that refuses unknown keys and numbers that are not finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


TaskKind = Literal["load", "bound", "kernel"]
"""Of the workload (its children too), a kernel thread bound to a CPU, another kernel thread."""


class CpuTime(Strict):
    """CPU time in the window by state, in nanoseconds summed over CPUs."""

    user: NonNegativeFloat
    system: NonNegativeFloat
    spin: NonNegativeFloat
    switch: NonNegativeFloat
    irq: NonNegativeFloat
    idle: NonNegativeFloat

    @property
    def total(self) -> float:
        """Nanoseconds of all states together: CPUs times window."""
        return self.user + self.system + self.spin + self.switch + self.irq + self.idle


class Latency(Strict):
    """Latency of one kind of operation."""

    count: NonNegativeInt
    mean_ns: NonNegativeFloat
    p50_ns: NonNegativeFloat
    p90_ns: NonNegativeFloat
    p99_ns: NonNegativeFloat
    max_ns: NonNegativeFloat
    hdr: str = Field(description="histogram in ns: HdrHistogram V2 with DEFLATE, in base64", repr=False)


class Wakes(Strict):
    """What became of the wake-ups of one kind of task: of the workload, bound or other kernel threads."""

    kind: TaskKind
    wakeups: NonNegativeInt = Field(description="new tasks are not woken")
    on_previous: NonNegativeInt = Field(description="stayed on the CPU where the task had run last")
    on_waker: NonNegativeInt = Field(description="were moved to the waker's CPU")
    beside_idle: NonNegativeInt = Field(
        description="of a task whose last CPU was busy while another under the same cache was idle"
    )
    stacked: NonNegativeInt = Field(description="of these, stayed on that busy CPU")
    to_run_idle: Latency = Field(description="until the task runs, where its CPU idled")
    to_run_busy: Latency = Field(description="until the task runs, where its CPU was busy")


class LockCounts(Strict):
    """Acquisitions and waits."""

    acquired: NonNegativeInt
    contended: NonNegativeInt = Field(description="acquisitions that had to wait")
    found_held: NonNegativeInt = Field(
        default=0, description="those of them that came while somebody had the lock"
    )
    wait_total_ns: NonNegativeFloat


class LineStats(Strict):
    """Cache lines of one name that somebody waited for: of locks of a class, or of what else lies in them."""

    name: str
    transfers: NonNegativeInt
    waited_ns: NonNegativeFloat = Field(
        description="time that tasks waited for these lines, with the transfers before theirs"
    )


class LockSite(LockCounts):
    """One place in the program that took a lock."""

    site: str


class LockKind(LockCounts):
    """What one kind of task did with locks of a class, and for how long it held them in which state."""

    kind: TaskKind
    running_ns: NonNegativeFloat
    granted_behind_ns: NonNegativeFloat = Field(
        description="granted it and not yet run: the CPU was used by others"
    )
    granted_idle_ns: NonNegativeFloat = Field(description="the same: the CPU idled and was on its way out")
    preempted_ns: NonNegativeFloat = Field(description="had run with it, and waited for a CPU")
    blocked_ns: NonNegativeFloat
    device_ns: NonNegativeFloat
    grant_to_run: Latency | None = Field(default=None, description="None where nobody was granted it")

    @property
    def held_ns(self) -> float:
        """Time of all its exclusive holds."""
        waited = self.granted_behind_ns + self.granted_idle_ns + self.preempted_ns
        return self.running_ns + waited + self.blocked_ns + self.device_ns


class LockStats(LockCounts):
    """Everything recorded about one lock class, summed over its instances."""

    name: str
    role: str
    type: str
    instances: NonNegativeInt
    wait_max_ns: NonNegativeFloat
    wait_p50_ns: NonNegativeFloat
    wait_p99_ns: NonNegativeFloat
    wait_hdr: str = Field(description="histogram of the waits in ns, as in Latency", repr=False)
    still_waiting: NonNegativeInt = Field(default=0, description="waits that the window's end cut")
    still_waiting_max_ns: NonNegativeFloat = Field(default=0, description="the longest of them, so far")
    hold_total_ns: NonNegativeFloat
    hold_max_ns: NonNegativeFloat
    busiest_held_ns: NonNegativeFloat = Field(
        default=0, description="time that the instance which is held longest is held exclusively"
    )
    acquired_shared: NonNegativeInt = Field(default=0, description="acquisitions that share it, of all")
    hold_shared_total_ns: NonNegativeFloat = Field(
        default=0, description="time held shared, of all who do together; the other holds are exclusive"
    )
    held_shared_ns: NonNegativeFloat = Field(
        default=0, description="time that at least one has an instance shared, of all instances"
    )
    resolved_spinning: NonNegativeInt
    slept: NonNegativeInt
    handoffs: NonNegativeInt
    steals: NonNegativeInt
    wakeups: NonNegativeInt
    line_transfers: NonNegativeInt
    holder_running_ns: NonNegativeFloat
    holder_runnable_ns: NonNegativeFloat
    holder_sleeping_ns: NonNegativeFloat
    holder_device_ns: NonNegativeFloat
    grant_to_run_ns: NonNegativeFloat
    sites: tuple[LockSite, ...] = ()
    kinds: tuple[LockKind, ...] = ()


class Link(Strict):
    """One lock of a chain of waits."""

    lock: str
    side: Literal["", "read", "write"] = Field(
        description="that is waited for; nothing for an exclusive lock"
    )
    holder: str = Field(description="what its holder is doing; nothing where nobody is known to have it")


class WaitChain(Strict):
    """Why tasks waited: from what the waiter does over locks and their holders to the root."""

    waiter: str
    links: tuple[Link, ...]
    reason: str = Field(description="what the last holder did (`Reason` in `simfs/machine/chains.py`)")
    function: str = Field(description="in which it slept, where that is known")
    wait_ns: NonNegativeFloat = Field(description="of all who waited so together")


class HolderTime(Strict):
    """What holders of a lock did while somebody waited for it."""

    lock: str
    holder: str
    reason: str
    function: str
    waits_for: str = Field(description="the lock, where the reason is one")
    time_ns: NonNegativeFloat


class SleepTime(Strict):
    """Sleeps of the load that no lock is the cause of."""

    sleeper: str
    reason: str
    function: str
    time_ns: NonNegativeFloat = Field(description="of all who slept so together")


class Holds(Strict):
    """How long the exclusive holds of a lock class lasted."""

    lock: str
    hdr: str = Field(
        description="histogram of nanoseconds to 2 digits: HdrHistogram's V2 with DEFLATE, in base64"
    )


class Chains(Strict):
    """Why everybody waited; the chains of a lock add up to its waits, those that the window cuts included."""

    waits: tuple[WaitChain, ...]
    holders: tuple[HolderTime, ...]
    sleeps: tuple[SleepTime, ...] = ()
    holds: tuple[Holds, ...] = ()


class Law(Strict):
    """A conservation law checked on the run."""

    law: str
    ok: bool
    detail: str


class Stall(Strict):
    """A run that could not go on: tasks and locks that wait for each other, or who found no space."""

    kind: Literal["deadlock", "no space left", "stall"]
    at_ns: NonNegativeFloat
    cycle: tuple[str, ...]


class TaskGroup(Strict):
    """A group of tasks: the next of all tasks."""

    name: str
    tasks: PositiveInt


class RunResult(Strict):
    """One run of the engine."""

    operations: NonNegativeInt
    window_ns: PositiveFloat
    batch_operations: tuple[NonNegativeInt, ...]
    tasks: PositiveInt
    per_task_operations: tuple[NonNegativeInt, ...]
    groups: tuple[TaskGroup, ...] = ()
    cpu_ns: CpuTime
    context_switches: NonNegativeInt
    involuntary_switches: NonNegativeInt
    wakeups: NonNegativeInt
    migrations: NonNegativeInt
    energy_joules: NonNegativeFloat
    events: NonNegativeInt
    bytes: NonNegativeInt = 0
    pulls: NonNegativeInt = Field(default=0, description="migrations of tasks that waited in a queue")
    wakes: tuple[Wakes, ...] = ()
    delays: dict[str, Latency] = Field(default={}, description="from being due to beginning, by name")
    requests: dict[str, Latency] = Field(
        default={}, description="of hardware, from submission to interrupt, by read, write and flush"
    )
    latency: dict[str, Latency]
    locks: tuple[LockStats, ...]
    lines: tuple[LineStats, ...] = ()
    chains: Chains | None = None
    laws: tuple[Law, ...]
    stall: Stall | None = None

    @classmethod
    def read(cls, text: str) -> Self:
        """Read what the engine returned; RuntimeError where that is no result."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "all of it"
            raise RuntimeError(f"the engine's result is wrong: {where}: {first['msg']}") from None

    @property
    def group_operations(self) -> dict[str, tuple[int, ...]]:
        """Operations of each task of each group."""
        found, first = {}, 0
        for group in self.groups:
            found[group.name] = self.per_task_operations[first : first + group.tasks]
            first += group.tasks
        return found

    @property
    def throughput_per_s(self) -> float:
        """Operations per second."""
        return self.operations / self.window_ns * 1e9


RunResult.model_rebuild()  # here, as many threads read results at once
