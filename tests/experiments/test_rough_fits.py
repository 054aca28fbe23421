"""Fits of what is only known roughly: a search ends at the noise of the runs, and does not hunt through it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import median

import numpy as np
import pytest

from simfs.experiments import calibrate
from simfs.experiments.calibrate import Objective, Parameter, Vector
from simfs.experiments.search import search as find
from simfs.results.model import Comparison, MeasuredRow
from simfs.results.statistics import interval

MEASURED = 100.0


def row(number: int) -> MeasuredRow:
    return MeasuredRow(
        dataset="rough",
        series=str(number),
        variant="v",
        metric="files_per_s",
        value=MEASURED,
        role="calibrate",
    )


class Rough(Objective):
    """Rates that fall with each parameter, and runs that scatter by `noise` round them, the same at the same values."""

    noise = 0.0
    truth: tuple[float, ...] = ()
    apart = False
    """Whether runs of a row are the same with other values of parameters that it does not hang on."""

    def compared(self, values: tuple[float, ...], numbers: Sequence[int] | None = None) -> list[Comparison]:
        """Each row is a rate that hangs on one parameter."""
        found = []
        for number in range(len(self.truth)) if numbers is None else numbers:
            value, true = values[number], self.truth[number]
            scatter = random.Random(repr((number, value if self.apart else values)))
            runs = [MEASURED * true / value * math.exp(scatter.gauss(0, self.noise)) for _ in range(2)]
            simulated = interval(runs)
            found.append(
                Comparison(
                    row=row(number), simulated=simulated, error=simulated.mean - MEASURED, error_percent=None
                )
            )
        return found


def rough(noise: float, *truth: float) -> Rough:
    parameters = [Parameter(f"p{number}", 1.0, 1000.0) for number in range(len(truth))]
    rows = [row(number) for number in range(len(truth))]
    objective = Rough(parameters, rows, lambda _: (), lambda *_: {}, None, calibrate.TOLERANCE)  # type: ignore[arg-type]
    objective.noise, objective.truth = noise, truth
    return objective


def search(objective: Rough, *start: float) -> Vector:
    return find(objective, np.array(start))[0]


@pytest.mark.parametrize("noise", [0.002, 0.01, 0.03])
@pytest.mark.parametrize(("parameters", "runs"), [(1, 3), (2, 7), (4, 26)])
def test_a_search_ends_at_the_noise_after_few_runs(parameters: int, runs: int, noise: float) -> None:
    draw, needed, missed = random.Random(1), [], []
    for _ in range(60):
        truth = [draw.uniform(5, 200) for _ in range(parameters)]
        objective = rough(noise, *truth)
        found = search(objective, *(true * math.exp(draw.uniform(-0.5, 0.5)) for true in truth))
        needed.append(len(objective.known))
        missed.append(max(abs(math.log(value / true)) for value, true in zip(found, truth, strict=True)))
    assert median(needed) <= runs
    assert median(missed) < 1.5 * noise
    assert sorted(missed)[54] < 4 * noise


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_parameter_with_a_row_of_its_own_is_found_without_the_runs_of_others(noise: float) -> None:
    objective = rough(noise, 50.0, 20.0, 9.0, 7.0)
    objective.apart = True
    values = search(objective, 60.0, 15.0, 12.0, 6.0)
    assert values == pytest.approx(objective.truth, rel=max(4 * noise, 2 * calibrate.TOLERANCE))
    runs = sum(len(rows) for rows in objective.known.values())
    assert runs <= 4 * 5 + 4 * 5, "beside the first differences five of each row"


class Shared(Rough):
    """A first parameter that moves all rows, two more that move one row each."""

    def compared(self, values: tuple[float, ...], numbers: Sequence[int] | None = None) -> list[Comparison]:
        """Times add up: of rows 0 and 1 the first parameter, of the others that and one of their own."""
        found = []
        for number in range(4) if numbers is None else numbers:
            own = 0.0 if number < 2 else values[number - 1] - self.truth[number - 1]
            rate = MEASURED * 100.0 / (100.0 + values[0] - self.truth[0] + own) * (1.02 if number else 1.0)
            simulated = interval([rate * 0.999, rate * 1.001])
            found.append(Comparison(row=row(number), simulated=simulated, error=0.0, error_percent=None))
        return found


def test_rows_of_their_own_are_met_after_all_others_and_do_not_move_them() -> None:
    parameters = [Parameter(f"p{number}", 1.0, 1000.0) for number in range(3)]
    objective = Shared(parameters, [row(n) for n in range(4)], lambda _: (), lambda *_: {}, None, 1e-3)  # type: ignore[arg-type]
    objective.truth = (40.0, 30.0, 20.0)
    values = search(objective, 50.0, 20.0, 25.0)
    left = objective(values)
    assert left[0] == pytest.approx(-left[1], abs=3e-3), "both rows of the first parameter are missed alike"
    assert abs(left[2:]).max() < 3e-3, "the others are met"
    alone = objective.part([0, 1], [0], values)
    assert values[0] == pytest.approx(find(alone, np.array([50.0]))[0][0], rel=5e-3)


@pytest.mark.parametrize("truth", [(50.0,), (50.0, 20.0)])
def test_where_runs_do_not_scatter_the_tolerance_decides(truth: tuple[float, ...]) -> None:
    values = search(rough(0.0, *truth), *(1.5 * each for each in truth))
    assert values == pytest.approx(truth, rel=2 * calibrate.TOLERANCE)


@pytest.mark.parametrize("truth", [(50.0,), (50.0, 20.0), (50.0, 20.0, 9.0)])
def test_a_start_that_the_rows_do_not_refute_is_the_answer(truth: tuple[float, ...]) -> None:
    objective = rough(0.01, *truth)
    start = tuple(1.004 * each for each in truth)
    assert search(objective, *start) == pytest.approx(start)
    assert len(objective.known) == 1
    refuted = rough(0.01, *truth)
    assert search(refuted, *(1.2 * each for each in truth)) == pytest.approx(truth, rel=0.05)


def test_slopes_that_were_not_needed_are_not_taken_for_slopes_of_zero() -> None:
    objective = rough(0.0, 50.0, 20.0)
    values, _ = find(objective, np.array([60.0, 15.0]), np.zeros((2, 2)))
    assert values == pytest.approx(objective.truth, rel=2 * calibrate.TOLERANCE)


class Bent(Rough):
    """A rate that hardly changes on one side and falls steeply on the other, so a step by the slope goes astray."""

    def compared(self, values: tuple[float, ...], numbers: Sequence[int] | None = None) -> list[Comparison]:
        """The root is at 50; near it a slope is thirty times steeper than far above it."""
        off = math.log(values[0] / 50)
        rate = MEASURED * math.exp(-0.1 * off - 2 * math.tanh(3 * off))
        simulated = interval([rate * 0.999, rate * 1.001])
        return [Comparison(row=row(0), simulated=simulated, error=0.0, error_percent=None)]


@pytest.mark.parametrize("start", [20.0, 45.0, 90.0, 300.0])
def test_a_step_stays_between_values_that_are_known_to_be_too_low_and_too_high(start: float) -> None:
    objective = Bent([Parameter("p", 1.0, 1000.0)], [row(0)], lambda _: (), lambda *_: {}, None, 1e-2)  # type: ignore[arg-type]
    assert search(objective, start) == pytest.approx(50.0, rel=0.01)
    assert len(objective.known) <= 10


class Latency(Rough):
    """What rises with its parameter, as latencies do: the first guess goes the wrong way."""

    def compared(self, values: tuple[float, ...], numbers: Sequence[int] | None = None) -> list[Comparison]:
        """A row that is proportional to the third root of the parameter."""
        simulated = interval([MEASURED * (values[0] / self.truth[0]) ** (1 / 3)] * 2)
        return [
            Comparison(row=row(0), simulated=simulated, error=simulated.mean - MEASURED, error_percent=None)
        ]


@pytest.mark.parametrize("start", [4.0, 40.0, 400.0])
def test_a_step_that_went_the_wrong_way_tells_the_slope(start: float) -> None:
    objective = Latency([Parameter("p", 1.0, 1000.0)], [row(0)], lambda _: (), lambda *_: {}, None, 1e-3)  # type: ignore[arg-type]
    objective.truth = (50.0,)
    assert search(objective, start) == pytest.approx(50.0, rel=0.01)
    assert len(objective.known) <= 5


def test_a_search_that_knows_the_slopes_of_another_takes_no_differences() -> None:
    truth = (50.0, 20.0)
    _, slopes = find(rough(0.0, *truth), np.array([40.0, 30.0]))
    objective = rough(0.0, *truth)
    values, _ = find(objective, np.array([49.0, 20.5]), slopes)
    assert values == pytest.approx(truth, rel=2 * calibrate.TOLERANCE)
    assert len(objective.known) == 2


class Hidden(Rough):
    """The first parameter decides from 300 on; below, less of it costs a little."""

    truth = (600.0, 50.0)

    def compared(self, values: tuple[float, ...], numbers: Sequence[int] | None = None) -> list[Comparison]:
        first = values[0] if values[0] > 300 else 300 + (300 - values[0]) / 10
        return super().compared((first, *values[1:]), numbers)


def test_a_fit_that_ends_at_a_bound_is_begun_from_the_other_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "Objective", Hidden)
    monkeypatch.setattr(calibrate, "_saves_half", lambda *_: False)
    parameters = [Parameter("p0", 1.0, 1000.0, start=200.0), Parameter("p1", 1.0, 1000.0, start=40.0)]
    alone = find(
        Hidden(parameters, [row(0), row(1)], lambda _: (), lambda *_: {}, None, 3e-3),  # type: ignore[arg-type]
        np.array([200.0, 40.0]),
    )[0]
    assert alone[0] < 1.01
    fit = calibrate.calibrate(parameters, [row(0), row(1)], lambda _: (), to_spec=lambda *_: {})
    assert fit.values["p0"] == pytest.approx(600, rel=0.01)
    assert fit.values["p1"] == pytest.approx(50, rel=0.01)


class Coarse:
    """Two rows and two parameters that hardly move them; notes what is tried."""

    resolution = 0.6
    parameters = (Parameter("a", 1.0, 10.0), Parameter("b", 1.0, 10.0))
    rows = ("a", "b")

    def __init__(self) -> None:
        self.tried: list[Vector] = []

    def __call__(self, values: Vector) -> Vector:
        self.tried.append(values)
        return 2 + 0.01 * values

    def part(self, rows: Sequence[int], parameters: Sequence[int], at: Vector) -> Coarse:
        raise NotImplementedError


def test_no_difference_is_taken_outside_the_bounds() -> None:
    """Near its highest value a parameter is varied downwards, but no further than to its lowest."""
    coarse = Coarse()
    find(coarse, np.array([9.0, 9.0]))
    assert np.min(coarse.tried) >= 1.0
    assert np.max(coarse.tried) <= 10.0
