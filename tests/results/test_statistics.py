"""The statistics hold what they promise: coverage, truncation, fairness, pairing."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit
from streams import ar1, coverage, mm1_waits

from simfs.reports.numbers import half_width
from simfs.reports.text import error
from simfs.results.model import Comparison, MeasuredRow
from simfs.results.statistics import Estimate, batch_means, interval, jain, mser, paired_difference, student_t


def test_the_last_bits_of_a_double_are_no_half_width() -> None:
    """Equal rates of windows whose lengths differ in the last bit were told as `63 ± 7.1e-15`."""
    assert half_width(interval([63.0, 63.0, math.nextafter(63.0, 64.0)])) == "0"
    assert half_width(interval([63.0, 63.0, 63.1])) == "0.14"
    assert half_width(interval([0.0, 0.0])) == "0"


@pytest.mark.parametrize(("off", "says"), [(-0.04, "0.0 %"), (-0.06, "-0.1 %"), (3.0, "+3.0 %")])
def test_an_error_that_rounds_to_nothing_has_no_sign(off: float, says: str) -> None:
    row = MeasuredRow(dataset="a", series="a", variant="a", metric="creates_per_s", value=100, role="predict")
    simulated = Estimate(mean=100 + off, low=None, high=None, n=1)
    assert error(Comparison(row=row, simulated=simulated, error=off, error_percent=off)) == says


def test_student_t_on_the_textbook_example() -> None:
    # Law, example 4.27: ten capacitors, 90 % interval 1.34 +- 0.24.
    x = [1.20, 1.50, 1.68, 1.89, 0.95, 1.49, 1.58, 1.55, 0.50, 1.09]
    estimate = interval(x, level=0.90)
    assert estimate.mean == pytest.approx(1.34, abs=0.005)
    assert estimate.half_width == pytest.approx(0.24, abs=0.005)


@given(st.floats(0.5, 0.9999), st.floats(1, 1e6))
def test_the_quantile_of_student_is_that_of_scipy(level: float, freedom: float) -> None:
    assert student_t(level, freedom) == pytest.approx(float(stdtrit(freedom, (1 + level) / 2)), rel=1e-8)


@pytest.mark.slow
def test_replications_of_mm1_cover_the_truth() -> None:
    rho, cut = 0.5, 200
    waits = mm1_waits(np.random.default_rng(1), 1000 * 8, 1200, rho)[:, cut:].mean(axis=1)
    estimates = [interval(run) for run in waits.reshape(1000, 8)]
    assert 0.93 <= coverage(estimates, rho / (1 - rho)) <= 0.97


def test_observations_that_fill_no_batch_are_cut_off_in_front() -> None:
    """The oldest may still be of the transient."""
    assert batch_means([100, 1, 2, 3, 4], 2).mean == 2.5


@pytest.mark.slow
def test_batch_means_cover_the_truth_in_a_correlated_stream() -> None:
    streams = ar1(np.random.default_rng(2), 1000, 4000, phi=0.7)
    assert 0.93 <= coverage([batch_means(s) for s in streams], 0.0) <= 0.97


def test_an_interval_that_ignores_correlation_does_not_cover() -> None:
    streams = ar1(np.random.default_rng(2), 300, 1000, phi=0.7)
    assert coverage([interval(s) for s in streams], 0.0) < 0.75


@pytest.mark.parametrize("level", [0.8, 0.9, 0.99])
def test_other_levels_are_kept_too(level: float) -> None:
    runs = np.random.default_rng(3).normal(5, 2, size=(2000, 5))
    assert coverage([interval(r, level) for r in runs], 5) == pytest.approx(level, abs=0.02)


def test_mser_finds_a_ramp_and_leaves_the_stationary_rest() -> None:
    stream = np.random.default_rng(4).normal(100, 3, size=400)
    stream[:60] -= np.linspace(80, 0, 60)
    assert 40 <= mser(stream) <= 80


def test_mser_cuts_little_from_a_stationary_stream() -> None:
    rng = np.random.default_rng(5)
    cuts = [mser(rng.normal(100, 3, size=400)) for _ in range(100)]
    assert np.median(cuts) <= 20


def test_mser_never_cuts_more_than_half() -> None:
    assert mser(np.arange(100.0)) == 50
    assert mser([1.0] * 5) == 0


def test_paired_differences_are_narrower_under_common_random_numbers() -> None:
    rng = np.random.default_rng(6)
    common = rng.normal(0, 10, size=8)
    before, after = 100 + common, 103 + common + rng.normal(0, 0.5, size=8)
    paired = paired_difference(after.tolist(), before.tolist())
    assert paired.contains(3)
    assert paired.half_width < interval(after).half_width / 5


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=50))
def test_jain_lies_between_one_nth_and_one(shares: list[float]) -> None:
    assert 1 / len(shares) - 1e-9 <= jain(shares) <= 1 + 1e-9


def test_jain_extremes() -> None:
    assert jain([7, 7, 7]) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert jain([0, 0]) == jain([]) == 1


def test_one_observation_has_no_interval() -> None:
    estimate = interval([3.0])
    assert (estimate.mean, estimate.low, estimate.high) == (3.0, None, None)
    assert estimate.relative_half_width == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: interval([]), "non-empty"),
        (lambda: batch_means([1, 2, 3], 1), "at least 2"),
        (lambda: batch_means([1, 2, 3], 10), "do not fill"),
        (lambda: paired_difference([1, 2], [1]), "equally many"),
    ],
)
def test_too_little_data_is_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=message):
        call()
