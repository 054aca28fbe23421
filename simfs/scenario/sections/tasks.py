"""What all loads of a scenario share: the tasks, where they run and what they serve."""

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictInt, model_validator

from simfs.scenario.sections.draws import Arrivals
from simfs.scenario.sections.kernel import CountOrDuration
from simfs.scenario.sections.machine import MAX_CPUS
from simfs.scenario.sections.section import Section, refusal

MAX_TASKS = 10_000


class Tasks(Section):
    """What all workloads share."""

    tasks: Annotated[StrictInt, Field(ge=1, le=MAX_TASKS)] = Field(
        default=1, description="Number of processes."
    )
    pin_to_cpu: Annotated[StrictInt, Field(ge=0, lt=MAX_CPUS)] | None = Field(
        default=None,
        description="Number of the one CPU all tasks are bound to; null leaves them to the scheduler.",
    )
    nice: Annotated[StrictInt, Field(ge=-20, le=19)] = Field(
        default=0, description="Nice level of the tasks, from -20 (the most CPU time) to 19."
    )
    binding: Literal["none", "compact", "spread"] = Field(
        default="none",
        description="Whether each task, and all that it starts, is bound to a CPU of its own: 'compact' fills a"
        " socket before the next, 'spread' takes sockets in turn, hyper-threads last; 'none' leaves tasks to the"
        " scheduler.",
    )

    @model_validator(mode="after")
    def _bound_once(self) -> Self:
        if self.binding != "none" and self.pin_to_cpu is not None:
            raise refusal("tasks are bound to one CPU (pin_to_cpu) or each to its own (binding), not both")
        return self


Count = Annotated[StrictInt, Field(ge=0, le=10**8)]

InitialFiles = Annotated[
    Count,
    Field(
        description="Files in the directories before the run: it is a piece of a longer one, out of its middle."
    ),
]


class Serving(Section):
    """What workloads share whose tasks may serve requests."""

    arrivals: Arrivals | None = Field(
        default=None,
        description="Requests arrive by themselves and wait for a task that is free; null: each begins again at once.",
    )


class FileTasks(Tasks):
    """What all workloads on files share."""

    directories: Literal["shared", "per-task"] = Field(
        default="shared", description="All tasks in one directory, or a new directory for each."
    )
    synced: StrictBool = Field(
        default=False, description="Whether a sync comes between what is prepared and the first operation."
    )
    params: dict[str, CountOrDuration] = Field(
        default={}, description="Replace the workload profile's: durations with a unit, or counts."
    )


class Naming(FileTasks):
    """What workloads share that name files by numbers."""

    name_format: Annotated[str, Field(pattern=r"^([^{}/\x00]|\{(task|serial)(:0\d)?\})+$")] | None = Field(
        default=None,
        description="Names of new files, as the program prints them: 'r{task}.{serial}' is its 'r%d.%ld'; absent:"
        " 12 letters and digits, in mixes 14.",
    )

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        if self.name_format is None:
            return self
        if "{serial" not in self.name_format:
            raise refusal("name_format: names of one task differ only by their {serial}")
        if self.directories == "shared" and "{task" not in self.name_format:
            raise refusal("name_format: in one directory names of tasks differ only by their {task}")
        return self


Subdirectories = Annotated[
    StrictInt, Field(ge=1, le=100_000, description="Directories of each task, or of all if they share.")
]
