"""A number of the cost models: value, unit, range and source, none of them optional."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

TimeUnit = Literal["ns", "us", "ms", "s"]
PlainUnit = Literal["W", "fraction", "ratio", "count", "CPUs", "lines", "bytes", "blocks", "readers", "polls"]
Evidence = Literal["read", "derived", "measured", "recalled"]

_NS_PER_UNIT: dict[str, float] = dict(zip(get_args(TimeUnit), (1.0, 1e3, 1e6, 1e9), strict=True))


class Model(BaseModel):
    """The base of all cost models: frozen, and unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Quantity(Model):
    """One number and why we believe it.

    `evidence` says how far to trust it: *read* in the named source, *measured* on the named machine,
    *derived* by the formula in the source text, or *recalled* (a published figure that could not be read
    again: verify before citing). `range` is what the sources span and always holds the value.
    """

    value: float
    unit: TimeUnit | PlainUnit
    range: tuple[float, float]
    evidence: Evidence
    source: Annotated[str, Field(min_length=8)]

    @model_validator(mode="after")
    def _value_lies_in_range(self) -> Self:
        low, high = self.range
        if not low <= self.value <= high:
            raise ValueError(f"value {self.value:g} lies outside its range [{low:g}, {high:g}]")
        return self

    @property
    def plain(self) -> float:
        """The value in nanoseconds when it is a time, else in its own unit."""
        return self.value * _NS_PER_UNIT.get(self.unit, 1.0)

    @property
    def plain_range(self) -> tuple[float, float]:
        """The range as `plain` gives the value."""
        scale = _NS_PER_UNIT.get(self.unit, 1.0)
        return self.range[0] * scale, self.range[1] * scale

    @property
    def ns(self) -> float:
        """The value in nanoseconds; `ValueError` when it is not a time."""
        if self.unit not in _NS_PER_UNIT:
            raise ValueError(f"{self.value:g} {self.unit} is not a time")
        return self.plain
