"""`simfs observe`: what to measure on a real machine to test a prediction."""

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
    refused,
)
from simfs.commands.experiment import Output, TextOrJson, Variant, keys_of, print_json


def observe(
    scenario: ScenarioName,
    variant: Variant = None,
    at: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder on the real machine in which the load works.")
    ] = Path("/srv/test"),
    load: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="The real load, where it is another than the scenario's."),
    ] = None,
    metric: Annotated[
        str, typer.Option(help="What is to be narrowed: throughput_per_s, idle_percent, ...")
    ] = "throughput_per_s",
    trajectories: Annotated[
        int, typer.Option(min=2, max=1000, help="Morris trajectories, to find what narrows it.")
    ] = 2,
    settings: Settings = None,
    output: Output = TextOrJson.TEXT,
    seed: Seed = None,
    threads: Threads = None,
    quick: Quick = False,
) -> None:
    """Print the commands to run on a real machine that test a prediction, and what each would decide.

    First those that show whether it holds, then those that measure what it hangs on, the most first. `simfs compare`
    reads what they print. Nothing is run but the simulation.
    """
    with plain_errors():
        from simfs.scenario import load as load_scenario

        given = overrides(settings, seed)
        asked = load_scenario(scenario, given)
        if load is not None and not load.strip():
            raise refused("--load: is empty")
        with progress() as report, refusals_of_runs():
            from simfs.experiments import observe as experiment
            from simfs.experiments.answer import fit
            from simfs.experiments.points import the_point

            asked, _ = fit(asked, given=keys_of(given), quick=quick, threads=threads, progress=report)
            point = the_point(asked, variant)
            found = experiment.observe(
                point,
                asked.measure,
                name=scenario,
                variant=variant,
                settings=[*given, *_tasks_of(point.scenario.tasks, given)],
                at=str(at),
                load=load,
                metric=metric,
                trajectories=trajectories,
                threads=threads,
                progress=report,
            )
        if output is TextOrJson.JSON:
            print_json(found)
        else:
            from simfs.reports.observe import to_text

            typer.echo(to_text(found), nl=False)


def _tasks_of(tasks: int, given: list[str]) -> list[str]:
    return [] if "workload.tasks" in keys_of(given) else [f"workload.tasks={tasks}"]
