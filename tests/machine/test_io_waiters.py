"""A CPU where tasks wait for I/O idles in a state that is left at once (`performance_multiplier` of `menu.c`, 6.11)."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import assert_same

from engine import Spec, per_second, read_answer, written_spec
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


@pytest.mark.slow
@pytest.mark.parametrize("governor", ["menu", "residency"])
@pytest.mark.parametrize("tasks", [1, 3])
def test_both_machines_count_them_alike(tmp_path: Path, governor: str, tasks: int) -> None:
    given = spec(tmp_path, f"kernel.rules.idle.governor={governor}", f"workload.tasks={tasks}")
    assert assert_same(given | {"warmup_ns": 0.0, "duration_ns": 2e6}) > 50
