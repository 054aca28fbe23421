"""Loads on locks alone: a cycle of one lock, and range locks."""

from typing import Annotated, Literal, Self

from pydantic import Field, StrictFloat, StrictInt, model_validator

from simfs.scenario.sections.draws import Distribution, Draws
from simfs.scenario.sections.filesystem import INDEX_LOCKS
from simfs.scenario.sections.kernel import CountOrDuration, LockUse
from simfs.scenario.sections.section import refusal
from simfs.scenario.sections.tasks import Serving, Tasks
from simfs.scenario.sections.units import PositiveDuration

RangeCount = Annotated[StrictInt, Field(ge=1, le=2**20)]


class LockTasks(Tasks):
    """What all workloads on locks alone share."""

    @property
    def roles(self) -> dict[str, str]:
        """Role -> kind of the locks it takes."""
        raise NotImplementedError


class LockCycle(LockTasks, Serving):
    """Each task thinks, takes the one lock, holds it, and releases it."""

    kind: Literal["lock_cycle"]
    lock: LockUse = Field(default="semaphore", description="Kind of the lock.")
    think: Draws = Field(description="Time between two lock cycles.")
    thinks: Literal["cpu", "sleep"] = Field(
        default="cpu", description="Whether thinking uses the CPU or sleeps."
    )
    hold: Draws = Field(description="CPU time the lock is held.")
    pauses: Annotated[StrictInt, Field(ge=0, le=10**6)] = Field(
        default=0, description="Pause instructions (`cpu_relax` of the machine) in each hold, besides `hold`."
    )
    readers: Annotated[StrictFloat, Field(ge=0, le=1)] = Field(
        default=0.0, description="Share of read acquisitions."
    )
    blocking: Annotated[StrictFloat, Field(ge=0, le=1)] = Field(
        default=0.0,
        description="Share of holds in which the holder of a btrfs tree lock goes blocking; its waiters sleep.",
    )
    data_lines: Annotated[StrictInt, Field(ge=0, le=64)] = Field(
        default=0, description="Cache lines the lock protects: a writer writes them all, a reader reads them."
    )
    locks: Annotated[StrictInt, Field(ge=1, le=2)] = Field(
        default=1, description="With 2, a second lock is taken while the first is held."
    )
    order: Literal["same", "opposite"] = Field(
        default="same", description="'opposite': every other task takes the two locks the other way round."
    )
    begin: PositiveDuration | None = Field(
        default=None,
        description="Tasks begin at any moment within this time; absent: all at once.",
    )
    device: Draws | None = Field(
        default=None,
        description="The lock is handed to a device, which releases it after this time; only for a semaphore.",
    )

    @model_validator(mode="after")
    def _only_semaphores_have_no_owner(self) -> Self:
        if self.device is not None and self.lock != "semaphore":
            raise refusal(f"only a semaphore can be released by a device, not a {self.lock}")
        return self

    @model_validator(mode="after")
    def _pauses_always_take_the_same_time(self) -> Self:
        if self.pauses and self.hold.kind != "constant":
            raise refusal(f"pauses go with a constant hold, not with one that is {self.hold.kind}")
        return self

    @property
    def roles(self) -> dict[str, str]:
        """Role -> kind of its one lock."""
        return {"lock": self.lock}


class RangeLock(LockTasks):
    """Each task locks a range of one file, holds it, and unlocks the range it has held longest.

    In batches it locks all its ranges and then unlocks them.
    """

    kind: Literal["range_lock"]
    design: Literal["interval-tree", "btree", "optimistic", "rwsem"] = Field(
        default="interval-tree", description="How ranges are locked; 'rwsem' locks the whole file."
    )
    index_lock: Literal["kernel", "pthread"] = Field(
        default="kernel",
        description="The lock around a whole index: that of the role, or in user space glibc's mutex.",
    )
    ranges: Literal["per-task", "interleaved", "shared"] = Field(
        default="per-task",
        description="A part of the file for each task, every so-manieth range, or any: only these overlap.",
    )
    units: RangeCount = Field(default=1024, description="With shared ranges: the units that they start at.")
    length: RangeCount = Field(default=1, description="Units in a range.")
    outstanding: RangeCount = Field(default=1, description="Most ranges that a task holds at once.")
    order: Literal["rotating", "batches"] = Field(
        default="rotating",
        description="Unlock the oldest after each lock, or lock all ranges, neighbours in turn, and then unlock all.",
    )
    readers: Annotated[StrictFloat, Field(ge=0, le=1)] = Field(
        default=0.0, description="Share of ranges locked for reading."
    )
    hold: Draws = Field(
        default=Distribution(constant=0.0),
        description="CPU time between locking a range (in batches: the last) and unlocking the oldest.",
    )
    think: Draws = Field(default=Distribution(constant=0.0), description="CPU time between two turns.")
    params: dict[str, CountOrDuration] = Field(
        default={}, description="Replace the workload profile's: durations with a unit, or counts."
    )

    @model_validator(mode="after")
    def _who_may_wait_holds_one(self) -> Self:
        if self.outstanding > 1 and (self.ranges == "shared" or self.design == "rwsem"):
            what = "ranges are shared" if self.ranges == "shared" else "an rwsem locks the whole file"
            raise refusal(f"a task that may have to wait can hold only one range, and {what}")
        if self.order == "batches" and self.ranges == "shared":
            raise refusal("ranges that may have to wait for each other are not locked in batches")
        return self

    @property
    def roles(self) -> dict[str, str]:
        """Role -> kind of the lock around the index; the optimistic design takes none."""
        return {"range_lock": INDEX_LOCKS.get(self.design, "rwsem")}
