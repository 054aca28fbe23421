"""Models of machines: what a machine is made of, and what each act on it costs."""

from typing import Annotated, Any, Literal

from pydantic import Field

from simfs.scenario.models.tables import Class
from simfs.scenario.models.timeline import Choice
from simfs.scenario.sections.quantity import (
    Bytes,
    BytesPerSecond,
    Clock,
    Cpus,
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
from simfs.scenario.sections.section import Section


def quantities(section: Section) -> dict[str, Quantity]:
    """Return the numbers of a section that it has, by name."""
    return {name: value for name, value in section if isinstance(value, Quantity)}


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
    executes too, relative to alone. `context_switch` is one between two processes, of which `switch_mm` is left out
    where no other page tables are loaded.
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
    switch_mm: Time | None = None
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


IN_RUN_SPEC = {
    "core": "core_bytes",
    "llc": "llc_bytes",
    "llc_latency": "llc_ns",
    "memory_latency": "memory_ns",
    "memory_bandwidth": "memory_bandwidth",
    "code_lines": "code_lines",
    "front_end": "front_end_bytes",
    "front_end_latency": "front_end_ns",
    "front_end_stall": "front_end_stall_ns",
    "tlb": "tlb_bytes",
    "tlb_walk": "tlb_walk_ns",
}
"""What a RunSpec calls the numbers of `Caches` in `machine.caches`."""


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
        return {IN_RUN_SPEC[name]: quantity for name, quantity in quantities(self).items()}


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

    `terms` are names of `costs`, of `micro`, or ``idle.<state>``; those behind a ``-`` are subtracted. The sum is
    exact, so nothing is counted twice or lost.
    """

    what: str
    measured: Time
    terms: tuple[str, ...]


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
        shares = {name: min(total, round(q.plain)) for name, q in quantities(self.topology).items()}
        return {
            **shares,
            "cpus": total,
            "costs": {name: quantity.plain for name, quantity in quantities(self.costs).items()},
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
        known = quantities(self.costs) | self.micro | idle
        return sum(known[term.removeprefix("-")].ns * (-1 if term.startswith("-") else 1) for term in terms)
