"""Metrics of measured rows: each name means one simulated quantity in one unit, and all else is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes import FakePoint, engine, to_spec

from simfs.results.aggregate import summarise
from simfs.results.model import PointResult
from simfs.results.run_result import RunResult
from simfs.scenario import ScenarioError
from simfs.scenario.measured.dataset import load_dataset
from simfs.scenario.measured.metrics import metric

DATASET = """
name: mine
title: Mine
source: {{author: A, date: "2026", where: here}}
machine: mine
kernel: mine
series: {{one: {series}}}
rows:
  - {{series: one, x: 1, metric: {metric}, unit: "{unit}", value: 1}}
"""


ASKED = FakePoint(tasks=4)
RUNS = [
    RunResult.model_validate_json(engine(json.dumps(to_spec(ASKED, i)))).model_copy(
        update={"bytes": 2_000_000}
    )
    for i in range(3)
]


@pytest.fixture(scope="module")
def point() -> PointResult:
    return summarise(ASKED, RUNS)


def latency(operation: str, field: str) -> float:
    """The mean over the runs, in nanoseconds."""
    found: float = sum(getattr(run.latency[operation], field) for run in RUNS) / len(RUNS)
    return found


def mean(point: PointResult, name: str, operations: float | None = None) -> float:
    found = point.estimate(name, operations)
    assert found is not None
    assert found.low is not None
    assert found.low <= found.mean
    return found.mean


def test_rates_of_operations_are_the_throughput_whatever_they_are_called(point: PointResult) -> None:
    assert point.estimate("compiles_per_s") == point.estimate("p50_files_per_s") == point.throughput


def test_rates_of_bytes_are_in_the_unit_of_their_name(point: PointResult) -> None:
    assert mean(point, "throughput_mb_per_s") == pytest.approx(2.0)
    assert mean(point, "mib_per_s") == pytest.approx(2e6 / 2**20)
    assert mean(point, "MB_s") == pytest.approx(2.0)


def test_a_workload_without_data_has_no_rate_of_bytes(point: PointResult) -> None:
    assert point.model_copy(update={"bytes_per_s": None}).estimate("mb_per_s") is None


def test_latencies_are_those_of_the_named_operation(point: PointResult) -> None:
    assert mean(point, "create_avg_latency_us") == pytest.approx(latency("create", "mean_ns") / 1e3)
    assert mean(point, "create_p99_latency_ms") == pytest.approx(latency("create", "p99_ns") / 1e6)
    assert point.estimate("rename_p99_latency_ms") is None


def test_without_a_name_only_the_longest_latency_is_that_of_all(point: PointResult) -> None:
    assert mean(point, "max_latency_ms") == pytest.approx(latency("operation", "max_ns") / 1e6)
    assert point.estimate("p99_latency_ms") is None


def test_idle_time_of_the_online_cpus_is_that_of_the_tasks_cpus(point: PointResult) -> None:
    busy = point.cpus * (100 - point.shares.idle.mean) / 100
    wider = point.model_copy(update={"tasks": 20})
    assert busy < 20 < point.cpus
    assert mean(wider, "online_idle_percent") == pytest.approx(100 * (1 - busy / 20))
    assert mean(wider, "online_idle_percent") < point.shares.idle.mean
    assert point.model_copy(update={"tasks": point.cpus + 1}).estimate("online_idle_percent") is None


def test_time_in_the_kernel_is_that_of_spinning_and_switches_too(point: PointResult) -> None:
    shares = point.shares
    assert mean(point, "kernel_percent") == shares.system.mean + shares.spin.mean + shares.switch.mean
    assert mean(point, "kernel_percent") > mean(point, "system_percent")


def test_totals_of_a_run_need_its_operations(point: PointResult) -> None:
    per_s = point.throughput.mean
    assert mean(point, "real_s", 10 * per_s) == pytest.approx(10)
    kernel = (point.shares.system.mean + point.shares.spin.mean + point.shares.switch.mean) / 100
    assert mean(point, "sys_s", 10 * per_s) == pytest.approx(10 * point.cpus * kernel, rel=0.01)
    assert point.estimate("sys_s") is None


@pytest.mark.parametrize("name", ["idle_percnt", "ops_per_us", "p95_latency_ms", "throughputs"])
def test_a_name_that_means_nothing_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no metric"):
        metric(name)


@pytest.mark.parametrize(
    ("name", "unit", "series", "says"),
    [
        ("idle_percnt", "%", "{}", "did you mean 'idle_percent'"),
        ("creates_per_s", "k/s", "{}", "is given in 1/s, not in 'k/s'"),
        ("max_latency_ms", "us", "{}", "is given in ms, not in 'us'"),
        ("sys_s", "s", "{}", "must give its operations"),
    ],
)
def test_a_data_set_with_a_wrong_metric_or_unit_is_refused(
    name: str, unit: str, series: str, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(DATASET.format(metric=name, unit=unit, series=series))
    with pytest.raises(ScenarioError, match=says):
        load_dataset(str(path))


def test_a_row_without_a_role_is_information(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(DATASET.format(metric="sys_s", unit="s", series="{operations: 1000}"))
    assert load_dataset(str(path)).rows[0].role == "info"
