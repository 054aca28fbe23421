"""Metrics of wake-ups, locks and delays: each name means one number of a run, told wherever it is asked for."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

import pytest
from typer.testing import CliRunner

from engine import lock_cycle, simulate
from simfs._engine import Histogram
from simfs.cli import app
from simfs.results.by_run import estimates, value
from simfs.results.run_result import RunResult
from simfs.scenario.measured.metrics import metric

RUNNER = CliRunner()


def latency(ns: Iterable[int]) -> dict[str, Any]:
    histogram, values = Histogram(3), list(ns)
    for one in values:
        histogram.record(one)
    numbers = {f"{name}_ns": 0.0 for name in ("mean", "p50", "p90", "p99", "max")}
    return {"count": len(values), **numbers, "hdr": histogram.encode()}


def kind(name: str, **numbers: Any) -> dict[str, Any]:  # noqa: ANN401
    times = dict.fromkeys(
        ("running", "granted_behind", "granted_idle", "preempted", "blocked", "device"), 0.0
    )
    counts = {"acquired": 0, "contended": 0, "found_held": 0, "wait_total_ns": 0.0}
    return {"kind": name, **counts, **{f"{part}_ns": time for part, time in times.items()}, **numbers}


LOCK: dict[str, Any] = {
    "name": "xfs.AGI",
    "acquired": 300,
    "contended": 60,
    "found_held": 50,
    "wait_total_ns": 6e5,
    "busiest_held_ns": 3e5,
    "held_shared_ns": 1e5,
    "wait_hdr": latency([1000] * 30 + [20_000] * 30)["hdr"],
    "sites": [
        {"site": "create", "acquired": 200, "contended": 20, "found_held": 15, "wait_total_ns": 2e5},
        {"site": "inode gc", "acquired": 100, "contended": 40, "found_held": 35, "wait_total_ns": 4e5},
    ],
    "kinds": [
        kind("load", acquired=200, contended=20, running_ns=2e5, preempted_ns=5e4),
        kind(
            "bound", acquired=100, contended=40, running_ns=5e4, granted_behind_ns=8e4, granted_idle_ns=2e4,
            grant_to_run=latency([5_000] * 90 + [700_000] * 10),
        ),
    ],
}  # fmt: skip
WAKES = [
    {"kind": "load", "wakeups": 40, "on_previous": 30, "on_waker": 6, "beside_idle": 8, "stacked": 2,
     "to_run_idle": latency([2_000] * 10), "to_run_busy": latency([4_000_000] * 30)},
    {"kind": "bound", "wakeups": 10, "on_previous": 10, "on_waker": 0, "beside_idle": 0, "stacked": 0,
     "to_run_idle": latency([]), "to_run_busy": latency([25_000] * 10)},
]  # fmt: skip


@pytest.fixture(scope="module")
def run() -> RunResult:
    """A real run whose locks and wake-ups are replaced by numbers that are easy to count with."""
    plain = simulate(lock_cycle("semaphore", 2, 2, think_ns=1e3, hold_ns=1e3)).model_dump()
    plain |= {"operations": 100, "window_ns": 1e6, "migrations": 250, "pulls": 50}
    plain |= {"wakes": WAKES, "delays": {"inodegc": latency([5_000_000, 7_000_000, 9_000_000])}}
    return RunResult.model_validate(plain | {"locks": [plain["locks"][0] | LOCK]})


MEANT = {
    "migrations_per_operation": 2.5,
    "pulls_per_operation": 0.5,
    "load_p50_wake_to_run_us": 4000,
    "load_idle_cpu_p99_wake_to_run_us": 2,
    "bound_busy_cpu_avg_wake_to_run_us": 25,
    "p50_wake_to_run_us": 4000,
    "max_wake_to_run_ms": 4,
    "wake_to_run_over_1ms_percent": 60,
    "load_wake_to_run_over_1ms_percent": 75,
    "bound_wake_to_run_over_10us_percent": 100,
    "load_wakeups_on_previous_cpu_percent": 75,
    "wakeups_on_waker_cpu_percent": 12,
    "load_wakeups_beside_idle_cpu_percent": 20,
    "stacked_wakeups_percent": 25,
    "xfs_agi_contended_percent": 20,
    "xfs_agi_by_create_contended_percent": 10,
    "xfs_agi_by_inode_gc_found_held_percent": 35,
    "xfs_agi_by_bound_contended_percent": 40,
    "xfs_agi_waits_per_operation": 0.6,
    "xfs_agi_by_load_acquired_per_operation": 2,
    "xfs_agi_by_inode_gc_avg_wait_us": 10,
    "xfs_agi_p90_wait_us": 20,
    "xfs_agi_held_percent": 40,
    "xfs_agi_busiest_held_percent": 30,
    "xfs_agi_held_shared_percent": 10,
    "xfs_agi_by_load_held_percent": 25,
    "xfs_agi_held_granted_behind_percent": 8,
    "xfs_agi_by_bound_held_granted_idle_percent": 2,
    "xfs_agi_by_load_held_preempted_percent": 5,
    "xfs_agi_by_bound_p50_grant_to_run_us": 5,
    "xfs_agi_p99_grant_to_run_us": 700,
    "xfs_agi_grant_to_run_over_300us_percent": 10,
    "inodegc_p50_delay_ms": 7,
}


@pytest.mark.parametrize("name", MEANT)
def test_a_name_means_one_number_of_a_run(run: RunResult, name: str) -> None:
    (found,) = estimates([run], [name]).values()
    assert found.mean == pytest.approx(MEANT[name], rel=0.01)
    endings = {"us": "us", "ms": "ms", "percent": "%", "operation": "1"}
    assert metric(name).unit == endings[name.rpartition("_")[2]]


ABSENT = [
    "kernel_p50_wake_to_run_us", "xfs_agf_contended_percent", "xfs_agi_by_load_p50_grant_to_run_us",
    "log_p50_delay_ms", "xfs_agi_by_create_p90_wait_us",
]  # fmt: skip


@pytest.mark.parametrize("name", ABSENT)
def test_what_a_run_does_not_have_is_left_out(run: RunResult, name: str) -> None:
    assert value(run, metric(name)) is None
    assert estimates([run, run], [name]) == {}


def test_a_place_that_never_took_the_lock_waited_for_it_never(run: RunResult) -> None:
    assert value(run, metric("xfs_agi_by_unlink_waits_per_operation")) == 0


def test_estimates_are_means_over_replications(run: RunResult) -> None:
    other = run.model_copy(update={"migrations": 350})
    found = estimates([run, other], ["migrations_per_operation", "idle_percent"])
    assert list(found) == ["migrations_per_operation"]
    assert found["migrations_per_operation"].mean == 3
    assert found["migrations_per_operation"].contains(2.5)


@pytest.mark.parametrize(
    ("name", "near"),
    [("bound_p95_wake_to_run_us", "bound_p90_wake_to_run_us"), ("stacked_wakeup_percent", "stacked_wakeups_percent")],
)  # fmt: skip
def test_a_name_that_means_nothing_is_refused_with_the_nearest_one(name: str, near: str) -> None:
    answer = RUNNER.invoke(app, ["run", "lock-cycle", "--quick", "--metric", name])
    assert answer.exit_code == 2
    assert f"did you mean '{near}'?" in answer.stderr


ASKED = ["lock_contended_percent", "load_p50_wake_to_run_us", "idle_percent"]


@pytest.mark.slow
def test_metrics_that_are_asked_for_are_in_every_output() -> None:
    command = ["run", "lock-cycle", "--quick", "--set", "workload.tasks=8"]
    command += [part for name in ASKED for part in ("--metric", name)]
    text, document, table = (
        RUNNER.invoke(app, [*command, "--format", form]).stdout for form in ("text", "json", "csv")
    )
    semaphore = next(p for p in json.loads(document)["points"] if p["variant"] == "semaphore")
    assert list(semaphore["metrics"]) == ASKED
    row = next(row for row in csv.DictReader(io.StringIO(table)) if row["variant"] == "semaphore")
    for name in ASKED:
        assert name in text
        assert float(row[name]) == pytest.approx(semaphore["metrics"][name]["mean"])
        assert float(row[f"ci_low_{name}"]) <= float(row[name])
