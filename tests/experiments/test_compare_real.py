"""A real machine beside a simulation: by lock class, normalised, with what only one side has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from places import SAMPLES
from typer.testing import CliRunner

from simfs import interchange
from simfs.cli import app
from simfs.experiments.answer import run_points
from simfs.experiments.compare_real import RealComparison, compare_real, metric_of
from simfs.interchange.locks_out import traced
from simfs.interchange.reading import Reading, UnreadableError, Waits
from simfs.results.model import PointResult, ScenarioResult
from simfs.scenario import expand, load

RUNNER = CliRunner()
SCENARIO = """\
simfs: 1
name: real
title: Create and unlink
machine: {profile: server-24, cpus: 4}
kernel: linux-6.12
workload: {kind: create_unlink, tasks: 4, directories: shared}
variants:
  - {name: xfs, filesystem: {kind: xfs, size: 4 GiB, agcount: 2}}
  - {name: btrfs, filesystem: {kind: btrfs}}
measure: {warmup: 1 ms, duration: 40 ms, replications: 2}
"""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("real") / "real.yaml"
    path.write_text(SCENARIO, "utf-8")
    return str(path)


@pytest.fixture(scope="module")
def result(scenario: str) -> ScenarioResult:
    asked = load(scenario)
    return run_points(asked, expand(asked), tuple(asked.sweep))


def point_of(result: ScenarioResult, variant: str) -> PointResult:
    (point,) = result.of(variant)
    return point


def itself(result: ScenarioResult, variant: str) -> RealComparison:
    """A simulation beside what it prints itself as perf."""
    point = point_of(result, variant)
    reading = interchange.read(interchange.write(result, "perf-lock-x", variant))
    return compare_real("own.csv", reading, result, [point], operations=point.operations)


def test_tracepoints_do_not_tell_who_gets_an_rwsem_while_he_spins(result: ScenarioResult) -> None:
    """contention_begin comes when spinning has failed (rwsem_down_write_slowpath), for a mutex before it."""
    locks = [x for p in result.points for x in p.locks if x.contended]
    spun = [x for x in locks if x.type == "rwsem" and x.resolved_spinning]
    assert spun
    for lock in spun:
        count, ns = traced(lock)
        assert count == lock.slept < lock.contended
        assert (ns > 0) == (lock.slept > 0)
        assert ns <= lock.wait_total_ns
        assert traced(lock.model_copy(update={"type": "mutex"})) == (lock.contended, lock.wait_total_ns)


@pytest.mark.parametrize("variant", ["xfs", "btrfs"])
def test_a_simulation_beside_its_own_output_is_the_same(result: ScenarioResult, variant: str) -> None:
    comparison = itself(result, variant)
    assert comparison.per == "operation"
    counts = [x for x in comparison.lines if x.quantity == "waits per operation"]
    assert counts
    for line in [*counts, *(x for x in comparison.lines if x.quantity.startswith("mean"))]:
        assert line.ratio == pytest.approx(1, rel=0.01)
    assert comparison.only_real == ()
    assert all(name.endswith("wait_lock") for name in comparison.only_simulated)


def test_per_second_is_by_the_window_and_seconds_of_the_file_count(result: ScenarioResult) -> None:
    point = point_of(result, "xfs")
    lock = next(x for x in point.locks if x.contended and not x.name.endswith("wait_lock"))
    window = point.window_ns * point.replications / 1e9
    waits = (Waits(("do_unlinkat",), 50, "rwsem:W", 1e6),)
    assert lock.name == "vfs.i_rwsem (directory)"
    comparison = compare_real("x", Reading("perf-script", 1, 0, waits=waits, seconds=2.0), result, [point])
    line = next(x for x in comparison.lines if x.quantity == "waits per second")
    assert line.real == 25
    assert line.simulated == pytest.approx(traced(lock)[0] / window)


def test_what_only_one_side_has_is_listed_and_told_as_the_difference(result: ScenarioResult) -> None:
    point = point_of(result, "xfs")
    waits = (
        Waits(("do_unlinkat",), 1, "rwsem:W", 1.0),
        Waits(("xfs_read_agf",), 9000, "semaphore", 9e12),
        Waits(("rcu_core",), 3, "spinlock", 5e3),
        Waits(("rcu_gp_fqs",), 1, "spinlock", 1e3),
    )
    reading = Reading("perf-lock", 4, 0, waits=waits)
    comparison = compare_real("x", reading, result, [point], operations=1000)
    assert comparison.only_real == ("xfs.AGF",)
    assert comparison.unmapped == (
        "spinlock rcu_core, 3 times, 0.005 ms",
        "spinlock rcu_gp_fqs, once, 0.001 ms",
    )
    assert comparison.sentence == "They differ most in xfs.AGF: only the real machine waited for it."
    assert metric_of(comparison) == "xfs_agf_waits_per_operation"


def test_rates_stand_beside_the_point_with_their_tasks(result: ScenarioResult) -> None:
    reading = interchange.read(interchange.write(result, "will-it-scale", "xfs"))
    comparison = compare_real("x", reading, result, result.of("xfs"))
    assert {x.quantity for x in comparison.lines} == {"operations_per_s, 4 tasks", "idle_percent, 4 tasks"}
    assert all(x.ratio == pytest.approx(1, rel=0.01) for x in comparison.lines)


def test_nothing_in_common_and_several_variants_are_refused(result: ScenarioResult) -> None:
    reading = Reading("perf-lock", 1, 0, waits=(Waits(("rcu_core",), 3, "spinlock", 5e3),))
    with pytest.raises(UnreadableError, match="no lock and no rate in common"):
        compare_real("x", reading, result, result.of("xfs"))
    with pytest.raises(UnreadableError, match="one of xfs, btrfs"):
        compare_real("x", reading, result, result.points)


def test_levels_of_a_tree_are_added_up_where_chains_do_not_tell_them(result: ScenarioResult) -> None:
    point = point_of(result, "btrfs")
    waits = (Waits(("btrfs_tree_lock_nested", "btrfs_create_new_inode"), 10, "rwsem:W", 1e6),)
    reading = Reading("perf-script", 1, 0, waits=waits)
    levels = [
        x for x in point.locks if x.name.startswith("btrfs.fs tree L")
    ]  # wait locks are taken where their locks are
    assert sum(traced(x)[0] for x in levels) > 0
    comparison = compare_real("x", reading, result, [point], operations=100)
    line = next(x for x in comparison.lines if x.quantity == "waits per operation")
    assert line.of == "btrfs.fs tree"
    assert line.simulated == pytest.approx(sum(traced(x)[0] for x in levels) / point.operations)


def test_the_sentence_has_no_powers_of_ten(scenario: str) -> None:
    real = str(SAMPLES / "perf-script-xfs.txt")
    answer = RUNNER.invoke(app, ["compare", real, f"{scenario}:xfs", "--operations", "24000"])
    said = answer.stdout.splitlines()[-1]
    assert "mean wait, us 29,852 and " in said
    assert "e+" not in said


def test_the_command_prints_a_table_or_json(scenario: str) -> None:
    real = str(SAMPLES / "perf-lock-xfs.txt")
    answer = RUNNER.invoke(app, ["compare", real, f"{scenario}:xfs", "--operations", "24000"])
    assert answer.exit_code == 0, answer.stderr
    assert "simulated: real:xfs, tasks 4" in answer.stdout
    assert "vfs.i_rwsem (directory)\n  waits per operation" in answer.stdout
    assert "They differ most in" in answer.stdout
    assert "real waits for no lock of simfs:" in answer.stdout
    shown = RUNNER.invoke(app, ["compare", real, f"{scenario}:xfs", "--format", "json"])
    assert json.loads(shown.stdout)["per"] == "wait"


@pytest.mark.slow
def test_the_number_behind_a_difference_is_named(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simfs.commands.compare.TRAJECTORIES", 2)
    real = tmp_path / "perf.csv"
    columns = "contended, total wait, max wait, avg wait, type, caller"
    real.write_text(f"# output: {columns}\n9, 9000000000, 1000000000, 1000000000, rwsem:W, do_unlinkat\n")
    options = [
        "--operations",
        "9",
        "--set",
        "measure.duration=4 ms",
        "--set",
        "measure.warmup=100 us",
        "--why",
    ]
    answer = RUNNER.invoke(app, ["compare", str(real), f"{scenario}:xfs", *options])
    assert answer.exit_code == 0, answer.stderr
    said = answer.stdout.splitlines()[-1]
    assert said.startswith("They differ most in vfs.i_rwsem (directory): waits per operation 1 and ")
    assert re.search(r"_directory_waits_per_operation (hangs most on \w+\.|by more than noise)", said)


def test_a_comparison_stands_where_the_short_runs_cannot_say_why(scenario: str, tmp_path: Path) -> None:
    real = tmp_path / "perf.csv"
    columns = "contended, total wait, max wait, avg wait, type, caller"
    real.write_text(f"# output: {columns}\n9, 9000000000, 1000000000, 1000000000, rwsem:W, do_unlinkat\n")
    short = ["--set", "measure.duration=4 ms", "--set", "measure.replications=1"]
    answer = RUNNER.invoke(
        app, ["compare", str(real), f"{scenario}:xfs", "--operations", "9", *short, "--why"]
    )
    assert answer.exit_code == 0, answer.stderr
    assert "They differ most in vfs.i_rwsem (directory)" in answer.stdout
    assert (
        "--why, in runs a fifth as long: 'vfs_i_rwsem_directory_waits_per_operation' has no interval"
        in answer.stdout
    )


def test_without_an_interval_nothing_is_said_to_hang_on_anything() -> None:
    options = ["--variant", "mutex", "--set", "measure.replications=1", "--set", "measure.duration=1 ms"]
    answer = RUNNER.invoke(
        app, ["sensitivity", "lock-cycle", *options, "--metric", "lock_waits_per_operation"]
    )
    assert answer.exit_code == 2
    assert "has no interval" in answer.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["perf.txt", "lock-cycle"], "has several variants"),
        (["perf.txt", "guest-2cpu-fio"], "is a data set"),
        (["empty.txt", "lock-cycle:mutex"], "output of no tool"),
        (
            ["lock-cycle:mutex", "lock-cycle:semaphore", "--operations", "3"],
            "go with the output of a real tool",
        ),
    ],
)
def test_what_cannot_be_compared_is_bad_input(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("perf.txt").write_text((SAMPLES / "perf-lock-xfs.txt").read_text("utf-8"), "utf-8")
    Path("empty.txt").write_text("nothing\n", "utf-8")
    short = ["--set", "measure.duration=1 ms", "--set", "measure.replications=1", "--set", "workload.tasks=2"]
    answer = RUNNER.invoke(app, ["compare", *arguments, *short])
    assert answer.exit_code == 2
    assert said in answer.stderr.replace("\n", " ")
