"""Sums, means and deviations of lists as NumPy has them, to the last digit, without NumPy.

To import it takes as long as a tenth of a first look, which needs it for lists of five numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import add

FEW = 8
"""Numbers that are added one after the other, and partial sums that are kept of more."""

BLOCK = 128
"""Numbers that are added in `FEW` partial sums; with more, NumPy is quicker."""


def total_of(x: Sequence[float]) -> float:
    """The sum (`np.sum`)."""
    n = len(x)
    if n > BLOCK:
        import numpy as np

        return float(np.sum(x))
    if n < FEW:
        return _in_order(0.0, x)
    whole = n - n % FEW
    r = [_in_order(x[k], x[k + FEW : whole : FEW]) for k in range(FEW)]
    return _in_order(((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7])), x[whole:])


def _in_order(begin: float, x: Sequence[float]) -> float:
    return reduce(add, x, begin)  # `sum` corrects its rounding from Python 3.12 on


def mean_of(x: Sequence[float]) -> float:
    """The mean (`np.mean`)."""
    return total_of(x) / len(x)


def means_of_columns(rows: Sequence[Sequence[float]]) -> list[float]:
    """The means of what stands at the same place (`np.mean`, `axis=0`); rows of several columns are added in turn."""
    if len(rows[0]) == 1:
        return [mean_of([value for (value,) in rows])]
    return [_in_order(0.0, column) / len(rows) for column in zip(*rows, strict=True)]


def deviation(x: Sequence[float]) -> float:
    """The standard deviation of a sample (`np.std` with `ddof=1`)."""
    centre = mean_of(x)
    return math.sqrt(total_of([(value - centre) * (value - centre) for value in x]) / (len(x) - 1))
