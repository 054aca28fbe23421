"""The scenario language: these models are the single source of its keys, types, limits and descriptions.

`simfs schema` prints them as JSON Schema; `simfs.scenario.reading.loader` turns their refusals into messages with
`file:line:column`. Durations are held in nanoseconds and sizes in bytes; percentages are held as fractions.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PrivateAttr,
    StrictFloat,
    StrictInt,
    model_validator,
)

from simfs.scenario.sections.device import DeviceUse
from simfs.scenario.sections.expectation_parser import parse
from simfs.scenario.sections.filesystem import Btrfs, Ext4, Filesystem, NoFilesystem, Tmpfs, Xfs
from simfs.scenario.sections.fio import Fio
from simfs.scenario.sections.kernel import OWN_LOCK, KernelUse, LockUse
from simfs.scenario.sections.lock_tasks import LockCycle, LockTasks, RangeLock
from simfs.scenario.sections.machine import MachineUse
from simfs.scenario.sections.mix import Mix
from simfs.scenario.sections.section import Section, Text, changes_of, refusal, word_as
from simfs.scenario.sections.units import (
    Duration,
    Percentage,
    PositiveDuration,
    checked_duration,
    format_duration,
)
from simfs.scenario.sections.words import Named
from simfs.scenario.sections.workload import (
    Compile,
    Create,
    CreateUnlink,
    Dbench,
    FsMark,
    PythonTasks,
    TmpFile,
    Workload,
)

VERSION = 1
"""The version of the scenario language this simfs reads."""

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"


def _name(value: object) -> object:
    if isinstance(value, str) and value and not re.match(_NAME, value):
        raise refusal(
            f"{value!r} is no name: it has letters, digits and . _ + - only, and begins with a letter or digit",
            re.sub(r"[^A-Za-z0-9._+-]+", "-", value).strip("-._+") or None,
        )
    return value


Name = Annotated[str, BeforeValidator(_name, json_schema_input_type=str), Field(pattern=_NAME, max_length=80)]
"""What scenarios, variants and tables of results are called; a title may say more."""

Seed = Annotated[StrictInt, Field(ge=0, lt=2**64)]


def _warmup(value: object) -> float | str:
    return "auto" if value == "auto" else checked_duration(value)


Warmup = Annotated[
    float | Literal["auto"],
    BeforeValidator(_warmup, json_schema_input_type=Literal["auto"] | Duration),
    PlainSerializer(lambda value: value if value == "auto" else format_duration(value), return_type=str),
]


class Variant(Section):
    """One of the designs compared: sections here are laid over those of the scenario."""

    name: Name
    title: Text | None = None
    machine: Annotated[dict[str, Any], changes_of(MachineUse)] = Field(
        default={}, description="A profile's name, or keys that differ."
    )
    kernel: Annotated[dict[str, Any], changes_of(KernelUse)] = Field(
        default={}, description="A profile's name, or keys that differ."
    )
    filesystem: dict[str, Any] = Field(
        default={}, description="Keys that differ; a new kind keeps what both know."
    )
    device: Annotated[dict[str, Any], changes_of(DeviceUse)] = Field(
        default={}, description="A profile's name, or keys that differ."
    )
    locks: dict[str, Any] = Field(default={}, description="Lock kinds by role.")
    workload: dict[str, Any] = Field(
        default={}, description="Keys that differ; a new kind keeps what both know."
    )


class TaskGroup(Section):
    """Some of the tasks: what is said here is laid over the workload."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)] = Field(
        description="Small letters, digits and _: part of the names of metrics."
    )
    title: Text | None = None
    workload: dict[str, Any] = Field(
        default={},
        description="Keys that differ, the number of its tasks among them; a new kind keeps what both know.",
    )


QUICK = 5
"""Replications of a first look: Student's t is 2.8 then, and 12.7 with two."""


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
    _whole_duration: float | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.precision is not None and self.max_replications < self.replications:
            raise refusal(
                f"max_replications {self.max_replications} is below {self.replications} replications"
            )
        return self

    def quick(self, given: Iterable[str] = ()) -> Self:
        """Return a version for a first look: a fifth of the time in `QUICK` replications, no wanted precision.

        Keys that were `given` by hand (`measure.duration`) stay as they are.
        """
        by_hand = {key.removeprefix("measure.") for key in given}
        if "measure" in by_hand:
            return self
        short: dict[str, Any] = {"duration": self.duration / 5, "replications": QUICK, "precision": None}
        if self.warmup != "auto":
            short["warmup"] = self.warmup / 5
        cut = self.model_copy(update={key: value for key, value in short.items() if key not in by_hand})
        if cut.duration < self.duration:
            cut._whole_duration = self.duration
        return cut

    @property
    def whole_duration(self) -> float | None:
        """The time (ns) of which this is a first look; None where it is whole."""
        return self._whole_duration


class Window(Section):
    """How long to look at some points; what is absent is that of `measure`."""

    duration: PositiveDuration | None = Field(default=None, description="As that of `measure`.")
    warmup: Warmup | None = Field(default=None, description="As that of `measure`.")

    def quick(self) -> Self:
        """Return a version for a first look: a fifth of the time."""
        short = {key: value / 5 for key, value in self if isinstance(value, float)}
        return self.model_copy(update=short)


class PointChange(Section):
    """What differs at some points: sections here are laid over those of the points."""

    at: dict[str, Any] = Field(default={}, description="Dotted key -> value: points where all of these hold.")
    variant: Name | None = Field(default=None, description="Points of this variant only.")
    machine: Annotated[dict[str, Any], changes_of(MachineUse)] = Field(
        default={}, description="Keys that differ."
    )
    kernel: Annotated[dict[str, Any], changes_of(KernelUse)] = Field(
        default={}, description="Keys that differ."
    )
    filesystem: dict[str, Any] = Field(default={}, description="Keys that differ.")
    device: Annotated[dict[str, Any], changes_of(DeviceUse)] = Field(
        default={}, description="Keys that differ."
    )
    locks: dict[str, Any] = Field(default={}, description="Lock kinds by role.")
    workload: dict[str, Any] = Field(default={}, description="Keys that differ.")
    measure: Window = Window()

    def quick(self) -> Self:
        """Return a version for a first look."""
        return self.model_copy(
            update={"measure": self.measure.quick()} if self.measure.model_fields_set else {}
        )


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


def _readable(text: str) -> str:
    try:
        parse(text)
    except (ValueError, ZeroDivisionError) as error:
        message, _, hint = str(error).partition("; did you mean '")
        raise refusal(message, hint.removesuffix("'?") or None) from None
    return text


Expect = Annotated[str, Field(max_length=500), AfterValidator(_readable)]


@dataclass(frozen=True)
class Written:
    """The file that a scenario was read from. It is no part of what a scenario is: no two of them differ in it."""

    text: str = field(default="", compare=False)


class Scenario(Section):
    """A question to simfs: a machine, a kernel, a filesystem, a workload, and the designs to compare."""

    simfs: Literal[1] = Field(description="Version of the scenario language.")
    extends: Text | None = Field(
        default=None,
        description="Another scenario, by name or as a file relative to this one; what is said here is laid over it.",
    )
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
        description="What the filesystem is stored on; null is loop-tmpfs, on which the filesystems were traced.",
    )
    locks: Annotated[dict[str, LockUse], Named(lambda words: words.roles, others=True)] = Field(
        default={},
        description="Lock role -> kind, where not the kernel's; name -> FILE.py:CLASS, a lock of one's own.",
    )
    workload: Workload
    groups: tuple[TaskGroup, ...] = Field(
        default=(), description="Groups of tasks, each with a load that differs; together they are all tasks."
    )
    variants: tuple[Variant, ...] = Field(default=(), description="The designs compared.")
    sweep: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = Field(
        default={}, description="Dotted key -> the values it takes, for example workload.tasks: [1, 2, 4]."
    )
    points: tuple[PointChange, ...] = Field(
        default=(),
        description="What differs at some points of the sweep, for example the files that are there.",
    )
    measure: Measure = Measure()
    measured: Annotated[MeasuredUse, word_as("dataset", MeasuredUse)] | None = None
    calibrate: tuple[Fit, ...] = Field(default=(), description="What may be fitted, and on what.")
    expect: tuple[Expect, ...] = Field(
        default=(),
        description="What must hold of the results: metrics at points compared, as 'throughput[xfs, 24] > 1000'.",
    )
    _written: Written = PrivateAttr(default=Written())

    @property
    def text(self) -> str:
        """The file as it was read; empty for a scenario that was not read from one."""
        return self._written.text

    def quick(self, given: Iterable[str] = ()) -> Self:
        """Return a version for a first look; what of `measure` was `given` by hand stays."""
        points = {"points": tuple(change.quick() for change in self.points)} if self.points else {}
        return self.model_copy(update={"measure": self.measure.quick(given), **points})

    @property
    def storage(self) -> DeviceUse | None:
        """The device, also where none is named."""
        stored = self.device is None and self.filesystem.kind in ("xfs", "btrfs", "ext4")
        return DeviceUse(profile="loop-tmpfs") if stored else self.device

    @property
    def tasks(self) -> int:
        """The number of all tasks."""
        if not self.groups:
            return self.workload.tasks
        return sum(int(group.workload.get("tasks", self.workload.tasks)) for group in self.groups)

    @property
    def own_locks(self) -> dict[str, str]:
        """Locks written by the user: name -> `FILE.py:CLASS`."""
        return {name: use for name, use in self.locks.items() if OWN_LOCK.fullmatch(use)}

    @property
    def used_own_locks(self) -> dict[str, str]:
        """Those of them that a role or the load has: only with these it needs the reference machine."""
        of_load = self.workload.roles if isinstance(self.workload, LockTasks) else {}
        used = {*self.locks.values(), *of_load.values()}
        return {name: reference for name, reference in self.own_locks.items() if name in used}

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
