"""Which experiments to begin with when many go on side by side: the longest, so that none is left alone at the end.

R. L. Graham, *Bounds on multiprocessing timing anomalies*, SIAM Journal on Applied Mathematics 17, 1969 (LPT).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simfs.experiments.validate import place_of
from simfs.scenario.measured.dataset import PlacedRow, with_bases
from simfs.scenario.measured.predicting import Predicted
from simfs.scenario.schema import Scenario

PER_TASK_SECOND = 0.06
"""Seconds for a simulated second of a task: the median of 50 data sets, a third of which lie 2 times apart from it."""

PER_FILE = 1.7e-6
"""Seconds for a file that is there before a run, and is inserted into a btrfs tree."""

EVALUATIONS = 5
"""Of a fit, one after the other."""


def longest_first(pairs: Sequence[Predicted]) -> list[int]:
    """The numbers of the pairs in the order of what they probably take."""
    return sorted(range(len(pairs)), key=lambda number: -seconds(pairs[number]))


def seconds(pair: Predicted) -> float:
    """About how long a data set takes: its points, those of its fit again and again, and the largest tree."""
    asked = pair.scenario
    if asked is None:
        return 0.0
    places = {place_of(row): row for each in with_bases(asked.measured) for row in each if row}
    fitted = {place_of(row): row for row, _ in with_bases(asked.measured) if row.role == "calibrate"}
    evaluations = EVALUATIONS if asked.calibrate else 0
    task_seconds = sum(_task_seconds(asked, row) for row in places.values())
    task_seconds += evaluations * sum(_task_seconds(asked, row) for row in fitted.values())
    files = max((_value(asked, row, "initial_files") for row in places.values()), default=0)
    return PER_TASK_SECOND * task_seconds + PER_FILE * files


def _task_seconds(asked: Scenario, row: PlacedRow) -> float:
    """Of all runs of a row's point."""
    measure = asked.measure
    warmup = measure.duration if measure.warmup == "auto" else measure.warmup
    return _value(asked, row, "tasks") * (warmup + measure.duration) / 1e9 * measure.replications


def _value(asked: Scenario, row: PlacedRow, key: str) -> float:
    """What a row's point has of the workload, or else the scenario; 1 where that is told in no number."""
    told: Any = row.values.get(f"workload.{key}", getattr(asked.workload, key, 0))
    return float(told) if isinstance(told, int | float) else 1.0
