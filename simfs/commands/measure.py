"""`simfs measure`: a profile of the machine it runs on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simfs.commands.common import Output, TextOrJson, print_json, progress, refuse_file
from simfs.commands.errors import complain, plain_errors, refusals_of_runs, refused, unwritable

if TYPE_CHECKING:
    from simfs.measuring.measured import Measured


def measure(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write the profile to this file.", show_default=False
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure for some 15 s instead of 90, for a first look.")
    ] = False,
    filesystem: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="With --at: time calls of xfs, ext4, btrfs or tmpfs, too."),
    ] = None,
    at: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="With --filesystem: a folder in which to make files."),
    ] = None,
    output: Output = TextOrJson.TEXT,
) -> None:
    """Measure this machine: cache lines, wake-ups, switches, idle states, memory. Linux only; needs no root.

    A scenario uses the profile as `machine: ./FILE`. Numbers that cannot be measured are those of the nearest shipped
    machine, and the profile says so. Standard error says which numbers are doubtful, and why.
    """
    with plain_errors():
        calls = _calls(filesystem, at)
        _refuse_profile(out)
        with progress() as report, refusals_of_runs():
            from simfs.measuring.measured import measure_machine

            name = out.stem if out else "this-machine"
            found = measure_machine(name, quick=quick, progress=report, calls=calls)
        if out is not None:
            try:
                found.write(out)
            except OSError as error:
                raise unwritable(out, error) from None
        for doubt in found.doubts:
            complain(f"doubtful: {doubt}")
        _print(found, out, output)


def _print(found: Measured, out: Path | None, output: TextOrJson) -> None:
    if output is TextOrJson.JSON:
        print_json(found)
        return
    from simfs.reports.measured import to_text

    typer.echo(to_text(found, out), nl=False)


def _calls(kind: str | None, at: Path | None) -> tuple[str, Path] | None:
    if kind is None and at is None:
        return None
    if kind is None or at is None:
        raise refused("--filesystem and --at: go together")
    from simfs.measuring.filesystem import refusal

    if (why := refusal(kind, at)) is not None:
        raise refused(why)
    return kind, at


def _refuse_profile(out: Path | None) -> None:
    """Refuse before 90 s are spent."""
    if out is None:
        return
    if out.suffix not in (".yaml", ".yml"):
        raise refused(f"--out {out}: must end in .yaml")
    refuse_file(out)
