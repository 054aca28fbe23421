"""From a scenario with `calibrate:` to the same scenario with the fitted values in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simfs.results.model import Fit, MeasuredRow
from simfs.results.run import Engine, Progress, Runs
from simfs.scenario import Point, Scenario, expand, to_run_spec, value_of, with_values
from simfs.scenario.checks.fits import chosen_rows, number_of
from simfs.scenario.checks.source_ranges import source_range
from simfs.scenario.measured.metrics import metric

if TYPE_CHECKING:  # with NumPy, which a run without a fit does not need
    from simfs.experiments.calibrate import Build, Parameter


def fitted(
    scenario: Scenario,
    rows: Sequence[MeasuredRow],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> tuple[Scenario, tuple[Fit, ...]]:
    """Fit what `scenario` declares and return it with the values set, and the fit.

    `rows` are all rows of the scenario's dataset in their order; used are those that its `calibrate:` names.
    All declared parameters are fitted together. A scenario that declares none comes back as it is. Raises
    CalibrationError as `calibrate` does.
    """
    if not scenario.calibrate or scenario.measured is None:
        return scenario, ()
    from simfs.experiments.calibrate import calibrate

    parameters, used, build = problem(scenario, rows)
    options: dict[str, Any] = {"engine": engine, "threads": threads, "progress": progress}
    runs = Runs(replications_of_an_evaluation(scenario, used))
    fit = calibrate(parameters, used, build, to_spec=to_run_spec, measure=runs, **options)
    return with_values(scenario, fit.values), (fit,)


def replications_of_an_evaluation(scenario: Scenario, rows: Sequence[MeasuredRow]) -> int:
    """Two, whose spread tells when to stop; one long run where the scenario has but that and its batches tell it.

    They are the first runs of the point at which the rows are predicted, so a store has them by then.
    """
    batches_tell = all(metric(row.metric).quantity == "throughput" for row in rows)
    return 1 if scenario.measure.replications == 1 and batches_tell else 2


def problem(
    scenario: Scenario, rows: Sequence[MeasuredRow]
) -> tuple[list[Parameter], list[MeasuredRow], Build]:
    """Return what is fitted on which rows, and how the points of the rows are made from values.

    Raises CalibrationError for a scenario that declares no fit.
    """
    from simfs.experiments.calibrate import CalibrationError
    from simfs.scenario import load_dataset

    if not scenario.calibrate or scenario.measured is None:
        raise CalibrationError(f"{scenario.name}: declares no fit ('calibrate:' and 'measured:')")
    dataset = load_dataset(scenario.measured.dataset)
    chosen = sorted({i for wanted in scenario.calibrate for i in chosen_rows(dataset, wanted)})

    sweep = _sweep_of([rows[i] for i in chosen])

    def build(values: Mapping[str, float]) -> Sequence[Point]:
        # The rows' own settings, whatever is swept or set for the run: the fit does not depend on what is asked.
        return expand(with_values(scenario, values).model_copy(update={"sweep": sweep}))

    return _parameters(scenario), [rows[i] for i in chosen], build


def _sweep_of(rows: Sequence[MeasuredRow]) -> dict[str, tuple[bool | int | float | str | None, ...]]:
    sweep: dict[str, tuple[bool | int | float | str | None, ...]] = {}
    for row in rows:
        for key, word in row.values.items():
            value = None if word == "null" else word  # a swept null is written out in a point's values
            if value not in sweep.setdefault(key, ()):
                sweep[key] += (value,)
    return sweep


def _parameters(scenario: Scenario) -> list[Parameter]:
    return [_parameter(scenario, w.parameter, w.bounds, w.prior) for w in scenario.calibrate]


def _parameter(scenario: Scenario, key: str, bounds: tuple[object, object], prior: object) -> Parameter:
    from simfs.experiments.calibrate import CalibrationError, Parameter

    low, high = map(number_of, bounds)
    start = value_of(scenario, key) if prior is None else prior
    if start is None:
        raise CalibrationError(f"{key} has no value of its own in the scenario to start from: give a prior")
    # What is written with a unit of time is a duration; everything else that can be fitted is a bare number.
    unit = "ns" if isinstance(bounds[0], str) else ""
    return Parameter(key, low, high, number_of(start), unit, source_range(scenario, key))
