"""The load `fio`: what a job reads and writes, and where in a file."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StrictBool, StrictInt, model_validator

from simfs.scenario.sections.kernel import CountOrDuration
from simfs.scenario.sections.section import refusal
from simfs.scenario.sections.tasks import MAX_TASKS, Tasks
from simfs.scenario.sections.units import Percentage, Size

RandomDistribution = Annotated[
    str, Field(pattern=r"^(random|zipf:(0*[1-9]\d*(\.\d+)?|0*\.0*[1-9]\d*|0+\.0*[1-9]\d*))$")
]
"""fio's words: `random` (each as often as the others) or `zipf:THETA`."""


class Fio(Tasks):
    """Each task reads and writes blocks of a file, at random places or one after the other, as fio does."""

    ELSEWHERE: ClassVar[dict[str, str]] = {
        "numjobs": "write tasks",
        "bs": "write block_size",
        "bssplit": "all blocks have one block_size; operations of a mix can have sizes with weights",
        "filesize": "write size, that of each file",
        "filename": "write files: shared",
        "ioengine": "a task waits for each request, or has iodepth under way with direct: true",
        "fallocate": "write unwritten: true for blocks that are allocated and not written",
        "runtime": "write measure.duration",
        "ramp_time": "write measure.warmup",
    }

    kind: Literal["fio"]
    rw: Literal["randread", "randwrite", "randrw", "read", "write"] = Field(
        default="randrw",
        description="What is done; 'read' and 'write': one block after the other, and again from the beginning.",
    )
    rwmixread: Percentage = Field(default=0.5, description="With randrw: share of requests that read.")
    readers: Annotated[StrictInt, Field(ge=0, le=MAX_TASKS)] | None = Field(
        default=None, description="With randrw: so many tasks only read and all others only write."
    )
    size: Size = Field(default=256 << 20, description="Size of a file.")
    block_size: Size = Field(default=4096, description="Bytes of a request.")
    files: Literal["shared", "per-task"] = Field(default="shared", description="One file, or one for each.")
    places: Literal["random", "own-block"] = Field(
        default="random", description="'own-block': each task takes the same block of its own every time."
    )
    random_distribution: RandomDistribution = Field(
        default="random",
        description="With random places: 'zipf:1.2' takes few blocks often, by Zipf's law with that exponent.",
    )
    extents: Annotated[StrictInt, Field(ge=1, le=2**31)] = Field(
        default=1, description="Extents that a file is in; XFS looks them up in its extent map."
    )
    cached: StrictBool | Literal["written"] = Field(
        default=False,
        description="Whether all pages of the files are in memory at the beginning, or none; 'written': all, and"
        " nobody has read them.",
    )
    written: Percentage | None = Field(
        default=None,
        description="With rw: write, on btrfs: so much of each file was written before, the newest of it is in memory"
        " as far as there is room, and the tasks go on behind it.",
    )
    unwritten: StrictBool = Field(
        default=False,
        description="With writes on ext4, or buffered ones on btrfs: files were allocated (fallocate) and"
        " not written, as fio leaves them.",
    )
    direct: StrictBool = Field(default=False, description="Whether requests bypass the page cache.")
    iodepth: Annotated[StrictInt, Field(ge=1, le=65_536)] = Field(
        default=1, description="Requests that a task has under way; 1 waits within the call."
    )
    fsync: Annotated[StrictInt, Field(ge=0)] = Field(
        default=0, description="Each task syncs its file after so many writes; 0 is never."
    )
    fdatasync: Annotated[StrictInt, Field(ge=0)] = Field(
        default=0, description="The same with fdatasync, which leaves new times of the file in memory."
    )
    sync: StrictBool = Field(
        default=False, description="Files are open with O_SYNC: writes end with an fsync of their range."
    )
    watched: StrictBool = Field(
        default=False,
        description="Somebody watches the directory (inotify): each request takes a reference of it.",
    )
    params: dict[str, CountOrDuration] = Field(
        default={}, description="Replace the workload profile's: durations with a unit, or counts."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.size < self.block_size:
            raise refusal(f"a file of {self.size} B does not hold a block of {self.block_size} B")
        if self.iodepth > 1 and not self.direct:
            raise refusal("iodepth above 1 needs direct: true; buffered requests are waited for")
        if self.sync and self.iodepth > 1:
            raise refusal("sync: with O_SYNC a task waits for each write, so that iodepth is 1")
        if self.readers is not None and self.rw != "randrw":
            raise refusal(f"readers are for randrw, not for {self.rw}")
        if self.readers is not None and "rwmixread" in self.model_fields_set:
            raise refusal("rwmixread: with readers a task only reads or only writes")
        if self.sequential and self.places != "random":
            raise refusal(f"rw: {self.rw} takes block after block, so that places cannot be given")
        if self.written is not None and self.rw != "write":
            raise refusal(f"written is for rw: write, not for {self.rw}")
        if self.written is not None and (self.cached or self.direct or self.extents > 1):
            raise refusal("written: what is in memory and in which extents follows from it")
        if self.unwritten and (self.reads > 0 or self.readers or self.written is not None):
            raise refusal("unwritten is for writes to files that hold nothing yet")
        if self.random_distribution != "random" and (self.sequential or self.places != "random"):
            raise refusal("random_distribution: the places are not random")
        return self

    @property
    def reads(self) -> float:
        """Share of requests that read."""
        only = {"randread": 1.0, "read": 1.0, "randwrite": 0.0, "write": 0.0}
        return only.get(self.rw, self.rwmixread)

    @property
    def sequential(self) -> bool:
        """Whether a task takes one block after the other."""
        return self.rw in ("read", "write")
