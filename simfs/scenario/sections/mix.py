"""The load `mix`: operations of a list on a set of files."""

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictFloat, StrictInt, model_validator

from simfs.scenario.sections.draws import Distribution, Draws
from simfs.scenario.sections.fio import RandomDistribution
from simfs.scenario.sections.section import Section, refusal, shorten
from simfs.scenario.sections.tasks import InitialFiles, Naming, Serving, Subdirectories
from simfs.scenario.sections.units import Percentage, PositiveDuration, Size
from simfs.scenario.sections.words import OneOf

BY_PAGE = ("read", "append", "overwrite", "truncate", "shorten", "reflink")
"""Operations that find the pages of a file in memory."""


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
        default=1, description="Files in a set before the first operation."
    )
    file_size: Size | None = Field(default=None, description="Bytes in each of them; empty when absent.")
    cached: StrictBool = Field(
        default=True,
        description="Whether the inodes of these files are in memory when the run begins. If not, as after a mount,"
        " the first operation on each brings its inode in.",
    )
    names: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = Field(
        default=None,
        description="So many names a task has in its directories together: the one that is free for the longest is"
        " taken again; absent: each name is used once.",
    )
    begin: PositiveDuration | None = Field(
        default=None,
        description="Tasks begin at any moment within this time; absent: all at once.",
    )
    walked: Percentage | Literal["spread"] | None = Field(
        default=None,
        description="So much of its directories each task has walked through when the run begins (op: walk), or"
        " 'spread': each task another part of them, so that they begin at different directories.",
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
        description="Somebody watches the tasks' directories (inotify): who opens, closes, reads or changes a file"
        " takes a reference of its directory.",
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
    ends: StrictBool = Field(
        default=False,
        description="A task ends when it has no file left, and the run with the last task (in the twentieth of the"
        " window in which that is); else a file is made where there is none.",
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

    @model_validator(mode="after")
    def _walks(self) -> Self:
        if self.walked is not None and all(use.op != "walk" for use in self.operations):
            raise refusal("walked is about walk, which is none of the operations")
        return self

    @model_validator(mode="after")
    def _goes_by_name_to_what_is_cold(self) -> Self:
        if self.cached:
            return self
        if self.files == 0:
            raise refusal("cached: false is about the files of the set, and files is 0")
        if self.unlinked or self.shared_open:
            raise refusal("cached: false is for files that nobody has open")
        for use in self.operations:
            if use.op in BY_PAGE:
                raise refusal(
                    f"{use.op} needs files in memory (cached: true); for reads from a device there is fio"
                )
        return self

    @property
    def _leaves_others_files_alone(self) -> bool:
        """Whether each task uses only the set's first file, which stays, and the one that it made last."""
        used = [use for use in self.operations if use.op != "create"]
        stays = all(use.op in ("read", "open") for use in used if use.on == "first")
        return self.files > 0 and stays and all(use.on in ("first", "made") for use in used)
