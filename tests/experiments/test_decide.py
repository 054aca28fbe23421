"""Variations are run until it is decided which differ: few runs for what is clear, up to the limit for what is not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from typer.testing import CliRunner

from simfs.cli import app
from simfs.experiments.decide import Contrast, decide, hope, verdict
from simfs.experiments.points import Varied, run_varied, the_point
from simfs.results.model import ScenarioResult
from simfs.results.run import FIRST_STAGE, Runs, native_engine
from simfs.results.statistics import Estimate, interval, stddev
from simfs.scenario import load

RUNNER = CliRunner()
POINT = the_point(load("lock-cycle", ["workload.tasks=2", "measure.duration=1 ms"]), "mutex")
NAMES = ("as it is", "like", "better", "noisy", "hopeless")
NOW, LIKE, BETTER, NOISY, HOPELESS = (Varied(POINT, name) for name in NAMES)
MOST = 40


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (-1.9, 1.9, "equal within 2 %"),
        (0.1, 1.9, "equal within 2 %"),
        (0.1, 2.1, "better"),
        (-9.0, -2.5, "worse"),
        (-0.1, 2.1, "undecided after 7"),
    ],
)
def test_a_verdict_says_what_an_interval_says(low: float, high: float, said: str) -> None:
    assert verdict(Estimate(mean=(low + high) / 2, low=low, high=high, n=7)) == said


def test_one_run_decides_nothing() -> None:
    assert verdict(Estimate(mean=9, low=None, high=None, n=1)) == "undecided after 1"


def gains(**per_cent: Callable[[int], float]) -> tuple[Callable[..., ScenarioResult], Counter[str]]:
    """A stand-in for the engine's throughputs: of each variation its gain in each replication."""
    ran: Counter[str] = Counter()

    def run(points: list[Varied], runs: Runs, **options: object) -> ScenarioResult:
        ran.update({point.id: runs.replications for point in points})
        result = run_varied(points, Runs(2, warmup=0.0), engine=native_engine())
        made = []
        for p in result.points:
            by = per_cent.get(p.id)
            rates = tuple(1000 + 10 * (by(i) if by else 0.0) for i in range(runs.replications))
            made.append(p.model_copy(update={"replication_throughputs": rates, "replications": len(rates)}))
        return result.model_copy(update={"points": tuple(made)})

    return run, ran


def test_only_what_is_undecided_is_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1).normal(0, 6, 99)
    run, ran = gains(better=lambda i: 30 + rng[i], noisy=lambda i: rng[i], hopeless=lambda i: 20 * (-1) ** i)
    monkeypatch.setattr("simfs.experiments.decide.run_varied", run)
    contrasts = [Contrast((v,)) for v in (LIKE, BETTER, NOISY, HOPELESS)]
    found = decide(NOW, contrasts, Runs(5, warmup=0.0), most=MOST)
    said = [verdict(found.estimate(c)) for c in contrasts]
    assert said[:2] == ["equal within 2 %", "better"]
    assert said[3] == f"undecided after {FIRST_STAGE}"
    assert ran["like"] == ran["better"] == ran["hopeless"] == FIRST_STAGE
    assert ran["noisy"] == ran["as it is"] == FIRST_STAGE + 2 * FIRST_STAGE + MOST
    estimate = found.estimate(contrasts[2])
    assert estimate is not None
    assert estimate.n == MOST


@pytest.mark.parametrize(("mean", "spread"), [(0.0, 6.0), (2.0, 6.0), (4.0, 6.0), (0.5, 3.0)])
def test_the_hope_is_how_often_all_runs_decide(mean: float, spread: float) -> None:
    """The true mean is where the first stage and its standard error leave it, the spread is that of the stage."""
    rng = np.random.default_rng(3)
    shape = rng.normal(0, 1, FIRST_STAGE)
    observed = mean + spread * (shape - shape.mean()) / shape.std(ddof=1)
    first = interval(observed, 0.975)
    more = MOST - FIRST_STAGE
    true = rng.normal(mean, spread / np.sqrt(FIRST_STAGE), 20_000)
    all_ = (FIRST_STAGE * mean + more * rng.normal(true, spread / np.sqrt(more))) / MOST
    half = first.half_width * np.sqrt(FIRST_STAGE / MOST)
    decided = (np.abs(all_) > half) | (np.abs(all_) + half < 2)
    assert hope(first, stddev(first, 0.975), MOST) == pytest.approx(decided.mean(), abs=0.015)


def test_a_spread_that_the_second_stage_can_beat_is_run_as_often_as_stein_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(2).normal(0, 2.4, 99)
    run, _ = gains(noisy=lambda i: rng[i])
    monkeypatch.setattr("simfs.experiments.decide.run_varied", run)
    contrast = Contrast((NOISY,))
    found = decide(NOW, [contrast], Runs(5, warmup=0.0), most=1000).estimate(contrast)
    assert found is not None
    assert found.half_width <= 1.0
    assert FIRST_STAGE < found.n < 99
    assert verdict(found) == "equal within 2 %"


def test_each_difference_is_run_as_often_as_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2).normal(0, 1.0, 99)
    run, _ = gains(better=lambda i: 2.2 * rng[i], noisy=lambda i: 3 * rng[i])
    monkeypatch.setattr("simfs.experiments.decide.run_varied", run)
    contrasts = [Contrast((BETTER,)), Contrast((NOISY,))]
    found = decide(NOW, contrasts, Runs(5, warmup=0.0), most=1000)
    less, more = (found.points[c.ids[0]].replications for c in contrasts)
    assert FIRST_STAGE < less < more == found.base.replications
    assert all(verdict(found.estimate(c)) == "equal within 2 %" for c in contrasts)


def test_what_the_first_runs_left_in_hope_is_given_up_when_more_runs_leave_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1).normal(0, 6, 99)
    start = rng[:FIRST_STAGE] - rng[:FIRST_STAGE].mean()
    run, _ = gains(noisy=lambda i: 3 + start[i] if i < FIRST_STAGE else -1 + start[i % FIRST_STAGE])
    monkeypatch.setattr("simfs.experiments.decide.run_varied", run)
    contrast = Contrast((NOISY,), equal=0.5)
    found = decide(NOW, [contrast], Runs(5, warmup=0.0), most=4 * FIRST_STAGE)
    assert verdict(found.estimate(contrast)) == f"undecided after {2 * FIRST_STAGE}"


def test_without_a_limit_every_point_is_run_as_often_as_the_scenario_says() -> None:
    contrast = Contrast((Varied(POINT, "like"),))
    found = decide(NOW, [contrast], Runs(3, warmup=0.0))
    assert found.base.replications == found.points["like"].replications == 3


def test_what_is_set_by_hand_wins_over_quick() -> None:
    small = ["--set", "workload.tasks=2", "--set", "measure.duration=1 ms", "--set", "measure.replications=3"]
    answer = RUNNER.invoke(app, ["run", "lock-cycle", "--quick", "--format", "json", *small])
    point = json.loads(answer.stdout)["points"][0]
    assert (point["window_ns"], point["replications"]) == (1e6, 3)
    asked = ["whatif", "lock-cycle", "--variant", "mutex", "--quick", "--format", "json", *small]
    assert json.loads(RUNNER.invoke(app, asked).stdout)["replications"] == 3


@pytest.mark.slow
def test_the_example_of_advise_names_what_the_full_run_names_with_another_seed_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That locks are tried as well: `test_the_example_of_the_help_runs`, in short runs."""
    monkeypatch.setattr("simfs.experiments.advise.TRIED", 0)
    answer = RUNNER.invoke(app, ["advise", "compile-24", "--variant", "xfs", "--quick", "--seed", "2"])
    assert answer.stdout.startswith("-> take agcount=4 and a directory per task")
