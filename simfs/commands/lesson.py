"""`simfs lesson`: questions with numbers drawn from a seed, answers by simulation, scores of guesses."""

from __future__ import annotations

import json
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simfs.commands.common import Output, TextOrJson, emit, notes, refuse_folder, write_file
from simfs.commands.errors import plain_errors, refused
from simfs.scenario.problems import ScenarioError

if TYPE_CHECKING:
    from simfs.lessons import Asked, Marks

WIDTH = 100


def _lessons(begun: str) -> list[str]:
    from simfs.lessons import LESSONS

    return [name for name in LESSONS if name.startswith(begun)]


Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME",
        help="Name or number of the lesson; without one all are listed.",
        autocompletion=_lessons,
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", "-s", min=0, metavar="N", help="Seed of the question's numbers.")
]
Compute = Annotated[
    bool, typer.Option("--compute", "-c", help="Compute the answer by simulation and print it.")
]
Guess = Annotated[
    str | None,
    typer.Option(
        metavar="AT:VALUE,...",
        help="Score this guess of the curve, for example 1:10k,8:60k.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FOLDER",
        help="Write the figure with the answer into this folder; without a name, of all lessons.",
        show_default=False,
    ),
]


def lesson(
    name: Name = None,
    seed: Seed = 1,
    compute: Compute = False,
    guess: Guess = None,
    out: Out = None,
    output: Output = TextOrJson.TEXT,
) -> None:
    """Ask a question about locks. Guess a curve, get a score, and see what simfs computes.

    The same seed asks the same question on every computer. Each place of the curve gives 100 points if the guess is
    right, 0 if it is off by a factor of two or more, and by the logarithm between. The score is their mean; a place
    without a guess gives none. Without -c the answer stays hidden.
    """
    with plain_errors("nothing was written" if out is None or name else "figures drawn so far are kept"):
        from simfs import lessons

        if out is not None:
            refuse_folder(out, f"--out {out}")
            _draw([name] if name else list(lessons.LESSONS), seed, guess, out)
            return
        if name is None:
            if compute or guess is not None:
                raise refused("simfs lesson: name a lesson; `simfs lesson` lists them")
            emit(_listed(output))
            return
        asked = lessons.lesson(name, seed)
        marks = None if guess is None else asked.mark(_parsed(guess, asked))
        document = _document(asked, marks, compute=compute)
        as_json = output is TextOrJson.JSON
        emit(f"{json.dumps(document, indent=2)}\n" if as_json else _text(asked, marks, compute=compute))


def _listed(output: TextOrJson) -> str:
    from simfs.lessons import LESSONS
    from simfs.lessons.catalogue import find

    found = [find(name) for name in LESSONS]
    if output is TextOrJson.JSON:
        rows = [
            {"number": e.number, "lesson": e.name, "title": e.title, "notebook": f"{e.notebook}.ipynb"}
            for e in found
        ]
        return f"{json.dumps(rows, indent=2)}\n"
    lines = [f"{e.number:3}  {e.name:14} {e.title}" for e in found]
    return "\n".join([*lines, "", "Notebooks: notebooks/lessons. A question: simfs lesson knee -s 1", ""])


def _draw(names: list[str], seed: int, guess: str | None, out: Path) -> None:
    """Figures of lessons for slides: PNG, SVG, PDF."""
    from simfs.lessons import lesson as ask
    from simfs.reports.figures.drawing import pictures

    if guess is not None and len(names) > 1:
        raise refused("--guess: name a lesson; `simfs lesson` lists them")
    for name in names:
        asked = ask(name, seed)
        values = {} if guess is None else _parsed(guess, asked)
        for file, content in pictures(asked.lesson.notebook, asked.figure(values)).items():
            write_file(out / Path(file).name, content)
        notes().print(f"{out}/{asked.lesson.notebook}.png, .svg, .pdf: {asked.lesson.title}")


def _parsed(guess: str, asked: Asked) -> dict[str, float]:
    """The guess as operations per second by place; refuses one of what was not asked, before anything is run."""
    from simfs.lessons.marks import check, parse

    try:
        values = parse(guess)
        check(values, asked.places)
    except ScenarioError as error:
        raise ScenarioError(
            [replace(problem, where=f"--{problem.where}") for problem in error.problems]
        ) from None
    return values


def _document(asked: Asked, marks: Marks | None, *, compute: bool) -> dict[str, Any]:
    """What graders read."""
    from simfs.lessons.marks import RULE

    document: dict[str, Any] = {
        "lesson": asked.lesson.name,
        "title": asked.lesson.title,
        "seed": asked.seed,
        "drawn": asked.drawn,
        "question": asked.text.strip(),
        "x": asked.lesson.x,
        "places": asked.places,
    }
    if marks:
        points = [{"at": m.at, "guess": m.guess, "points": round(m.score, 1)} for m in marks.points]
        document |= {"score": round(marks.score, 1), "rule": RULE, "marks": points}
    if compute:
        answer = [
            {"at": at, "per_s": e.mean, "low_per_s": e.low, "high_per_s": e.high}
            for at, e in asked.estimates[asked.lesson.predict].items()
        ]
        document |= {"answer": answer, "because": asked.because.strip()}
    return document


def _text(asked: Asked, marks: Marks | None, *, compute: bool) -> str:
    from simfs.lessons.marks import RULE

    one = asked.lesson
    parts = [
        f"Lesson {one.number}, {one.name}: {one.title} (seed {asked.seed})",
        "",
        *_wrapped(asked.text),
        "",
    ]
    parts += _table(asked, marks, compute=compute)
    if marks:
        parts += ["", f"Score: {marks.score:.0f} of 100 ({RULE})."]
    if compute:
        parts += ["", *_wrapped(asked.because)]
    if not (marks or compute):
        example = ",".join(f"{at}:10k" for at in asked.places[:2])
        parts += [
            "",
            f"Guess: simfs lesson {one.name} -s {asked.seed} --guess {example},...   The answer: -c",
        ]
    return "\n".join([*parts, ""])


def _table(asked: Asked, marks: Marks | None, *, compute: bool) -> list[str]:
    from simfs.reports.numbers import plain

    rows = {asked.lesson.x: asked.places}
    if marks:
        rows["your guess, per second"] = [plain(mark.guess) for mark in marks.points]
        rows["points"] = [f"{mark.score:.0f}" for mark in marks.points]
    if compute:
        titles = {name: asked.result.title(name) for name in asked.estimates}
        curves = {
            titles[name]: [plain(e.mean) for e in curve.values()] for name, curve in asked.estimates.items()
        }
        rows |= {f"{title}, {asked.operations} per second": cells for title, cells in curves.items()}
    elif not marks:
        rows["per second"] = ["?" for _ in asked.places]
    head = max(map(len, rows))
    widths = [max(map(len, column)) for column in zip(*rows.values(), strict=True)]
    return [
        "  ".join([f"{name:{head}}", *(f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True))])
        for name, cells in rows.items()
    ]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), WIDTH)
