"""The section of a scenario that says what the tasks do."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StrictBool, StrictFloat, StrictInt, model_validator

from simfs.scenario.sections.draws import Distribution, Draws
from simfs.scenario.sections.filesystem import INDEX_LOCKS
from simfs.scenario.sections.kernel import CountOrDuration, LockUse
from simfs.scenario.sections.section import Section, Text, refusal, shorten
from simfs.scenario.sections.tasks import MAX_TASKS, Count, FileTasks, InitialFiles, Naming, Serving, Tasks
from simfs.scenario.sections.units import Percentage, PositiveDuration, Size
from simfs.scenario.sections.words import OneOf


class Compile(FileTasks, Serving):
    """Each task compiles small sources one after the other: the temporary-file pattern of gcc."""

    kind: Literal["compile"]
    profile: Text | None = Field(
        default=None, description="Workload profile in models/workloads; 'compile' when absent."
    )
    user_cpu: PositiveDuration | None = Field(
        default=None, description="User CPU time of one compile; the workload profile's when absent."
    )
    shell: StrictBool = Field(
        default=False,
        description="Whether each turn is `system()`, so that a shell starts the driver; the task itself otherwise.",
    )


class Create(Naming, Serving):
    """Each task creates empty files that stay."""

    kind: Literal["create"]
    initial_files: InitialFiles = 0


class CreateUnlink(Naming, Serving):
    """Each task creates an empty file and unlinks it."""

    kind: Literal["create_unlink"]


class TmpFile(Naming, Serving):
    """Each task creates a file, writes to it, closes and unlinks it."""

    kind: Literal["tmpfile"]
    write: Size = Field(default=4096, description="Bytes written to each file.")
    fsync: StrictBool = Field(default=False, description="Whether the file is synced before it is closed.")


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
        "fdatasync": "write fsync",
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
    cached: StrictBool = Field(
        default=False, description="Whether all pages of the files are in memory at the beginning, or none."
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
    sync: StrictBool = Field(
        default=False, description="Files are open with O_SYNC: writes end with an fsync of their range."
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


Subdirectories = Annotated[
    StrictInt, Field(ge=1, le=100_000, description="Directories of each task, or of all if they share.")
]


class FsMark(FileTasks):
    """Each thread creates so many files a loop, as fs_mark does, and unlinks them again or keeps them."""

    kind: Literal["fs_mark"]
    files: Annotated[Count, Field(ge=1)] = Field(default=1000, description="Files a loop and thread (-n).")
    size: Size | None = Field(
        default=51200, description="Bytes written to each file (-s); null leaves it empty."
    )
    write: Size = Field(default=16384, description="Bytes of a single write (-w).")
    sync: Literal[0, 1, 3, 5] = Field(
        default=1,
        description="-S: 0 none, 1 each file before it is closed, 5 all after a loop, 3 these in reverse order.",
    )
    keep: StrictBool = Field(default=False, description="Files stay (-k).")
    files_per_directory: Annotated[Count, Field(ge=1)] = Field(
        default=1, description="Files in a subdirectory before a thread goes on to the next (-N)."
    )
    subdirectories: Subdirectories = 1
    initial_files: InitialFiles = 0


class MixOperation(Section):
    """One of the operations of a mix."""

    op: Annotated[str, OneOf(lambda words: words.operations)] = Field(
        description="What is done; create and open close the file again."
    )
    weight: Annotated[StrictFloat, Field(gt=0, le=1e9)] = Field(
        default=1.0, description="How often it is drawn, relative to the others."
    )
    size: Size | None = Field(
        default=None, description="Bytes read or written: 4 KiB unless told, of create none."
    )
    on: Literal["any", "made", "written", "synced", "first", "last", "next"] = Field(
        default="any",
        description="Which file of the set: any, its first or last, or the one last made, written to or synced;"
        " 'next' takes them in turn, one directory after the other, as rm -r unlinks them.",
    )
    repeat: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = Field(
        default=1, description="How often in a row it is done; together they count as one operation."
    )
    sync: StrictBool = Field(
        default=False,
        description="Of append and overwrite: the file is open with O_SYNC, so it ends with an fsync of its range.",
    )
    places: Literal["in-turn", "random", "own-block"] = Field(
        default="in-turn",
        description="Of read and overwrite: 'random' takes any block of the file, drawn anew each time,"
        " 'own-block' the same block of the task's own."
        " 'in-turn' reads on with each repetition, and writes over the beginning.",
    )
    think: Draws = Field(
        default=Distribution(constant=0.0), description="User CPU time before it, beside the loop's own."
    )

    @model_validator(mode="before")
    @classmethod
    def _is_no_word(cls, given: object) -> object:
        if isinstance(given, str) and given:
            raise refusal(f"an operation is a mapping: {{op: {shorten(given.split()[0])}}}")
        return given

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.sync and self.op not in ("append", "overwrite"):
            raise refusal(f"sync is for append and overwrite, not for {self.op}")
        if self.places != "in-turn" and self.op not in ("read", "overwrite"):
            raise refusal(f"places are for read and overwrite, not for {self.op}")
        return self


class Mix(Naming, Serving):
    """Each task does operations of a list on a set of files: drawn by weight, or one after the other."""

    kind: Literal["mix"]
    operations: tuple[MixOperation, ...] = Field(description="What is drawn from, or done in turn.")
    order: Literal["drawn", "in-turn"] = Field(
        default="drawn", description="'in-turn': all, one after the other; a turn counts as one operation."
    )
    file_set: Literal["own", "shared"] = Field(
        default="own", description="Each task has files of its own, or all use the same."
    )
    files: Annotated[StrictInt, Field(ge=0, le=1_000_000)] = Field(
        default=1, description="Files in a set before the first operation, cached."
    )
    file_size: Size | None = Field(default=None, description="Bytes in each of them; empty when absent.")
    names: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = Field(
        default=None,
        description="So many names a task has in its directories together: the one that is free for the longest is"
        " taken again; absent: each name is used once.",
    )
    begin: PositiveDuration | None = Field(
        default=None,
        description="Tasks begin at any moment within this time; absent: all at once.",
    )
    threads: StrictBool = Field(
        default=False,
        description="The tasks are threads of one process, which share its table of open files.",
    )
    descriptors: Annotated[StrictInt, Field(ge=0, le=1_000)] = Field(
        default=3, description="Descriptors that the process of the threads has open before they start."
    )
    watched: StrictBool = Field(
        default=False,
        description="Somebody watches the tasks' directories (inotify): an open or close takes a reference of them.",
    )
    unlinked: StrictBool = Field(
        default=False,
        description="The files of the set were unlinked and are still open: on ext4 they stay on the list of orphans.",
    )
    shared_open: StrictBool = Field(
        default=False,
        description="The tasks use one open file of each file of the set, which is shared: threads by its descriptor,"
        " processes as forked after it was opened.",
    )
    random_distribution: RandomDistribution = Field(
        default="random",
        description="Of which any is taken: 'zipf:1.2' takes the first ones the most often, by Zipf's law.",
    )
    subdirectories: Subdirectories = 1
    initial_files: InitialFiles = 0

    @model_validator(mode="after")
    def _nobody_takes_away_what_others_use(self) -> Self:
        if not self.operations:
            raise refusal("operations: a mix needs at least one")
        taken = [use.op for use in self.operations if use.op in ("unlink", "rename", "move")]
        if self.file_set == "shared" and taken and not self._leaves_others_files_alone:
            raise refusal(f"{taken[0]} needs files of the task's own (on: made), and file_set is shared")
        return self

    @property
    def _leaves_others_files_alone(self) -> bool:
        """Whether each task uses only the set's first file, which stays, and the one that it made last."""
        used = [use for use in self.operations if use.op != "create"]
        stays = all(use.op in ("read", "open") for use in used if use.on == "first")
        return self.files > 0 and stays and all(use.on in ("first", "made") for use in used)


RangeCount = Annotated[StrictInt, Field(ge=1, le=2**20)]


class Dbench(Tasks):
    """Each client plays the calls of dbench's load file without thinking, in directories of its own."""

    kind: Literal["dbench"]
    params: dict[str, CountOrDuration] = Field(
        default={}, description="Replace the workload profile's: durations with a unit, or counts."
    )

    @property
    def directories(self) -> str:
        """Clients share none."""
        return "per-task"


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


class PythonTasks(Tasks):
    """Each task runs a generator function of a Python file, which yields its steps."""

    kind: Literal["python"]
    program: Text = Field(description="FILE:FUNCTION; the file's path is relative to the scenario.")
    params: dict[str, CountOrDuration] = Field(
        default={}, description="What the program finds in task.params: durations with a unit, or counts."
    )


Workload = Annotated[
    Compile
    | Create
    | CreateUnlink
    | TmpFile
    | FsMark
    | Mix
    | Dbench
    | Fio
    | LockCycle
    | RangeLock
    | PythonTasks,
    Field(discriminator="kind"),
]

FromProfile = Compile | Create | CreateUnlink | TmpFile | FsMark | Mix | Dbench | Fio | RangeLock
"""The loads whose numbers stand in models/workloads."""


def profile_of(use: FromProfile) -> str:
    """Return the name of a load's profile in models/workloads."""
    return use.profile or use.kind if isinstance(use, Compile) else use.kind
