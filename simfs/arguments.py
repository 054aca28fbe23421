"""What callers from Python give, refused in words before anything runs.

`TypeError` where it is of the wrong kind, `ValueError` where it is not among what there is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from simfs.scenario import Scenario
from simfs.scenario.points import variants_of
from simfs.scenario.suggest import choices


def texts(given: Iterable[object], what: str, example: str) -> tuple[str, ...]:
    """Refuse what are no texts; a text by itself would be taken for a list of letters."""
    if isinstance(given, str):
        raise TypeError(f"{what}: a list, such as ['{example}'], not {given!r}")
    for each in (found := tuple(given)):
        if not isinstance(each, str):
            raise TypeError(f"{what}: {each!r} is no text such as '{example}'")
    return tuple(map(str, found))


def known_variants(scenario: Scenario, given: Iterable[object]) -> tuple[str, ...]:
    """Names of variants; refuses one that there is not."""
    known = variants_of(scenario)
    names = texts(given, "variants", known[0])
    for name in names:
        one_of(name, known, "variants")
    return names


def one_of(name: object, known: Collection[str], what: str) -> None:
    """Refuse a word that is not known."""
    if name not in known:
        raise ValueError(f"{what}: {name!r} is not known; {choices(name, known)}")


def whole(number: object, what: str) -> None:
    """Refuse a number of something that is not None and not at least 1."""
    if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 1):
        raise ValueError(f"{what}: a whole number from 1 on, not {number!r}")


def time_of(given: object, what: str) -> int | None:
    """A time such as `2 ms` in picoseconds; None where nothing is given."""
    from simfs.scenario.sections.units import checked_duration

    try:
        return None if given is None else round(checked_duration(0 if given == "0" else given) * 1000)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def varied(given: object) -> Mapping[str, Sequence[Any] | str]:
    """What a sweep varies: for each key a range as text, or at least one value."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"vary: for each key its values, such as {{'workload.tasks': [1, 8]}}, not {given!r}")
    for key, values in given.items():
        if not isinstance(values, str) and (not isinstance(values, Iterable) or not tuple(values)):
            raise ValueError(f"vary: {key} needs at least one value, not {values!r}")
    if not given:
        raise ValueError("vary: names no key; leave it out for the scenario's own sweep")
    return given
