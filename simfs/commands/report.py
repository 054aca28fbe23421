"""`simfs report`: one page for a browser of what runs, sweeps and what-ifs have written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simfs.commands.common import Output, TextOrJson, notes, patience, print_answer, refuse_file, write_file
from simfs.commands.errors import plain_errors, refusals_of_runs, refused

if TYPE_CHECKING:
    from simfs.experiments.briefing import Briefing


ENDINGS = (".html", ".htm")


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER",
            help="The folder of a run or sweep; beside it those of whatif and sensitivity.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Write the page to this file.")
    ] = Path("report.html"),
    variant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Draw the time line of this variant; by default of the one that waits longest; may be repeated.",
            show_default=False,
        ),
    ] = None,
    timeline: Annotated[
        bool,
        typer.Option(
            "--timeline/--no-timeline",
            help="Run the scenario once more, for a time line of the worst wait and for chains of waits.",
        ),
    ] = True,
    output: Output = TextOrJson.TEXT,
) -> None:
    """Write one page with the results of a run or sweep: answer, curves, locks, model card. It needs no network."""
    with plain_errors():
        from simfs.experiments.briefing import Written, read

        refuse_page(out, "--out")
        with refusals_of_runs():
            briefing = read(folders)
            write_page(briefing, out, variant or [], timeline=timeline)
        answer = briefing.result.answer or briefing.scenario.title
        written = Written(scenario=briefing.scenario.name, answer=answer, page=str(out))
        print_answer(written, output, lambda: typer.echo(answer))


def refuse_page(out: Path, option: str) -> None:
    """Refuse a file that no page can be written to, before anything is run for it."""
    if out.suffix.lower() not in ENDINGS:
        raise refused(f"{option} {out}: is no name of a page; did you mean '{out.with_suffix('.html')}'?")
    refuse_file(out, option)


def write_page(briefing: Briefing, out: Path, variants: list[str], *, timeline: bool = True) -> None:
    """Write the report; with `timeline` run what it shows once more. Raises ValueError for an unknown variant."""
    from simfs.experiments.briefing import with_scenes
    from simfs.reports.web.page import page

    if timeline:
        running = f"{briefing.result.name}: running once more for the time line"
        notes().print(running)
        with patience(running):
            briefing = with_scenes(briefing, variants)
    text = page(briefing).encode()
    write_file(out, text)
    notes().print(f"written to {out}, {len(text) / 1e6:.2f} MB")
