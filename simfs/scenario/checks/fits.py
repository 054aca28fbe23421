"""What the models of the schema cannot see of a fit: whether its parameter is one that can be fitted, and its rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from simfs.scenario.checks.names import check_profiles
from simfs.scenario.points import value_of
from simfs.scenario.problems import Problem, ScenarioError
from simfs.scenario.reading.document import Document, Path_, Place
from simfs.scenario.reading.overlay import assign, split_key
from simfs.scenario.reading.refusals import problems_of
from simfs.scenario.schema import Fit, RowChoice, Scenario
from simfs.scenario.sections.section import shorten
from simfs.scenario.sections.units import duration
from simfs.scenario.suggest import nearest

if TYPE_CHECKING:
    from simfs.scenario.measured.dataset import Dataset


def check_calibration(scenario: Scenario, document: Document) -> Iterator[Problem]:
    """Yield what is wrong with the parameters to fit, their bounds and their rows."""
    seen = set[str]()
    for index, fit in enumerate(scenario.calibrate):
        path: Path_ = ("calibrate", index)
        at = document.place_of((*path, "parameter")).value
        if fit.parameter in seen:
            yield Problem(at, f"'{fit.parameter}' is fitted already")
        seen.add(fit.parameter)
        problems = list(_bound_problems(fit, path, document))
        yield from problems or _start_problems(scenario, fit, path, document)
        yield from _permit_problems(scenario, fit, at)
        for number, choice in enumerate(fit.rows):
            yield from _row_problems(scenario, choice, document.place_of((*path, "rows", number)))


def _bound_problems(fit: Fit, path: Path_, document: Document) -> Iterator[Problem]:
    numbers = []
    for number, bound in enumerate(fit.bounds):
        trial = document.copy()
        at = document.place_of((*path, "parameter")).value
        place = Place(at, document.place_of((*path, "bounds", number)).value)
        try:
            assign(trial, split_key(fit.parameter), bound, place)
            tried = Scenario.model_validate(trial.data)
            numbers.append(_number(value_of(tried, fit.parameter)))
            if unknown := [p for p in check_profiles(tried, trial) if p.where in (place.key, place.value)]:
                yield from unknown
                return
        except ValidationError as error:
            yield from problems_of(error, trial)
            return
        except ScenarioError as error:
            yield from error.problems
            return
        except (KeyError, TypeError, ValueError):
            yield Problem(at, f"'{fit.parameter}' is not a number that can be fitted")
            return
    if not 0 < numbers[0] < numbers[1]:
        yield Problem(
            document.place_of((*path, "bounds")).value, "bounds must be above 0, the lower one first"
        )
    elif any(isinstance(bound, str) and not _is_duration(bound) for bound in fit.bounds):
        yield Problem(
            at, f"'{fit.parameter}' is no plain number and no time; {_instead(fit.parameter, document)}"
        )
    elif not isinstance(fit.bounds[0], str) and not _takes(document, fit.parameter, _between(*numbers)):
        why = "is a whole number, and a fit tries values in between"
        yield Problem(at, f"'{fit.parameter}' {why}; {_instead(fit.parameter, document)}")


def _start_problems(scenario: Scenario, fit: Fit, path: Path_, document: Document) -> Iterator[Problem]:
    """What is wrong with where the search starts, given bounds that are sound."""
    if fit.prior is None:
        if _own_value(scenario, fit.parameter) is None:
            why = "has no value of its own in the scenario to start from: give a prior"
            yield Problem(document.place_of((*path, "parameter")).value, f"'{fit.parameter}' {why}")
        return
    at = document.place_of((*path, "prior")).value
    try:
        low, prior, high = map(number_of, (fit.bounds[0], fit.prior, fit.bounds[1]))
    except ValueError:
        yield Problem(at, f"the prior is no value as the bounds are: {shorten(fit.prior)}")
        return
    if isinstance(fit.prior, str) != isinstance(fit.bounds[0], str):
        yield Problem(at, f"the prior is no value as the bounds are: {shorten(fit.prior)}")
    elif not low <= prior <= high:
        yield Problem(at, f"the prior lies outside of the bounds: {shorten(fit.prior)}")


def _own_value(scenario: Scenario, key: str) -> object:
    try:
        return value_of(scenario, key)
    except KeyError:
        return None


def number_of(value: object) -> float:
    """A value to fit as a number, durations in nanoseconds; raises ValueError for what is none."""
    return duration(value) if isinstance(value, str) else float(str(value))


def _between(low: float, high: float) -> float:
    """A value that a fit may try: no whole number, whatever the bounds are."""
    return low + (high - low) / math.pi


def _is_duration(bound: str) -> bool:
    try:
        duration(bound)
    except ValueError:
        return False
    return True


def _takes(document: Document, key: str, value: float | str) -> bool:
    trial = document.copy()
    try:
        assign(trial, split_key(key), value, Place(key, key))
        Scenario.model_validate(trial.data)
    except (ScenarioError, ValidationError):
        return False
    return True


def _instead(key: str, document: Document) -> str:
    """What of the same section a fit can move."""
    section, *_ = map(str, split_key(key))
    can = [
        one for one in _keys(section, value_of(_without_fits(document), section)) if _can_move(document, one)
    ]
    advice = f"fit {_listed(can)}, or sweep" if can else "sweep"
    return f"{advice} '{key}'"


def _can_move(document: Document, key: str) -> bool:
    if any(_takes(document, key, value) for value in (0.7, 1.7)):
        return True
    return _takes(document, key, "1.7 us") and not _takes(document, key, "a name")


def _without_fits(document: Document) -> Scenario:
    return Scenario.model_validate(document.copy(without=("calibrate",)).data)


def _keys(prefix: str, section: object) -> list[str]:
    """The keys of a section and of those in it."""
    if not isinstance(section, BaseModel):
        return [prefix]
    names = type(section).model_fields
    return [key for name in names for key in _keys(f"{prefix}.{name}", getattr(section, name))]


def _listed(keys: list[str]) -> str:
    *first, last = keys
    return f"{', '.join(first)} or {last}" if first else last


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return float(value)


def _permit_problems(scenario: Scenario, fit: Fit, at: str) -> Iterator[Problem]:
    """Refuse what the data set does not let be fitted, if it says what it lets be."""
    dataset = _dataset_of(scenario)
    may = dataset.fit if dataset else ()
    if may and fit.parameter not in may:
        yield Problem(at, f"on this data set only {_listed(list(may))} may be fitted, not '{fit.parameter}'")


def _dataset_of(scenario: Scenario) -> Dataset | None:
    """The scenario's data set; None where there is none that can be read, which is told elsewhere."""
    from simfs.scenario.measured.dataset import load_dataset

    with suppress(ScenarioError):
        return load_dataset(scenario.measured.dataset) if scenario.measured else None
    return None


def _row_problems(scenario: Scenario, choice: RowChoice, place: Place) -> Iterator[Problem]:
    if scenario.measured is None:
        yield Problem(place.value, "rows to calibrate on need 'measured:' data")
    if (dataset := _dataset_of(scenario)) is None:
        return
    if choice.series not in dataset.series:
        near = nearest(choice.series, dataset.series)
        yield Problem(place.value, f"no series '{choice.series}' in dataset {shorten(dataset.name)}", near)
        return
    chosen = [row for row in dataset.rows if _is_chosen(row.series, row.x, row.metric, choice)]
    if not chosen:
        yield Problem(place.value, f"no row of dataset {shorten(dataset.name)} fits this choice")
    if others := sorted({row.role for row in chosen} - {"calibrate"}):
        roles = " and ".join(others)
        yield Problem(
            place.value, f"'{choice.series}' has rows with role {roles} here; they may never be fitted on"
        )


def chosen_rows(dataset: Dataset, fit: Fit) -> list[int]:
    """Return the indices of the dataset's rows that a fit names."""
    return [
        index
        for index, row in enumerate(dataset.rows)
        if any(_is_chosen(row.series, row.x, row.metric, choice) for choice in fit.rows)
    ]


def _is_chosen(series: str, x: float, metric: str, choice: RowChoice) -> bool:
    return series == choice.series and choice.x in (None, x) and choice.metric in (None, metric)
