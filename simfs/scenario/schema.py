"""The scenario language: these models are the single source of its keys, types, limits and descriptions.

`simfs schema` prints them as JSON Schema; `simfs.scenario.load` turns their refusals into `file:line:column` messages.
Durations are held in nanoseconds and sizes in bytes; percentages are held as fractions.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    StrictBool,
    StrictFloat,
    StrictInt,
    model_validator,
)

from simfs.scenario.section import Section, refusal
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

MAX_CPUS = 256
MAX_TASKS = 10_000

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=80)]
Text = Annotated[str, Field(min_length=1, max_length=2000)]
LockKind = Literal[
    "tas", "ticket", "qspinlock", "qrwlock", "semaphore", "mutex", "mutex-4.10", "rwsem", "rwsem-5.11", "percpu-rwsem"
]  # fmt: skip
Cpus = Annotated[StrictInt, Field(ge=1, le=MAX_CPUS)]
Seed = Annotated[StrictInt, Field(ge=0, lt=2**64)]


def _word_as(key: str, section: type[Section]) -> BeforeValidator:
    """Let a plain word stand for a mapping with this one key."""

    def widen(value: Any) -> Any:
        return {key: value} if isinstance(value, (str, int, float)) else value

    return BeforeValidator(widen, json_schema_input_type=str | section)


def _warmup(value: Any) -> float | str:
    return "auto" if value == "auto" else checked_duration(value)


Warmup = Annotated[
    float | Literal["auto"],
    BeforeValidator(_warmup, json_schema_input_type=Literal["auto"] | Duration),
    PlainSerializer(lambda value: value if value == "auto" else format_duration(value), return_type=str),
]


def _count_or_duration(value: Any) -> Any:
    return checked_duration(value) if isinstance(value, str) else value


CountOrDuration = Annotated[
    StrictFloat,
    Field(ge=0, le=1e15),
    BeforeValidator(_count_or_duration, json_schema_input_type=StrictFloat | Duration),
]


class MachineUse(Section):
    """A machine profile and what differs from it here. The profile's name alone will do."""

    profile: Text = Field(description="Name of a profile in models/machines, or path of a file like one.")
    cpus: Cpus | None = Field(None, description="Number of CPUs (hardware threads).")
    cpus_per_core: Cpus | None = Field(None, description="Hardware threads a core.")
    cpus_per_llc: Cpus | None = Field(None, description="CPUs that share a last-level cache.")
    cpus_per_socket: Cpus | None = Field(None, description="CPUs a socket.")
    speed: Annotated[StrictFloat, Field(gt=0, le=1000)] | None = Field(
        None, description="Factor on all program times."
    )
    costs: dict[str, Duration] = Field({}, description="Costs that replace the profile's, by name.")


class KernelUse(Section):
    """A kernel profile and what differs from it here. The profile's name alone will do."""

    profile: Text = Field(description="Name of a profile in models/kernels, or path of a file like one.")
    tick: PositiveDuration | None = Field(None, description="Length of a scheduler tick.")
    base_slice: PositiveDuration | None = Field(None, description="Time slice of a task.")
    run_to_parity: StrictBool | None = Field(
        None, description="Whether a running task is protected from wake-up preemption for its slice."
    )
    preemption: Literal["none", "voluntary", "full"] | None = Field(
        None, description="When kernel code gives up its CPU to another task."
    )
    constants: dict[str, CountOrDuration] = Field(
        {}, description="Constants of lock code that replace the profile's: durations with a unit, or counts."
    )


class Xfs(Section):
    """XFS. Geometry follows mkfs.xfs."""

    MIN_AG_BYTES: ClassVar[int] = 16 << 20
    MAX_AG_BYTES: ClassVar[int] = 1 << 40

    kind: Literal["xfs"]
    profile: Text | None = Field(None, description="Cost profile in models/filesystems; 'xfs' when absent.")
    size: Size = Field(8 << 30, description="Size of the device.")
    agcount: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = Field(
        4, description="Number of allocation groups."
    )
    costs: dict[str, Duration] = Field({}, description="Step costs that replace the profile's, by name.")

    @model_validator(mode="after")
    def _groups_fit(self) -> Self:
        group = self.size / self.agcount
        if not self.MIN_AG_BYTES <= group <= self.MAX_AG_BYTES:
            raise refusal(
                f"agcount {self.agcount} makes allocation groups of {group / 2**20:g} MiB;"
                " mkfs.xfs takes 16 MiB to 1 TiB a group"
            )
        return self


class Ext4(Section):
    """ext4 with its journal."""

    kind: Literal["ext4"]
    profile: Text | None = Field(None, description="Cost profile in models/filesystems; 'ext4' when absent.")
    size: Size = Field(8 << 30, description="Size of the device.")
    costs: dict[str, Duration] = Field({}, description="Step costs that replace the profile's, by name.")


class Tmpfs(Section):
    """tmpfs: the VFS alone, the floor under every filesystem."""

    kind: Literal["tmpfs"]
    profile: Text | None = Field(None, description="Cost profile in models/filesystems; 'tmpfs' when absent.")
    size: Size = Field(8 << 30, description="Size limit of the mount.")
    costs: dict[str, Duration] = Field({}, description="Step costs that replace the profile's, by name.")


class NoFilesystem(Section):
    """No filesystem: the workload takes locks only."""

    kind: Literal["none"]


Filesystem = Annotated[Xfs | Ext4 | Tmpfs | NoFilesystem, Field(discriminator="kind")]


class Tasks(Section):
    """What all workloads share."""

    tasks: Annotated[StrictInt, Field(ge=1, le=MAX_TASKS)] = Field(
        1, description="Number of tasks (processes)."
    )
    pin_to_cpu: Annotated[StrictInt, Field(ge=0, lt=MAX_CPUS)] | None = Field(
        None, description="Number of the one CPU all tasks are bound to; null leaves them to the scheduler."
    )


class FileTasks(Tasks):
    """What all workloads on files share."""

    directories: Literal["shared", "per-task"] = Field(
        "shared", description="All tasks in one directory, or a new directory for each."
    )


class Compile(FileTasks):
    """Each task compiles small sources one after the other: the temporary-file pattern of gcc."""

    kind: Literal["compile"]
    user_cpu: PositiveDuration = Field(description="CPU time of one compile outside the filesystem.")


class Create(FileTasks):
    """Each task creates empty files that stay."""

    kind: Literal["create"]
    user_cpu: Duration = Field(0.0, description="CPU time of one operation outside the kernel.")


class CreateUnlink(FileTasks):
    """Each task creates an empty file and unlinks it."""

    kind: Literal["create_unlink"]
    user_cpu: Duration = Field(0.0, description="CPU time of one operation outside the kernel.")


class TmpFile(FileTasks):
    """Each task creates a file, writes to it, closes and unlinks it."""

    kind: Literal["tmpfile"]
    user_cpu: Duration = Field(0.0, description="CPU time of one operation outside the kernel.")
    write: Size = Field(4096, description="Bytes written to each file.")


class Distribution(Section):
    """A duration that is drawn: '15 us', or {exponential: 15 us}, or {lognormal: 15 us, cv: 0.5}; each is the mean."""

    constant: Duration | None = Field(None, description="This duration every time.")
    exponential: Duration | None = Field(None, description="Exponentially distributed with this mean.")
    lognormal: Duration | None = Field(None, description="Log-normally distributed with this mean.")
    cv: Annotated[StrictFloat, Field(gt=0, le=10)] | None = Field(
        None, description="Standard deviation of lognormal, relative to its mean."
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
Draws = Annotated[Distribution, _word_as("constant", Distribution)]


class LockCycle(Tasks):
    """Each task thinks, takes the one lock, holds it, and releases it."""

    kind: Literal["lock_cycle"]
    lock: LockKind = Field("semaphore", description="Kind of the lock.")
    think: Draws = Field(description="Time between two lock cycles.")
    thinks: Literal["cpu", "sleep"] = Field("cpu", description="Whether thinking uses the CPU or sleeps.")
    hold: Draws = Field(description="CPU time the lock is held.")
    readers: Annotated[StrictFloat, Field(ge=0, le=1)] = Field(
        0.0, description="Share of acquisitions to read, 0-1."
    )


Workload = Annotated[Compile | Create | CreateUnlink | TmpFile | LockCycle, Field(discriminator="kind")]


class Variant(Section):
    """One of the designs compared: sections here are laid over those of the scenario."""

    name: Name
    title: Text | None = None
    machine: Annotated[dict[str, Any], _word_as("profile", MachineUse)] = Field(
        {}, description="A profile's name, or keys that differ."
    )
    kernel: Annotated[dict[str, Any], _word_as("profile", KernelUse)] = Field(
        {}, description="A profile's name, or keys that differ."
    )
    filesystem: dict[str, Any] = Field(
        {}, description="Keys that differ; another kind keeps what both kinds know."
    )
    locks: dict[str, Any] = Field({}, description="Lock kinds by role.")
    workload: dict[str, Any] = Field(
        {}, description="Keys that differ; another kind keeps what both kinds know."
    )

    def overrides(self) -> dict[str, Any]:
        """Return the sections this variant lays over the scenario."""
        return self.model_dump(include=set(SECTIONS), exclude_unset=True)


class Measure(Section):
    """How long to look, how often, and how sure to be."""

    duration: PositiveDuration = Field(1e9, description="Simulated time measured in each replication.")
    warmup: Warmup = Field(
        "auto", description="Simulated time before measuring; 'auto' finds its end from the data."
    )
    batches: Annotated[StrictInt, Field(ge=1, le=10_000)] = Field(
        20, description="Equal parts of the duration."
    )
    replications: Annotated[StrictInt, Field(ge=1, le=1000)] = Field(
        5, description="Runs with different streams."
    )
    precision: Percentage | None = Field(
        None,
        description="Wanted half-width of the interval, relative to the mean: adds replications until met.",
    )
    max_replications: Annotated[StrictInt, Field(ge=1, le=10_000)] = Field(
        50, description="Where to stop adding."
    )
    confidence: Annotated[Percentage, Field(lt=1)] = Field(0.95, description="Confidence of all intervals.")
    seed: Seed = Field(1, description="The seed every random stream is derived from.")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.precision is not None and self.max_replications < self.replications:
            raise refusal(
                f"max_replications {self.max_replications} is below replications {self.replications}"
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
        {}, description="What the dataset calls a variant -> the variant here; same names need no entry."
    )


class RowChoice(Section):
    """Which rows of the measured data a fit may use: all rows of a series, or those with this x and metric."""

    series: Text
    x: StrictFloat | None = None
    metric: Text | None = None


class Fit(Section):
    """One parameter that may be fitted, and the rows it may be fitted on."""

    parameter: Text = Field(description="Dotted key of the parameter, for example workload.user_cpu.")
    bounds: tuple[Any, Any] = Field(
        description="Lowest and highest value, written as the parameter itself is."
    )
    prior: Any = Field(None, description="Where the search starts; the scenario's own value when absent.")
    rows: Annotated[tuple[RowChoice, ...], Field(min_length=1)] = Field(
        description="Rows of the measured data with role calibrate."
    )


class Scenario(Section):
    """A question to simfs: a machine, a kernel, a filesystem, a workload, and the designs to compare."""

    simfs: Literal[1] = Field(description="Version of the scenario language.")
    name: Name = Field(description="Short name, as in `simfs run NAME`.")
    title: Text = Field(description="One line for lists and figures.")
    question: Annotated[str, Field(max_length=10_000)] = Field(
        "", description="What the scenario is to answer."
    )
    machine: Annotated[MachineUse, _word_as("profile", MachineUse)]
    kernel: Annotated[KernelUse, _word_as("profile", KernelUse)]
    filesystem: Filesystem = NoFilesystem(kind="none")
    locks: dict[str, LockKind] = Field(
        {}, description="Lock role -> lock kind, where it differs from the kernel's."
    )
    workload: Workload
    variants: tuple[Variant, ...] = Field((), description="The designs compared.")
    sweep: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = Field(
        {}, description="Dotted key -> the values it takes, for example workload.tasks: [1, 2, 4]."
    )
    measure: Measure = Measure()
    measured: Annotated[MeasuredUse, _word_as("dataset", MeasuredUse)] | None = None
    calibrate: tuple[Fit, ...] = Field((), description="What may be fitted, and on what.")


SECTIONS = ("machine", "kernel", "filesystem", "locks", "workload")
"""The sections that variants and sweeps may change."""

KINDS: dict[str, dict[str, type[Section]]] = {
    "filesystem": {"xfs": Xfs, "ext4": Ext4, "tmpfs": Tmpfs, "none": NoFilesystem},
    "workload": {
        "compile": Compile,
        "create": Create,
        "create_unlink": CreateUnlink,
        "tmpfile": TmpFile,
        "lock_cycle": LockCycle,
    },
}
"""The sections whose keys depend on their `kind`."""
