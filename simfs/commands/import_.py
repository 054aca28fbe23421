"""`simfs import`: the output of a real tool as a data set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simfs.commands.common import emit, notes, refuse_file, write_file
from simfs.commands.errors import plain_errors, refused
from simfs.scenario.problems import Problem, ScenarioError

if TYPE_CHECKING:
    from simfs.interchange.dataset import About
    from simfs.interchange.reading import Reading

LARGEST = 256 << 20
"""Bytes of a file that are read at most."""


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The output of the tool; - is standard input.")],
    tasks: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of processes, if the file does not say it.")
    ] = None,
    operations: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Operations of the whole run; gives waits per operation."),
    ] = None,
    variant: Annotated[
        str | None, typer.Option(metavar="NAME", help="The variant of a scenario that was measured.")
    ] = None,
    machine: Annotated[str, typer.Option(metavar="TEXT", help="The machine that was measured.")] = "not said",
    kernel: Annotated[str, typer.Option(metavar="TEXT", help="The kernel of that machine.")] = "not said",
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the data set; the name of the file by default."),
    ] = None,
    of_format: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="TOOL", help="The tool whose output it is, if that is not recognised."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the data set to this file.")
    ] = None,
) -> None:
    """Make a data set from the output of a real tool, for `simfs compare` and for `measured:` of a scenario.

    It reads perf lock contention (tables, -x, -t, -o), perf script, /proc/lock_stat, klockstat, offcputime, bpftrace
    histograms, fio JSON, fs_mark, dbench, will-it-scale, FxMark and LKP tables; and tables of your own in CSV: a column
    for the number of tasks, and one for the value, or one for each series.

    Some outputs give a part of a scenario instead: xfs_info, dumpe2fs -h and btrfs filesystem usage give
    `filesystem:`, lscpu gives `machine:`, and job files of fio give `workload:`.
    """
    with plain_errors():
        from simfs.interchange.dataset import About

        refuse_file(out)
        shown = "standard input" if file == "-" else Path(file).name
        about = About(name or Path(shown).stem, shown, tasks, operations, variant, machine, kernel)
        _convert(file, of_format, about, out)


def _convert(file: str, of_format: str | None, about: About, out: Path | None) -> None:
    from simfs.interchange.dataset import notes as notes_of
    from simfs.interchange.dataset import to_yaml
    from simfs.interchange.reading import UnreadableError
    from simfs.interchange.symbols import sort

    reading = read_file(file, of_format)
    try:
        text = to_yaml(reading, about)
    except UnreadableError as error:
        raise refused(f"{file}: {error}") from None
    _write(text, out)
    for line in notes_of(reading, sort(reading.waits)):
        notes().print(line)
    if out is not None and not reading.section:
        notes().print(
            f"written to {out}; a scenario names it, with a variant for each series: measured: {out.name}"
        )


def _write(text: str, out: Path | None) -> None:
    if out is None:
        emit(text)
        return
    write_file(out, text.encode())


def read_file(file: str, name: str | None = None) -> Reading:
    """Read the output of a tool from a file or standard input; raises ScenarioError for what cannot be read."""
    from simfs.interchange import FORMATS, read
    from simfs.interchange.reading import BadCellsError, UnreadableError
    from simfs.scenario.suggest import choices

    if name is not None and name not in FORMATS:
        raise refused(f"--format: there is no format '{name}'; {choices(name, FORMATS)}")
    try:
        raw = sys.stdin.buffer.read(LARGEST) if file == "-" else _bytes(Path(file))
    except (OSError, ValueError) as error:
        raise refused(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        return read(raw.decode("utf-8", "replace"), name)
    except BadCellsError as error:
        at = "standard input" if file == "-" else file
        problems = (Problem(f"{at}:{c.line}:{c.column}", c.message, c.suggestion) for c in error.cells)
        raise ScenarioError(problems) from None
    except UnreadableError as error:
        raise refused(f"{file}: {error}") from None


def _bytes(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(LARGEST)
