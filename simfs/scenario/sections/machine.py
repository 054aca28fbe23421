"""The section of a scenario that names a machine profile and says what differs from it."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, StrictFloat, StrictInt, Tag

from simfs.scenario.sections.section import Section, Text
from simfs.scenario.sections.units import Duration, Size

MAX_CPUS = 1024

Cpus = Annotated[StrictInt, Field(ge=1, le=MAX_CPUS)]
CpusOrTasks = Annotated[
    Annotated[Cpus, Tag("number")] | Annotated[Literal["tasks"], Tag("word")],
    Discriminator(lambda value: "word" if value == "tasks" else "number"),
]


class CostsUse(Section):
    """Costs of the hardware and of switching that replace a profile's; `docs/models.md` says what each is."""

    line_hit: Duration | None = Field(default=None, description="An access that needs no transfer.")
    line_atomic: Duration | None = Field(
        default=None, description="An atomic read-modify-write that needs no transfer."
    )
    line_smt: Duration | None = Field(default=None, description="A line from the other thread of a core.")
    line_llc: Duration | None = Field(
        default=None, description="A line from under the same last-level cache."
    )
    line_socket: Duration | None = Field(default=None, description="A line from elsewhere in the socket.")
    line_remote: Duration | None = Field(default=None, description="A line from another socket.")
    line_overlap: Annotated[StrictFloat, Field(ge=1, le=1000)] | None = Field(
        default=None, description="How many neighbouring lines a CPU fetches at once."
    )
    line_migrates: Literal[0, 1] | None = Field(
        default=None,
        description="1 if a load takes a line that another CPU of the cache has modified, 0 if both have copies then.",
    )
    cpu_relax: Duration | None = Field(default=None, description="A round of a polling loop.")
    context_switch: Duration | None = Field(
        default=None, description="A context switch from one process to another."
    )
    switch_mm: Duration | None = Field(
        default=None,
        description="What of it is left out between threads of one process, to kernel threads and to idle.",
    )
    wakeup: Duration | None = Field(default=None, description="What a wake-up costs the waker.")
    wakeup_queued: Duration | None = Field(
        default=None, description="What of it the waker of an idle CPU pays, which does the rest."
    )
    instruction: Duration | None = Field(
        default=None, description="An instruction of the code of contended locks."
    )
    ipi_send: Duration | None = Field(
        default=None, description="What the waker pays besides to interrupt an idle CPU."
    )
    ipi_deliver: Duration | None = Field(default=None, description="Until that CPU notices.")
    resched_send: Duration | None = Field(
        default=None,
        description="What the waker pays besides to interrupt a busy CPU, which it wants for another task.",
    )
    resched_deliver: Duration | None = Field(default=None, description="Until that CPU notices.")
    resched_serve: Duration | None = Field(default=None, description="What serving the interrupt takes it.")
    step_cv: Annotated[StrictFloat, Field(ge=0, le=10)] | None = Field(
        default=None,
        description="How much the time of the same kernel code varies: standard deviation over mean.",
    )
    smt_speed: Annotated[StrictFloat, Field(gt=0, le=1)] | None = Field(
        default=None,
        description="How fast a program runs while the other CPU of its core executes too, relative to alone.",
    )


class CachesUse(Section):
    """Numbers of the caches that replace a profile's; `docs/models.md` says what each is."""

    core: Size | None = Field(default=None, description="Size of a core's own cache (L2).")
    llc: Size | None = Field(default=None, description="Size of a last-level cache.")
    llc_latency: Duration | None = Field(default=None, description="A load from the last-level cache.")
    memory_latency: Duration | None = Field(default=None, description="A load from memory.")
    memory_bandwidth: Annotated[StrictFloat, Field(ge=1e6, le=1e15)] | None = Field(
        default=None, description="What one core reads from memory in order, in bytes a second."
    )
    code_lines: Annotated[StrictFloat, Field(ge=0, le=10_000)] | None = Field(
        default=None,
        description="Lines that the first microsecond of kernel code touches; 0: it is always in the caches.",
    )
    front_end: Size | None = Field(
        default=None, description="Code whose branches a core's front end knows; 0: it forgets nothing."
    )
    front_end_latency: Duration | None = Field(
        default=None,
        description="What a line of a call takes more whose branches the front end does not know.",
    )
    front_end_stall: Duration | None = Field(
        default=None, description="The same besides, if such a line comes from beyond the core's own cache."
    )
    tlb: Size | None = Field(
        default=None, description="Memory whose translations a core's TLB holds; 0: it forgets nothing."
    )
    tlb_walk: Duration | None = Field(
        default=None,
        description="What a walk of the page tables takes that finds its entries in the core's own cache.",
    )


class MachineUse(Section):
    """A machine profile and what differs from it here. The profile's name alone will do."""

    profile: Text = Field(description="Name of a profile in models/machines, or path of a file like one.")
    cpus: CpusOrTasks | None = Field(
        default=None,
        description="Number of CPUs (hardware threads); `tasks`: as many as there are tasks, all others are offline.",
    )
    cpus_per_core: Cpus | None = Field(default=None, description="Hardware threads a core.")
    cpus_per_llc: Cpus | None = Field(default=None, description="CPUs that share a last-level cache.")
    cpus_per_socket: Cpus | None = Field(default=None, description="CPUs a socket.")
    speed: Annotated[StrictFloat, Field(gt=0, le=1000)] | None = Field(
        default=None, description="Factor on all program times."
    )
    clock: Annotated[StrictFloat, Field(gt=0, le=10)] | None = Field(
        default=None,
        description="Clock of the cores over that at which the profile was measured; lines and memory keep theirs.",
    )
    costs: CostsUse = Field(default=CostsUse(), description="Costs that replace the profile's.")
    memory: Size | None = Field(
        default=None, description="Size of the memory, a fifth of which can be dirty pages of files."
    )
    caches: CachesUse = Field(
        default=CachesUse(), description="Caches that replace the profile's, which has to have some."
    )
