"""Data sets held against the scenarios that predict them.

A scenario is fitted as it declares, on calibrate rows alone, and then run at the very points where something
was measured, whatever its own sweep is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from simfs.experiments.answer import fit, run_points
from simfs.results.defect import EngineError
from simfs.results.model import quantity
from simfs.results.run import Engine, Progress
from simfs.results.validation import Row, Validated, with_baselines
from simfs.scenario import Dataset, PlacedRow, Point, Problem, Scenario, ScenarioError, placed_rows, points_at
from simfs.scenario.points import ONLY_VARIANT
from simfs.scenario.predicting import Predicted
from simfs.scenario.source_ranges import outside_sources, variant_of
from simfs.scenario.suggest import nearest

TASKS = "workload.tasks"


def validate(
    pair: Predicted,
    *,
    quick: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Validated:
    """Predict the rows of a data set; without a scenario, or where its fit or engine refuses or fails, they stay open.

    `quick` runs the points for a first look; the fit stays the same.
    """
    whole = unpredicted(pair)
    asked = pair.scenario
    if asked is None:
        return replace(whole, problem="no scenario names this data set under 'measured:'")
    try:
        asked, fits = fit(asked, quick=quick, threads=threads, progress=progress, engine=engine)
        placed = placed_rows(asked.measured)
        points, refused = points_of_rows(asked, placed)
        distinct = {point.id: point for point in points.values()}
        result = run_points(
            asked, list(distinct.values()), (), threads=threads, progress=progress, engine=engine
        )
    except (ValueError, ScenarioError) as error:
        return replace(whole, problem=str(error))
    except EngineError as error:
        return replace(whole, problem=str(error), defect=True)  # other data sets are not lost for it
    found = {point.id: point for point in result.points}
    rows, notes = list(whole.rows), dict.fromkeys(refused)
    for i, row in enumerate(placed):
        point = points.get(i)
        estimate = found[point.id].estimate(row.metric, row.operations) if point else None
        rows[i] = rows[i].with_prediction(estimate)
        if estimate is None:
            why = f"its simulation has no {row.metric}" if point else "it has no simulated point"
            notes[f"{rows[i].place}: {why}"] = None
    whole = replace(whole, rows=tuple(rows), fits=fits, findings=result.findings, notes=tuple(notes))
    fitted = {key: (value, each.units.get(key, "")) for each in fits for key, value in each.values.items()}
    return held_to_sources(whole, asked, fitted)


def held_to_sources(whole: Validated, asked: Scenario, fitted: Mapping[str, tuple[float, str]]) -> Validated:
    """The data set with the rows not counted that hang on a fit outside the range of the parameter's source.

    Such a value stands for a mechanism that is missing. `fitted` are values with their units by key, times in ns.
    """
    outside = outside_sources(asked, {key: value for key, (value, _) in fitted.items()})
    if not outside:
        return whole
    spoilt = {variant_of(key) for key in outside}
    rows = tuple(
        replace(row, counted=not spoilt & {None, place.variant})
        for row, place in zip(whole.rows, placed_rows(asked.measured), strict=True)
    )
    said = tuple(_outside(key, *fitted[key], span) for key, span in outside.items())
    return replace(whole, rows=rows, outside=said)


def _outside(key: str, value: float, unit: str, span: tuple[float, float]) -> str:
    found, low, high = (quantity(each, unit) for each in (value, *span))
    return f"not counted: {key} = {found} lies outside the range of its source, {low} to {high}"


def unpredicted(pair: Predicted) -> Validated:
    """The data set with its baselines and nothing simulated."""
    data = pair.dataset
    rows = with_baselines(_rows(data), over_tasks=data.x == TASKS)
    return Validated(data.name, data.title, data.x, rows, pair.scenario.name if pair.scenario else None)


def _rows(data: Dataset) -> list[Row]:
    return [
        Row(
            dataset=data.name, series=row.series, x=row.x, role=row.role, metric=row.metric, unit=row.unit,
            measured=row.value, low=row.low, high=row.high, approx=row.approx,
        )
        for row in data.rows
    ]  # fmt: skip


def points_of_rows(asked: Scenario, rows: tuple[PlacedRow, ...]) -> tuple[dict[int, Point], list[str]]:
    """Return the point of each row by its index, and why other rows have none."""
    points: dict[int, Point] = {}
    known: dict[tuple[object, ...], Point] = {}
    refused: list[str] = []
    for i, row in enumerate(rows):
        key = (row.variant, *row.values.items())
        try:
            points[i] = known[key] = known.get(key) or _point(asked, row)
        except ScenarioError as error:
            refused.append(f"{row.series}: {error}")
    return points, refused


def _point(asked: Scenario, row: PlacedRow) -> Point:
    names = [variant.name for variant in asked.variants] or [ONLY_VARIANT]
    if row.variant not in names:
        message = f"there is no variant '{row.variant}'; there are {', '.join(names)}"
        raise ScenarioError([Problem(asked.name, message, nearest(row.variant, names))])
    own = tuple(variant for variant in asked.variants if variant.name == row.variant)
    values = {key: None if value == "null" else value for key, value in row.values.items()}
    return points_at(asked.model_copy(update={"variants": own}), [values])[0]
