"""Linear least squares of a few columns, the same on every computer and without NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Fitted:
    """Coefficients, and what is left of the wanted values."""

    coefficients: tuple[float, ...]
    left: tuple[float, ...]
    _triangle: tuple[tuple[float, ...], ...]

    def variance(self, slopes: Sequence[float]) -> float:
        """Of a number with these derivatives by the coefficients, for wanted values with variance 1."""
        solved: list[float] = []
        for k, row in enumerate(self._triangle):
            known = math.fsum(self._triangle[i][k] * solved[i] for i in range(k))
            solved.append((slopes[k] - known) / row[k])
        return math.fsum(value * value for value in solved)


def least_squares(columns: Sequence[Sequence[float]], wanted: Sequence[float]) -> Fitted:
    """The coefficients of independent columns whose sum is nearest to what is wanted.

    By modified Gram and Schmidt on the columns and the wanted values together, which is as exact as Householder's
    reflections (A. Björck, Numerical Methods for Least Squares Problems, 1996, section 2.4.4).
    """
    count = len(columns)
    left = [list(column) for column in (*columns, wanted)]
    triangle = [[0.0] * (count + 1) for _ in range(count)]
    for i, row in enumerate(triangle):
        row[i] = math.hypot(*left[i])
        unit = [value / row[i] for value in left[i]]
        for j in range(i + 1, count + 1):
            row[j] = along = math.fsum(map(float.__mul__, unit, left[j]))
            left[j] = [value - along * u for value, u in zip(left[j], unit, strict=True)]
    return Fitted(_solved(triangle), tuple(left[count]), tuple(map(tuple, triangle)))


def _solved(triangle: Sequence[Sequence[float]]) -> tuple[float, ...]:
    count = len(triangle)
    found = [0.0] * count
    for i in reversed(range(count)):
        known = math.fsum(triangle[i][j] * found[j] for j in range(i + 1, count))
        found[i] = (triangle[i][count] - known) / triangle[i][i]
    return tuple(found)
