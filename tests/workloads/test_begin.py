"""Tasks that begin at once stay in step; those that begin one after the other share their flushes by halves."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import assert_same

from engine import per_second, read_whole_answer, window, written_spec

SCENARIO = """\
simfs: 1
name: begin
title: Four tasks overwrite and sync on a device whose flush takes 10 ms
machine: emulated
kernel: linux-6.12
filesystem: {kind: ext4, size: 2 GiB}
device: {profile: null-blk, write_cache: volatile, flush: {time: 10 ms, cv: 0}, queues: one}
workload:
  kind: mix
  tasks: 4
  directories: per-task
  order: in-turn
  file_size: 64 KiB
  operations: [{op: overwrite, size: 4 KiB}, {op: fsync, on: written}]
measure: {warmup: 50 ms, duration: 400 ms, replications: 1}
"""


@pytest.mark.parametrize(("begin", "tasks_of_a_flush"), [(None, 4), ("1 ms", 2)])
def test_who_comes_late_is_in_the_next_commit(
    tmp_path: Path, begin: str | None, tasks_of_a_flush: int
) -> None:
    options = () if begin is None else (f"workload.begin={begin}",)
    rate = per_second(read_whole_answer(written_spec(tmp_path / "begin.yaml", SCENARIO, *options)))
    assert rate == pytest.approx(tasks_of_a_flush * 100, rel=0.08)


CYCLES = """\
simfs: 1
name: cycles
title: Eight threads that are created one after another
machine: {profile: server-24, cpus: 8}
kernel: linux-6.12
workload: {kind: lock_cycle, tasks: 8, lock: hqlock, think: 1 us, hold: 100 ns, begin: 4 ms}
measure: {duration: 2 ms, replications: 1}
"""


def test_threads_of_a_lock_cycle_begin_within_a_time_on_both_machines(tmp_path: Path) -> None:
    given = written_spec(tmp_path / "cycles.yaml", CYCLES) | window(2e6)
    begun = [operations > 0 for operations in read_whole_answer(given)["per_task_operations"]]
    assert 1 <= sum(begun) < 8
    assert assert_same(given) > 50
