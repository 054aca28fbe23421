"""Sums without NumPy are NumPy's, to the last digit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from simfs.results.statistics import interval, jain, max_min, mser_curve
from simfs.results.sums import deviation, mean_of, means_of_columns, total_of

SIZES = (1, 2, 5, 7, 8, 9, 20, 127, 128, 129, 300, 5000)


def drawn(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.random.default_rng(shape).lognormal(0, 3, shape) - 2


@pytest.mark.parametrize("size", SIZES)
def test_totals_and_means(size: int) -> None:
    x = drawn(size)
    assert total_of(x.tolist()) == x.sum()
    assert mean_of(x.tolist()) == x.mean()


@pytest.mark.parametrize("size", SIZES[1:])
def test_deviations(size: int) -> None:
    x = drawn(size)
    assert deviation(x.tolist()) == np.std(x, ddof=1)
    mean = interval(x).mean
    assert mean == pytest.approx(x.mean(), rel=1e-12)


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=40), elements=st.floats(0, 1e9)))
def test_means_of_columns(rows: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
    assert means_of_columns(rows.tolist()) == np.mean(rows, axis=0).tolist()


@pytest.mark.parametrize("group", [1, 5])
@pytest.mark.parametrize("size", [5, 20, 100, 1000])
def test_the_mser_curve(size: int, group: int) -> None:
    x = drawn(size)
    means = x[: size - size % group].reshape(-1, group).mean(axis=1)
    last = max(1, means.size // 2 + 1)
    centred = means - means.mean()
    left = means.size - np.arange(last)
    total, squares = (np.cumsum(x[::-1])[::-1][:last] for x in (centred, centred**2))
    expected = np.maximum(squares / left - (total / left) ** 2, 0) / left
    assert mser_curve(x, group) == expected.tolist()


def test_shares() -> None:
    x = np.array([3, 5, 4])
    assert jain(x) == 144 / (3 * 50)
    assert max_min(x) == 5 / 3
