"""Load the cost models of `models/`: machines, kernels, filesystems, devices and workloads.

A model is a YAML file of sourced numbers (`Quantity`). `spec()` of each gives the plain numbers, times in
nanoseconds, that the engine takes in the section of the same name of a RunSpec (docs/seams.md).
docs/models.md tells where the numbers come from. Loading raises `ValueError` for an unknown name, and `ScenarioError`
for a file with something wrong in it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, StrictFloat, ValidationError

from simfs.scenario.device import Device
from simfs.scenario.document import Document
from simfs.scenario.paths import MODELS, Kind, find, names
from simfs.scenario.problems import ScenarioError
from simfs.scenario.quantity import (
    Bytes,
    BytesPerSecond,
    Clock,
    Cpus,
    Evidence,
    Lines,
    Overlap,
    Quantity,
    SharedSpeed,
    Speed,
    Switch,
    Time,
    Variation,
    Watts,
)
from simfs.scenario.refusals import problem_at, problems_of
from simfs.scenario.remembered import remembered
from simfs.scenario.section import Section, shorten
from simfs.scenario.suggest import nearest
from simfs.scenario.timeline import (
    Choice,
    Kernel,
    Profile,
    Refusal,
    Timeline,
    linux,
    parse_version,
    rule_refusals,
)

TIMELINE = "timeline"
"""The file of `models/kernels` that is no kernel."""

_FOOTPRINTS = {"ext4": ("ext4_", "jbd2_")}
"""Objects whose footprints belong to a filesystem, where they are not just named after it."""


class Topology(Section):
    """How many logical CPUs there are, and how many share a core, a last-level cache and a socket."""

    cpus: Cpus
    cpus_per_core: Cpus
    cpus_per_llc: Cpus
    cpus_per_socket: Cpus


class MachineCosts(Section):
    """What the hardware charges: line transfers by distance, switches, wake-ups and interrupts.

    `line_migrates` is 1 where a load takes a line that another CPU under the same last-level cache has modified, and 0
    where both have copies then, or where that is not known.

    `speed` multiplies the processor time of programs: 1.0 is the machine on which the steps were traced. `line_hit` is
    an access that needs no transfer, `line_atomic` an atomic read-modify-write that needs none, the same where that is
    not known. `wakeup_queued` is what of `wakeup` the waker of an idle CPU pays, all of it where that is not known; the
    idle CPU does the rest. `resched_send`, `resched_deliver` and `resched_serve` are the same for the interrupt of a
    busy CPU that is wanted for a woken task; where the first two are not known, they are those of an idle CPU.
    `instruction` is what an instruction of lock code takes. `step_cv` is how much the time of the same kernel code
    varies, standard deviation over mean. `smt_speed` is how fast a program runs while the other CPU of its core
    executes too, relative to alone.
    """

    line_hit: Time
    line_atomic: Time | None = None
    line_smt: Time
    line_llc: Time
    line_socket: Time
    line_remote: Time
    line_overlap: Overlap
    line_migrates: Switch | None = None
    cpu_relax: Time
    context_switch: Time
    wakeup: Time
    wakeup_queued: Time | None = None
    instruction: Time
    ipi_send: Time
    ipi_deliver: Time
    resched_send: Time | None = None
    resched_deliver: Time | None = None
    resched_serve: Time | None = None
    step_cv: Variation
    smt_speed: SharedSpeed
    speed: Speed


class Caches(Section):
    """Caches, and what kernel code needs of them.

    `core` and `llc` are the sizes of a core's own cache and of a last-level cache, the latencies those of a load from
    the latter and from memory, and `memory_bandwidth` what one core reads from memory in order. `code_lines` is how
    many lines the first microsecond of kernel code touches, by the time of the machine on which the steps were traced;
    the first n microseconds touch root of n times as many.

    `front_end` is the code whose branches a core's front end knows. A line of a call whose branches it does not know
    takes `front_end_latency` more, and `front_end_stall` besides if it comes from beyond the core's own cache.

    `tlb` is the memory whose translations a core holds, entries times the size of a page. A page of a call whose
    translation is missing takes a walk, `tlb_walk`, and one line more, of the page tables.
    """

    core: Bytes
    llc: Bytes
    llc_latency: Time
    memory_latency: Time
    memory_bandwidth: BytesPerSecond
    code_lines: Lines
    front_end: Bytes | None = None
    front_end_latency: Time | None = None
    front_end_stall: Time | None = None
    tlb: Bytes | None = None
    tlb_walk: Time | None = None

    @property
    def quantities(self) -> dict[str, Quantity]:
        """All of them, as a RunSpec names them in `machine.caches`."""
        found = {
            "core_bytes": self.core,
            "llc_bytes": self.llc,
            "llc_ns": self.llc_latency,
            "memory_ns": self.memory_latency,
            "memory_bandwidth": self.memory_bandwidth,
            "code_lines": self.code_lines,
            "front_end_bytes": self.front_end,
            "front_end_ns": self.front_end_latency,
            "front_end_stall_ns": self.front_end_stall,
            "tlb_bytes": self.tlb,
            "tlb_walk_ns": self.tlb_walk,
        }
        return {name: quantity for name, quantity in found.items() if quantity is not None}


class IdleState(Section):
    """An idle state: the time to leave it, the stay from which it is chosen, and the power of a CPU in it.

    `core_exit` is the time to leave it while another CPU of the socket is awake, so that the package is, too.
    """

    name: str
    exit: Time
    core_exit: Time | None = None
    residency: Time
    watts: Watts


class EndToEnd(Section):
    """A figure measured as a whole, and the costs that must add up to it.

    `terms` are names of `costs`, of `micro`, or ``idle.<state>``. The sum is exact, so nothing
    is counted twice or lost.
    """

    what: str
    measured: Time
    terms: tuple[str, ...]


T = TypeVar("T")

Class = Literal["atomic", "unlock", "indirect", "user", "mask", "return", "fetch", "overlap"]
"""Instructions that cost a machine more than others do: locked ones, releases of spinlocks, jumps through a register,
accesses to the user's memory, masks of interrupts; and what others cost besides: `return`, returns by a thunk, `fetch`,
lines of code that the core's L1 does not have, `overlap`, bytes that a string move copies less than a line away."""


class ActiveCores(Section):
    """The clock of a socket's cores while at most `cores` of them are active."""

    cores: Cpus
    clock: Clock


class Machine(Section):
    """A machine: what it is made of and what each act on it costs."""

    name: str
    title: str
    topology: Topology
    costs: MachineCosts
    caches: Caches | None = None
    """None if code and data of the kernel are always in the caches."""
    memory: Bytes | None = None
    """None if it never fills up with dirty pages."""
    micro: dict[str, Quantity] = Field(default_factory=dict)
    idle_states: Annotated[tuple[IdleState, ...], Field(min_length=1)]
    """In any order: a RunSpec has those that pay soonest first, as cpuidle drivers list them."""
    watts_active: Watts
    watts_spin: Watts
    clocks: tuple[ActiveCores, ...] = ()
    """By active cores of a socket, fewest first; beyond the last the clock stays. Costs are those of the first."""
    clock: Speed | None = None
    """The clock of its cores over that at which its costs were measured: 1, and its range. None: it is known."""
    steps: Literal["timed", "counted"] = "timed"
    """Whether steps whose instructions were counted take these, each `instruction` long, or their traced times."""
    classes: dict[Class | Literal["plain"], Quantity] = Field(default_factory=dict)
    """What an instruction of each class takes in counted steps, and one of none (`plain`). Without them all of a step's
    instructions take `instruction`."""
    rules: dict[str, Choice] = Field(default={})
    """What kernels do differently here, whichever they are."""
    end_to_end: tuple[EndToEnd, ...] = ()

    def spec(self, cpus: int | None = None) -> dict[str, Any]:
        """Return the `machine` section of a RunSpec, cut down or grown to `cpus` CPUs if given."""
        total = round(self.topology.cpus.plain) if cpus is None else cpus
        shares = {name: min(total, round(q.plain)) for name, q in _quantities(self.topology).items()}
        return {
            **shares,
            "cpus": total,
            "costs": {name: quantity.plain for name, quantity in _quantities(self.costs).items()},
            "caches": self.caches and {name: q.plain for name, q in self.caches.quantities.items()},
            "memory_bytes": self.memory and round(self.memory.plain),
            "idle_states": [
                {"name": s.name, "exit_ns": s.exit.ns, "residency_ns": s.residency.ns, "watts": s.watts.plain}
                | ({"core_exit_ns": s.core_exit.ns} if s.core_exit else {})
                for s in sorted(self.idle_states, key=lambda state: state.residency.ns)
            ],
            "watts_active": self.watts_active.plain,
            "watts_spin": self.watts_spin.plain,
        }

    def sum_of(self, terms: tuple[str, ...]) -> float:
        """Return the sum of the named costs in ns; `KeyError` for a name that this machine has not."""
        idle = {f"idle.{state.name}": state.exit for state in self.idle_states}
        known = _quantities(self.costs) | self.micro | idle
        return sum(known[term].ns for term in terms)


class Filesystem(Section):
    """A filesystem's costs, named ``<group>.<step>`` after the traces they are from (`models/traces`).

    The value is the processor time since the previous step of the group: the work that ends at this step.
    """

    name: str
    title: str
    constants: dict[str, Quantity] = Field(default_factory=dict)
    costs: dict[str, Quantity]

    def spec(self) -> dict[str, float]:
        """Return `filesystem.costs` of a RunSpec: ns, or the plain count of a constant."""
        return {name: quantity.plain for name, quantity in (self.constants | self.costs).items()}


ClassCounts = dict[Class | Literal["instructions"], Annotated[StrictFloat, Field(ge=0)]]
"""Of a step; `instructions` are all that it had where its classes were counted."""


class Classes(Section):
    """How many instructions of each class steps have, by step; `spread` is the range of all, relative to the number."""

    source: Annotated[str, Field(min_length=8)]
    evidence: Evidence
    spread: Annotated[StrictFloat, Field(ge=0, le=1)]
    steps: dict[str, ClassCounts]


class Counted(Section):
    """How many instructions steps of a filesystem are, by the names of their costs and constants."""

    name: str
    title: str
    steps: dict[str, Quantity]
    classes: Classes | None = None

    @property
    def of_classes(self) -> dict[str, ClassCounts]:
        """How many instructions of each class a step has, none where they were not classed."""
        return self.classes.steps if self.classes else {}


class Workload(Section):
    """A workload's parameters."""

    name: str
    title: str
    params: dict[str, Quantity]

    def spec(self) -> dict[str, float]:
        """Return `workload.params` of a RunSpec: times in ns, all else in its own unit."""
        return {name: quantity.plain for name, quantity in self.params.items()}


@remembered(MODELS / "machines")
def load_machine(name: str | Path) -> Machine:
    """Load a machine by name (``server-24``) or by path."""
    return _load("machines", str(name), Machine, lambda machine: rule_refusals(machine.rules))


@cache
def load_timeline() -> Timeline:
    """Load what Linux does since which version."""
    return _load("kernels", TIMELINE, Timeline)


@remembered(MODELS / "kernels")
def load_kernel(name: str | Path) -> Kernel:
    """Load a kernel: any release of the timeline (``linux-5.11``), or a profile by name or path."""
    timeline, text = load_timeline(), str(name)
    if text == TIMELINE:
        raise _unknown("kernels", text)
    if find(text, MODELS / "kernels") is None and (version := _version_in(text)) in timeline.versions():
        return timeline.kernel(version)
    profile = _load("kernels", text, Profile, timeline.refusals)
    return timeline.of(profile)


@remembered(MODELS / "filesystems")
def load_filesystem(kind: str | Path) -> Filesystem:
    """Load a filesystem and its footprints by kind (``xfs``) or path."""
    own = _load("filesystems", str(kind), Filesystem)
    prefixes = _FOOTPRINTS.get(own.name, (f"{own.name}_",))
    return own.model_copy(update={"constants": own.constants | _footprints(prefixes)})


@remembered(MODELS / "filesystems")
def load_vfs(kind: str | Path) -> Filesystem:
    """Load the VFS around the steps of one filesystem kind: `vfs.costs` of a RunSpec.

    tmpfs has only ``user.loop`` and footprints here, because its own groups hold the whole operation.
    """
    around = load_filesystem(kind).name
    common = _load("filesystems", "vfs", Filesystem)
    shared = ("user.",) if around == "tmpfs" else ("user.", "writeback.", "memory.")
    own = {
        name.removeprefix(f"{around}."): quantity
        for name, quantity in common.costs.items()
        if name.startswith((f"{around}.", *shared))
    }
    return common.model_copy(update={"costs": own, "constants": _footprints(("vfs_",))})


@remembered(MODELS / "filesystems")
def load_instructions(kind: str | Path) -> dict[str, Quantity]:
    """Load the instructions of a filesystem's steps (`filesystem.costs` of a RunSpec) that were counted."""
    return _load("instructions", load_filesystem(kind).name, Counted).steps


@remembered(MODELS / "filesystems")
def load_vfs_instructions(kind: str | Path) -> dict[str, Quantity]:
    """Load the instructions of the VFS's steps around a filesystem's (`vfs.costs`) that were counted."""
    return _around(load_filesystem(kind).name, _load("instructions", "vfs", Counted).steps)


@remembered(MODELS / "filesystems")
def load_classes(kind: str | Path) -> dict[str, ClassCounts]:
    """Load how many instructions of each class the steps of a filesystem have, and the VFS's around them."""
    name = load_filesystem(kind).name
    own, vfs = (_load("instructions", table, Counted).of_classes for table in (name, "vfs"))
    return own | _around(name, vfs)


def _around(filesystem: str, steps: Mapping[str, T]) -> dict[str, T]:
    """Return the VFS's steps around those of a filesystem, by the names that its programs have for them."""
    shared = {name: step for name, step in steps.items() if name.startswith("user.")}
    prefix = f"{filesystem}."
    return shared | {
        name.removeprefix(prefix): step for name, step in steps.items() if name.startswith(prefix)
    }


@cache
def load_device_instructions(name: str | Path) -> dict[str, Quantity]:
    """Load the instructions of a device's code that were counted, none for most devices."""
    return _device_table(name).steps


@cache
def load_device_classes(name: str | Path) -> dict[str, ClassCounts]:
    """Load how many instructions of each class a device's code has."""
    return _device_table(name).of_classes


def _device_table(name: str | Path) -> Counted:
    device = load_device(name).name
    if find(device, MODELS / "instructions") is None:
        return Counted(name=device, title="", steps={})
    return _load("instructions", device, Counted)


@cache
def load_footprints() -> Filesystem:
    """Load the cache lines that each object's writer leaves dirty: ``<object>.<part>``, in lines."""
    return _load("filesystems", "footprints", Filesystem)


@remembered(MODELS / "devices")
def load_device(name: str | Path) -> Device:
    """Load a block device by name (``nvme``) or by path."""
    return _load("devices", str(name), Device)


@remembered(MODELS / "workloads")
def load_workload(kind: str | Path) -> Workload:
    """Load a workload by kind (``compile``) or by path."""
    return _load("workloads", str(kind), Workload)


def available(what: Kind) -> list[str]:
    """Return the names of all models of one kind: kernels by age, the rest sorted."""
    own = [name for name in names(MODELS / what) if name not in ("vfs", "footprints", TIMELINE)]
    releases = [linux(version) for version in load_timeline().versions()] if what == "kernels" else []
    return [*releases, *(name for name in own if name not in releases)]


M = TypeVar("M", bound=Section)


def _load(
    what: Kind, name: str, model: type[M], refusals: Callable[[M], Iterable[Refusal]] = lambda _: ()
) -> M:
    """Read a model; `ValueError` for an unknown name, `ScenarioError` for what is wrong with the file.

    `refusals` tells what is wrong with a model that has the right form.
    """
    path = find(name, MODELS / what)
    if path is None:
        raise _unknown(what, name)
    document = Document.read(path)
    try:
        loaded = model.model_validate(document.data)
    except ValidationError as error:
        raise ScenarioError(problems_of(error, document)) from None
    if problems := [problem_at(document, *refused) for refused in refusals(loaded)]:
        raise ScenarioError(problems)
    return loaded


def _unknown(what: Kind, name: str) -> ValueError:
    known = available(what)
    version = _version_like(name) if what == "kernels" else ()
    near = linux(load_timeline().nearest(version)) if version else nearest(name, known)
    listed = f"{known[0]} to {known[-1]}" if what == "kernels" else ", ".join(known)
    hint = f"did you mean '{near}'?" if near else f"there are {listed}"
    if near and version:
        hint = f"there are {listed}; {hint}"
    return ValueError(f"unknown {what.removesuffix('s')} '{shorten(name)}'; {hint}")


def _version_in(name: str) -> tuple[int, ...]:
    try:
        return parse_version(name.removeprefix("linux-")) if name.startswith("linux-") else ()
    except ValueError:
        return ()


def _version_like(name: str) -> tuple[int, ...]:
    """The version that somebody meant who wrote `6.12`, `v6.12` or `linux 6.12-rc3`."""
    found = re.search(r"\d+(\.\d+)+", name)
    return _version_in(f"linux-{found[0]}") if found else ()


def _footprints(prefixes: tuple[str, ...]) -> dict[str, Quantity]:
    return {name: q for name, q in load_footprints().costs.items() if name.startswith(prefixes)}


def _quantities(model: Section) -> dict[str, Quantity]:
    return {name: value for name, value in model if isinstance(value, Quantity)}
