"""Many tasks that sync on XFS: whose AGF they take, how often, and the mutex of the checkpoint workers' queue."""

import json
from typing import Any

import pytest
from machines import assert_same

from engine import acquired_each, scenario_spec, simulate_whole, the_lock
from simfs.results.run_result import RunResult


def spec_of(tasks: int, *options: str, ms: float = 20) -> dict[str, Any]:
    one = (f"sweep.workload.tasks=[{tasks}]", *options)
    return scenario_spec("xfs-sync-disk-rw", "no-flushes", *one, warmup_ns=0, duration_ns=ms * 1e6)


def test_data_go_to_the_next_group_if_somebody_has_the_agf() -> None:
    """Of two groups both are taken; of sixteen one is free."""

    append = {"op": "append", "size": "4 KiB", "repeat": 16, "sync": True, "on": "made"}
    operations = [{"op": "create"}, append, {"op": "unlink", "on": "made"}]

    def waits(*options: str) -> float:
        spec = spec_of(16, f"workload.operations={json.dumps(operations)}", *options, ms=5)
        agf = the_lock(simulate_whole(spec), "xfs.AGF")
        return agf.contended / agf.acquired

    assert waits("filesystem.agcount=2") > 0.3
    assert waits() < 0.01


def test_a_file_is_given_blocks_behind_its_end() -> None:
    """Of 512 writes of 1 KiB: 16 blocks up to 64 KiB one by one, then three times as much as there is, and so on."""
    append = {"op": "append", "size": "1 KiB", "repeat": 512, "sync": True, "on": "made"}
    operations = [{"op": "create"}, append, {"op": "unlink", "on": "made"}]
    alone = simulate_whole(spec_of(1, f"workload.operations={json.dumps(operations)}", ms=400))
    assert alone.operations >= 1
    assert 16 <= acquired_each(alone, "xfs.AGF") < 40


def test_a_file_that_was_shortened_has_no_blocks_behind_its_end() -> None:
    """`xfs_itruncate_extents`: what comes behind the end is given blocks again."""

    def allocations(*cut: dict[str, Any]) -> float:
        append = {"op": "append", "size": "32 KiB", "on": "made", "sync": True}
        operations = [{"op": "create"}, append | {"repeat": 3}, *cut, append, {"op": "unlink", "on": "made"}]
        spec = spec_of(1, f"workload.operations={json.dumps(operations)}")
        return acquired_each(simulate_whole(spec), "xfs.AGF")

    assert allocations({"op": "shorten", "size": "32 KiB", "on": "made"}) - allocations() == pytest.approx(
        1, abs=0.2
    )


@pytest.mark.parametrize(("release", "takes"), [("linux-5.14", False), ("linux-5.15", True)])
def test_who_syncs_goes_over_the_queue_of_the_workers_under_its_mutex(release: str, takes: bool) -> None:
    result = simulate_whole(spec_of(4, f"kernel={release}"))
    assert any(lock.name == "xfs.cil_wq" and lock.acquired > 0 for lock in result.locks) == takes


def test_who_has_his_changes_pushed_waits_for_the_push_under_the_mutex_again() -> None:
    """It is taken when he comes, when he begins again (`xlog_cil_force_seq`), and when he is told."""
    operations = [{"op": "create"}, {"op": "fsync", "on": "made"}, {"op": "unlink", "on": "made"}]
    alone = simulate_whole(spec_of(1, f"workload.operations={json.dumps(operations)}"))
    assert the_lock(alone, "xfs.cil_wq").acquired == pytest.approx(3 * alone.latency["fsync"].count, abs=3)


def test_who_syncs_meets_others_at_the_locks_of_the_log() -> None:
    """`xc_push_lock` twice each time that he begins, `l_icloglock` to write the buffer and to wait for it."""
    operations = [{"op": "create"}, {"op": "fsync", "on": "made"}, {"op": "unlink", "on": "made"}]

    def syncing(tasks: int, ms: float) -> RunResult:
        loop = f"workload.operations={json.dumps(operations)}"
        return simulate_whole(spec_of(tasks, loop, "workload.directories=per-task", ms=ms))

    alone, together = syncing(1, ms=5), syncing(32, ms=15)
    for name in ("xfs.xc_push_lock", "xfs.l_icloglock"):
        lock = the_lock(alone, name)
        assert lock.acquired > 4 * alone.latency["fsync"].count
        assert lock.contended == 0
    assert the_lock(together, "xfs.l_icloglock").contended > 0
    assert the_lock(together, "xfs.xc_commit_wait").contended > 0


@pytest.mark.parametrize("filesystem", ["xfs", "ext4", "btrfs"])
def test_what_was_synced_before_the_run_has_its_blocks(filesystem: str) -> None:
    """`sync` writes dirty pages: an fsync of what is written over has nothing else to write."""
    operations = [{"op": "overwrite"}, {"op": "fsync", "on": "written"}]

    def written(synced: str) -> float:
        options = [
            f"filesystem.kind={filesystem}",
            f"workload.synced={synced}",
            "device=nvme",
            "workload.files=4",
        ]
        options += [f"workload.operations={json.dumps(operations)}", "workload.file_size=1 MiB"]
        return simulate_whole(spec_of(1, *options, ms=10)).latency["fsync"].max_ns

    assert written("false") > 2 * written("true")


def test_on_5_19_readers_look_at_a_time_in_the_line_of_the_lock() -> None:
    def reads(design: str) -> int:
        options = ("sweep.workload.tasks=[32]", f"kernel.rules.xfs.iolock_line={design}")
        spec = scenario_spec("xfs-disk-rd", "before", *options, warmup_ns=0, duration_ns=20e6)
        return simulate_whole(spec).latency["read"].count

    assert reads("apart") > 1.2 * reads("with-ctime")


def test_the_mutex_is_held_longest_where_each_cpu_has_a_lock() -> None:
    def held(design: str) -> float:
        queue = the_lock(simulate_whole(spec_of(8, f"kernel.rules.xfs.cil_queue={design}")), "xfs.cil_wq")
        return queue.hold_total_ns / queue.acquired

    assert held("cpu") > 2 * held("cpu-by-pool")
    assert held("cpu-by-pool") > 1.5 * held("node")


@pytest.mark.slow
def test_both_machines_sync_the_same() -> None:
    assert_same(spec_of(6, ms=1))


def test_synced_writes_of_new_blocks_change_extents_since_5_8() -> None:
    """Before, only what ends behind the size on disk is logged: at random places of 16 pages 3.4 times, not 16."""

    def commits(rule: str, places: str) -> float:
        made: dict[str, Any] = {"on": "made"}
        append = {"op": "append", "size": "64 KiB"} | made
        write = {"op": "overwrite", "size": "4 KiB", "places": places, "repeat": 64, "sync": True} | made
        operations = [{"op": "create"}, append, write, {"op": "unlink"} | made]
        options = (f"workload.operations={json.dumps(operations)}", f"kernel.rules.xfs.delalloc={rule}")
        return acquired_each(simulate_whole(spec_of(1, *options)), "xfs.xc_ctx_lock")

    assert commits("unwritten", "random") - commits("written", "random") > 10
    assert commits("unwritten", "in-turn") == pytest.approx(commits("written", "in-turn"), abs=2)
