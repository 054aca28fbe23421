"""Quantities with units: durations, sizes and percentages, as people write them in scenarios.

A number where a quantity is meant is refused, because 15 ns and 15 us are both plausible.
The one exception is 0, which is the same in every unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

from simfs.scenario.sections.section import refusal, shorten
from simfs.scenario.suggest import nearest

NS_PER_UNIT: Mapping[str, float] = {
    "ps": 1e-3,
    "ns": 1.0,
    "us": 1e3,
    "ms": 1e6,
    "s": 1e9,
    "min": 60e9,
    "h": 3600e9,
}
BYTES_PER_UNIT: Mapping[str, float] = {
    "B": 1,
    "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40,
}  # fmt: skip

# The engine counts integer picoseconds in 64 bits and takes no time of 1e15 ns (11 days) or more.
MAX_NS = 1e15
MAX_BYTES = 2.0**60

_QUANTITY = re.compile(r"\s*([+-]?\d*\.?\d+(?:[eE][+-]?\d+)?)\s*([^\d\s]*)\s*", re.ASCII)


def duration(value: object) -> float:
    """Return a duration such as ``"15 us"`` in nanoseconds; raise `ValueError`."""
    ns = _parse(value, NS_PER_UNIT, what="a duration", example="15 us", aliases={"µs": "us", "μs": "us"})
    # 15.3 us is 15300.000000000002 in floats; twelve digits are more than any source gives.
    return float(f"{ns:.12g}")


def checked_duration(value: object) -> float:
    """Return a duration in nanoseconds that a machine can wait for: 0 to 1e15 ns."""
    ns = duration(value)
    if not 0 <= ns <= MAX_NS:
        raise refusal(f"a duration must be at least 0 and at most {MAX_NS / 1e9:,.0f} s")
    return ns


def size(value: object) -> int:
    """Return a size such as ``"8 GiB"`` in bytes; raise `ValueError`."""
    return round(_parse(value, BYTES_PER_UNIT, what="a size", example="8 GiB", aliases={}))


def percentage(value: object) -> float:
    """Return a share such as ``"5 %"`` as a fraction, 0.05; raise `ValueError`."""
    return float(f"{_parse(value, {'%': 0.01}, what='a percentage', example='5 %', aliases={}):.12g}")


def rate(value: object) -> float:
    """Return a rate such as ``"5000 /s"`` as so many a second; raise `ValueError`."""
    units = {f"/{unit}": 1e9 / ns for unit, ns in NS_PER_UNIT.items() if unit != "ps"}
    return float(f"{_parse(value, units, what='a rate', example='5000 /s', aliases={}):.12g}")


def format_duration(ns: float) -> str:
    """Write nanoseconds so that `duration` reads the same number back."""
    for unit in ("s", "ms", "us"):
        scaled = ns / NS_PER_UNIT[unit]
        if scaled >= 1 and scaled * NS_PER_UNIT[unit] == ns and len(f"{scaled:.12g}") <= 6:
            return f"{scaled:.12g} {unit}"
    return f"{ns!r} ns"


def format_rate(per_s: float) -> str:
    """Write a rate so that `rate` reads the same number back."""
    return f"{per_s!r} /s"


def format_size(count: int) -> str:
    """Write bytes so that `size` reads the same number back."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if count >= BYTES_PER_UNIT[unit] and count % BYTES_PER_UNIT[unit] == 0:
            return f"{round(count / BYTES_PER_UNIT[unit])} {unit}"
    return f"{count} B"


def format_percentage(fraction: float) -> str:
    """Write a fraction so that `percentage` reads the same number back."""
    short = f"{fraction * 100:.10g}"
    return f"{short} %" if percentage(f"{short} %") == fraction else f"{fraction * 100!r} %"


def _parse(
    value: object, units: Mapping[str, float], *, what: str, example: str, aliases: Mapping[str, str]
) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise refusal(f"expected {what} with a unit, for example '{example}'")
    if not isinstance(value, str):
        if value == 0:
            return 0.0
        raise refusal(f"{shorten(value)} has no unit: write {what} as, for example, '{example}'")
    match = _QUANTITY.fullmatch(value[:100])
    if match is None or len(value) > 100:
        raise refusal(f"'{shorten(value)}' is not {what}: write it as, for example, '{example}'")
    number, unit = match.groups()
    unit = aliases.get(unit, unit)
    if not unit:
        raise refusal(f"'{shorten(value)}' has no unit: write {what} as, for example, '{example}'")
    if unit not in units:
        raise refusal(
            f"unknown unit '{shorten(unit)}' for {what}; known: {', '.join(units)}", nearest(unit, units)
        )
    result = float(number) * units[unit]
    if not math.isfinite(result):
        raise refusal(f"'{shorten(value)}' is too large")
    return result


def size_between(low: int, high: int) -> AfterValidator:
    """Refuse other sizes, with the bounds as people write sizes."""

    def check(value: int) -> int:
        if not low <= value <= high:
            raise refusal(
                f"expected a size of {format_size(low)} to {format_size(high)}, got {format_size(value)}"
            )
        return value

    return AfterValidator(check)


def _between(low: float, high: float, what: str, *, above: bool = False) -> AfterValidator:
    def check(value: float) -> float:
        if value < low or value > high or (above and value == low):
            raise refusal(f"{what} must be {'above' if above else 'at least'} {low:g} and at most {high:g}")
        return value

    return AfterValidator(check)


def _lasting(least: float, otherwise: str, *, above: bool = False) -> AfterValidator:
    def check(ns: float) -> float:
        if ns < least or (above and ns == least):
            raise refusal(otherwise)
        return ns

    return AfterValidator(check)


def _schema(description: str, pattern: str, example: str, *, zero: bool) -> WithJsonSchema:
    text: dict[str, Any] = {"type": "string", "pattern": pattern}
    choices = [text, {"const": 0}] if zero else [text]
    return WithJsonSchema({"anyOf": choices, "description": description, "examples": [example]})


_NUMBER = r"^\s*\+?\d*\.?\d+([eE][+-]?\d+)?\s*"
_TIME_UNIT = r"(ps|ns|us|µs|μs|ms|s|min|h)\s*$"
_SIZE_UNIT = r"(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)\s*$"
_AS_DURATION = PlainSerializer(format_duration, return_type=str)

Duration = Annotated[
    float,
    BeforeValidator(checked_duration),
    _AS_DURATION,
    _schema(
        "A duration with its unit (ps, ns, us, ms, s, min, h).", _NUMBER + _TIME_UNIT, "15 us", zero=True
    ),
]
"""Nanoseconds, at least 0."""

PositiveDuration = Annotated[
    float,
    BeforeValidator(checked_duration),
    _lasting(0, "a duration must be above 0", above=True),
    _AS_DURATION,
    _schema(
        "A duration above 0 with its unit (ps, ns, us, ms, s, min, h).",
        _NUMBER + _TIME_UNIT,
        "1 s",
        zero=False,
    ),
]
"""Nanoseconds, above 0."""

TurnTime = Annotated[
    float,
    BeforeValidator(checked_duration),
    _lasting(1e3, "a duration must be at least 1 us here"),
    _AS_DURATION,
    _schema(
        "A duration of at least 1 us with its unit (ns, us, ms, s).", _NUMBER + _TIME_UNIT, "3 ms", zero=False
    ),
]
"""Nanoseconds, at least 1000: how long a task runs at least, and a tick lasts."""

Size = Annotated[
    int,
    BeforeValidator(size),
    _between(1, MAX_BYTES, "a size in bytes"),
    PlainSerializer(format_size, return_type=str),
    _schema(
        "A size with its unit (B, KiB, MiB, GiB, TiB, kB, MB, GB, TB).",
        _NUMBER + _SIZE_UNIT,
        "8 GiB",
        zero=False,
    ),
]
"""Bytes, at least 1."""

Room = Annotated[
    int,
    BeforeValidator(size),
    _between(0, MAX_BYTES, "a size in bytes"),
    PlainSerializer(format_size, return_type=str),
    _schema(
        "A size with its unit (B, KiB, MiB, GiB, TiB, kB, MB, GB, TB), or 0.",
        _NUMBER + _SIZE_UNIT,
        "20 MiB",
        zero=True,
    ),
]
"""Bytes, at least 0."""

Rate = Annotated[
    float,
    BeforeValidator(rate),
    _between(0, 1e12, "a rate, a second,", above=True),
    PlainSerializer(format_rate, return_type=str),
    _schema(
        "A rate above 0 (/s, /ms, /us, /min, /h).",
        _NUMBER + r"/(ns|us|ms|s|min|h)\s*$",
        "5000 /s",
        zero=False,
    ),
]
"""So many a second, above 0."""

Percentage = Annotated[
    float,
    BeforeValidator(percentage),
    _between(0, 1, "a percentage, as a fraction,", above=True),
    PlainSerializer(format_percentage, return_type=str),
    _schema("A percentage above 0 % and at most 100 %.", _NUMBER + r"%\s*$", "5 %", zero=False),
]
"""A fraction, above 0 and at most 1."""
