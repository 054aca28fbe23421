"""`simfs timeline`: a picture of who runs, holds, waits and why, around the worst wait for a lock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simfs.commands.common import (
    Output,
    Quick,
    ScenarioName,
    Seed,
    Settings,
    TextOrJson,
    loaded,
    notes,
    overrides,
    patience,
    print_answer,
    refuse_file,
    refuse_unknown_variants,
    write_file,
)
from simfs.commands.errors import plain_errors, refusals_of_runs, refused
from simfs.commands.trace import refuse_late
from simfs.scenario.suggest import choices

if TYPE_CHECKING:
    from simfs.experiments.scene import Ask, Scene
    from simfs.reports.timeline.words import Told
    from simfs.scenario import Point, Scenario

ENDINGS = ("png", "svg", "pdf", "html")
MOST_VARIANTS = 6
"""More would leave each variant a handful of rows."""

Drawn = Annotated[
    Path,
    typer.Option("--out", "-o", metavar="FILE", help="Draw to this file: .png, .svg, .pdf or .html."),
]
Variants = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="The variant to use; the first by default; several share one time axis."
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Begin at this time, for example '2 ms'; around the worst wait by default.",
        show_default=False,
    ),
]
Length = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Length of the window; by default 2 ms, or more for a longer wait.",
        show_default=False,
    ),
]
OfLock = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A class of locks, xfs.AGI, or one lock, xfs.AGI#3; by default the longest wait's.",
    ),
]


def timeline(
    scenario: ScenarioName,
    out: Drawn,
    settings: Settings = None,
    variant: Variants = None,
    start: Start = None,
    length: Length = None,
    lock: OfLock = None,
    quick: Quick = False,
    seed: Seed = None,
    output: Output = TextOrJson.TEXT,
) -> None:
    """Draw what tasks and CPUs do around the worst wait for a lock: holders, waiters, hand-overs, the queue."""
    with plain_errors():
        ending = _ending(out)
        ask = _ask(start, length, lock)
        points = _points(scenario, overrides(settings, seed), variant or [], quick=quick)
        refuse_late((point for _, point in points), start, "--start")
        with refusals_of_runs():
            scenes = _scenes(points, ask)
        write_file(out, _drawn(scenes, ending))
        _tell(scenes, out, output)


def _ending(out: Path) -> str:
    ending = out.suffix.removeprefix(".").lower()
    if ending not in ENDINGS:
        raise refused(f"--out {out}: cannot be drawn as '{ending}'; {choices(ending, ENDINGS)}")
    refuse_file(out)
    return ending


def _ask(start: str | None, length: str | None, lock: str | None) -> Ask:
    from simfs.commands.trace import duration_of, length_of
    from simfs.experiments.scene import Ask

    begin = None if start is None else round(duration_of(start, "--start") * 1000)
    span = None if length is None else round(length_of(length) * 1000)
    return Ask(begin, span, lock)


def _points(name: str, given: list[str], variants: list[str], *, quick: bool) -> list[tuple[str, Point]]:
    from simfs.experiments.points import the_point
    from simfs.scenario.points import ONLY_VARIANT

    asked: Scenario = loaded(name, given, quick=quick)
    titles = {variant.name: variant.title or variant.name for variant in asked.variants}
    titles = titles or {ONLY_VARIANT: asked.title or asked.name}
    refuse_unknown_variants(variants, titles)
    if len(variants) > MOST_VARIANTS:
        raise refused(f"--variant: {len(variants)} are too many for one picture; at most {MOST_VARIANTS}")
    chosen = list(dict.fromkeys(variants)) or list(titles)[:1]
    return [(titles[variant], the_point(asked, variant)) for variant in chosen]


def _scenes(points: list[tuple[str, Point]], ask: Ask) -> list[Scene]:
    from simfs.experiments.scene import filmed

    running = f"{', '.join(point.id for _, point in points)}: {_to_simulate(ask)}"
    notes().print(running)
    with patience(running):
        return filmed(points, ask)


def _to_simulate(ask: Ask) -> str:
    """What has to run until the window is over."""
    from simfs.experiments.scene import LENGTH
    from simfs.reports.numbers import duration

    if ask.start is None:
        return "running"
    end = ask.start + (ask.length or LENGTH)
    return f"simulating {duration(end / 1000)}, from the beginning to the end of the window"


def _drawn(scenes: list[Scene], ending: str) -> bytes:
    if ending == "html":
        from simfs.reports.timeline.html import page

        return page(scenes).encode()
    from simfs.reports.figures import drawing
    from simfs.reports.timeline.figure import figure

    save = {"png": drawing.png, "svg": drawing.svg, "pdf": drawing.pdf}[ending]
    return save(figure(scenes))


def _tell(scenes: list[Scene], out: Path, output: TextOrJson) -> None:
    from simfs.reports.timeline.words import told

    answer = told(scenes, str(out))
    print_answer(answer, output, lambda: _say(answer))
    notes().print(f"drawn: {out}")


def _say(answer: Told) -> None:
    for scene in answer.scenes:
        typer.echo(f"{scene.title}: {scene.sentence}")
