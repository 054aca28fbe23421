"""`simfs sensitivity`: which sourced numbers a prediction depends on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simfs.commands.common import (
    Output,
    Quick,
    ScenarioName,
    Seed,
    Settings,
    TextOrJson,
    Threads,
    loaded,
    overrides,
    print_answer,
    refuse_out,
)
from simfs.commands.errors import plain_errors, refused
from simfs.commands.experiment import Question, Variant, question, write_answer

if TYPE_CHECKING:
    from simfs.experiments.sensitivity import Sensitivity


Parameters = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GLOB", help="Vary only these parameters, for example 'filesystem.*'; may be repeated."
    ),
]
Metric = Annotated[
    str, typer.Option(metavar="NAME", help="Metric of the prediction: throughput_per_s, idle_percent, ...")
]
Trajectories = Annotated[
    int, typer.Option(min=2, max=1000, metavar="N", help="Number of Morris trajectories.")
]
Sobol = Annotated[
    int,
    typer.Option(
        min=0, max=65536, metavar="N", help="Number of samples for Sobol indices, a power of two; 0 for none."
    ),
]
Top = Annotated[
    int, typer.Option(min=1, max=50, metavar="N", help="Number of parameters that get Sobol indices.")
]
Bands = Annotated[
    int,
    typer.Option(
        min=0, max=10_000, metavar="N", help="Number of draws for bands on the curve over tasks; 0 for none."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FOLDER",
        help="Write sensitivity.json and figures into this folder.",
        show_default=False,
    ),
]


def sensitivity(
    scenario: ScenarioName,
    variant: Variant = None,
    parameter: Parameters = None,
    metric: Metric = "throughput_per_s",
    trajectories: Trajectories = 10,
    sobol: Sobol = 0,
    top: Top = 4,
    bands: Bands = 0,
    out: Out = None,
    settings: Settings = None,
    output: Output = TextOrJson.TEXT,
    seed: Seed = None,
    threads: Threads = None,
    quick: Quick = False,
) -> None:
    """Rank the sourced numbers of models/ by how much their ranges change a prediction.

    The ranking uses Morris's elementary effects. --sobol divides the variance among the numbers; --bands draws the
    uncertainty.
    """
    with plain_errors():
        refuse_out(out)
        if sobol & (sobol - 1):
            raise refused(f"--sobol {sobol}: must be a power of two")
        given = overrides(settings, seed)
        asked = loaded(scenario, given)
        draws = {"trajectories": trajectories, "sobol": sobol, "top": top, "bands": bands}
        with question(asked, given, variant, quick=quick, threads=threads) as about:
            found = _screened(about, metric, parameter, draws)
        print_answer(found, output, lambda: _print(found))
        if out is not None:
            _write(found, out)


def _screened(about: Question, metric: str, patterns: list[str] | None, draws: dict[str, Any]) -> Sensitivity:
    from simfs.experiments import sensitivity as experiment
    from simfs.scenario import expand

    return experiment.sensitivity(
        about.point,
        about.asked.measure,
        metric=metric,
        patterns=patterns or experiment.DEFAULT,
        curve=[p for p in expand(about.asked) if p.variant == about.point.variant],
        **draws,
        **about.titles,
        **about.options,
    )


def _print(found: Sensitivity) -> None:
    from simfs.reports.sensitivity import print_sensitivity

    print_sensitivity(found)


def _write(found: Sensitivity, out: Path) -> None:
    from simfs.reports import sensitivity as reports

    figures = {"screening": reports.screening(found)}
    if found.bands:
        figures["bands"] = reports.bands(found)
    write_answer(out, "sensitivity", found, figures=figures)
