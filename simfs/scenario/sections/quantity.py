"""A number of the cost models: value, unit, range and source, none of them optional."""

import math
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Field, StrictFloat, model_validator

from simfs.scenario.sections.machine import MAX_CPUS
from simfs.scenario.sections.section import Section, refusal
from simfs.scenario.sections.units import MAX_BYTES, MAX_NS

TimeUnit = Literal["ns", "us", "ms", "s"]
PlainUnit = Literal[
    "W",
    "fraction",
    "ratio",
    "count",
    "CPUs",
    "lines",
    "pages",
    "bytes",
    "bytes/s",
    "1/s",
    "blocks",
    "inodes",
    "readers",
    "instructions",
    "polls",
    "GHz",
]
Unit = Literal[TimeUnit, PlainUnit]
Evidence = Literal["read", "derived", "measured", "recalled"]

_NS_PER_UNIT: dict[str, float] = dict(zip(get_args(TimeUnit), (1.0, 1e3, 1e6, 1e9), strict=True))

_LIMITS: dict[str, tuple[float, float]] = {
    "fraction": (0, 1), "CPUs": (1, MAX_CPUS), "bytes": (0, MAX_BYTES), "bytes/s": (1e3, MAX_BYTES), "1/s": (1, 1e9),
    "inodes": (0, 1e9),
}  # fmt: skip
"""What a machine can be made of, by unit; 0 to a million of all others. Times are those of scenarios."""


class Quantity(Section):
    """One number and why we believe it.

    `evidence` says how far to trust it: *read* in the named source, *measured* on the named machine,
    *derived* by the formula in the source text, or *recalled* (a published figure that could not be read
    again: verify before citing). `range` is what the sources span and always holds the value.
    """

    value: StrictFloat
    unit: Unit
    range: tuple[StrictFloat, StrictFloat]
    evidence: Evidence
    source: Annotated[str, Field(min_length=8)]

    @model_validator(mode="after")
    def _value_lies_in_range(self) -> Self:
        low, high = self.range
        if not low <= self.value <= high:
            raise refusal(f"value {self.value:g} lies outside its range [{low:g}, {high:g}]")
        return self

    @model_validator(mode="after")
    def _range_lies_within_its_unit(self) -> Self:
        scale = _NS_PER_UNIT.get(self.unit)
        least, most = (0, MAX_NS / scale) if scale else _LIMITS.get(self.unit, (0, 1e6))
        low, high = self.range
        if not least <= low <= high <= most:
            raise refusal(f"range [{low:g}, {high:g}] lies outside {least:g} to {most:g} {self.unit}")
        return self

    @property
    def plain(self) -> float:
        """The value in nanoseconds when it is a time, else in its own unit."""
        return self.value * _NS_PER_UNIT.get(self.unit, 1.0)

    @property
    def plain_unit(self) -> str:
        """The unit of `plain`."""
        return "ns" if self.unit in _NS_PER_UNIT else self.unit

    @property
    def plain_range(self) -> tuple[float, float]:
        """The range as `plain` gives the value."""
        scale = _NS_PER_UNIT.get(self.unit, 1.0)
        return self.range[0] * scale, self.range[1] * scale

    @property
    def is_time(self) -> bool:
        """Whether it is a time."""
        return self.unit in _NS_PER_UNIT

    @property
    def ns(self) -> float:
        """The value in nanoseconds; `ValueError` when it is not a time."""
        if not self.is_time:
            raise ValueError(f"{self.value:g} {self.unit} is not a time")
        return self.plain


def _in(units: tuple[str, ...], low: float = 0, high: float = math.inf) -> AfterValidator:
    """Take only quantities in these units whose value is from `low` to `high`."""

    def check(quantity: Quantity) -> Quantity:
        if quantity.unit not in units:
            raise refusal(f"is given in {' or '.join(units)}, not in {quantity.unit}")
        if not low <= quantity.plain <= high:
            raise refusal(f"value {quantity.plain:g} lies outside {low:g} to {high:g}")
        return quantity

    return AfterValidator(check)


_TIMES = get_args(TimeUnit)

Time = Annotated[Quantity, _in(_TIMES)]
Period = Annotated[Quantity, _in(_TIMES, low=1)]
"""A time of at least a nanosecond."""
Watts = Annotated[Quantity, _in(("W",))]
Cpus = Annotated[Quantity, _in(("CPUs",))]
Bytes = Annotated[Quantity, _in(("bytes",), low=1)]
BytesPerSecond = Annotated[Quantity, _in(("bytes/s",))]
PerSecond = Annotated[Quantity, _in(("1/s",))]
Burst = Annotated[Quantity, _in(("count",), low=1)]
Clock = Annotated[Quantity, _in(("GHz",), low=0.1, high=10)]
Lines = Annotated[Quantity, _in(("lines",), high=10_000)]
Pages = Annotated[Quantity, _in(("pages",), high=10_000)]
Count = Annotated[Quantity, _in(("count",), low=1, high=65_536)]
"""How many there are of something that a machine has."""
Variation = Annotated[Quantity, _in(("ratio", "fraction"), high=10)]
"""Standard deviation over mean."""
Switch = Annotated[Quantity, _in(("ratio",), low=0, high=1)]
"""Whether a machine does something: 1 or 0."""
Overlap = Annotated[Quantity, _in(("ratio",), low=1, high=1000)]
Speed = Annotated[Quantity, _in(("ratio",), low=1e-6, high=1000)]
SharedSpeed = Annotated[Quantity, _in(("ratio", "fraction"), low=1e-6, high=1)]
"""Speed beside another program, relative to alone."""
