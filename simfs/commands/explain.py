"""`simfs explain`: a scenario in words, its locks, and in which order its programs take them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from simfs.commands.common import ScenarioName, Settings, Wide, emit, loaded, overrides
from simfs.commands.errors import plain_errors, refusals_of_runs


class ExplainFormat(StrEnum):
    """How a scenario is explained."""

    TEXT = "text"
    JSON = "json"
    DOT = "dot"


def explain(
    scenario: ScenarioName,
    settings: Settings = None,
    variant: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The variant to use; the first by default.", show_default=False),
    ] = None,
    output: Annotated[
        ExplainFormat,
        typer.Option("--format", help="Format of the output; 'dot' draws the order of locks with Graphviz."),
    ] = ExplainFormat.TEXT,
    wide: Wide = False,
) -> None:
    """Say in words what a scenario simulates, and which locks its programs take inside which.

    The order comes from the first 30 ms of a run. A lock that is taken rarely may be missing.
    """
    with plain_errors():
        from simfs.experiments.lock_order import lock_order
        from simfs.experiments.points import the_point
        from simfs.reports.explain import print_explanation, to_dot, to_json
        from simfs.reports.layout import report_console

        asked = loaded(scenario, overrides(settings, None))
        first = asked.variants[0].name if asked.variants else None
        with refusals_of_runs():
            point = the_point(asked, variant or first)
            order = lock_order(point)
        match output:
            case ExplainFormat.JSON:
                emit(to_json(asked, point, order))
            case ExplainFormat.DOT:
                emit(to_dot(point, order))
            case _:
                print_explanation(asked, point, order, console=report_console(wide=wide))
