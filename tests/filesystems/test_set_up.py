"""What is set up before a run costs nothing in it: the clock starts when all is ready. An empty window is an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same
from typer.testing import CliRunner, Result

from engine import Spec, window
from simfs import _engine
from simfs import machine as reference
from simfs.cli import app
from simfs.results.run_result import RunResult
from simfs.scenario import expand, load, to_run_spec

ENGINES = pytest.mark.parametrize("engine", [_engine, reference], ids=["native", "reference"])

HEAD = """
simfs: 1
name: prepared
title: what is there before the run
machine: guest-2cpu
kernel: linux-6.12
"""


def scenario(path: Path, text: str) -> Path:
    file = path / "prepared.yaml"
    file.write_text(HEAD + text)
    return file


def spec(path: Path, text: str, **changes: float) -> Spec:
    (point,) = expand(load(scenario(path, text)))
    return to_run_spec(point, 0) | window(4e6) | changes


def run(engine: Any, given: Spec) -> RunResult:  # noqa: ANN401
    return RunResult.model_validate_json(engine.run(json.dumps(given)))


def simfs(path: Path, text: str, *options: str) -> Result:
    return CliRunner().invoke(app, ["run", str(scenario(path, text)), *options])


TREES = """
filesystem: {{kind: xfs}}
workload: {{kind: fs_mark, tasks: 2, directories: per-task, subdirectories: {}, size: null, sync: 0}}
"""


def test_directories_cost_nothing(tmp_path: Path) -> None:
    few, many = (run(_engine, spec(tmp_path, TREES.format(n))) for n in (1, 301))
    assert many.operations == pytest.approx(few.operations, rel=0.25)
    assert many.cpu_ns.idle < 0.05 * many.cpu_ns.total


@pytest.mark.slow
def test_a_thousand_directories_are_no_error(tmp_path: Path) -> None:
    measure = "measure: {duration: 4 ms, warmup: 1 ms, replications: 2}"
    answer = simfs(tmp_path, TREES.format(1000) + measure, "--format", "json")
    assert answer.exit_code == 0, answer.output
    (point,) = json.loads(answer.stdout)["points"]
    assert point["operations"] > 100


FILES = """
filesystem: {{kind: {kind}}}
workload:
  {{kind: mix, tasks: 2, directories: per-task, file_set: {file_set}, operations: [{{op: open}}], files: 60}}
"""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "file_set"), [("xfs", "own"), ("tmpfs", "shared"), ("btrfs", "own")])
def test_files_are_there_when_the_clock_starts(tmp_path: Path, kind: str, file_set: str) -> None:
    given = spec(tmp_path, FILES.format(kind=kind, file_set=file_set), duration_ns=4e5)
    _, events = _engine.trace(json.dumps(given))
    first = {task: when for when, task, _, what, _ in reversed(events) if what == "begin"}
    assert len(first) == 2
    assert max(first.values()) < 60_000_000  # ps: 120 files take some hundred microseconds
    assert_same(given)


SLOW = """
filesystem: {kind: tmpfs}
workload: {kind: mix, tasks: 1, operations: [{op: stat, think: 50 ms}]}
measure: {duration: 10 ms, warmup: 0 ms, replications: 2}
"""


def test_a_window_in_which_nothing_ends_is_an_error_that_says_what_to_set(tmp_path: Path) -> None:
    answer = simfs(tmp_path, SLOW)
    assert answer.exit_code == 2
    assert "no operation ended in the window of 10 ms" in answer.stderr
    assert "measure.duration" in answer.stderr


ROUND = """
filesystem: {kind: tmpfs}
workload: {kind: mix, tasks: 1, order: in-turn, operations: [{op: stat}, {op: stat, think: 50 ms}]}
measure: {duration: 10 ms, warmup: 0 ms, replications: 2}
"""


def test_a_window_with_parts_of_a_round_and_no_whole_one_is_marked(tmp_path: Path) -> None:
    """Its rate is 0, which would be read as an answer."""
    answer = simfs(tmp_path, ROUND)
    assert "no whole operation ended in the window: set a longer measure.duration" in answer.stdout
    assert "no round: parts of operations ended in the window" in " ".join(answer.stdout.split())


FULL = """
filesystem: {kind: xfs, size: 300 MiB, agcount: 4}
workload: {kind: fs_mark, tasks: 2, initial_files: 1000000}
"""


@ENGINES
def test_a_set_up_that_finds_no_space_says_so_and_nothing_else(engine: Any, tmp_path: Path) -> None:  # noqa: ANN401
    result = run(engine, spec(tmp_path, FULL, warmup_ns=1e6))
    assert [law.law for law in result.laws if not law.ok] == []
    assert result.stall is not None
    assert result.stall.kind == "no space left"
    assert "no space left" in result.stall.cycle[0]
    assert (result.stall.at_ns, result.operations) == (0, 0)
    assert result.window_ns == 4e6


NO_INODES = """
filesystem: {kind: ext4, size: 300 MiB, inode_ratio: 4 MiB}
workload: {kind: fs_mark, tasks: 2, initial_files: 100000}
"""


def test_both_machines_tell_the_same_of_a_set_up_that_failed(tmp_path: Path) -> None:
    """Nothing is recorded after the clock has started: what was in force then is of time 0."""
    given = spec(tmp_path, NO_INODES, warmup_ns=1e5, duration_ns=1e5)
    assert run(_engine, given).stall is not None
    assert_same(given)


@pytest.mark.slow
def test_a_stall_is_reported_where_there_are_no_statistics(tmp_path: Path) -> None:
    answer = simfs(tmp_path, FULL + "measure: {duration: 4 ms, warmup: 1 ms, replications: 2}")
    assert answer.exit_code == 3, answer.output
    assert "no space left for the initial files" in answer.stderr


SYNCED = """
filesystem: {kind: btrfs}
workload:
  {kind: mix, tasks: 24, directories: per-task, operations: [{op: rename}], files: 1, file_size: null, synced: %s}
"""


@pytest.mark.parametrize(("synced", "levels"), [("false", {"L0"}), ("true", {"L0", "L1"})])
def test_a_sync_puts_entries_by_index_into_the_tree_of_btrfs(
    tmp_path: Path, synced: str, levels: set[str]
) -> None:
    result = run(_engine, spec(tmp_path, SYNCED % synced))
    found = (lock.name.removeprefix("btrfs.fs tree ") for lock in result.locks)
    assert {name for name in found if name in ("L0", "L1")} == levels


def test_a_sync_before_the_run_is_the_same_on_both_machines(tmp_path: Path) -> None:
    assert_same(spec(tmp_path, SYNCED.replace("24", "3") % "true", duration_ns=1e6))
