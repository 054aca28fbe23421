"""`simfs observe`: what to measure on a real machine to test a prediction."""

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
    Threads,
    loaded,
    overrides,
    print_answer,
)
from simfs.commands.errors import plain_errors, refused
from simfs.commands.experiment import Variant, question
from simfs.scenario.settings import keys_of

if TYPE_CHECKING:
    from simfs.experiments.observe import Observation


At = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Folder on the real machine in which the load works.")
]
Load = Annotated[
    str | None,
    typer.Option(metavar="COMMAND", help="Command of the real load, if it is not the scenario's."),
]
Metric = Annotated[
    str,
    typer.Option(metavar="NAME", help="Metric to predict more exactly: throughput_per_s, idle_percent, ..."),
]
Trajectories = Annotated[
    int,
    typer.Option(
        min=2,
        max=1000,
        metavar="N",
        help="Number of Morris trajectories, to find what the metric depends on.",
    ),
]


def observe(
    scenario: ScenarioName,
    variant: Variant = None,
    at: At = Path("/srv/test"),
    load: Load = None,
    metric: Metric = "throughput_per_s",
    trajectories: Trajectories = 2,
    settings: Settings = None,
    output: Output = TextOrJson.TEXT,
    seed: Seed = None,
    threads: Threads = None,
    quick: Quick = False,
) -> None:
    """Print commands that test a prediction on a real machine, and what each would decide.

    The first commands show whether the prediction holds. The next ones measure the numbers on which it depends, the
    most important first. `simfs compare` reads what they print. simfs itself runs only the simulation.
    """
    with plain_errors():
        given = overrides(settings, seed)
        asked = loaded(scenario, given)
        if load is not None and not load.strip():
            raise refused("--load: is empty")
        named = {"name": scenario, "variant": variant, "at": str(at), "load": load}
        wanted = {"metric": metric, "trajectories": trajectories}
        with question(asked, given, variant, quick=quick, threads=threads) as about:
            from simfs.experiments import observe as experiment

            said = [*given, *_tasks_of(about.point.scenario.tasks, given)]
            options = {**named, **wanted, **about.options}
            found = experiment.observe(about.point, about.asked.measure, settings=said, **options)
        print_answer(found, output, lambda: _print(found))


def _print(found: Observation) -> None:
    from simfs.reports.observe import to_text

    typer.echo(to_text(found), nl=False)


def _tasks_of(tasks: int, given: list[str]) -> list[str]:
    return [] if "workload.tasks" in keys_of(given) else [f"workload.tasks={tasks}"]
