"""95 % intervals hold the truth in 93 to 97 % of 1,000 runs where the truth is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from streams import ar1, coverage, mm1_waits

from engine import lock_cycle, simulate_all
from simfs.results.statistics import (
    Estimate,
    batch_means,
    interval,
    max_min,
    mser,
    paired_difference,
    replications_needed,
    two_stage,
)
from simfs.results.statistics_scaling import Twin, usl

RUNS = 1000


def in_band(estimates: list[Estimate], truth: float) -> bool:
    assert len(estimates) == RUNS
    return 0.93 <= coverage(estimates, truth) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.3, 0.6])
def test_replications_of_mm1_after_their_warm_up(rho: float) -> None:
    waits = mm1_waits(np.random.default_rng(11), RUNS * 10, 1500, rho)[:, 300:].mean(axis=1)
    assert in_band([interval(runs) for runs in waits.reshape(RUNS, 10)], rho / (1 - rho))


@pytest.mark.slow
def test_batch_means_of_one_mm1_run() -> None:
    waits = mm1_waits(np.random.default_rng(12), RUNS, 12_000, 0.5)[:, 2000:]
    assert in_band([batch_means(run) for run in waits.tolist()], 1.0)


@pytest.mark.slow
def test_mser_cuts_a_start_far_from_the_steady_state() -> None:
    """AR(1) streams that begin 330 deviations off: only what MSER-5 leaves has intervals worth having."""
    streams = ar1(np.random.default_rng(13), RUNS, 3000, phi=0.8) + 200 * 0.98 ** np.arange(3000)
    whole, cut = (
        [batch_means(s) for s in streams.tolist()],
        [batch_means(s[mser(s) :]) for s in streams.tolist()],
    )
    assert not in_band(whole, 0.0)
    assert in_band(cut, 0.0)
    assert np.mean([e.half_width for e in cut]) < 0.05 * np.mean([e.half_width for e in whole])


@pytest.mark.parametrize(("spread", "precision"), [(0.1, 0.05), (0.05, 0.02), (0.05, 0.05), (0.2, 0.05)])
def test_stopping_at_a_precision_keeps_the_confidence(spread: float, precision: float) -> None:
    rng = np.random.default_rng(14)
    found = []
    for _ in range(RUNS):
        first = rng.normal(1, spread, 10)
        more = replications_needed(first, precision) - 10
        found.append(two_stage([*first, *rng.normal(1, spread, more)], 10))
    assert in_band(found, 1.0)
    assert np.mean([e.relative_half_width <= precision * 1.1 for e in found]) > 0.95


def test_stopping_as_soon_as_it_looks_narrow_would_not() -> None:
    rng = np.random.default_rng(15)
    found = []
    for _ in range(RUNS):
        x = list(rng.normal(1, 0.1, 5))
        while interval(x).relative_half_width > 0.05:
            x.append(rng.normal(1, 0.1))
        found.append(interval(x))
    assert coverage(found, 1.0) < 0.935


def test_paired_differences_under_common_random_numbers() -> None:
    rng = np.random.default_rng(16)
    arrivals, services = rng.exponential(2, (RUNS * 8, 800)), rng.exponential(1, (RUNS * 8, 800))

    def waits(speed: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        wait = np.zeros(RUNS * 8)
        total = np.zeros(RUNS * 8)
        for i in range(800):
            total += wait if i >= 200 else 0
            wait = np.maximum(0, wait + services[:, i] / speed - arrivals[:, i])
        means: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = total.reshape(RUNS, 8) / 600
        return means

    # M/M/1 with rho = 1/2, and with a server 1.25 times as fast: W = rho / (mu - lambda).
    truth = (0.5 / 1.25) / (1.25 - 0.5) - 0.5 / (1 - 0.5)
    found = [paired_difference(a, b) for a, b in zip(waits(1.25), waits(1.0), strict=True)]
    assert in_band(found, truth)


def test_a_curve_that_only_falls_is_highest_at_one_task() -> None:
    """The table said `peak at 0`."""
    falls = usl((1, 2, 4, 8), (100, 80, 60, 40))
    assert falls is not None
    assert falls.contention.mean > 1
    assert falls.coherency.mean > 0
    assert falls.peak == 1


def test_usl_coefficients() -> None:
    rng = np.random.default_rng(17)
    n = np.array([1, 2, 4, 8, 12, 16, 24, 32, 48])
    truth = 1000 * n / (1 + 0.04 * (n - 1) + 0.0005 * n * (n - 1))
    fits = [usl(n, truth * rng.normal(1, 0.01, n.size)) for _ in range(RUNS)]
    known = [fit for fit in fits if fit is not None]
    assert in_band([fit.rate for fit in known], 1000)
    assert in_band([fit.contention for fit in known], 0.04)
    assert in_band([fit.coherency for fit in known], 0.0005)
    exact = usl(n, truth)
    assert exact is not None
    assert exact.peak == pytest.approx(math.sqrt(0.96 / 0.0005), rel=1e-6)
    through = usl(n[[0, 4, 8]], truth[[0, 4, 8]])
    assert through is not None
    assert through.at(24) == pytest.approx(truth[6])
    assert through.rate.low is None
    assert usl([1, 2], [1, 2]) is None


def test_the_twin_has_the_textbook_values() -> None:
    """Machine repairman with Z = 1000, S = 50: the published table of MVA throughputs."""
    twin = Twin("lock", 50, 1000)
    table = {1: 0.952381, 4: 3.781373, 8: 7.460407, 16: 14.159331, 24: 18.678066, 32: 19.932394, 48: 20.0}
    for tasks, rate in table.items():
        assert twin.per_s(tasks) / 1e6 == pytest.approx(rate, abs=1e-5)
        assert twin.per_s(tasks) <= twin.bound_per_s(tasks)
    assert twin.knee == 21


@pytest.mark.slow
def test_the_engine_covers_the_machine_repairman() -> None:
    """1,000 experiments of 5 replications on an ideal ticket lock, exponential hold and think times."""
    exponential: dict[str, Any] = {f"{what}_distribution": "exponential" for what in ("think", "hold")}
    times: dict[str, Any] = {"warmup_ns": 2e4, "duration_ns": 5e4}
    spec = lock_cycle("ticket", 6, think_ns=1000.0, hold_ns=250.0, **times, **exponential)
    runs = simulate_all([{**spec, "replication": i} for i in range(RUNS * 5)])
    rates = np.array([r.throughput_per_s for r in runs]).reshape(RUNS, 5)
    assert in_band([interval(few) for few in rates], Twin("lock", 250, 1000).per_s(6))


def test_max_min_tells_who_starves() -> None:
    assert max_min([2, 4, 8]) == 4
    assert max_min([0, 0]) == max_min([]) == 1
    assert max_min([0, 1]) == math.inf
