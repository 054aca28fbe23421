"""The scenario language: these models are the single source of its keys, types, limits and descriptions.

`simfs schema` prints them as JSON Schema; `simfs.scenario.load` turns their refusals into messages with
`file:line:column`. Durations are held in nanoseconds and sizes in bytes; percentages are held as fractions.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    StrictBool,
    StrictFloat,
    StrictInt,
    WithJsonSchema,
    model_validator,
)

from simfs.scenario.device import DeviceUse
from simfs.scenario.machine import MAX_CPUS, MachineUse
from simfs.scenario.section import Section, Text, refusal, word_as
from simfs.scenario.units import (
    Duration,
    Percentage,
    PositiveDuration,
    Size,
    checked_duration,
    format_duration,
)

VERSION = 1
"""The version of the scenario language this simfs reads."""

MAX_TASKS = 10_000

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=80)]
LockKind = Literal[
    "tas", "ticket", "mcs", "qspinlock", "cna", "rwlock-2.6", "qrwlock",
    "semaphore", "mutex-2.6.16", "mutex-2.6.30", "mutex-3.0", "mutex-3.10", "mutex", "mutex-4.10",
    "rwsem-2.6", "rwsem-3.10", "rwsem-3.16", "rwsem-4.8", "rwsem-5.3", "rwsem", "rwsem-5.11",
    "percpu-rwsem", "btrfs-tree-2", "btrfs-tree-3-biased", "btrfs-tree-3",
]  # fmt: skip
OWN_LOCK = re.compile(r".+\.py:[A-Za-z_]\w*")
"""How a lock written by the user is given: a file and the class in it."""
LockUse = Annotated[
    str,
    Field(min_length=1, max_length=1000),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(get_args(LockKind))},
                {"type": "string", "description": "A lock of one's own: its name, or FILE.py:CLASS."},
            ]
        }
    ),
]
"""A built-in lock, or the name of one's own; `simfs.scenario.checks` refuses all others."""
Seed = Annotated[StrictInt, Field(ge=0, lt=2**64)]


def _warmup(value: object) -> float | str:
    return "auto" if value == "auto" else checked_duration(value)


Warmup = Annotated[
    float | Literal["auto"],
    BeforeValidator(_warmup, json_schema_input_type=Literal["auto"] | Duration),
    PlainSerializer(lambda value: value if value == "auto" else format_duration(value), return_type=str),
]


def _count_or_duration(value: object) -> object:
    return checked_duration(value) if isinstance(value, str) else value


CountOrDuration = Annotated[
    StrictFloat,
    Field(ge=0, le=1e15),
    BeforeValidator(_count_or_duration, json_schema_input_type=StrictFloat | Duration),
]


class KernelUse(Section):
    """A kernel profile and what differs from it here. The profile's name alone will do."""

    profile: Text = Field(description="Name of a profile in models/kernels, or path of a file like one.")
    tick: PositiveDuration | None = Field(default=None, description="Length of a scheduler tick.")
    base_slice: PositiveDuration | None = Field(default=None, description="Time slice of a task.")
    run_to_parity: StrictBool | None = Field(
        default=None, description="Whether a running task is protected from wake-up preemption for its slice."
    )
    designs: dict[str, str] = Field(
        default={}, description="What one lock guards and who does the work: role -> design."
    )
    preemption: Literal["none", "voluntary", "full", "host"] | None = Field(
        default=None,
        description="When kernel code gives up its CPU to another task; `host`: the tasks are virtual CPUs, which "
        "their host preempts anywhere, also under spinlocks.",
    )
    kernel_threads: StrictBool = Field(
        default=False,
        description="Whether kernel threads that have nothing to do with the workload take a CPU now and then.",
    )
    constants: dict[str, CountOrDuration] = Field(
        default={},
        description="Constants of lock code that replace the profile's: durations with a unit, or counts.",
    )


INDEX_LOCKS = {"interval-tree": "qspinlock", "btree": "mutex"}
"""The lock around a range lock's index, by design; the optimistic design has none."""


class Xfs(Section):
    """XFS. Geometry follows mkfs.xfs."""

    MIN_AG_BYTES: ClassVar[int] = 16 << 20
    MAX_AG_BYTES: ClassVar[int] = 1 << 40

    kind: Literal["xfs"]
    profile: Text | None = Field(
        default=None, description="Cost profile in models/filesystems; 'xfs' when absent."
    )
    size: Size = Field(default=8 << 30, description="Size of the device.")
    agcount: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = Field(
        default=4, description="Allocation groups."
    )
    iolock: Literal["rwsem", "none", "interval-tree", "btree", "optimistic"] = Field(
        default="rwsem",
        description="What direct I/O takes: the IOLOCK shared, nothing, or a range lock of this design.",
    )
    buffered_io: Literal["locked", "reads-unlocked", "writes-shared", "prewarmed"] = Field(
        default="locked",
        description="What I/O through the page cache takes: reads the IOLOCK shared and writes exclusively, reads"
        " nothing, both the IOLOCK shared, or as 'locked' with a read's pages in memory before it takes the lock.",
    )
    costs: dict[str, Duration] = Field(
        default={}, description="Step costs that replace the profile's, by name."
    )

    @model_validator(mode="after")
    def _groups_fit(self) -> Self:
        group = self.size / self.agcount
        if not self.MIN_AG_BYTES <= group <= self.MAX_AG_BYTES:
            raise refusal(
                f"agcount {self.agcount} makes allocation groups of {group / 2**20:g} MiB;"
                " mkfs.xfs takes 16 MiB to 1 TiB a group"
            )
        return self

    @property
    def roles(self) -> dict[str, str]:
        """Role -> kind of the locks that no kernel has: the one around a range lock's index."""
        return {"range_lock": INDEX_LOCKS[self.iolock]} if self.iolock in INDEX_LOCKS else {}


class Btrfs(Section):
    """btrfs on one device."""

    kind: Literal["btrfs"]
    profile: Text | None = Field(
        default=None, description="Cost profile in models/filesystems; 'btrfs' when absent."
    )
    size: Size = Field(default=8 << 30, description="Size of the device.")
    early_unlock: StrictBool | None = Field(
        default=None,
        description="Whether an insertion unlocks the parents before it searches the leaf (since 5.17);"
        " null: as the kernel does.",
    )
    nodatacow: StrictBool = Field(
        default=False, description="Mounted with nodatacow: what has an extent is written in place."
    )
    new_directories: StrictBool = Field(
        default=False,
        description="Whether the workload's directories count as made in the running transaction, as in a test that"
        " is over before the first commit: fsync of a new file then logs its directory too.",
    )
    delays_new_inodes: StrictBool | None = Field(
        default=None,
        description="Whether a new file's inode is written once more, as a delayed item (before 5.19);"
        " null: as the kernel does.",
    )
    costs: dict[str, Duration] = Field(
        default={}, description="Step costs that replace the profile's, by name."
    )


class Ext4(Section):
    """ext4."""

    kind: Literal["ext4"]
    profile: Text | None = Field(
        default=None, description="Cost profile in models/filesystems; 'ext4' when absent."
    )
    size: Size = Field(default=8 << 30, description="Size of the device.")
    journal: StrictBool = Field(default=True, description="Whether it has a journal.")
    dio_writes: Literal["exclusive", "relocked", "shared"] = Field(
        default="shared",
        description="What a direct write holds: i_rwsem for itself, the same but not while the device works"
        " (dioread_nolock before 5.5), or i_rwsem shared (since 5.5).",
    )
    write_handles: StrictBool = Field(
        default=False, description="Whether a buffered write starts a journal handle (before 5.15)."
    )
    costs: dict[str, Duration] = Field(
        default={}, description="Step costs that replace the profile's, by name."
    )


class Tmpfs(Section):
    """tmpfs: the VFS alone, the floor under every filesystem."""

    kind: Literal["tmpfs"]
    profile: Text | None = Field(
        default=None, description="Cost profile in models/filesystems; 'tmpfs' when absent."
    )
    size: Size = Field(default=8 << 30, description="Size limit of the mount.")
    costs: dict[str, Duration] = Field(
        default={}, description="Step costs that replace the profile's, by name."
    )


class NoFilesystem(Section):
    """No filesystem: the workload takes locks only."""

    kind: Literal["none"]


Filesystem = Annotated[Xfs | Btrfs | Ext4 | Tmpfs | NoFilesystem, Field(discriminator="kind")]


class Tasks(Section):
    """What all workloads share."""

    tasks: Annotated[StrictInt, Field(ge=1, le=MAX_TASKS)] = Field(
        default=1, description="Number of processes."
    )
    pin_to_cpu: Annotated[StrictInt, Field(ge=0, lt=MAX_CPUS)] | None = Field(
        default=None,
        description="Number of the one CPU all tasks are bound to; null leaves them to the scheduler.",
    )


class FileTasks(Tasks):
    """What all workloads on files share."""

    directories: Literal["shared", "per-task"] = Field(
        default="shared", description="All tasks in one directory, or a new directory for each."
    )
    params: dict[str, CountOrDuration] = Field(
        default={}, description="Replace the workload profile's: durations with a unit, or counts."
    )


class Compile(FileTasks):
    """Each task compiles small sources one after the other: the temporary-file pattern of gcc."""

    kind: Literal["compile"]
    user_cpu: PositiveDuration | None = Field(
        default=None, description="User CPU time of one compile; the workload profile's when absent."
    )


class Create(FileTasks):
    """Each task creates empty files that stay."""

    kind: Literal["create"]


class CreateUnlink(FileTasks):
    """Each task creates an empty file and unlinks it."""

    kind: Literal["create_unlink"]


class TmpFile(FileTasks):
    """Each task creates a file, writes to it, closes and unlinks it."""

    kind: Literal["tmpfile"]
    write: Size = Field(default=4096, description="Bytes written to each file.")
    fsync: StrictBool = Field(default=False, description="Whether the file is synced before it is closed.")


class Fio(Tasks):
    """Each task reads and writes blocks at random places of a file, or writes them one after the other, as fio does."""

    kind: Literal["fio"]
    rw: Literal["randread", "randwrite", "randrw", "write"] = Field(
        default="randrw",
        description="What is done; 'write': one block after the other, and again from the beginning.",
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
    extents: Annotated[StrictInt, Field(ge=1, le=2**31)] = Field(
        default=1, description="Extents that a file is in; XFS looks them up in its extent map."
    )
    cached: StrictBool = Field(
        default=False, description="Whether all pages of the files are in memory at the beginning, or none."
    )
    direct: StrictBool = Field(default=False, description="Whether requests bypass the page cache.")
    iodepth: Annotated[StrictInt, Field(ge=1, le=65_536)] = Field(
        default=1, description="Requests that a task has under way; 1 waits within the call."
    )
    fsync: Annotated[StrictInt, Field(ge=0)] = Field(
        default=0, description="Each task syncs its file after so many writes; 0 is never."
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
        if self.readers is not None and self.rw != "randrw":
            raise refusal(f"readers are for randrw, not for {self.rw}")
        if self.rw == "write" and self.places != "random":
            raise refusal("rw: write takes block after block, so that places cannot be given")
        return self

    @property
    def reads(self) -> float:
        """Share of requests that read."""
        return {"randread": 1.0, "randwrite": 0.0, "write": 0.0}.get(self.rw, self.rwmixread)


class Distribution(Section):
    """A drawn duration, given by its mean: '15 us', {exponential: 15 us} or {lognormal: 15 us, cv: 0.5}."""

    constant: Duration | None = Field(default=None, description="This duration every time.")
    exponential: Duration | None = Field(
        default=None, description="Exponentially distributed with this mean."
    )
    lognormal: Duration | None = Field(default=None, description="Log-normally distributed with this mean.")
    cv: Annotated[StrictFloat, Field(gt=0, le=10)] | None = Field(
        default=None, description="Standard deviation of lognormal, relative to its mean."
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [kind for kind in _DISTRIBUTIONS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise refusal(f"give one of {', '.join(_DISTRIBUTIONS)}")
        if (self.cv is not None) != (given == ["lognormal"]):
            raise refusal("lognormal needs its cv, and only lognormal has one")
        return self

    @property
    def kind(self) -> str:
        """Which distribution it is."""
        return next(kind for kind in _DISTRIBUTIONS if getattr(self, kind) is not None)

    @property
    def mean(self) -> float:
        """The mean in nanoseconds."""
        return float(getattr(self, self.kind))


_DISTRIBUTIONS = ("constant", "exponential", "lognormal")
Draws = Annotated[Distribution, word_as("constant", Distribution)]
Count = Annotated[StrictInt, Field(ge=0, le=10**8)]
Subdirectories = Annotated[
    StrictInt, Field(ge=1, le=100_000, description="Directories of each task, or of all if they share.")
]
InitialFiles = Annotated[
    Count,
    Field(
        description="Files in the directories before the run: it is a piece of a longer one, out of its middle."
    ),
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
    subdirectories: Subdirectories = 1
    initial_files: InitialFiles = 0


class MixOperation(Section):
    """One of the operations of a mix."""

    op: Literal[
        "create", "open", "read", "append", "overwrite", "fsync", "unlink", "rename", "stat", "stat_missing",
        "fstat", "statfs", "utimes", "readdir", "walk", "lock", "unlock",
    ] = Field(description="What is done; create and open close the file again.")  # fmt: skip
    weight: Annotated[StrictFloat, Field(gt=0, le=1e9)] = Field(
        default=1.0, description="How often it is drawn, relative to the others."
    )
    size: Size | None = Field(
        default=None, description="Bytes read or written: 4 KiB unless told, of create none."
    )
    think: Draws = Field(
        default=Distribution(constant=0.0), description="User CPU time before it, beside the loop's own."
    )


class Mix(FileTasks):
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
    subdirectories: Subdirectories = 1
    initial_files: InitialFiles = 0

    @model_validator(mode="after")
    def _nobody_takes_away_what_others_use(self) -> Self:
        if not self.operations:
            raise refusal("operations: a mix needs at least one")
        taken = [operation.op for operation in self.operations if operation.op in ("unlink", "rename")]
        if self.file_set == "shared" and taken:
            raise refusal(f"{taken[0]} needs files of the task's own, and file_set is shared")
        return self


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


class LockCycle(LockTasks):
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
    binding: Literal["none", "compact", "spread"] = Field(
        default="none",
        description="Whether each task is bound to a CPU of its own: 'compact' fills a socket before the next,"
        " 'spread' takes sockets in turn, hyper-threads last; 'none' leaves tasks to the scheduler.",
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

    @model_validator(mode="after")
    def _bound_once(self) -> Self:
        if self.binding != "none" and self.pin_to_cpu is not None:
            raise refusal("tasks are bound to one CPU (pin_to_cpu) or each to its own (binding), not both")
        return self

    @property
    def roles(self) -> dict[str, str]:
        """Role -> kind of its one lock."""
        return {"lock": self.lock}


class RangeLock(LockTasks):
    """Each task locks a range of one file, holds it, and unlocks the range it has held longest."""

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
    readers: Annotated[StrictFloat, Field(ge=0, le=1)] = Field(
        default=0.0, description="Share of ranges locked for reading."
    )
    hold: Draws = Field(
        default=Distribution(constant=0.0),
        description="CPU time between locking a range and unlocking the oldest.",
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


class Variant(Section):
    """One of the designs compared: sections here are laid over those of the scenario."""

    name: Name
    title: Text | None = None
    machine: Annotated[dict[str, Any], word_as("profile", MachineUse)] = Field(
        default={}, description="A profile's name, or keys that differ."
    )
    kernel: Annotated[dict[str, Any], word_as("profile", KernelUse)] = Field(
        default={}, description="A profile's name, or keys that differ."
    )
    filesystem: dict[str, Any] = Field(
        default={}, description="Keys that differ; a new kind keeps what both know."
    )
    device: Annotated[dict[str, Any], word_as("profile", DeviceUse)] = Field(
        default={}, description="A profile's name, or keys that differ."
    )
    locks: dict[str, Any] = Field(default={}, description="Lock kinds by role.")
    workload: dict[str, Any] = Field(
        default={}, description="Keys that differ; a new kind keeps what both know."
    )


class Measure(Section):
    """How long to look, how often, and how sure to be."""

    duration: PositiveDuration = Field(
        default=1e9, description="Simulated time measured in each replication."
    )
    warmup: Warmup = Field(
        default="auto", description="Simulated time before measuring; 'auto' finds its end from the data."
    )
    batches: Annotated[StrictInt, Field(ge=1, le=10_000)] = Field(
        default=20, description="Equal parts of it."
    )
    replications: Annotated[StrictInt, Field(ge=1, le=1000)] = Field(
        default=5, description="Runs of each point."
    )
    precision: Percentage | None = Field(
        default=None,
        description="Wanted half-width of the interval, relative to the mean; adds runs until met.",
    )
    max_replications: Annotated[StrictInt, Field(ge=1, le=10_000)] = Field(
        default=50, description="Most runs of a point."
    )
    confidence: Annotated[Percentage, Field(lt=1)] = Field(default=0.95, description="Of all intervals.")
    seed: Seed = Field(default=1, description="The seed every random stream is derived from.")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.precision is not None and self.max_replications < self.replications:
            raise refusal(
                f"max_replications {self.max_replications} is below {self.replications} replications"
            )
        return self

    def quick(self) -> Measure:
        """Return a version for a first look: a fifth of the time, two replications, no wanted precision."""
        short: dict[str, Any] = {"duration": self.duration / 5, "replications": 2, "precision": None}
        if self.warmup != "auto":
            short["warmup"] = self.warmup / 5
        return self.model_copy(update=short)


class MeasuredUse(Section):
    """Measured data to hold the prediction against. The dataset's name alone will do."""

    dataset: Text = Field(description="Name of a dataset in scenarios/measured, or path of a file like one.")
    variants: dict[str, Name] = Field(
        default={},
        description="What the dataset calls a variant -> the variant here; same names need no entry.",
    )


class RowChoice(Section):
    """Which rows a fit may use: all rows of a series, or those with this x and metric."""

    series: Text
    x: StrictFloat | None = None
    metric: Text | None = None


class Fit(Section):
    """One parameter that may be fitted, and the rows it may be fitted on."""

    parameter: Text = Field(description="Dotted key of the parameter, for example workload.user_cpu.")
    bounds: tuple[Any, Any] = Field(description="Lowest and highest value, written as the parameter is.")
    prior: Any = Field(
        default=None, description="Where the search starts; the scenario's own value when absent."
    )
    source: Text | None = Field(default=None, description="Where bounds and prior come from.")
    rows: Annotated[tuple[RowChoice, ...], Field(min_length=1)] = Field(
        description="Rows of the measured data with role calibrate."
    )


class Scenario(Section):
    """A question to simfs: a machine, a kernel, a filesystem, a workload, and the designs to compare."""

    simfs: Literal[1] = Field(description="Version of the scenario language.")
    name: Name = Field(description="Short name, as in `simfs run NAME`.")
    title: Text = Field(description="One line for lists and figures.")
    question: Annotated[str, Field(max_length=10_000)] = Field(
        default="", description="What is to be answered."
    )
    machine: Annotated[MachineUse, word_as("profile", MachineUse)]
    kernel: Annotated[KernelUse, word_as("profile", KernelUse)]
    filesystem: Filesystem = NoFilesystem(kind="none")
    device: Annotated[DeviceUse, word_as("profile", DeviceUse)] | None = Field(
        default=None,
        description="What the filesystem is stored on; null is the loop device of the traces, whose times are"
        " among the filesystem's costs.",
    )
    locks: dict[str, LockUse] = Field(
        default={},
        description="Lock role -> kind, where not the kernel's; name -> FILE.py:CLASS, a lock of one's own.",
    )
    workload: Workload
    variants: tuple[Variant, ...] = Field(default=(), description="The designs compared.")
    sweep: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = Field(
        default={}, description="Dotted key -> the values it takes, for example workload.tasks: [1, 2, 4]."
    )
    measure: Measure = Measure()
    measured: Annotated[MeasuredUse, word_as("dataset", MeasuredUse)] | None = None
    calibrate: tuple[Fit, ...] = Field(default=(), description="What may be fitted, and on what.")

    @property
    def own_locks(self) -> dict[str, str]:
        """Locks written by the user: name -> `FILE.py:CLASS`."""
        return {name: use for name, use in self.locks.items() if OWN_LOCK.fullmatch(use)}

    @property
    def lock_roles(self) -> dict[str, str]:
        """The kinds of lock roles that are not the kernel's, own ones as `FILE.py:CLASS`."""
        own = self.own_locks
        return {role: own.get(use, use) for role, use in self.locks.items() if role not in own}


SECTIONS = ("machine", "kernel", "filesystem", "device", "locks", "workload")
"""The sections that variants and sweeps may change."""

KINDS: dict[str, dict[str, type[Section]]] = {
    "filesystem": {"xfs": Xfs, "btrfs": Btrfs, "ext4": Ext4, "tmpfs": Tmpfs, "none": NoFilesystem},
    "workload": {
        "compile": Compile,
        "create": Create,
        "create_unlink": CreateUnlink,
        "tmpfile": TmpFile,
        "fs_mark": FsMark,
        "mix": Mix,
        "dbench": Dbench,
        "fio": Fio,
        "lock_cycle": LockCycle,
        "range_lock": RangeLock,
        "python": PythonTasks,
    },
}
"""The sections whose keys depend on their `kind`."""
