"""`simfs validate`: its exit codes, what it keeps and resumes, and locks of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from validating import DATASET, SCENARIO, invoke, rows_of, write

import simfs.results.run
from simfs.results.run import native_engine
from simfs.results.store import Store
from simfs.scenario import paths

# Exit codes


def test_limits_that_are_broken_are_one_and_say_which(tmp_path: Path) -> None:
    dataset, _ = write(tmp_path)
    assert invoke(dataset, "--max-error", 100, "--median-error", 100, "--signs", 100).exit_code == 0
    done = invoke(dataset, "--max-error", 0, "--median-error", 0)
    assert done.exit_code == 1
    said = done.stderr.replace("\n", " ")
    assert "check failed: mine: before, 16, cycles_per_s: error" in said
    assert "over --median-error 0" in said
    rows = [row | {"value": 10} if row["series"] == "after" else row for row in DATASET["rows"]]
    dataset, _ = write(tmp_path / "again", {"rows": rows})
    done = invoke(dataset, "--signs", 100)
    assert done.exit_code == 1
    assert "1 of 2 signs of change are right" in done.stderr.replace("\n", " ")


def test_a_broken_law_is_one_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, _ = write(tmp_path)
    engine = native_engine()

    def faulty(spec: str) -> str:
        result = json.loads(engine(spec))
        result["laws"] = [{"law": "time conservation", "ok": False, "detail": "a second is gone"}]
        return json.dumps(result)

    monkeypatch.setattr(simfs.results.run, "native_engine", lambda: faulty)
    done = invoke(dataset, "--store", tmp_path / "faulty")
    assert done.exit_code == 1
    assert "check failed: mine:" in done.stderr
    assert "time conservation is broken" in done.stderr.replace("\n", " ")


def test_a_deadlock_is_three(tmp_path: Path) -> None:
    workload = {"kind": "lock_cycle", "lock": "mutex", "tasks": 2, "locks": 2, "order": "opposite"}
    workload |= {"think": "20 us", "hold": "30 us"}
    dataset, _ = write(tmp_path, {}, {"workload": workload, "calibrate": []})
    done = invoke(dataset, "--format", "json")
    assert done.exit_code == 3
    assert "deadlock" in done.stderr
    assert len(rows_of(done)) == 4


def test_a_fit_that_ends_at_a_bound_is_one_and_leaves_other_data_sets_predicted(tmp_path: Path) -> None:
    bad = SCENARIO["calibrate"][0] | {"bounds": ["1 us", "2 us"]}
    _, scenario = write(tmp_path, {}, {"calibrate": [bad]})
    good = tmp_path / "good"
    good.mkdir()
    other, _ = write(good, {"name": "other"}, {"name": "good"})
    done = invoke(scenario, other, "--format", "json")
    assert done.exit_code == 1
    assert "mine: not predicted" in done.stderr
    assert [row["predicted"] is None for row in rows_of(done)] == [True] * 4 + [False] * 4


def test_a_fit_without_enough_rows_is_two(tmp_path: Path) -> None:
    more = SCENARIO["calibrate"][0] | {"parameter": "machine.speed", "bounds": [0.5, 2.0], "prior": 1.0}
    dataset, _ = write(tmp_path, {}, {"calibrate": [SCENARIO["calibrate"][0], more]})
    done = invoke(dataset)
    assert done.exit_code == 2
    assert "2 parameters cannot be fitted on 1 row" in done.stderr.replace("\n", " ")


def test_a_defect_of_the_engine_is_told_and_loses_no_other_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defective(spec: str) -> str:
        if json.loads(spec)["workload"]["tasks"] == 1:
            raise RuntimeError("a defect in the engine (tree.rs:1:1)")
        return native_engine()(spec)

    dataset, _ = write(tmp_path, {}, {"calibrate": []})
    good = tmp_path / "good"
    good.mkdir()
    rows = [row | {"x": 2} for row in DATASET["rows"][:1]]
    other, _ = write(good, {"name": "other", "rows": rows}, {"name": "good", "calibrate": []})
    monkeypatch.setattr(simfs.results.run, "native_engine", lambda: defective)
    done = invoke(dataset, other, "--format", "json", "--store", tmp_path / "runs")
    assert done.exit_code == 4
    assert "mine: not predicted" in done.stderr
    assert "a defect in the engine" in done.stderr.replace("\n", " ")
    assert [row["predicted"] is None for row in rows_of(done)] == [True] * 4 + [False]


def test_a_store_that_cannot_be_written_is_two(tmp_path: Path) -> None:
    dataset, _ = write(tmp_path)
    assert invoke(dataset, "--store", "/dev/null/runs").exit_code == 2
    assert invoke(dataset, "--out", "/dev/null").exit_code == 2


# Resuming


@pytest.mark.slow
def test_what_was_run_is_not_run_again_and_an_interrupt_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, _ = write(tmp_path)
    engine, ran = native_engine(), 0
    stop_after: float = 5

    def counting(spec: str) -> str:
        nonlocal ran
        if ran >= stop_after:
            raise KeyboardInterrupt
        ran += 1
        return engine(spec)

    monkeypatch.setattr(simfs.results.run, "native_engine", lambda: counting)
    words = [dataset, "--store", tmp_path / "runs", "--threads", 1, "--format", "json"]
    stopped = invoke(*words)
    assert stopped.exit_code == 130
    assert "the same command resumes" in stopped.stderr
    stop_after = float("inf")
    resumed = invoke(*words)
    total = ran
    assert total > 5
    assert invoke(*words).stdout == resumed.stdout
    assert ran == total
    fresh = invoke(dataset, "--store", tmp_path / "others", "--format", "json")
    assert ran == 2 * total
    assert fresh.stdout == resumed.stdout


@pytest.mark.slow
def test_the_reference_machine_runs_locks_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mylocks.py").write_text((paths.SCENARIOS / "mylocks.py").read_text())
    own = {
        "variants": [{"name": "semaphore"}, {"name": "mutex"}],
        "locks": {"my": "mylocks.py:TwoPhase"},
        "measure": SCENARIO["measure"] | {"duration": "2 ms", "warmup": "1 ms"},
        "calibrate": [],
        "workload": SCENARIO["workload"] | {"lock": "my"},
    }
    dataset, _ = write(tmp_path, {}, own)
    store = tmp_path / "runs"
    done = invoke(dataset, "--store", store, "--format", "json")
    assert done.exit_code == 0, done.stderr
    assert rows_of(done)[1]["predicted"] > 0
    assert list(Store(store).entries()) == []
