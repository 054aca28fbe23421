"""From one scenario to its points: every variant at every combination of swept values, in a fixed order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from simfs.scenario.problems import Problem, ScenarioError
from simfs.scenario.reading.document import Document, Path_, Place
from simfs.scenario.reading.overlay import assign, lay_over, plain_value, split_key, widen_word, words
from simfs.scenario.reading.refusals import problems_of
from simfs.scenario.schema import SECTIONS, Scenario
from simfs.scenario.sections.units import duration, format_duration
from simfs.scenario.sections.workload import Workload
from simfs.scenario.suggest import nearest

MAX_POINTS = 5000
ONLY_VARIANT = "default"
"""What the one variant of a scenario without `variants:` is called."""


@dataclass(frozen=True)
class Point:
    """One variant at one combination of swept values.

    `scenario` has both laid over it and nothing left to vary; `values` maps each swept key to its value here.
    """

    id: str
    variant: str
    values: Mapping[str, bool | int | float | str]
    scenario: Scenario


@dataclass(frozen=True)
class Draft:
    """A point before its settings are checked."""

    id: str
    variant: str
    values: Mapping[str, bool | int | float | str]
    document: Document


def variants_of(scenario: Scenario) -> tuple[str, ...]:
    """Names of the variants of a scenario; without `variants:` that of the only one."""
    return tuple(variant.name for variant in scenario.variants) or (ONLY_VARIANT,)


def expand(scenario: Scenario) -> tuple[Point, ...]:
    """Return the points of a scenario, variants outermost, the last swept key fastest."""
    return tuple(
        Point(draft.id, draft.variant, draft.values, Scenario.model_validate(draft.document.data))
        for draft in drafts(_document(scenario))
    )


Told = Callable[[str, Mapping[str, object]], str]
"""Names a key of a row in messages."""

Check = Callable[[Scenario, Document], Iterable[Problem]]
"""Finds what the models of the schema cannot see at a point."""


def points_at(
    scenario: Scenario,
    rows: Sequence[Mapping[str, object]],
    told: Told = lambda key, row: key,
    check: Check | None = None,
) -> tuple[Point, ...]:
    """Return the points of every variant at each of `rows`, variants outermost, whatever `sweep:` says.

    A row gives values by dotted key, written as in a scenario. `told` names a key of a row in messages, and `check`
    looks at every point. Raises `ScenarioError` with what is wrong with the first row that is refused.
    """
    document = _document(scenario)
    document.data.pop("sweep", None)
    first = {key: row for row in reversed(rows) for key in row}
    for key in dict.fromkeys(key for row in rows for key in row):
        if split_key(key)[0] not in (*SECTIONS, "groups") or "." not in key:
            raise ScenarioError([_not_swept(told(key, first[key]), key)])
    variants = document.data.get("variants") or [{"name": ONLY_VARIANT}]
    drafts_ = (
        draft for i, variant in enumerate(variants) for draft in _drafts_at(document, i, variant, rows, told)
    )
    return tuple(Point(d.id, d.variant, d.values, _checked(d.document, check)) for d in drafts_)


def _checked(document: Document, check: Check | None) -> Scenario:
    try:
        point = Scenario.model_validate(document.data)
    except ValidationError as error:
        raise ScenarioError(problems_of(error, document)) from None
    if check is not None and (problems := list(check(point, document))):
        raise ScenarioError(problems)
    return point


def with_values(scenario: Scenario, values: Mapping[str, float]) -> Scenario:
    """Return the scenario with keys set to plain numbers; durations are given in nanoseconds."""
    document = _document(scenario)
    times = {fit.parameter for fit in scenario.calibrate if isinstance(fit.bounds[0], str)}
    for key, value in values.items():
        path = split_key(key)
        assign(document, path, _as_written(document.data, path, value, key in times), Place(key, key))
    changed = Scenario.model_validate(document.data)
    changed._written = scenario._written  # a fit changes values; the file is still the one that was read
    return changed


def group_drafts(document: Document) -> Iterator[Document]:
    """Yield for each group of a point what the point would be if all tasks were like those of the group."""
    for number, group in enumerate(document.data.get("groups") or []):
        draft = document.copy(without=("groups",))
        if group.get("workload"):
            lay_over(draft, {"workload": group["workload"]}, ("groups", number))
        yield draft


def group_loads(scenario: Scenario) -> dict[str, Workload]:
    """Return the load of each group by its name, in order; empty where there are no groups."""
    if not scenario.groups:
        return {}
    loads = (Scenario.model_validate(draft.data).workload for draft in group_drafts(_document(scenario)))
    return dict(zip((group.name for group in scenario.groups), loads, strict=True))


def value_of(scenario: Scenario, key: str) -> object:
    """Return the value at a dotted key, durations in nanoseconds; raise `KeyError` where there is none."""
    value: object = scenario
    for step in split_key(key):
        if isinstance(value, Mapping):
            value = value[str(step)]
        elif isinstance(value, tuple):  # entries have names, as in `variants.xfs.machine.speed`
            value = {entry.name: entry for entry in value}[str(step)]
        elif hasattr(value, str(step)):
            value = getattr(value, str(step))
        else:
            raise KeyError(key)
    return value


def without_effect(scenario: Scenario, keys: Iterable[str]) -> Iterator[str]:
    """Yield the dotted keys whose value no point has, because each variant sets its own."""
    points = expand(scenario) if scenario.variants else ()
    for key in (key for key in keys if split_key(key)[0] in SECTIONS):
        with suppress(KeyError):  # of a section of another kind
            value = value_of(scenario, key)
            if points and not any(_stands(value, point.scenario, key) for point in points):
                yield key


def selecting_none(scenario: Scenario) -> Iterator[int]:
    """Yield the entries of `points:` that no point is selected by."""
    document = _document(scenario)
    if not (changes := document.data.pop("points", None)):
        return
    every = [(draft.variant, draft.document) for draft in drafts(document)]
    for number, change in enumerate(changes):
        if not any(_is_for(change, *point) for point in every):
            yield number


def swept_anyway(scenario: Scenario) -> Iterator[str]:
    """Yield the dotted keys that variants set and that are swept: at each point the sweep's value is taken."""
    for variant in _document(scenario).data.get("variants") or []:
        for key in scenario.sweep:
            if sets(variant, key):
                yield f"variants.{variant['name']}.{key}"


def sets(changes: object, key: str) -> bool:
    """Whether nested changes say something of a dotted key."""
    for step in split_key(key):
        if not isinstance(changes, Mapping) or step not in changes:
            return False
        changes = changes[step]
    return True


def _stands(value: object, scenario: Scenario, key: str) -> bool:
    try:
        return _agree(value, value_of(scenario, key))
    except KeyError:
        return False


def _agree(value: object, other: object) -> bool:
    """Whether two values are equal, or two sections in anything that was written."""
    if isinstance(value, BaseModel):
        return any(
            _agree(getattr(value, name), getattr(other, name, None)) for name in value.model_fields_set
        )
    if isinstance(value, Mapping) and isinstance(other, Mapping) and value:
        return any(name in other and _agree(one, other[name]) for name, one in value.items())
    return value == other


def drafts(document: Document) -> Iterator[Draft]:
    """Yield a draft of every point; raise `ScenarioError` where one cannot be made."""
    variants = document.data.get("variants") or [{"name": ONLY_VARIANT}]
    sweep: dict[str, list[Any]] = document.data.get("sweep") or {}
    _check_sweep(document, sweep, len(variants))
    for index, variant in enumerate(variants):
        yield from _drafts_of(document, index, variant, sweep)


def _drafts_of(
    document: Document, index: int, variant: dict[str, Any], sweep: dict[str, list[Any]]
) -> Iterator[Draft]:
    base = _base_of(document, index, variant)
    for choice in itertools.product(*(range(len(values)) for values in sweep.values())):
        chosen = {key: values[i] for (key, values), i in zip(sweep.items(), choice, strict=True)}
        places = {
            key: Place(document.place_of(("sweep", key)).key, document.place_of(("sweep", key, i)).value)
            for key, i in zip(sweep, choice, strict=True)
        }
        yield _draft(document, base, variant["name"], chosen, places)


def _drafts_at(
    document: Document,
    index: int,
    variant: dict[str, Any],
    rows: Sequence[Mapping[str, object]],
    told: Told,
) -> Iterator[Draft]:
    base = _base_of(document, index, variant)
    nowhere = {split_key(key)[:1] for row in rows for key in row} - base.places.keys()
    for row in rows:
        places = {key: Place(told(key, row), told(key, row)) for key in row}
        for key, place in reversed(places.items()):
            if (section := split_key(key)[:1]) in nowhere:  # what is refused in it is this key's doing
                base.places[section] = place
        yield _draft(document, base, variant["name"], row, places)


def _base_of(document: Document, index: int, variant: dict[str, Any]) -> Document:
    # A scenario with many variants would else be copied as often as it has some.
    base = document.copy(without=("variants", "sweep", "points", "measured", "calibrate", "expect"))
    for section in SECTIONS:
        widen_word(base, base.data, (section,))
    changes = {key: words(key, variant[key]) for key in SECTIONS if key in variant}
    lay_over(base, changes, ("variants", index))
    return base


def _draft(
    document: Document,
    base: Document,
    variant: str,
    chosen: Mapping[str, object],
    places: Mapping[str, Place],
) -> Draft:
    point = base.copy()
    # The kind goes first: it decides which of the other keys there are.
    for key in sorted(chosen, key=lambda key: not key.endswith(".kind")):
        assign(point, split_key(key), chosen[key], places[key])
    _change(document, point, variant)
    values = {key: plain_value(value) for key, value in chosen.items()}
    return Draft(_id(variant, values), variant, values, point)


def _change(document: Document, point: Document, variant: str) -> None:
    """Lay what `points:` says of this point over it."""
    changes = document.data.get("points") or []
    before = point.copy() if changes else point
    for index, change in enumerate(changes):
        if _is_for(change, variant, before):
            said = {key: words(key, change[key]) for key in (*SECTIONS, "measure") if change.get(key)}
            lay_over(point, said, ("points", index))


def _is_for(change: Mapping[str, Any], variant: str, point: Document) -> bool:
    """Whether an entry of `points:` selects a point."""
    at = (change.get("at") or {}).items()
    return change.get("variant") in (None, variant) and all(_holds(point.data, *each) for each in at)


def _holds(data: object, key: str, value: object) -> bool:
    for step in split_key(key):
        if not isinstance(data, dict) or step not in data:
            return False
        data = data[step]
    return data == value


def _id(variant: str, values: Mapping[str, object]) -> str:
    return variant + "".join(f" {key}={value}" for key, value in values.items())


def _check_sweep(document: Document, sweep: Mapping[str, list[Any]], variants: int) -> None:
    problems = [
        _not_swept(document.place_of(("sweep", key)).key, key)
        for key in sweep
        if split_key(key)[0] not in (*SECTIONS, "groups") or "." not in key
    ]
    problems += [
        Problem(document.place_of(("sweep", key, i)).value, f"sweep.{key}: {value} is there already")
        for key, values in sweep.items()
        for i, value in enumerate(values)
        if repr(value) in map(repr, values[:i])
    ]
    points = variants * math.prod(map(len, sweep.values()))
    if points > MAX_POINTS:
        at = document.place_of(("sweep",)).key
        problems.append(Problem(at, f"the sweep makes {points} points; at most {MAX_POINTS} are possible"))
    if problems:
        raise ScenarioError(problems)


def _not_swept(at: str, key: str) -> Problem:
    section, dot, rest = key.partition(".")
    near = nearest(section, SECTIONS)
    meant = f"{near}{dot}{rest}" if near and rest else None
    if isinstance(word := words(key, ""), dict):  # `kernel: NAME`, swept as it is written
        meant = f"{key}.{next(iter(word))}"
    return Problem(at, f"'{key}' cannot be swept: it must be a key of {', '.join(SECTIONS)}", meant)


def _document(scenario: Scenario) -> Document:
    return Document(scenario.name, scenario.model_dump(mode="json", exclude_unset=True))


def _as_written(data: object, path: Path_, value: float, is_time: bool) -> float | str:
    """A value as the scenario has it. One that it leaves to a profile is a duration if the bounds of its fit are."""
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    if isinstance(data, str):
        duration(data)
    elif data is not None or not is_time:
        return value
    return format_duration(value)
