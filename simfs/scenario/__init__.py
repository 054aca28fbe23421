"""The scenario language: loading, expanding into points, and the RunSpec of each."""

from simfs.scenario.checks import chosen_rows
from simfs.scenario.expand import Point, expand, points_at, value_of, with_values
from simfs.scenario.load import load
from simfs.scenario.measured import Dataset, PlacedRow, load_dataset, placed_rows
from simfs.scenario.problems import Problem, ScenarioError
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
    "to_run_spec",
    "value_of",
    "with_values",
]
