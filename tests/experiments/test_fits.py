"""Fits: one finds its parameter with few runs, says on which rows, and is refused where it means nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import fitted, scenario

from simfs.experiments.answer import run_points
from simfs.experiments.calibrate import CalibrationError, Parameter, calibrate, residual, standard_error
from simfs.experiments.fitted import fitted as fitted_scenario
from simfs.results.model import Comparison, MeasuredRow
from simfs.results.run import Runs, native_engine, run_scenario
from simfs.results.statistics import Estimate
from simfs.scenario import expand, load, placed_rows, value_of


def test_a_fit_meets_its_row_in_few_evaluations_and_says_so() -> None:
    fit = fitted()
    assert fit.objective < 0.005
    assert fit.evaluations <= 8
    assert [r.variant for r in fit.rows] == ["ext4"]
    assert "fitted: workload.user_cpu = 14.39 ms" in fit.sentence
    assert "on row 'ext4, tasks 24'; all else predicted" in fit.sentence


def test_the_sentence_of_a_fit_on_many_rows_names_a_few() -> None:
    fit = fitted()
    many = fit.model_copy(update={"rows": fit.rows * 24})
    assert many.sentence.count("ext4, tasks 24") == 3
    assert "and 21 more; all else predicted" in many.sentence


def test_a_fit_simulates_only_the_points_of_its_rows() -> None:
    seen: set[tuple[int, float]] = set()

    def watching(text: str) -> str:
        spec = json.loads(text)
        seen.add((spec["workload"]["tasks"], spec["fake"]["lock_ns"]))
        return fakes.engine(text)

    calibrate(
        [Parameter("u", 1e6, 1e8)],
        fakes.ROWS,
        lambda values: fakes.points(user_ns=values["u"]),
        to_spec=fakes.to_spec,
        engine=watching,
    )
    assert seen == {(24, 90e3)}


@pytest.mark.parametrize(("rows", "warmup_ns", "durations"), [(2, 0.0, 2), (2, 1e12, 1), (1, 0.0, 1)])
def test_a_draft_comes_first_on_several_rows_unless_most_of_a_run_is_warm_up(
    rows: int, warmup_ns: float, durations: int
) -> None:
    seen: set[float] = set()

    def watching(text: str) -> str:
        seen.add(json.loads(text)["duration_ns"])
        return fakes.engine(text)

    calibrate(
        [Parameter("u", 1e6, 1e8)],
        [fakes.row("ext4", 24, "compiles_per_s", 1500 + 10 * number, "calibrate") for number in range(rows)],
        lambda values: fakes.points(user_ns=values["u"]),
        to_spec=lambda point, replication: fakes.to_spec(point, replication) | {"warmup_ns": warmup_ns},
        engine=watching,
    )
    assert len(seen) == durations


@pytest.mark.parametrize(("from_truth", "kept"), [(1.0002, True), (1.5, False)])
def test_a_value_outside_its_source_is_kept_only_if_the_rows_refute_the_source(
    from_truth: float, kept: bool
) -> None:
    def fitted(sourced: tuple[float, float] | None) -> float:
        fit = calibrate(
            [Parameter("u", 1e6, 1e8, sourced=sourced)],
            fakes.ROWS,
            lambda values: fakes.points(user_ns=values["u"]),
            to_spec=fakes.to_spec,
            engine=fakes.engine,
        )
        return fit.values["u"]

    free = fitted(None)
    end = from_truth * free
    assert fitted((end, 9e7)) == pytest.approx(end if kept else free, rel=1e-8)


def test_slopes_refute_a_source_that_is_far_off_without_a_run() -> None:
    def evaluations(sourced: tuple[float, float] | None) -> int:
        evaluated = calibrate(
            [Parameter("u", 1e6, 1e8, sourced=sourced)],
            fakes.ROWS,
            lambda values: fakes.points(user_ns=values["u"]),
            to_spec=fakes.to_spec,
            engine=fakes.engine,
        ).evaluations
        return evaluated

    free = evaluations(None)
    assert evaluations((2.5e7, 9e7)) == free
    assert evaluations((1.45e7, 9e7)) == free + 1


@pytest.mark.slow
def test_two_parameters_on_three_rows() -> None:
    truth = {"user": 1.3e7, "lock": 8e5}

    def build(values: Any) -> list[fakes.FakePoint]:  # noqa: ANN401
        return [
            fakes.FakePoint("v", n, user_ns=values["user"], lock_ns=values["lock"], values={"tasks": n})
            for n in (1, 12, 24)
        ]

    exact = run_scenario(build(truth), Runs(2), engine=fakes.engine, to_spec=fakes.to_spec)
    rows = [fakes.row("v", p.tasks, "ops_per_s", p.throughput.mean, "calibrate") for p in exact.points]
    fit = calibrate(
        [Parameter("user", 1e6, 1e8), Parameter("lock", 1e4, 1e7)],
        rows,
        build,
        to_spec=fakes.to_spec,
        engine=fakes.engine,
    )
    assert fit.values["user"] == pytest.approx(truth["user"], rel=0.06)
    assert fit.values["lock"] == pytest.approx(truth["lock"], rel=0.06)


def test_more_parameters_than_rows_are_refused() -> None:
    with pytest.raises(CalibrationError, match="2 parameters cannot be fitted on 1 row"):
        calibrate(
            [Parameter("a", 1, 2), Parameter("b", 1, 2)], fakes.ROWS, lambda _: [], to_spec=fakes.to_spec
        )


def test_a_fit_that_ends_at_its_bound_is_refused() -> None:
    with pytest.raises(CalibrationError, match="ends at its bound"):
        fitted(low=3e7, high=6e7)


def test_a_row_that_no_point_answers_is_refused() -> None:
    with pytest.raises(CalibrationError, match="no point"):
        fitted((fakes.row("zfs", 24, "compiles_per_s", 1, "calibrate"),))


def test_points_that_were_fitted_on_are_marked() -> None:
    result = scenario(measured=fakes.ROWS).with_fits((fitted(),))
    marked = [(p.variant, p.tasks) for p in result.points if p.origin == "fitted"]
    assert marked == [("ext4", 24)]


def test_a_scenario_that_declares_a_fit_comes_back_with_it() -> None:
    asked = load("compile-24")
    rows = [MeasuredRow(**vars(row)) for row in placed_rows(asked.measured)]
    scenario, fits = fitted_scenario(asked, rows, engine=fakes.engine)
    (fit,) = fits
    assert value_of(scenario, "workload.user_cpu") == pytest.approx(fit.values["workload.user_cpu"], rel=1e-6)
    assert [(r.series, r.metric, r.role) for r in fit.rows] == [
        ("ext4 one directory", "compiles_per_s", "calibrate")
    ]
    assert fit.objective < 0.005
    assert fit.evaluations <= 8


def test_a_scenario_that_declares_no_fit_comes_back_as_it_is() -> None:
    asked = load("lock-cycle")
    assert fitted_scenario(asked, []) == (asked, ())


@pytest.mark.parametrize(
    ("replications", "metric", "runs"),
    [(1, "cycles_per_s", 1), (1, "avg_latency_us", 2), (3, "cycles_per_s", 2)],
)
def test_the_last_runs_of_a_fit_are_those_that_predict_its_rows(
    tmp_path: Path, replications: int, metric: str, runs: int
) -> None:
    texts: list[str] = []
    native = native_engine()

    def watching(text: str) -> str:
        texts.append(text)
        return native(text)

    held = one_row(tmp_path, replications, metric)
    asked = load(held)
    rows = [MeasuredRow(**vars(row)) for row in placed_rows(asked.measured)]
    found, (fit,) = fitted_scenario(asked, rows, engine=watching, threads=1)
    assert len(texts) == runs * fit.evaluations
    last = texts[-runs:]
    texts.clear()
    run_points(found, expand(found), (), engine=watching, threads=1)
    assert texts[:runs] == last or replications < runs


def one_row(folder: Path, replications: int, metric: str) -> Path:
    """A scenario with one point and one row, on which the time under a lock is fitted."""
    value = 20.0 if metric.endswith("us") else 250_000.0
    unit = "us" if metric.endswith("us") else "1/s"
    row = {"series": "default", "x": 4, "metric": metric, "unit": unit, "role": "calibrate", "value": value}
    dataset = {
        "name": "synthetic", "title": "Synthetic", "machine": "simulated", "kernel": "simulated",
        "source": {"author": "simfs", "date": "2024", "where": "simulated"},
        "series": {"default": {}}, "rows": [row],
    }  # fmt: skip
    load_ = {"kind": "lock_cycle", "lock": "mutex", "tasks": 4, "think": {"exponential": "10 us"}}
    asked = {
        "simfs": 1, "name": "one-row", "title": "Synthetic", "machine": {"profile": "server-24", "cpus": 4},
        "kernel": "linux-6.11", "workload": load_ | {"hold": {"exponential": "2 us"}},
        "measure": {"warmup": "1 ms", "duration": "20 ms", "replications": replications, "seed": 1},
        "measured": "./data.yaml",
        "calibrate": [
            {"parameter": "workload.hold.exponential", "bounds": ["100 ns", "50 us"], "rows": [{"series": "default"}]}
        ],
    }  # fmt: skip
    (folder / "data.yaml").write_text(json.dumps(dataset))
    (folder / "asked.yaml").write_text(json.dumps(asked))
    return folder / "asked.yaml"


def compared(metric: str, simulated: float) -> Comparison:
    row = MeasuredRow(dataset="d", series="a", variant="a", metric=metric, value=500.0, role="calibrate")
    found = Estimate(mean=simulated, low=None, high=None, n=2)
    return Comparison(row=row, simulated=found, error=simulated - 500.0, error_percent=None)


def test_a_search_passes_through_values_at_which_nobody_sleeps() -> None:
    far = compared("context_switches_per_s", 0.0)
    assert residual(far) > residual(compared("context_switches_per_s", 1.0))
    assert standard_error(far) == 0.0


def test_a_fit_does_not_go_on_where_nothing_is_done() -> None:
    with pytest.raises(CalibrationError, match="finishes no operation"):
        residual(compared("operations_per_s", 0.0))
