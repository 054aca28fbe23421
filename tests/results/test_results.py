"""From runs to answers: the model is strict, the order of runs does not matter."""

from __future__ import annotations

import json
import random
import threading
import time
from typing import Any

import fakes
import pytest
from fakes import fitted, scenario
from pydantic import ValidationError

from simfs._engine import Histogram
from simfs.results.aggregate import compare, findings, summarise
from simfs.results.defect import EngineError
from simfs.results.manifest import manifest, sha256
from simfs.results.model import ScenarioResult
from simfs.results.run import Runs
from simfs.results.run_result import RunResult
from simfs.results.scaling import Ideal
from simfs.results.tables import tables


def answer(point: fakes.FakePoint, replication: int = 0) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(fakes.engine(json.dumps(fakes.to_spec(point, replication))))
    return result


def run(point: fakes.FakePoint, replication: int = 0, **changes: Any) -> RunResult:  # noqa: ANN401
    return RunResult.model_validate(answer(point, replication) | changes)


# --- the seam


@pytest.mark.parametrize(
    "change",
    [{"extra": 1}, {"operations": -1}, {"window_ns": 0}, {"operations": None}, {"cpu_ns": {"user": 1}}],
    ids=str,
)
def test_a_result_that_is_not_as_documented_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        run(fakes.FakePoint(), **change)


def test_a_missing_key_is_refused() -> None:
    incomplete = answer(fakes.FakePoint())
    del incomplete["locks"][0]["handoffs"]
    with pytest.raises(ValidationError, match="handoffs"):
        RunResult.model_validate(incomplete)


# --- aggregation


def test_cpu_shares_add_up_to_a_hundred() -> None:
    for point in scenario().points:
        shares = point.shares.model_dump()
        assert sum(share["mean"] for share in shares.values()) == pytest.approx(100)


def test_locks_add_up_over_replications_and_come_by_wait() -> None:
    point = fakes.FakePoint(tasks=24, lock_ns=8e5)
    runs = [run(point, i) for i in range(3)]
    summary = summarise(point, runs)
    waits = [lock.wait_total_ns for lock in summary.locks]
    assert waits == sorted(waits, reverse=True)
    top = summary.locks[0]
    assert top.name == "xfs.AGI"
    assert top.caller == "unlink"
    assert top.contended == sum(r.locks[0].contended for r in runs)
    assert top.wait_max_ns == max(r.locks[0].wait_max_ns for r in runs)
    assert sum(site.contended for site in top.sites) == top.contended


def test_percentiles_are_those_of_all_replications_together() -> None:
    def of(fastest: int) -> dict[str, Any]:
        waits, result = Histogram(3), answer(fakes.FakePoint(tasks=4))
        for ns in range(fastest, fastest + 100):
            waits.record(ns)
        result["locks"][0]["wait_hdr"] = result["latency"]["create"]["hdr"] = waits.encode()
        return result

    runs = [RunResult.model_validate(of(fastest)) for fastest in (100, 200, 300)]
    point = summarise(fakes.FakePoint(tasks=4), runs)
    lock, create = point.locks[0], point.latency["create"]
    assert (create.count, create.p50_ns, create.p99_ns, create.max_ns) == (300, 249, 396, 399)
    assert (lock.wait_p50_ns, lock.wait_p99_ns) == (249, 396)


def test_a_lock_that_only_some_replications_met_is_kept() -> None:
    point = fakes.FakePoint(tasks=4)
    first = run(point, 0)
    second = first.model_copy(update={"locks": first.locks[:1]})
    assert {lock.name for lock in summarise(point, [second, first]).locks} == {k.name for k in first.locks}


def test_one_replication_takes_its_interval_from_batches() -> None:
    point = fakes.FakePoint(tasks=8)
    summary = summarise(point, [run(point)])
    assert summary.throughput.low is not None
    assert summary.shares.idle.low is None
    assert summary.throughput.contains(summary.replication_throughputs[0])


def test_no_operation_at_all_is_a_result_too() -> None:
    point = fakes.FakePoint()
    idle = run(point, operations=0, batch_operations=[0] * 20, per_task_operations=[0], locks=[], latency={})
    summary = summarise(point, [idle, idle])
    assert summary.throughput.mean == 0
    assert summary.joules_per_operation is None


def test_broken_laws_and_stalls_are_collected_with_their_exit_codes() -> None:
    point = fakes.FakePoint()
    law = {"law": "time conservation", "ok": False, "detail": "3 ns missing"}
    stall = {"kind": "deadlock", "at_ns": 5e6, "cycle": ["task 1 waits for a held by task 2"]}
    found = findings(point, [run(point, laws=[law]), run(point, stall=stall)])
    assert [(f.kind, f.replication) for f in found] == [("law", 0), ("stall", 1)]
    assert "3 ns missing" in found[0].message
    late = {"law": "no sleep while atomic", "ok": False, "detail": "task 151 sleeps at 6865826830 ps"}
    assert "task 151 sleeps at 6.866 ms" in findings(point, [run(point, laws=[late])])[0].message
    result = scenario()
    assert result.exit_code == 0
    assert result.model_copy(update={"findings": tuple(found[:1])}).exit_code == 1
    assert result.model_copy(update={"findings": tuple(found)}).exit_code == 3


def test_measured_rows_stand_beside_their_points() -> None:
    result = scenario(measured=fakes.ROWS)
    ext4 = next(p for p in result.points if p.variant == "ext4" and p.tasks == 24)
    rate, idle = ext4.measured
    assert rate.error_percent == pytest.approx(100 * (ext4.throughput.mean / 1500 - 1))
    assert idle.simulated == ext4.shares.idle
    assert idle.error_percent is None
    assert {row.variant for row in result.unmatched} == {"btrfs", "xfs, agcount=49"}


def test_rows_of_an_unknown_metric_are_not_dropped_silently() -> None:
    row = fakes.row("ext4", 24, "furlongs", 3)
    _, unmatched = compare(scenario().points, [row])
    assert unmatched == (row,)


def test_the_linear_line_follows_the_fastest_task_and_ends_with_the_cpus() -> None:
    result = scenario()
    point = result.points[0]
    best = max(p.throughput.mean / min(p.tasks, 24) for p in result.of(point.variant))
    assert Ideal(result).per_s(point, 8) == pytest.approx(8 * best)
    assert Ideal(result).per_s(point, 48) == pytest.approx(24 * best)
    assert all(p.throughput.mean <= (Ideal(result).per_s(p) or 0) * 1.0001 for p in result.points)
    one = result.model_copy(update={"points": tuple(p for p in result.points if p.tasks == 24)})
    assert Ideal(one).per_s(one.points[0]) is None


def test_an_ideal_is_not_taken_from_another_variant_which_may_do_something_else() -> None:
    result = scenario()
    point = result.points[0]
    other = next(p for p in result.points if p.variant != point.variant)
    fast = other.throughput.model_copy(update={"mean": 1e9})
    faster = [p.model_copy(update={"throughput": fast}) if p is other else p for p in result.points]
    assert Ideal(result.model_copy(update={"points": tuple(faster)})).per_s(point) == (
        Ideal(result).per_s(point)
    )


def test_an_ideal_is_not_taken_from_another_setting() -> None:
    easy, hard = (
        scenario().points[0].model_copy(update={"values": {"tasks": n, "kind": kind}, "tasks": n})
        for n, kind in ((1, "easy"), (2, "hard"))
    )
    result = scenario().model_copy(update={"points": (easy, hard)})
    assert Ideal(result).per_s(hard) == pytest.approx(hard.throughput.mean)


# --- running


@pytest.mark.slow
def test_the_same_bytes_on_any_number_of_threads_and_in_any_order() -> None:
    def erratic(spec: str) -> str:
        time.sleep(random.random() * 0.003)
        return fakes.engine(spec)

    runs = Runs(2, precision=0.006, max_replications=12)
    alone = scenario(1, runs).model_dump_json()
    assert alone == scenario(2, runs, engine=erratic).model_dump_json()
    assert alone == scenario(8, runs, engine=erratic).model_dump_json()


def test_replications_go_on_until_the_wanted_precision() -> None:
    result = scenario(runs=Runs(2, precision=0.006, max_replications=12))
    counts = [p.replications for p in result.points]
    assert min(counts) < max(counts) <= 12
    for p in result.points:
        assert p.throughput.relative_half_width <= 0.006 or p.replications == 12


def test_automatic_warmup_is_found_once_a_point_and_used_by_every_replication() -> None:
    warmups = []

    def rising(text: str) -> str:
        spec = json.loads(text)
        result = json.loads(fakes.engine(text))
        if spec["batches"] == 100:
            result["batch_operations"] = [i // 2 for i in range(30)] + [15, 16] * 35
        else:
            warmups.append(spec["warmup_ns"])
        return json.dumps(result)

    scenario(runs=Runs(2, warmup="auto"), engine=rising)
    assert len(warmups) == 2 * 20
    assert len(set(warmups)) == 1
    assert 2.0e8 <= warmups[0] <= 3.5e8


def test_progress_counts_up_to_what_is_needed() -> None:
    calls: list[tuple[int, int, str]] = []
    scenario(progress=lambda done, total, label: calls.append((done, total, label)))
    assert [done for done, _, _ in calls] == list(range(1, 61))
    assert calls[-1][1] == 60
    assert any("tasks=24" in label for _, _, label in calls)


def test_a_refused_spec_names_the_point() -> None:
    def refusing(text: str) -> str:
        raise ValueError("$.machine.cpus: must be positive")

    with pytest.raises(ValueError, match=r"ext4 tasks=1 #0: \$\.machine\.cpus"):
        scenario(1, engine=refusing)


def test_a_defect_of_the_engine_names_the_run() -> None:
    def broken(text: str) -> str:
        raise RuntimeError("a defect in the engine (tree.rs:226:42): no such slot")

    with pytest.raises(EngineError, match=r"ext4 tasks=1 #0: a defect in the engine \(tree.rs"):
        scenario(1, engine=broken)


def test_an_interrupt_starts_no_further_run() -> None:
    started: list[str] = []
    lock = threading.Lock()

    def slow(text: str) -> str:
        with lock:
            started.append(text)
        time.sleep(0.01)
        return fakes.engine(text)

    def interrupt(done: int, total: int, label: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scenario(2, engine=slow, progress=interrupt)
    assert len(started) <= 6


# --- tables and manifest


def test_tables_are_tidy_and_carry_units() -> None:
    by_name = tables(scenario(measured=fakes.ROWS))
    assert {name: t.num_rows for name, t in by_name.items()} == {
        "points": 20,
        "locks": 60,
        "lock_sites": 120,
        "lock_kinds": 0,
        "lines": 0,
        "chains": 0,
        "wakes": 0,
        "delays": 0,
        "requests": 0,
        "latency": 60,
        "latency_curves": 2280,
        "measured": 4,
        "scaling": 2,
    }
    points = by_name["points"]
    assert points.column_names[:3] == ["point", "variant", "tasks"]
    assert points.schema.field("throughput_per_s").metadata == {b"unit": b"1/s"}
    assert by_name["locks"].schema.field("wait_total_ns").metadata == {b"unit": b"ns"}
    assert all(
        t.column("tasks").to_pylist() for name, t in by_name.items() if name != "scaling" and t.num_rows
    )
    assert by_name["scaling"].schema.field("hold_ns").metadata == {b"unit": b"ns"}


@pytest.mark.slow
def test_an_empty_table_keeps_its_columns() -> None:
    full, empty = tables(scenario(measured=fakes.ROWS))["measured"], tables(scenario())["measured"]
    assert empty.num_rows == 0
    assert empty.column_names == full.column_names
    few = scenario().model_copy(update={"points": scenario().points[:2]})
    full, empty = tables(scenario())["scaling"], tables(few)["scaling"]
    assert empty.num_rows == 0
    assert empty.column_names == full.column_names


def test_a_manifest_differs_only_in_its_wall_section() -> None:
    first, second = (
        manifest(scenario(n).with_fits((fitted(),)), scenario="simfs: 1\n", seed=7, command=["simfs", "run"])
        for n in (1, 4)
    )
    assert first.pop("wall")["threads"] == 1
    assert second.pop("wall")["threads"] == 4
    assert json.dumps(first) == json.dumps(second)
    assert first["scenario"]["sha256"] == sha256("simfs: 1\n")
    assert first["events"] > 0
    assert first["fitted"][0]["sentence"].startswith("fitted: workload.user_cpu")


def test_a_result_survives_json() -> None:
    result = scenario(measured=fakes.ROWS).with_fits((fitted(),))
    assert ScenarioResult.model_validate_json(result.model_dump_json()).model_dump() == result.model_dump()
