"""fs_mark, mixes of operations and the calls that they are made of, on every filesystem."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from engine import Spec, answer, simulate_whole, window
from simfs.cli import app
from simfs.scenario import ScenarioError, expand, load, to_run_spec
from simfs.scenario.checks.operations import REFUSED
from simfs.scenario.models import load_vfs
from simfs.vocabulary import vocabulary

MakeSpec = Callable[..., Spec]

FILESYSTEMS = ("xfs", "btrfs", "ext4", "tmpfs")
HEAD = "simfs: 1\nname: m\ntitle: m\nmachine: {profile: server-24, costs: {line_hit: 0 ns}}\nkernel: linux-6.12\n"


@pytest.fixture
def scenario(tmp_path_factory: pytest.TempPathFactory) -> MakeSpec:
    def spec(filesystem: str, workload: dict[str, Any], ms: float = 5) -> Spec:
        path = tmp_path_factory.mktemp("mix") / "m.yaml"
        path.write_text(f"{HEAD}filesystem: {{kind: {filesystem}}}\nworkload: {json.dumps(workload)}\n")
        (point,) = expand(load(path))
        return to_run_spec(point, 0) | {"warmup_ns": 2e6, "duration_ns": ms * 1e6}

    return spec


def mix(*operations: dict[str, Any], **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"kind": "mix", "operations": list(operations), **keys}


@cache
def call(filesystem: str, name: str) -> float:
    return load_vfs(filesystem).spec()[f"call.{name}"]


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
@pytest.mark.parametrize("op", ["stat", "stat_missing", "fstat", "statfs", "read"])
def test_a_call_of_one_task_takes_what_it_took_on_the_measured_machine(
    scenario: MakeSpec, filesystem: str, op: str
) -> None:
    cpus = 24 if op == "statfs" else 0
    parts = ("read", "read_page") if op == "read" else (op, *cpus * ["statfs_cpu"])
    took = simulate_whole(scenario(filesystem, mix({"op": op}))).latency[op].mean_ns
    assert took == pytest.approx(sum(call(filesystem, part) for part in parts), rel=0.03)


@pytest.mark.parametrize(("filesystem", "counters"), [("xfs", 3), ("ext4", 3), ("tmpfs", 1), ("btrfs", 0)])
def test_a_statfs_sums_each_counter_up_under_its_lock(
    scenario: MakeSpec, filesystem: str, counters: int
) -> None:
    """`__percpu_counter_sum`: tasks meet there, although each asks in a directory of its own."""
    found = simulate_whole(scenario(filesystem, mix({"op": "statfs"}, tasks=8, directories="per-task")))
    of = [lock for lock in found.locks if lock.name == "vfs.percpu_counter"]
    assert sum(lock.acquired for lock in of) == pytest.approx(counters * found.operations, abs=8 * counters)
    assert (sum(lock.contended for lock in of) > 0) == (counters > 0)


RENAMES = {"tmpfs": 4050, "xfs": 6027, "ext4": 7704, "btrfs": 10610}


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_a_rename_of_one_task_takes_what_it_took_on_the_measured_machine(
    scenario: MakeSpec, filesystem: str
) -> None:
    took = simulate_whole(scenario(filesystem, mix({"op": "rename"}))).latency["rename"].p50_ns
    assert took == pytest.approx(RENAMES[filesystem], rel=0.12)


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
def test_a_file_that_is_truncated_gives_its_blocks_back(scenario: MakeSpec, filesystem: str) -> None:
    """What is free is compared with what files have at the end."""
    loop = mix(
        {"op": "fallocate", "on": "first"}, {"op": "truncate", "on": "first"}, order="in-turn", files=1
    )
    result = simulate_whole(scenario(filesystem, loop))
    assert result.operations > 10
    assert all(law.ok for law in result.laws)


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_all_operations_together_keep_the_laws_and_repeat(scenario: MakeSpec, filesystem: str) -> None:
    known = vocabulary().operations
    words = [word for word in known if (word, filesystem) not in REFUSED]
    spec = scenario(filesystem, mix(*({"op": op} for op in words), tasks=30, files=3, subdirectories=2))
    first = simulate_whole(spec)
    assert set(first.latency) == set(words)
    assert answer(spec) == answer(spec)


def test_operations_are_drawn_by_their_weights(scenario: MakeSpec) -> None:
    result = simulate_whole(
        scenario("tmpfs", mix({"op": "stat", "weight": 3}, {"op": "fstat"}, tasks=4), ms=20)
    )
    assert result.latency["stat"].count / result.latency["fstat"].count == pytest.approx(3, rel=0.1)
    assert result.operations == result.latency["stat"].count + result.latency["fstat"].count


def test_in_turn_a_round_is_one_operation(scenario: MakeSpec) -> None:
    loop = mix({"op": "create"}, {"op": "unlink"}, order="in-turn", files=0)
    result = simulate_whole(scenario("tmpfs", loop))
    assert abs(result.latency["create"].count - result.operations) <= 1
    assert result.latency["unlink"].count == result.operations


def test_thinking_takes_user_time_before_the_operation_and_none_of_its_latency(scenario: MakeSpec) -> None:
    result = simulate_whole(scenario("tmpfs", mix({"op": "fstat", "think": "40 us"})))
    assert result.latency["fstat"].max_ns < 1000
    assert result.cpu_ns.user / result.operations == pytest.approx(40_250, rel=0.02)


@pytest.mark.slow
def test_readers_of_one_file_pass_its_page_around_and_readers_of_their_own_do_not(scenario: MakeSpec) -> None:
    def per_read(file_set: str) -> float:
        return (
            simulate_whole(scenario("ext4", mix({"op": "read"}, tasks=24, file_set=file_set)))
            .latency["read"]
            .p50_ns
        )

    assert per_read("shared") > 1.5 * per_read("own")


@pytest.mark.slow
def test_who_reads_a_file_in_pieces_meets_others_only_on_the_same_page(scenario: MakeSpec) -> None:
    def per_read(repeat: int) -> float:
        read = {"op": "read", "size": "1 KiB", "repeat": repeat}
        loop = mix(read, tasks=24, file_set="shared", files=1, file_size="1 MiB")
        return simulate_whole(scenario("ext4", loop)).latency["read"].p50_ns

    assert per_read(1) > 1.5 * per_read(1024)


def test_bytes_are_those_of_reads_and_writes(scenario: MakeSpec) -> None:
    result = simulate_whole(scenario("xfs", mix({"op": "read", "size": "16 KiB"}, file_size="64 KiB")))
    assert result.bytes == pytest.approx(16384 * result.operations, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("filesystem", FILESYSTEMS)
@pytest.mark.parametrize("sync", [0, 1, 3, 5])
def test_fs_mark_creates_syncs_and_unlinks_as_often_as_its_options_say(
    scenario: MakeSpec, filesystem: str, sync: int
) -> None:
    options = {"kind": "fs_mark", "tasks": 4, "files": 10, "size": "4 KiB", "sync": sync, "subdirectories": 3}
    result = simulate_whole(scenario(filesystem, options, ms=40))
    assert result.operations == result.latency["file"].count > 40
    assert result.latency["unlink"].count == pytest.approx(result.operations, abs=2 * 4 * 10)
    assert ("fsync" in result.latency) == (sync in (3, 5))
    slow = (
        result.latency["file"].p50_ns
        > 3 * simulate_whole(scenario(filesystem, options | {"sync": 0}, ms=40)).latency["file"].p50_ns
    )
    assert slow == (sync == 1 and filesystem != "tmpfs")


def test_threads_of_fs_mark_meet_in_one_directory_as_long_as_they_stay_there(scenario: MakeSpec) -> None:
    def waits(files: int) -> int:
        options = {"kind": "fs_mark", "tasks": 4, "files": 1000, "size": None, "sync": 0, "keep": True}
        options |= {"subdirectories": 8, "files_per_directory": files}
        locks = simulate_whole(scenario("ext4", options)).locks
        return sum(lock.contended for lock in locks if lock.name == "vfs.i_rwsem (directory)")

    assert waits(1000) > 2 * waits(1)


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_fs_mark_locks_the_directory_above_the_files_before_each_of_them(
    scenario: MakeSpec, filesystem: str
) -> None:
    """It makes the file's directory, which is there: all threads meet in the root, unless each has its own (-D)."""

    def lock(below: int | None) -> tuple[int, float]:
        options = {
            "kind": "fs_mark",
            "tasks": 4,
            "directories": "per-task",
            "size": None,
            "sync": 0,
            "keep": True,
        }
        result = simulate_whole(scenario(filesystem, options | {"subdirectories": below}, ms=10))
        rwsem = next(lock for lock in result.locks if lock.name == "vfs.i_rwsem (directory)")
        return rwsem.contended, rwsem.acquired / result.operations

    (in_root, each), (below_own, own) = lock(None), lock(1)
    assert [each, own] == pytest.approx([2, 2], rel=0.05)
    assert in_root > 10
    assert below_own == 0


def test_an_empty_file_of_fs_mark_costs_a_directory_that_exists_and_a_write_of_nothing(
    scenario: MakeSpec,
) -> None:
    options = {"kind": "fs_mark", "directories": "per-task", "size": None, "sync": 0, "keep": True}
    mark = scenario("tmpfs", options)
    costs = mark["vfs"]["costs"]
    mkdir = sum(costs[f"call.mkdir_exists_{part}_i_rwsem"] for part in ("before", "under", "after"))
    more = mkdir + costs["call.write_nothing"] + mark["workload"]["params"]["user_ns"] - costs["user.loop"]
    bare = scenario("tmpfs", {"kind": "create", "directories": "per-task"})
    per_file = [5e6 / simulate_whole(spec).operations for spec in (mark, bare)]
    assert per_file[0] - per_file[1] == pytest.approx(more, rel=0.05)


def test_kept_files_stay_and_are_not_unlinked(scenario: MakeSpec) -> None:
    result = simulate_whole(
        scenario("xfs", {"kind": "fs_mark", "files": 10, "size": None, "sync": 0, "keep": True})
    )
    assert set(result.latency) == {"file"}


@pytest.mark.parametrize("filesystem", ["xfs", "btrfs", "ext4"])
def test_a_directory_that_has_many_files_already_is_slower(scenario: MakeSpec, filesystem: str) -> None:
    def per_file(files: int) -> float:
        options = {"kind": "fs_mark", "size": None, "sync": 0, "keep": True, "initial_files": files}
        return simulate_whole(scenario(filesystem, options) | window(2e6)).latency["file"].p50_ns

    assert per_file(20_000) > 1.05 * per_file(0)


def test_a_create_on_xfs_goes_through_the_nodes_of_a_hash_index_twice(scenario: MakeSpec) -> None:
    """To see that the name is free, and to enter it: from some 180,000 names on there is one more below the root."""

    def per_file(files: int) -> tuple[float, float]:
        options = {"kind": "fs_mark", "size": None, "sync": 0, "keep": True, "initial_files": files}
        spec = scenario("xfs", options) | window(1e7)
        return simulate_whole(spec).latency["file"].p50_ns, spec["filesystem"]["costs"][
            "cu_node.lock_dir_leafn"
        ]

    (small, node), (large, _) = per_file(100_000), per_file(200_000)
    assert large - small == pytest.approx(2 * node, rel=0.15)


@pytest.mark.parametrize(
    ("workload", "wrong"),
    [
        ("{kind: mix, operations: [{op: sta}]}", r"m\.yaml:7:41: .*not one of .*did you mean 'stat'"),
        ("{kind: mix, operations: []}", r"m\.yaml:7:.*operations: a mix needs at least one"),
        ("{kind: mix, operations: [{op: stat, weight: 0}]}", r"m\.yaml:7:55: .*weight"),
        ("{kind: mix, file_set: shared, operations: [{op: unlink}]}", r"m\.yaml:7:.*file_set is shared"),
        ("{kind: mix, file_size: 9 GiB, operations: [{op: stat}]}", r"m\.yaml:7:34: the files have 9.0 GiB"),
        ("{kind: fs_mark, sync: 2}", r"m\.yaml:7:33: .*sync: 2 is not one of 0, 1, 3 or 5"),
        ("{kind: fs_mark, loops: 3}", r"m\.yaml:7:27: unknown key 'loops'"),
    ],
)
def test_a_wrong_workload_is_refused_at_its_place(tmp_path: Path, workload: str, wrong: str) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(f"{HEAD}filesystem: {{kind: xfs}}\nworkload: {workload}\n")
    with pytest.raises(ScenarioError, match=wrong):
        load(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("filesystem", "read_of", "most"), [("xfs", 1 / 32, 1.25), ("ext4", 1 / 500, 1.3), ("btrfs", 4 / 60, 1.3)]
)
def test_a_walk_puts_each_inode_on_the_list_and_reads_a_block_once(
    scenario: MakeSpec, filesystem: str, read_of: float, most: float
) -> None:
    """A cluster of 32 inodes; 32 blocks of 16, here 500 of a directory; leaves of entries and of 50 to 90 inodes.

    Inodes of btrfs have numbers by turns of the four directories, so all four tasks wait for each leaf.
    """
    load = mix({"op": "walk"}, tasks=4, directories="per-task", files=0, initial_files=2000)
    spec = scenario(filesystem, load, ms=200)
    walk = simulate_whole(spec)
    lists = next(lock for lock in walk.locks if lock.name == "vfs.s_inode_list_lock")
    assert lists.acquired == pytest.approx(walk.operations, rel=0.01)
    drive = {"time_ns": 1e6, "cv": 0, "per_kib_ns": 0}
    slow = {"served_by": "hardware", "parallelism": 8, "submit_ns": 0, "interrupt_ns": 0}
    read = simulate_whole(
        spec | window(3e7) | {"device": slow | {"read": drive, "write": drive, "flush": drive}}
    )
    one = read.latency["walk"].mean_ns - walk.latency["walk"].mean_ns
    assert (
        0.7 < one / (1e6 * read_of) < most
    )  # the drive's time, and the way out of the deep sleep that it allows


def test_a_walk_on_a_filesystem_in_memory_is_refused(scenario: MakeSpec) -> None:
    with pytest.raises(ScenarioError, match="all inodes of tmpfs are in memory"):
        scenario("tmpfs", mix({"op": "walk"}))


def test_a_stall_in_the_set_up_is_told_as_one(tmp_path: Path) -> None:
    """Statistics of the tasks that were never started refused it first, as bad input."""
    path = tmp_path / "m.yaml"
    workload = "workload: {kind: mix, initial_files: 3000000, operations: [{op: stat}]}\n"
    measure = "measure: {warmup: 0, duration: 1 ms, replications: 1}\n"
    path.write_text(f"{HEAD}filesystem: {{kind: xfs, size: 300 MiB}}\n{workload}{measure}")
    answer = CliRunner().invoke(app, ["run", str(path)])
    assert answer.exit_code == 3
    assert "no space left for the initial files" in " ".join(answer.stdout.split())


def test_an_operation_can_be_done_on_the_first_file_of_all(scenario: MakeSpec) -> None:
    """Who appends to one file waits for the others, who append to any of 500 hardly ever."""
    appends = {"op": "append"}
    waits = []
    for operation in (appends, appends | {"on": "first"}):
        spec = scenario("ext4", mix(operation, tasks=8, files=500, file_set="shared"))
        waits.append(
            next(lock.contended for lock in simulate_whole(spec).locks if lock.name == "vfs.i_rwsem (file)")
        )
    assert waits[1] > 8 * max(waits[0], 1)


@pytest.mark.parametrize("filesystem", ["xfs", "btrfs", "ext4"])
def test_a_write_with_o_sync_is_a_write_and_an_fsync(scenario: MakeSpec, filesystem: str) -> None:
    device = {"device": to_run_spec(expand(load("guest-fio"))[0], 0)["device"]}
    synced = scenario(filesystem, mix({"op": "append", "sync": True}, files=1), ms=20) | device
    apart = (
        scenario(filesystem, mix({"op": "append"}, {"op": "fsync"}, order="in-turn", files=1), ms=20) | device
    )
    one, two = simulate_whole(synced).latency, simulate_whole(apart).latency
    assert one["append"].mean_ns == pytest.approx(two["append"].mean_ns + two["fsync"].mean_ns, rel=0.02)


def test_only_writes_can_be_o_sync(scenario: MakeSpec) -> None:
    with pytest.raises(ScenarioError, match="sync is for append and overwrite, not for read"):
        scenario("xfs", mix({"op": "read", "sync": True}))


@pytest.mark.parametrize("filesystem", ["ext4", "btrfs", "tmpfs"])
def test_a_truncation_drops_the_pages_that_were_written(scenario: MakeSpec, filesystem: str) -> None:
    """`truncate_inode_pages_range`: 64 pages take longer than one. On XFS they are one folio."""
    few, many = (
        simulate_whole(
            scenario(
                filesystem,
                mix(
                    {"op": "append", "size": f"{4 * pages} KiB", "on": "first"},
                    {"op": "truncate", "on": "first"},
                    order="in-turn",
                    files=1,
                ),
            )
        )
        .latency["truncate"]
        .p50_ns
        for pages in (1, 64)
    )
    assert many > few + 63 * 200
