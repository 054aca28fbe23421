"""`simfs compare`: two answers side by side, or a real machine beside a simulation."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simfs.commands.common import (
    Quick,
    Seed,
    Settings,
    Threads,
    emit,
    loaded,
    overrides,
    print_json,
    progress,
)
from simfs.commands.errors import plain_errors, refusals_of_runs, refused
from simfs.scenario.settings import keys_of

if TYPE_CHECKING:
    from simfs.experiments.compare import Side
    from simfs.experiments.compare_real import RealComparison
    from simfs.experiments.sensitivity import Screened
    from simfs.interchange.reading import Reading


class Format(StrEnum):
    """How a comparison is printed."""

    TEXT = "text"
    LETTER = "letter"
    JSON = "json"


SIDE = (
    "A folder of `simfs run --out`, a data set, or a scenario to run; `:VARIANT` names one of its variants."
)
TRAJECTORIES = 4

Left = Annotated[
    str,
    typer.Argument(metavar="A", help=f"{SIDE} Or the output of a real tool, as `simfs import` reads it."),
]
Right = Annotated[
    str,
    typer.Argument(
        metavar="B", help="What A is compared with: the same kinds, but not the output of a real tool."
    ),
]
Operations = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Operations of the real run; compares waits per operation."),
]
Seconds = Annotated[
    float | None,
    typer.Option(min=1e-6, metavar="N", help="Seconds of the real run; compares waits per second."),
]
Output = Annotated[
    Format,
    typer.Option("--format", help="Format of the output; 'letter' is a block of 72 columns to quote."),
]
Why = Annotated[
    bool,
    typer.Option(
        "--why",
        help="With the output of a real tool: vary the sourced numbers, and say on which the difference depends most.",
    ),
]

NoVariant = Annotated[list[str] | None, typer.Option("--variant", hidden=True)]
"""Other commands have it; here each side has its own."""


def compare(
    a: Left,
    b: Right,
    settings: Settings = None,
    output: Output = Format.TEXT,
    seed: Seed = None,
    threads: Threads = None,
    quick: Quick = False,
    operations: Operations = None,
    seconds: Seconds = None,
    why: Why = False,
    variant: NoVariant = None,
) -> None:
    """Compare two results: the change, its interval and a verdict, short enough for a commit message.

    --set, --seed and --quick apply to scenarios that are run. Two runs with the same seed are compared pair by pair.
    The output of a real tool is compared with a simulation by lock class, per operation or per second.
    """
    with plain_errors():
        for name in variant or []:
            raise refused(f"--variant {name}: a side names its variant itself: {a.partition(':')[0]}:{name}")
        given = overrides(settings, seed)
        options: dict[str, Any] = {"quick": quick, "threads": threads}
        reading = _reading(a)
        if reading is not None and output is Format.LETTER:
            raise refused(f"{a}: --format letter is for two simulations, not for the output of a real tool")
        if reading is not None:
            code = _real(a, reading, b, given, options, output, operations, seconds, why=why)
        else:
            if operations or seconds or why:
                raise refused(f"{a}: --operations, --seconds and --why go with the output of a real tool")
            code = _answers(a, b, given, options, output)
    raise typer.Exit(code)


def _answers(a: str, b: str, given: list[str], options: dict[str, Any], output: Format) -> int:
    with progress() as report, refusals_of_runs():
        from simfs.experiments.compare import compare_sides, open_sides

        sides = open_sides((a, b), given, progress=report, **options)
        comparison = compare_sides(*sides)
        letter = _letter(*sides) if output is Format.LETTER else ""
    if letter:
        emit(letter)
    elif output is Format.JSON:
        print_json(comparison)
    else:
        from simfs.reports.compare import to_text

        typer.echo(to_text(comparison), nl=False)
    return max(side.result.exit_code if side.result else 0 for side in sides)


def _letter(a: Side, b: Side) -> str:
    from simfs.reports.letter import to_letter

    return to_letter(a, b, sys.argv[1:])


def _reading(a: str) -> Reading | None:
    """What a tool printed into the file; None for anything else that can be compared."""
    path = Path(a)
    if a != "-" and (path.suffix in (".yaml", ".yml") or not path.is_file()):
        return None
    from simfs.commands.import_ import read_file

    if a != "-" and any(line.startswith(b"simfs:") for line in path.read_bytes()[:4096].splitlines()):
        return None  # a scenario without a suffix
    return read_file(a)


def _real(
    a: str,
    reading: Reading,
    b: str,
    given: list[str],
    options: dict[str, Any],
    output: Format,
    operations: int | None,
    seconds: float | None,
    *,
    why: bool,
) -> int:
    with progress() as report, refusals_of_runs():
        from simfs.experiments.compare import open_side
        from simfs.experiments.compare_real import compare_real

        side = open_side(b, given, progress=report, **options)
        if side.result is None:
            raise ValueError(f"{b}: is a data set; a real machine is compared with a scenario or a result")
        name = "standard input" if a == "-" else Path(a).name
        comparison = compare_real(
            name, reading, side.result, side.points, operations=operations, seconds=seconds
        )
        if why:
            comparison = _explained(comparison, b, given, options["threads"], report)
    if output is Format.JSON:
        print_json(comparison)
    else:
        from simfs.reports.compare_real import to_text

        typer.echo(to_text(comparison), nl=False)
    return side.result.exit_code


def _explained(
    comparison: RealComparison,
    b: str,
    given: list[str],
    threads: int | None,
    report: Any,  # noqa: ANN401
) -> RealComparison:
    """The comparison, with the number on which its largest difference depends most, found by screening."""
    from simfs.experiments.answer import fit
    from simfs.experiments.compare_real import metric_of
    from simfs.experiments.points import the_point
    from simfs.experiments.sensitivity import NoOutputError, sensitivity

    metric = metric_of(comparison)
    if metric is None or comparison.differs_most in comparison.only_real:
        raise ValueError("--why: there is no simulated lock whose waits could be varied")
    scenario, _, variant = b.rpartition(":") if ":" in b and not Path(b).exists() else (b, "", None)
    if Path(scenario).is_dir():
        raise ValueError(f"--why: {scenario} is a result; name its scenario")
    asked, _ = fit(
        loaded(scenario, given), given=keys_of(given), quick=True, threads=threads, progress=report
    )
    try:
        found = sensitivity(
            the_point(asked, variant),
            asked.measure,
            scenario=asked.name,
            metric=metric,
            trajectories=TRAJECTORIES,
            threads=threads,
            progress=report,
        )
        says = _hangs_on(metric, found.screened[0])
    except NoOutputError as error:  # the comparison itself stands
        why = str(error).removeprefix("--metric: ")
        says = f"--why, in runs a fifth as long: {why}; try `simfs sensitivity` with --metric {metric}."
    return comparison.model_copy(update={"sentence": f"{comparison.sentence} {says}"})


def _hangs_on(metric: str, first: Screened) -> str:
    if not first.matters:
        return f"No sourced number moves {metric} by more than noise."
    moves = f"its range moves it by {first.mu_star.mean:.0f} %; {first.source}"
    return f"{metric} hangs most on {first.parameter} ({moves})."
