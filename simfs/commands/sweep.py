"""`simfs sweep` and `simfs merge`: a scenario at many points, in a directory that can be resumed."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simfs.commands.common import (
    Format,
    Quick,
    Rows,
    ScenarioName,
    Seed,
    Settings,
    Threads,
    Variants,
    Wide,
    emit,
    loaded,
    notes,
    overrides,
    progress,
    refuse_folder,
    refuse_unknown_variants,
)
from simfs.commands.errors import complain, plain_errors, refusals_of_runs, refused, unwritable
from simfs.scenario.settings import keys_of

if TYPE_CHECKING:
    from simfs.experiments.sweep import Goal, Plan
    from simfs.experiments.sweep_design import Row
    from simfs.results.model import ScenarioResult
    from simfs.scenario import Scenario

Out = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="FOLDER",
        help="Folder of the sweep: its runs, tables and figures. The same command resumes it.",
    ),
]


class Design(StrEnum):
    """How the points are chosen."""

    GRID = "grid"
    ZIP = "zip"
    RANDOM = "random"
    LHS = "lhs"
    SOBOL = "sobol"


class Refine(StrEnum):
    """Where points are added."""

    KNEE = "knee"
    CROSSOVER = "crossover"


Vary = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=A,B,C|KEY=LOW..HIGH[:log]",
        help="Vary this key; may be repeated. By default the scenario's own sweep is run.",
    ),
]
DesignOfPoints = Annotated[
    Design,
    typer.Option(
        help="How points are chosen: all combinations (grid), values side by side (zip), at random, as a Latin "
        "hypercube (lhs), or by a Sobol sequence, of which --points should be a power of two."
    ),
]
Points = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Number of points; in a grid, of values of each range (5 by default)."
    ),
]
Listed = Annotated[
    Path | None,
    typer.Option(
        "--list", metavar="FILE", help="Run the rows of this CSV file, which has a column for each key."
    ),
]
Refinement = Annotated[
    Refine | None, typer.Option(help="Add points at each curve's knee, or where two variants cross.")
]
Between = Annotated[
    str | None, typer.Option(metavar="A,B", help="With --refine crossover: the two variants.")
]
Shard = Annotated[
    str | None,
    typer.Option(metavar="I/N", help="Run only shard I of N; `simfs merge` puts the shards together."),
]
Executor = Annotated[
    str,
    typer.Option(
        metavar="WHERE", help="Where runs are done: 'threads' of this computer, or dask://HOST:PORT."
    ),
]


def sweep(
    scenario: ScenarioName,
    out: Out,
    vary: Vary = None,
    design: DesignOfPoints = Design.GRID,
    points: Points = None,
    listed: Listed = None,
    refine: Refinement = None,
    between: Between = None,
    shard: Shard = None,
    executor: Executor = "threads",
    variants: Variants = None,
    settings: Settings = None,
    seed: Seed = None,
    threads: Threads = None,
    quick: Quick = False,
    output: Rows = Format.TEXT,
    wide: Wide = False,
) -> None:
    """Run a scenario at many points. Each run is kept and never done again."""
    with plain_errors("the runs that ended are kept; the same command resumes"), refusals_of_runs():
        from simfs.experiments.sweep import Plan
        from simfs.scenario.points import variants_of

        given = overrides(settings, seed)
        asked = loaded(scenario, given)
        refuse_unknown_variants(variants or (), variants_of(asked))
        rows = _rows(asked, vary or [], design, points, listed)
        goal: Goal | None = refine.value if refine else None
        if between is not None and refine is not Refine.CROSSOVER:
            raise refused(f"--between {between}: goes with --refine crossover")
        pair = tuple(between.split(",")) if between else ()
        option = f"--list {listed}" if listed else "--vary"
        by_hand = tuple(sorted(keys_of(given)))
        plan = Plan(
            asked,
            rows,
            goal,
            pair,
            quick=quick,
            given=by_hand,
            option=option,
            only=tuple(dict.fromkeys(variants or ())),
        )
        part = _part(shard)
        refuse_folder(out, f"--out {out}")
        plan.refinement(part)
        plan.points()
        _warn(plan)
        _run(plan, out, executor, threads, part, Shown(output, wide))


def merge(
    sweeps: Annotated[list[Path], typer.Argument(metavar="FOLDER", help="Folders of the shards.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Folder of the whole sweep; the first shard's by default."
        ),
    ] = None,
    output: Rows = Format.TEXT,
    wide: Wide = False,
) -> None:
    """Put the shards of a sweep together and write the tables of the whole sweep."""
    with plain_errors(), refusals_of_runs():
        from simfs.experiments import sweep as sweeps_

        if out is not None:
            refuse_folder(out, f"--out {out}")
        plan, store = sweeps_.merge(sweeps, out or sweeps[0])
        why = "runs are missing: run the shards that have not ended, with the same command, and merge again"
        engine = store.recalling(f"{out or sweeps[0]}: {why}")
        _report(plan, *sweeps_.run(plan, engine=engine), out or sweeps[0], Shown(output, wide))


@dataclass(frozen=True)
class Shown:
    """What is printed, and whether in full."""

    form: Format = Format.TEXT
    wide: bool = False


def _warn(plan: Plan) -> None:
    """Say aloud where `--vary` undoes what makes the variants different."""
    for key, names in plan.undone().items():
        what = f"--vary {key}: overrides what {', '.join(names)} set"
        complain(f"warning: {what}; variants that differ in nothing else show the same numbers")


def _run(
    plan: Plan,
    out: Path,
    where: str,
    threads: int | None,
    part: tuple[int, int],
    shown: Shown,
) -> None:
    from simfs.experiments.executors import executor as opened
    from simfs.experiments.sweep import open_folder, run

    with opened(where, threads) as there, progress() as report:
        store = open_folder(out, plan)  # a folder is begun only where runs can be done
        asked, result = run(
            plan, engine=store.remembering(there.engine), threads=there.slots, progress=report, shard=part
        )
    if part[1] > 1:
        notes().print(
            f"shard {part[0]}/{part[1]}: {len(result.points)} points are in {out}; next: simfs merge"
        )
        raise typer.Exit(result.exit_code)
    _report(plan, asked, result, out, shown)


def _report(plan: Plan, asked: Scenario, result: ScenarioResult, out: Path, shown: Shown) -> None:
    from simfs.experiments.sweep import places
    from simfs.reports.export import to_csv, to_json, write
    from simfs.reports.layout import report_console
    from simfs.reports.sweep import print_sweep
    from simfs.results.model import once_a_point

    resolved = asked.model_dump(mode="json", exclude_unset=True)
    try:
        write(
            result, out, scenario=asked.text, seed=asked.measure.seed, command=sys.argv[1:], resolved=resolved
        )
    except OSError as error:
        raise unwritable(out, error) from None
    if shown.form is Format.TEXT:
        print_sweep(result, report_console(wide=shown.wide))
    else:
        emit(to_json(result) if shown.form is Format.JSON else to_csv(result))
    for line in places(plan, result):
        typer.echo(line, err=shown.form is not Format.TEXT)
    notes().print(f"written to {out}")
    for finding, more in once_a_point(result.findings):
        complain(finding.sentence + more)
    raise typer.Exit(result.exit_code)


def _rows(
    asked: Scenario, vary: list[str], design: Design, points: int | None, listed: Path | None
) -> tuple[Row, ...]:
    from simfs.experiments.sweep import rows_of_scenario
    from simfs.experiments.sweep_design import factor, rows_from, rows_of

    if listed is not None:
        if vary:
            raise refused("--list: takes no --vary beside it")
        if points is not None:
            raise refused(f"--points {points}: is not for --list, of which each row is a point")
        return rows_from(listed)
    if not vary:
        if design is not Design.GRID:
            raise refused(f"--design {design}: say what varies with --vary")
        if points is not None:
            raise refused(f"--points {points}: say what varies with --vary, for example workload.tasks=1..48")
        return rows_of_scenario(asked)
    factors = [factor(option) for option in vary]
    if points is not None and design in (Design.GRID, Design.ZIP) and not any(f.ends for f in factors):
        raise refused(
            f"--points {points}: is for ranges such as workload.tasks=1..48; here all values are told"
        )
    return rows_of(factors, design.value, points, asked.measure.seed)


def _part(shard: str | None) -> tuple[int, int]:
    if shard is None:
        return 1, 1
    match = re.fullmatch(r"(\d+)/(\d+)", shard)
    part = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= part[0] <= part[1]:
        raise refused(f"--shard {shard}: write it as I/N with I from 1 to N, for example 3/16")
    return part
