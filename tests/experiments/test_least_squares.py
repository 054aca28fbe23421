"""Least squares beside the exact solution in fractions, and what the law of a curve makes of it."""

import math
from fractions import Fraction

import numpy as np
import pytest

from simfs.results.least_squares import least_squares

COLUMNS = 3


def exactly(columns: list[list[float]], wanted: list[float]) -> tuple[list[Fraction], list[list[Fraction]]]:
    """Coefficients and the inverse of the normal equations' matrix, by Gauss and Jordan."""
    a = [[Fraction(value) for value in column] for column in columns]
    b = [Fraction(value) for value in wanted]

    def dot(x: list[Fraction], y: list[Fraction]) -> Fraction:
        return sum((p * q for p, q in zip(x, y, strict=True)), Fraction())

    rows = [
        [*(dot(x, y) for y in a), dot(x, b), *(Fraction(int(i == j)) for j in range(COLUMNS))]
        for i, x in enumerate(a)
    ]
    for i in range(COLUMNS):
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for j in (j for j in range(COLUMNS) if j != i):
            rows[j] = [p - rows[j][i] * q for p, q in zip(rows[j], rows[i], strict=True)]
    return [row[COLUMNS] for row in rows], [row[COLUMNS + 1 :] for row in rows]


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_exact_solution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = np.sort(rng.choice(np.arange(1, 300), size=rng.integers(4, 15), replace=False)).astype(float)
    columns = [np.ones_like(n).tolist(), (n - 1).tolist(), (n * (n - 1)).tolist()]
    wanted = rng.lognormal(0, 0.1, n.size).tolist()
    fit = least_squares(columns, wanted)
    coefficients, inverse = exactly(columns, wanted)
    assert fit.coefficients == pytest.approx([float(c) for c in coefficients], rel=1e-10)
    for slopes in ((1.0, 0.0, 0.0), (0.3, -2.0, 5.0)):
        variance = sum(
            Fraction(p) * inverse[i][j] * Fraction(q)
            for i, p in enumerate(slopes)
            for j, q in enumerate(slopes)
        )
        assert fit.variance(slopes) == pytest.approx(float(variance), rel=1e-10)
    left = [w - math.fsum(c * x for c, x in zip(fit.coefficients, at, strict=True))
            for w, at in zip(wanted, zip(*columns, strict=True), strict=True)]  # fmt: skip
    assert fit.left == pytest.approx(left, abs=1e-12)
