"""The section of a scenario that says what the tasks do."""

from typing import Annotated, Literal

from pydantic import Field, StrictBool

from simfs.scenario.sections.fio import Fio
from simfs.scenario.sections.kernel import CountOrDuration
from simfs.scenario.sections.lock_tasks import LockCycle, RangeLock
from simfs.scenario.sections.mix import Mix
from simfs.scenario.sections.section import Text
from simfs.scenario.sections.tasks import (
    Count,
    FileTasks,
    InitialFiles,
    Naming,
    Serving,
    Subdirectories,
    Tasks,
)
from simfs.scenario.sections.units import PositiveDuration, Size


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
    files_per_directory: Annotated[Count, Field(ge=1)] | None = Field(
        default=None,
        description="Files in a subdirectory before a thread goes on to the next (-N);"
        " without, it stays in each for 180 s.",
    )
    subdirectories: Subdirectories | None = Field(
        default=None,
        description="Directories below that of each thread, or that which all share (-D);"
        " without, files lie in it, and all threads lock the directory above before each file.",
    )
    initial_files: InitialFiles = 0


class Dbench(Tasks):
    """Each client plays the calls of dbench's load file without thinking, in directories of its own."""

    kind: Literal["dbench"]
    sync: StrictBool = Field(
        default=False,
        description="Files are open with O_SYNC (-s): each write ends with an fsync of its range.",
    )
    sync_directories: StrictBool = Field(
        default=False,
        description="Who unlinks or renames a file has its directory synced, by fdatasync (-S); creates are not.",
    )
    params: dict[str, CountOrDuration] = Field(
        default={}, description="Replace the workload profile's: durations with a unit, or counts."
    )

    @property
    def directories(self) -> str:
        """Clients share none."""
        return "per-task"


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
