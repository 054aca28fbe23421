"""XFS when its log is nearly full: who writes metadata in place, who waits for space or a buffer under write."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import assert_same

from engine import Spec, simulate_whole, the_lock
from simfs.scenario import ScenarioError, expand, load, to_run_spec

OPERATIONS = "[{op: utimes}, {op: create}, {op: unlink}]"
TOUCH = f"{{kind: mix, tasks: 16, directories: per-task, operations: {OPERATIONS}, files: 500}}"


def spec_of(tmp_path: Path, log_size: str, ms: float, workload: str = TOUCH, device: str = "nvme") -> Spec:
    path = tmp_path / "l.yaml"
    path.write_text(
        "simfs: 1\nname: l\ntitle: l\nmachine: {profile: dual-socket-48, cpus: 16}\nkernel: linux-6.12\n"
        f"filesystem: {{kind: xfs, agcount: 16, log_size: {log_size}}}\nworkload: {workload}\ndevice: {device}\n"
    )
    (point,) = expand(load(path))
    return to_run_spec(point, 0) | {"warmup_ns": 60e6, "duration_ns": ms * 1e6}


def test_what_transactions_do_not_use_of_the_log_goes_back(tmp_path: Path) -> None:
    """Two tasks never fill the log; if a part of what they reserve stayed granted they soon would."""
    two = TOUCH.replace("tasks: 16", "tasks: 2").replace("files: 500", "files: 5")
    assert simulate_whole(spec_of(tmp_path, "64 MiB", 20, two) | {"warmup_ns": 0}).operations > 100


@pytest.mark.slow
@pytest.mark.parametrize("device", ["nvme", "loop-tmpfs"])
def test_with_a_log_that_is_too_small_all_go_on_but_wait_for_its_tail(tmp_path: Path, device: str) -> None:
    small, large = (
        simulate_whole(spec_of(tmp_path, size, 25, device=device)) for size in ("10 MiB", "256 MiB")
    )
    assert all(small.per_task_operations)
    assert small.throughput_per_s < 0.7 * large.throughput_per_s
    assert small.cpu_ns.idle > 0.2 * 16 * 25e6 > 4 * large.cpu_ns.idle


@pytest.mark.slow
def test_who_wants_a_cluster_under_write_waits_for_the_device(tmp_path: Path) -> None:
    waits = the_lock(simulate_whole(spec_of(tmp_path, "10 MiB", 250, device="sata-ssd")), "xfs.inode cluster")
    assert waits.holder_device_ns > 10 * (waits.holder_running_ns + waits.holder_sleeping_ns)
    assert waits.wait_max_ns > 40e3  # what a write takes
    assert {site.site for site in waits.sites} & {"utimes", "unlink"}


@pytest.mark.slow
def test_both_machines_write_in_place_the_same(tmp_path: Path) -> None:
    create = "{kind: create, tasks: 100, directories: per-task}"
    spec = spec_of(tmp_path, "10 MiB", 2, create) | {"warmup_ns": 0}
    spec["filesystem"]["costs"]["cil_limit_mib"] = 0.02
    names = {lock.name for lock in simulate_whole(spec).locks if lock.holder_device_ns > 0}
    assert "xfs.inode cluster" in names
    assert_same(spec, most=10_000)  # the 7,297th event is the first write in place


@pytest.mark.slow
def test_a_buffer_lock_with_an_owner_is_not_held_while_it_is_written(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "10 MiB", 40)
    spec["kernel"]["locks"]["xfs.buffer"] = "mutex"
    assert the_lock(simulate_whole(spec), "xfs.inode cluster").holder_device_ns == 0


@pytest.mark.parametrize(
    ("size", "problem"),
    [
        ("3 MiB", r"l\.yaml:6:\d+: filesystem\.log_size: "),
        ("1100 MiB", r"l\.yaml:6:\d+: .*log_size 1100 MiB: the log lies in"),
    ],
)
def test_a_log_that_cannot_be_made_is_refused(tmp_path: Path, size: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        spec_of(tmp_path, size, 1)


def test_a_log_with_a_stripe_unit_writes_that_much(tmp_path: Path) -> None:
    """`log_su`: who syncs a small change waits for the copy of a whole unit."""
    turns = "[{op: create}, {op: fsync, on: made}]"
    load = f"{{kind: mix, tasks: 1, order: in-turn, operations: {turns}, files: 5}}"

    def pairs(log_su: str) -> float:
        spec = spec_of(tmp_path, f"64 MiB, log_su: {log_su}", 20, load, device="ramdisk")
        return simulate_whole(spec).throughput_per_s / 2

    one, eight = pairs("4 KiB"), pairs("32 KiB")
    assert 1e6 / eight - 1e6 / one > 28 * 0.1  # 28 KiB more are copied at 100 ns each
    with pytest.raises(ScenarioError, match=r"l\.yaml:6:\d+: .*log_su: 4, 8, 16, 32, 64, 128 or 256 KiB"):
        pairs("512 B")
    with pytest.raises(ScenarioError, match=r"l\.yaml:6:\d+: .*logbsize 32 KiB: no less than log_su"):
        pairs("64 KiB, logbsize: 32 KiB")


@pytest.mark.slow
def test_both_machines_pad_the_same(tmp_path: Path) -> None:
    load = "{kind: mix, tasks: 20, operations: [{op: create}, {op: fsync, on: made}], files: 5}"
    assert_same(spec_of(tmp_path, "10 MiB, log_su: 32 KiB", 2, load) | {"warmup_ns": 0})


def test_larger_log_buffers_write_a_checkpoint_in_fewer_pieces(tmp_path: Path) -> None:
    """`logbsize`: each buffer that is written wakes the loop device's worker, and who ends it."""
    turns = "[{op: create, repeat: 400}, {op: fsync, on: made}]"
    load = f"{{kind: mix, tasks: 1, order: in-turn, operations: {turns}, files: 5}}"

    def switches(logbsize: str) -> float:
        result = simulate_whole(
            spec_of(tmp_path, f"64 MiB, logbsize: {logbsize}", 60, load, device="loop-tmpfs")
        )
        return result.context_switches / result.operations

    small, usual, large = (switches(logbsize) for logbsize in ("16 KiB", "32 KiB", "256 KiB"))
    assert large < 0.8 * usual < 0.8 * 0.8 * small
    with pytest.raises(ScenarioError, match=r"l\.yaml:6:\d+: .*logbsize: 16, 32, 64, 128 or 256 KiB"):
        switches("48 KiB")


def test_the_lock_of_the_queue_for_log_space_is_taken_only_while_somebody_waits(tmp_path: Path) -> None:
    small, large = (simulate_whole(spec_of(tmp_path, size, 20)) for size in ("10 MiB", "256 MiB"))
    assert the_lock(small, "xfs.l_reserve_head").acquired > small.operations / 10
    assert not [lock for lock in large.locks if lock.name == "xfs.l_reserve_head" and lock.acquired]
