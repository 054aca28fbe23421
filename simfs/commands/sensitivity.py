"""`simfs sensitivity`: which sourced numbers a prediction hangs on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simfs.commands.common import (
    Quick,
    ScenarioName,
    Seed,
    Settings,
    Threads,
    overrides,
    plain_errors,
    progress,
    refusals_of_runs,
    refuse_out,
    refused,
)
from simfs.commands.experiment import Output, TextOrJson, Variant, keys_of, print_json, write_answer


def sensitivity(
    scenario: ScenarioName,
    variant: Variant = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GLOB",
            help="Vary these, for example 'filesystem.*'; may be repeated.",
        ),
    ] = None,
    metric: Annotated[
        str, typer.Option(help="The output: throughput_per_s, idle_percent, ...")
    ] = "throughput_per_s",
    trajectories: Annotated[int, typer.Option(min=2, max=1000, help="Morris trajectories.")] = 10,
    sobol: Annotated[
        int, typer.Option(min=0, max=65536, help="Samples for Sobol indices, a power of two.")
    ] = 0,
    top: Annotated[int, typer.Option(min=1, max=50, help="How many parameters get Sobol indices.")] = 4,
    bands: Annotated[
        int, typer.Option(min=0, max=10_000, help="Draws for bands on the curve over tasks.")
    ] = 0,
    out: Annotated[Path | None, typer.Option(help="Write sensitivity.json and figures here.")] = None,
    settings: Settings = None,
    output: Output = TextOrJson.TEXT,
    seed: Seed = None,
    threads: Threads = None,
    quick: Quick = False,
) -> None:
    """Rank the sourced numbers of models/ by what their ranges do to a prediction.

    Screening by Morris's elementary effects; --sobol shares out the variance, --bands draws the uncertainty.
    """
    with plain_errors():
        from simfs.scenario import expand, load

        refuse_out(out)
        if sobol & (sobol - 1):
            raise refused(f"--sobol {sobol}: must be a power of two")
        given = overrides(settings, seed)
        asked = load(scenario, given)
        with progress() as report, refusals_of_runs():
            from simfs.experiments import sensitivity as experiment
            from simfs.experiments.answer import fit, operation_of
            from simfs.experiments.points import the_point

            asked, _ = fit(asked, given=keys_of(given), quick=quick, threads=threads, progress=report)
            point = the_point(asked, variant)
            found = experiment.sensitivity(
                point,
                asked.measure,
                scenario=asked.name,
                operation=operation_of([point]),
                metric=metric,
                patterns=parameter or experiment.DEFAULT,
                trajectories=trajectories,
                sobol=sobol,
                top=top,
                bands=bands,
                curve=[p for p in expand(asked) if p.variant == point.variant],
                threads=threads,
                progress=report,
            )
        if output is TextOrJson.JSON:
            print_json(found)
        else:
            from simfs.reports.sensitivity import print_sensitivity

            print_sensitivity(found)
        if out is not None:
            from simfs.reports import sensitivity as reports

            figures = {"screening": reports.screening(found)}
            if found.bands:
                figures["bands"] = reports.bands(found)
            write_answer(out, "sensitivity", found, figures=figures)
