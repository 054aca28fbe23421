"""The scenario language: loading, expanding into points, and the RunSpec of each."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simfs.scenario.checks.fits import chosen_rows
    from simfs.scenario.measured.dataset import Dataset, PlacedRow, load_dataset, placed_rows
    from simfs.scenario.points import (
        Point,
        expand,
        points_at,
        selecting_none,
        swept_anyway,
        value_of,
        with_values,
        without_effect,
    )
    from simfs.scenario.problems import Problem, ScenarioError
    from simfs.scenario.reading.loader import load
    from simfs.scenario.run_spec import to_run_spec
    from simfs.scenario.schema import Measure, Scenario

__all__ = [
    "Dataset",
    "Measure",
    "PlacedRow",
    "Point",
    "Problem",
    "Scenario",
    "ScenarioError",
    "chosen_rows",
    "expand",
    "load",
    "load_dataset",
    "placed_rows",
    "points_at",
    "selecting_none",
    "swept_anyway",
    "to_run_spec",
    "value_of",
    "with_values",
    "without_effect",
]

_HOMES = {
    "checks.fits": ("chosen_rows",),
    "reading.loader": ("load",),
    "measured.dataset": ("Dataset", "PlacedRow", "load_dataset", "placed_rows"),
    "points": (
        "Point",
        "expand",
        "points_at",
        "selecting_none",
        "swept_anyway",
        "value_of",
        "with_values",
        "without_effect",
    ),
    "problems": ("Problem", "ScenarioError"),
    "run_spec": ("to_run_spec",),
    "schema": ("Measure", "Scenario"),
}


def __getattr__(name: str) -> object:
    """Load a part when it is asked for: the schema takes a third of a second, and an error needs none of it."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
