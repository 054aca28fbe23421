"""What the engine returns for one run: the second seam of `docs/seams.md`, as models.

Times are nanoseconds, energies joules, everything else counts inside the measured window.
"""

from __future__ import annotations

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

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


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


class LockSite(Strict):
    """One place in the program that waited for a lock."""

    site: str
    contended: NonNegativeInt
    wait_total_ns: NonNegativeFloat


class LockStats(Strict):
    """Everything recorded about one lock class, summed over its instances."""

    name: str
    role: str
    type: str
    instances: NonNegativeInt
    acquired: NonNegativeInt
    contended: NonNegativeInt
    wait_total_ns: NonNegativeFloat
    wait_max_ns: NonNegativeFloat
    wait_p50_ns: NonNegativeFloat
    wait_p99_ns: NonNegativeFloat
    wait_hdr: str = Field(description="histogram of the waits in ns, as in Latency", repr=False)
    hold_total_ns: NonNegativeFloat
    hold_max_ns: NonNegativeFloat
    acquired_shared: NonNegativeInt = Field(default=0, description="acquisitions that share it, of all")
    hold_shared_total_ns: NonNegativeFloat = Field(
        default=0, description="time held shared, of all who do together; the other holds are exclusive"
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


class Law(Strict):
    """A conservation law checked on the run."""

    law: str
    ok: bool
    detail: str


class Stall(Strict):
    """A run that could not go on, with the tasks and locks that wait for each other."""

    kind: Literal["deadlock", "stall"]
    at_ns: NonNegativeFloat
    cycle: tuple[str, ...]


class RunResult(Strict):
    """One run of the engine."""

    operations: NonNegativeInt
    window_ns: PositiveFloat
    batch_operations: tuple[NonNegativeInt, ...]
    tasks: PositiveInt
    per_task_operations: tuple[NonNegativeInt, ...]
    cpu_ns: CpuTime
    context_switches: NonNegativeInt
    involuntary_switches: NonNegativeInt
    wakeups: NonNegativeInt
    migrations: NonNegativeInt
    energy_joules: NonNegativeFloat
    events: NonNegativeInt
    bytes: NonNegativeInt = 0
    latency: dict[str, Latency]
    locks: tuple[LockStats, ...]
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
    def throughput_per_s(self) -> float:
        """Operations per second."""
        return self.operations / self.window_ns * 1e9
