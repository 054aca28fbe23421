"""Who has queued for a line behind others does one thing with it: those behind it take it away at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from engine import Spec, lock_cycle, one_lock, read_answer, the_lock, written_spec
from simfs import _engine, machine
from simfs._engine import Step, Task
from simfs.results.run_result import RunResult

WAY = 1000.0
"""One transfer of a line (ns)."""

MACHINES = pytest.mark.parametrize("run", [_engine.run, machine.run], ids=["native", "reference"])
Run = Callable[..., str]


def spec(kind: str, tasks: int) -> Spec:
    duration = 1e6 if tasks > 1 else 1e5  # who is alone waits for no line
    made = lock_cycle(kind, tasks, costs={"line_hit": 1, "line_llc": WAY}, duration_ns=duration)
    return made | {"workload": {"kind": "python", "tasks": tasks, "params": {}}}


def cycles(side: str, hold: float) -> Callable[[Task], Generator[Step, Any, None]]:
    def worker(task: Task) -> Generator[Step, Any, None]:
        while True:
            yield task.begin()
            yield task.run(task.exponential(10.0))
            yield task.lock(task.shared, side)
            if hold:
                yield task.run(hold, "system")
            yield task.unlock(task.shared, side)
            yield task.end("cycle")

    return worker


def result(run: Run, kind: str, tasks: int, side: str = "write", hold: float = 0.0) -> RunResult:
    answer = RunResult.model_validate_json(run(json.dumps(spec(kind, tasks)), cycles(side, hold), one_lock))
    assert [law for law in answer.laws if not law.ok] == []
    return answer


def ways(answer: RunResult) -> float:
    """Transfers of the lock's line in a cycle, if it does nothing else."""
    return answer.window_ns / answer.operations / WAY


@MACHINES
def test_a_lock_with_nothing_under_it_is_found_held_where_its_line_is_wanted(run: Run) -> None:
    """The release needs the line once more, and those who asked for it meanwhile have it first."""
    assert the_lock(result(run, "qspinlock", 8)).contended > 0


@MACHINES
def test_nobody_else_wants_the_line_of_a_lock_of_ones_own(run: Run) -> None:
    lock = the_lock(result(run, "qspinlock", 1))
    assert (lock.contended, lock.acquired > 1000) == (0, True)


@MACHINES
@pytest.mark.parametrize("kind", ["qrwlock", "rwsem-4.8"])
def test_readers_come_and_go_by_a_transfer_each(kind: str, run: Run) -> None:
    assert ways(result(run, kind, 8, "read")) == pytest.approx(2, rel=0.05)


@MACHINES
def test_readers_of_5_3_look_at_the_owner_word_and_write_to_it(run: Run) -> None:
    """`__rwsem_set_reader_owned`; to 5.2 a reader writes only what is not there yet.

    Looks that follow each other share the line.
    """
    before, since = (ways(result(run, kind, 8, "read", hold=WAY)) for kind in ("rwsem-4.8", "rwsem-5.3"))
    assert before == pytest.approx(2, rel=0.05)
    assert 3.5 < since < 4.0


@MACHINES
@pytest.mark.parametrize(("kind", "expected"), [("mutex", 2.0), ("mutex-3.10", 3.5)])
def test_a_spinner_that_takes_a_mutex_has_its_line_before_it_goes_on(
    kind: str, expected: float, run: Run
) -> None:
    """Those who asked meanwhile have it next, and the release needs it once more; to 4.9 the owner word does, too."""
    assert ways(result(run, kind, 8)) == pytest.approx(expected, rel=0.1)


def additions(task: Task) -> Generator[Step, Any, None]:
    while True:
        yield task.begin()
        yield task.run(task.exponential(10.0))
        yield task.fetch_add(task.shared, 1)
        yield task.end("cycle")


@MACHINES
@pytest.mark.parametrize("caches", [1, 2, 4])
def test_a_line_for_which_all_queue_is_at_each_cache_once_a_round(caches: int, run: Run) -> None:
    """As in R. Penyaev's ccont: an exchange takes 18.1 ns with two or four CPUs of one node.

    It takes 29.8 with two of each of two nodes, 24.3 with four: so a transfer between them 41.5 and 43.0.
    """
    far, tasks = 4 * WAY, 16
    costs = {"line_hit": 1, "line_llc": WAY, "line_socket": far, "line_remote": far}
    made = lock_cycle("qspinlock", tasks, costs=costs, duration_ns=4e6, warmup_ns=1e6)
    made["machine"]["cpus_per_llc"] = tasks // caches
    made["workload"] = {"kind": "python", "tasks": tasks, "params": {}}
    made["kernel"]["locks"] = {"futex.bucket": "qspinlock"}
    answer = RunResult.model_validate_json(
        run(json.dumps(made), additions, lambda machine: machine.new_word())
    )
    apart = caches if caches > 1 else 0
    assert ways(answer) == pytest.approx((apart * far + (tasks - apart) * WAY) / tasks / WAY, rel=0.06)


HANDLES = """\
simfs: 1
name: handles
title: New times of files, a handle each
machine: {profile: server-24, cpus: 16, costs: {line_llc: 1 us, line_socket: 1 us}}
kernel: linux-6.12
filesystem: {kind: ext4, size: 8 GiB}
device: {profile: nvme}
workload: {kind: mix, tasks: 16, directories: per-task, files: 10, operations: [{op: utimes}]}
measure: {warmup: 2 ms, duration: 10 ms, replications: 1}
"""


def test_a_handle_takes_six_transfers_of_its_transaction_s_counts(tmp_path: Path) -> None:
    """Three additions, a look and two subtractions (`start_this_handle`, `jbd2_journal_stop`)."""
    answer = read_answer(written_spec(tmp_path / "handles.yaml", HANDLES))
    assert answer["window_ns"] / answer["operations"] / WAY == pytest.approx(6, rel=0.1)
