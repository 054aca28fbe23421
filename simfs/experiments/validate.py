"""Data sets held against the scenarios that predict them.

A scenario is fitted as it declares, on calibrate rows alone, and then run at the very points where something
was measured, whatever its own sweep is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from simfs.experiments.answer import fit, run_points
from simfs.experiments.calibrate import UnmetRowsError
from simfs.results.defect import EngineError
from simfs.results.model import PointResult, quantity
from simfs.results.run import Engine, Progress
from simfs.results.statistics import Estimate, quotient
from simfs.results.validation import Row, Validated, with_baselines
from simfs.scenario import Dataset, PlacedRow, Point, Problem, Scenario, ScenarioError, points_at
from simfs.scenario.checks.source_ranges import outside_sources, variant_of
from simfs.scenario.measured.dataset import with_bases
from simfs.scenario.measured.predicting import Predicted
from simfs.scenario.points import ONLY_VARIANT
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
        pairs = with_bases(asked.measured)
        points, refused = points_of_rows(asked, (row for pair in pairs for row in pair if row))
        distinct = {point.id: point for point in points.values()}
        result = run_points(
            asked,
            sorted(distinct.values(), key=_laid_out),
            (),
            threads=threads,
            progress=progress,
            engine=engine,
        )
    except UnmetRowsError as error:
        return replace(whole, problem=str(error), blame="fit")
    except (ValueError, ScenarioError) as error:
        return replace(whole, problem=str(error))
    except EngineError as error:
        return replace(whole, problem=str(error), blame="engine")  # other data sets are not lost for it
    found = {point.id: point for point in result.points}
    answers = {place: found[point.id] for place, point in points.items()}
    rows, open_ = _predictions(whole.rows, pairs, answers)
    notes = tuple(dict.fromkeys((*refused, *open_)))
    whole = replace(whole, rows=rows, fits=fits, findings=result.findings, notes=notes)
    fitted = {key: (value, each.units.get(key, "")) for each in fits for key, value in each.values.items()}
    return held_to_sources(whole, asked, fitted)


def _predictions(
    rows: Sequence[Row],
    pairs: Sequence[tuple[PlacedRow, PlacedRow | None]],
    answers: Mapping[Place, PointResult],
) -> tuple[tuple[Row, ...], list[str]]:
    """The rows with what was simulated for them, and why some have nothing."""

    def said(at: PlacedRow) -> Estimate | None:
        answer = answers.get(place_of(at))
        return answer.reported(at.metric, at.operations, at.pause_s) if answer else None

    done, notes = [], []
    for row, (here, base) in zip(rows, pairs, strict=True):
        estimate = said(here) if base is None else quotient(said(here), said(base))
        done.append(row.with_prediction(estimate))
        if estimate is None:
            known = all(place_of(each) in answers for each in (here, base) if each)
            why = f"its simulation has no {here.metric}" if known else "it has no simulated point"
            notes.append(f"{row.place}: {why}")
    return tuple(done), notes


def held_to_sources(whole: Validated, asked: Scenario, fitted: Mapping[str, tuple[float, str]]) -> Validated:
    """The data set with the rows not counted that hang on a fit outside the range of the parameter's source.

    Such a value stands for a mechanism that is missing. `fitted` are values with their units by key, times in ns.
    """
    outside = outside_sources(asked, {key: value for key, (value, _) in fitted.items()})
    if not outside:
        return whole
    spoilt = {variant_of(key) for key in outside}
    rows = tuple(
        replace(row, counted=not spoilt & {None, *(at.variant for at in pair if at)})
        for row, pair in zip(whole.rows, with_bases(asked.measured), strict=True)
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


Place = tuple[object, ...]
"""The variant of a row and the values of its point."""


def place_of(row: PlacedRow) -> Place:
    """What tells a row's point from others."""
    return (row.variant, *row.values.items())


def points_of_rows(asked: Scenario, rows: Iterable[PlacedRow]) -> tuple[dict[Place, Point], list[str]]:
    """Return the points of the rows by place, and why other rows have none."""
    points: dict[Place, Point] = {}
    refused: list[str] = []
    for row in rows:
        try:
            if place_of(row) not in points:
                points[place_of(row)] = _point(asked, row)
        except ScenarioError as error:
            refused.append(f"{row.series}: {error}")
    return points, refused


def _laid_out(point: Point) -> int:
    """Files that are there before a run of a point: the engine lays out more from fewer, as long as it keeps those."""
    return int(getattr(point.scenario.workload, "initial_files", 0))


def _point(asked: Scenario, row: PlacedRow) -> Point:
    names = [variant.name for variant in asked.variants] or [ONLY_VARIANT]
    if row.variant not in names:
        message = f"there is no variant '{row.variant}'; there are {', '.join(names)}"
        raise ScenarioError([Problem(asked.name, message, nearest(row.variant, names))])
    own = tuple(variant for variant in asked.variants if variant.name == row.variant)
    values = {key: None if value == "null" else value for key, value in row.values.items()}
    return points_at(asked.model_copy(update={"variants": own}), [values])[0]
