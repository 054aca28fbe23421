"""A measured number: the median of all samples, with the 10th and 90th percentile as its range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simfs.scenario.sections.quantity import Evidence, Quantity, Unit


@dataclass(frozen=True)
class Figure:
    """A value with its range, and where it is from. Sums and differences carry both ends of ranges along."""

    value: float
    low: float
    high: float
    source: str = ""
    evidence: Evidence = "derived"
    unit: Unit = "ns"

    @classmethod
    def of(cls, samples: Sequence[float], source: str) -> Figure:
        """Make one of samples (ns), none of them negative."""
        low, value, high = np.percentile(samples, (10, 50, 90)).clip(min=0)
        return cls(float(value), float(low), float(high), source, "measured")

    @classmethod
    def exactly(cls, value: float, source: str, unit: Unit = "ns", evidence: Evidence = "read") -> Figure:
        """Make one of a number that is told, not measured."""
        return cls(value, value, value, source, evidence, unit)

    @classmethod
    def like(cls, quantity: Quantity, source: str) -> Figure:
        """Make one of a profile's number that stands in for one that could not be measured."""
        low, high = quantity.range
        return cls(quantity.value, low, high, source, "derived", quantity.unit)

    def __add__(self, other: Figure) -> Figure:
        return Figure(self.value + other.value, self.low + other.low, self.high + other.high)

    def __sub__(self, other: Figure) -> Figure:
        return Figure(
            max(0.0, self.value - other.value),
            max(0.0, self.low - other.high),
            max(0.0, self.high - other.low),
        )

    def __mul__(self, factor: float) -> Figure:
        return Figure(self.value * factor, self.low * factor, self.high * factor)

    def said(self, source: str) -> Figure:
        """The same with the text of a source."""
        return replace(self, source=source)

    def quantity(self) -> Quantity:
        """As a number of the models, rounded to four digits."""
        value, low, high = (_rounded(x) for x in (self.value, self.low, self.high))
        return Quantity(
            value=value, unit=self.unit, range=(low, high), evidence=self.evidence, source=self.source
        )


def _rounded(x: float) -> float:
    return x if _whole(x) else float(f"{x:.4g}")


def _whole(x: float) -> bool:
    """Whether a number is a whole one that is told and not measured: sizes and counts keep all digits."""
    return x == int(x)
