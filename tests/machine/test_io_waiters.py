"""A CPU where tasks wait for I/O idles in a state that is left at once (`performance_multiplier` of `menu.c`, 6.11)."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, lock_cycle, per_second, read_answer, window, written_spec
from simfs import _engine
from simfs._engine import Completion, Step, Task
from simfs.machine.cpus.cpu import IdleLadder

US = 10**6
POLLS, C1, C6 = range(3)
LADDER = IdleLadder(
    {
        "watts_active": 4.0,
        "idle_states": [
            {"name": "C1", "exit_ns": 2e3, "residency_ns": 2e3, "watts": 1.0},
            {"name": "C6", "exit_ns": 170e3, "residency_ns": 600e3, "watts": 0.1},
        ],
    }
)
READERS = """\
simfs: 1
name: readers
title: Readers wait for a device that always takes 30 us
machine: {profile: server-24, cpus: 2}
kernel: {profile: linux-6.12, rules: {idle.io_waiters: true}}
filesystem: {kind: xfs}
device: {profile: nvme, read: {time: 30 us, cv: 0}}
workload: {kind: fio, tasks: 1, direct: true, rw: randread, size: 64 MiB}
measure: {warmup: 5 ms, duration: 40 ms, replications: 1}
"""


def spec(tmp_path: Path, *settings: str) -> Spec:
    return written_spec(tmp_path / "readers.yaml", READERS, *settings)


@pytest.mark.parametrize(
    ("idle_us", "waiters", "state"),
    [
        (1, 0, C1),
        (600, 0, C6),
        (21, 1, POLLS),
        (22, 1, C1),
        (41, 2, POLLS),
        (42, 2, C1),
        (1869, 1, C1),
        (1870, 1, C6),
    ],
)
def test_a_state_pays_if_it_is_left_in_an_eleventh_of_the_time_where_one_waits(
    idle_us: int, waiters: int, state: int
) -> None:
    assert LADDER.deepest(idle_us * US, waiters) == state


def test_polling_takes_the_power_of_work() -> None:
    assert LADDER.joules(0, 100 * US, 1) == pytest.approx((22 * 4.0 + 78 * 1.0) * 1e-6)


def test_a_reader_gains_the_exit_that_its_cpu_is_spared(tmp_path: Path) -> None:
    """30 us are enough for C1E, which takes 4 us to leave, but not if one waits: then it is C1, which takes 1."""
    asks, forgets = (
        per_second(read_answer(spec(tmp_path, f"kernel.rules.idle.io_waiters={asks}")))
        for asks in ("true", "false")
    )
    assert 1e6 / forgets - 1e6 / asks == pytest.approx(4 - 1, abs=0.1)


def test_a_commit_of_ext4_gains_the_exits_that_jbd2_is_spared(tmp_path: Path) -> None:
    """jbd2 waits twice a commit (`wait_on_buffer`), for blocks and for the record: 0.7 ms each, enough for C6 else."""
    syncs = (
        "filesystem.kind=ext4",
        "device.write.time=700 us",
        "device.write.cv=0",
        "measure.duration=400 ms",
        "workload={kind: mix, tasks: 1, operations: [{op: append}, {op: fsync}], order: in-turn}",
    )
    asks, forgets = (
        per_second(read_answer(spec(tmp_path, *syncs, f"kernel.rules.idle.io_waiters={rule}")))
        for rule in ("true", "false")
    )
    assert 2 * 100 < 1e6 / forgets - 1e6 / asks < 2 * 200


def asks_and_forgets(tmp_path: Path, *settings: str) -> tuple[float, float]:
    """What an operation takes on average, in ns, with the rule and without."""
    specs = [spec(tmp_path, *settings, f"kernel.rules.idle.io_waiters={rule}") for rule in ("true", "false")]
    asks, forgets = (1e9 / per_second(read_answer(spec)) for spec in specs)
    return asks, forgets


def test_who_collects_the_ends_of_requests_does_not_wait_for_io(tmp_path: Path) -> None:
    """`read_events` calls `schedule`, not `io_schedule`."""
    asks, forgets = asks_and_forgets(tmp_path, "workload.iodepth=2")
    assert asks == forgets


def test_who_sleeps_for_a_page_waits_for_io_though_no_device_is_near(tmp_path: Path) -> None:
    """`folio_wait_bit_common`: 80 tasks have a page in turn, and each would sleep long enough for C6."""
    settings = (
        "machine={profile: cascade-lake-96, cpus: 80}",
        "filesystem={kind: tmpfs}",
        "device=null",
        "workload={kind: mix, tasks: 80, operations: [{op: read}], file_set: shared, threads: true, binding: compact}",
        "locks={mm.folio_lock: semaphore}",
        "measure.warmup=20 ms",
    )
    asks, forgets = asks_and_forgets(tmp_path, *settings)
    assert asks < 0.2 * forgets


EXIT_US = 170 - 4
"""Of C6, which 700 us are enough for where nobody waits for I/O, over that of C1E."""


@pytest.mark.parametrize(("kind", "exits"), [("xfs", 1), ("btrfs", 2), ("ext4", 2)])
def test_who_syncs_a_file_is_spared_the_exits_of_its_waits_for_io(
    tmp_path: Path, kind: str, exits: int
) -> None:
    """Waits for pages under writeback; on btrfs for the log's blocks, too, and jbd2's for blocks and its record.

    No others: not those for XFS's log (`xlog_wait`) or for jbd2 (`jbd2_log_wait_commit`). No worker has to come first.
    """
    settings = (
        *(
            f"filesystem.kind={kind}",
            "device.write.time=700 us",
            "device.write.cv=0",
            "measure.duration=400 ms",
        ),
        "workload={kind: mix, tasks: 1, operations: [{op: append}, {op: fsync}], order: in-turn}",
    )
    asks, forgets = asks_and_forgets(tmp_path, *settings)
    assert forgets - asks == pytest.approx(exits * EXIT_US * 1e3, rel=0.12)


def reads(wait: Callable[[Completion], Step]) -> Callable[[Task], Generator[Step, Any, None]]:
    def worker(task: Task) -> Generator[Step, Any, None]:
        device, done = task.new_device(), task.new_completion()
        while True:
            yield task.begin()
            yield task.submit(device, 30_000, complete=done)
            yield wait(done)
            yield task.end("read")

    return worker


def test_a_program_in_python_says_which_waits_are_for_io(tmp_path: Path) -> None:
    states = spec(tmp_path)["machine"]["idle_states"]
    given = lock_cycle(
        "mutex", 1, duration_ns=4e7, idle_states=states, kernel={"rules": {"idle.io_waiters": True}}
    )
    given |= {"workload": {"kind": "python", "tasks": 1}}
    io, other = (
        json.loads(_engine.run(json.dumps(given), reads(wait), lambda _: None))
        for wait in (Task.wait_for_io, Task.wait_for)
    )
    assert 1e9 / per_second(other) - 1e9 / per_second(io) == pytest.approx(3_000, rel=0.1)  # as above


@pytest.mark.slow
@pytest.mark.parametrize("governor", ["menu", "residency"])
@pytest.mark.parametrize("tasks", [1, 3])
def test_both_machines_count_them_alike(tmp_path: Path, governor: str, tasks: int) -> None:
    given = spec(tmp_path, f"kernel.rules.idle.governor={governor}", f"workload.tasks={tasks}")
    assert assert_same(given | window(2e6)) > 50


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["xfs", "btrfs", "ext4"])
def test_both_machines_count_who_syncs_alike(tmp_path: Path, kind: str) -> None:
    syncs = "workload={kind: mix, tasks: 2, operations: [{op: append}, {op: fsync}], order: in-turn}"
    given = spec(tmp_path, f"filesystem.kind={kind}", "device.write.time=100 us", syncs)
    assert assert_same(given | window(2e6)) > 50


@pytest.mark.slow
def test_both_machines_count_who_sleeps_for_a_page_alike(tmp_path: Path) -> None:
    reads = "workload={kind: mix, tasks: 6, operations: [{op: read}], file_set: shared, threads: true}"
    locks = "locks={mm.folio_lock: semaphore}"
    given = spec(tmp_path, "machine.cpus=6", "filesystem={kind: tmpfs}", "device=null", reads, locks)
    assert assert_same(given | window(5e5)) > 50
