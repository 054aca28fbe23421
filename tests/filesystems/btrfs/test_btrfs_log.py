"""btrfs's log: what an fsync writes into it, who waits for whom, and how kernels differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import acquired_each, answer, held_each, run_scenario, the_lock
from simfs.results.run_result import RunResult
from simfs.scenario import expand, load, to_run_spec

SYNCED = "kind: fs_mark, files: 1000, size: 9 B, write: 9 B, sync: 1, keep: true, directories: per-task"
WRITTEN = "kind: fio, rw: write, block_size: 64 KiB, fsync: 1, files: per-task, size: 64 MiB"


def run(
    tmp_path: Path, workload: str, filesystem: str = "", rules: str = "", device: str = "profile: nvme"
) -> RunResult:
    text = (
        "simfs: 1\nname: log\ntitle: log\nmachine: {profile: dual-socket-48, cpus: 16}\n"
        f"kernel: {{profile: linux-5.9, rules: {{{rules}}}}}\ndevice: {{{device}}}\n"
        f"filesystem: {{kind: btrfs{filesystem and ', ' + filesystem}}}\nworkload: {{{workload}}}\n"
    )
    result = run_scenario(tmp_path / "log.yaml", text, warmup_ns=2e6, duration_ns=40e6)
    assert result.operations > 0
    return result


def test_a_small_file_goes_into_the_tree_and_waits_for_no_write_of_its_data(tmp_path: Path) -> None:
    """Else both go to the log the same way; a write of 8 KiB takes this device 22 us, its submission and end 6 more."""
    small = run(tmp_path, f"{SYNCED}, tasks: 1")
    large = run(tmp_path, f"{SYNCED.replace('9 B', '8 KiB')}, tasks: 1")
    times = [1e9 / result.throughput_per_s for result in (small, large)]
    assert times[1] - times[0] > 28_000


@pytest.mark.slow
def test_a_file_that_the_log_has_is_not_logged_again(tmp_path: Path) -> None:
    again = run(tmp_path, "kind: mix, tasks: 1, operations: [{op: fsync}], files: 1, file_size: 4 KiB")
    assert all(lock.acquired == 0 for lock in again.locks if lock.name == "btrfs.log_mutex")
    changed = run(
        tmp_path,
        "kind: mix, tasks: 1, operations: [{op: overwrite}, {op: fsync}], order: in-turn, files: 1,"
        " file_size: 4 KiB",
    )
    assert the_lock(changed, "btrfs.log_mutex").acquired == pytest.approx(3 * changed.operations, rel=0.02)


TWICE = "order: in-turn, files: 1, file_size: 4 KiB, operations: [{op: overwrite}, {op: fsync, on: written}"


@pytest.mark.parametrize(
    ("between", "rules", "end", "logs"),
    [
        ("", "btrfs.fsync_wait: ordered", "10 us", 1),
        ("{op: utimes, on: written}, ", "btrfs.fsync_wait: ordered", "10 us", 2),
        ("", "btrfs.fsync_wait: writeback", "100 ns", 1),
        ("", "btrfs.fsync_wait: writeback", "50 us", 2),
    ],
)
def test_the_second_of_two_fsyncs_logs_what_the_first_did_not(
    tmp_path: Path, between: str, rules: str, end: str, logs: int
) -> None:
    """Nothing, unless the inode has changed; since 5.10 an ordered extent may end behind the first."""
    workload = f"kind: mix, tasks: 1, {TWICE}, {between}{{op: fsync, on: written}}]"
    result = run(tmp_path, workload, f"costs: {{ordered.start: {end}}}", rules)
    assert the_lock(result, "btrfs.log_mutex").acquired == pytest.approx(
        3 * logs * result.operations, rel=0.03
    )


def test_what_others_log_in_the_same_transaction_does_not_count(tmp_path: Path) -> None:
    """Two tasks sync a file each; the second fsync of either finds its own in the log."""
    workload = f"kind: mix, tasks: 2, {TWICE}, {{op: fsync, on: written}}]"
    twice = run(tmp_path, workload, rules="btrfs.fsync_wait: ordered")
    once = run(
        tmp_path, workload.replace(", {op: fsync, on: written}]", "]"), rules="btrfs.fsync_wait: ordered"
    )
    each = [the_lock(result, "btrfs.log_mutex").acquired / result.operations for result in (once, twice)]
    assert each[1] == pytest.approx(each[0], rel=0.15)


def test_a_log_write_takes_all_with_it_who_came_meanwhile(tmp_path: Path) -> None:
    slow = "profile: nvme, flush: {time: 1 ms}"
    alone, many = (run(tmp_path, f"{WRITTEN}, tasks: {tasks}", device=slow) for tasks in (1, 16))
    assert many.throughput_per_s > 6 * alone.throughput_per_s


def test_a_device_that_rotates_has_who_syncs_a_log_of_several_tasks_sleep_for_a_jiffy(tmp_path: Path) -> None:
    """`btrfs_sync_log` without `ssd`: not if one task alone writes into the log."""

    def seconds(tasks: int, rotational: str) -> float:
        result = run(
            tmp_path, f"{WRITTEN}, tasks: {tasks}", device=f"profile: nvme, rotational: {rotational}"
        )
        return tasks / result.throughput_per_s

    assert seconds(1, "true") == seconds(1, "false")
    jiffy = 4e-3
    assert seconds(4, "true") > max(jiffy, 3 * seconds(4, "false"))


ROUND = "order: in-turn, files: 30, file_size: 4 KiB, operations: [{op: overwrite}, {op: fsync, on: written}]"


def test_a_leaf_is_checked_item_by_item_before_the_log_is_written(tmp_path: Path) -> None:
    """The log has three items of each file, besides checksums of each write; 87 more take 15 us."""

    def checking(files: int) -> float:
        """What checks take a round, in ns."""
        workload = f"kind: mix, tasks: 1, {ROUND.replace('30', str(files))}"
        rules = (f"btrfs.checks_written: {checks}" for checks in ("true", "false"))
        checked, unchecked = (1e9 / run(tmp_path, workload, rules=rule).throughput_per_s for rule in rules)
        return checked - unchecked

    assert 8000 < checking(30) - checking(1) < 22_000


def test_metadata_are_written_twice_with_dup(tmp_path: Path) -> None:
    """Two blocks of 16 KiB an fsync, each once or twice, on a pipe of 1 GB/s."""
    once, twice = (
        run(tmp_path, f"kind: mix, tasks: 1, {ROUND}", rules=f"btrfs.metadata_profile: {profile}")
        for profile in ("single", "dup")
    )
    assert 15_000 < 1e9 / twice.throughput_per_s - 1e9 / once.throughput_per_s < 60_000


def test_copies_of_blocks_are_requests_of_their_own_since_5_16(tmp_path: Path) -> None:
    """They alternate in the plug, and each joins the last request only; a loop device does one after the other."""
    many = ROUND.replace("30", "400")

    def each(merges: str, profile: str) -> float:
        rules = f"btrfs.metadata_profile: {profile}, block.plug_merges_any: {merges}"
        result = run(tmp_path, f"kind: mix, tasks: 1, {many}", rules=rules, device="profile: loop-tmpfs")
        return 1e9 / result.throughput_per_s

    assert each("false", "dup") > each("true", "dup") + 5_000
    assert each("false", "single") == each("true", "single")


def test_checksums_are_deleted_under_a_lock_of_their_range_before_5_9(tmp_path: Path) -> None:
    """It is taken and given back around a deletion and an insertion."""
    replaced = run(tmp_path, f"{WRITTEN}, tasks: 4", rules="btrfs.log_csums: replace")
    inserted = run(tmp_path, f"{WRITTEN}, tasks: 4", rules="btrfs.log_csums: insert")
    taken = the_lock(replaced, "btrfs.log_csum_range").acquired
    assert taken == pytest.approx(2 * replaced.operations, rel=0.02)
    assert [lock for lock in inserted.locks if lock.name == "btrfs.log_csum_range" and lock.acquired] == []


def test_sums_of_writes_that_follow_each_other_have_items_of_their_own_in_the_log_since_5_13(
    tmp_path: Path,
) -> None:
    """An item that ends where they begin grows in the search that finds it (since 5.8), but not the last of its leaf.

    Else another search makes one, after a look into the next leaf. A change locks the root, which the leaf is, for
    reading at first.
    """
    operation = "{op: overwrite, size: 4 KiB, sync: true}"
    workload = f"kind: mix, tasks: 1, operations: [{operation}], files: 1, file_size: 64 KiB"

    def searches(joins: str, in_place: str) -> float:
        rules = f"btrfs.log_joins_last_csums: {joins}, btrfs.extends_csums_in_place: {in_place}"
        return acquired_each(run(tmp_path, workload, rules=rules), "btrfs.log tree L0")

    in_place = searches("true", "true")
    assert searches("true", "false") - in_place == pytest.approx(2, abs=0.1)
    assert searches("false", "true") - in_place == pytest.approx(3, abs=0.1)


def test_a_new_log_waits_for_the_commit_before_it_only_until_5_11(tmp_path: Path) -> None:
    """A commit every 10 ms on a device that takes 2 ms for its superblock."""
    device = "profile: nvme, flush: {time: 2 ms}"
    waited = {}
    for design in ("log-start", "log-super"):
        often = "costs: {commit_interval: 10 ms}"
        result = run(tmp_path, f"{SYNCED}, tasks: 8", often, f"btrfs.tree_log_mutex: {design}", device)
        waited[design] = the_lock(result, "btrfs.log_mutex").wait_total_ns
    assert waited["log-start"] > 2 * waited["log-super"]


def test_an_extent_of_the_log_is_filled_under_its_leafs_lock_before_5_18(tmp_path: Path) -> None:
    """Ten fields take 105 ns."""
    operation = "{op: overwrite, size: 4 KiB, sync: true}"
    workload = f"kind: mix, tasks: 1, operations: [{operation}], files: 1, file_size: 64 KiB"
    locked, before = (
        held_each(run(tmp_path, workload, rules=f"btrfs.fills_item_in_leaf: {rule}"), "btrfs.log tree L0")
        for rule in ("true", "false")
    )
    assert locked - before == pytest.approx(105, rel=0.2)


OVERWRITTEN = (
    "kind: mix, tasks: 16, files: 1, file_size: 2 MiB, synced: true, operations: ["
    "{op: overwrite, weight: 30, size: 4 KiB, places: random, sync: true},"
    " {op: overwrite, weight: 10, size: 256 KiB, places: random, sync: true}]"
)
"""So many extents that some ranges lie in two leaves. The structures are compared with the files after each run."""


def test_a_write_takes_the_place_of_all_in_its_range(tmp_path: Path) -> None:
    """Where they lie in two leaves it was another search before 5.18."""
    rules = (f"btrfs.replaces_in_one_leaf: {value}" for value in ("true", "false"))
    before, since = (run(tmp_path, OVERWRITTEN, rules=rule) for rule in rules)
    assert before != since


def test_a_file_in_a_new_directory_takes_the_directory_into_the_log_with_it(tmp_path: Path) -> None:
    """Kernels before 5.12 do so with every file, those after once."""
    taken = {}
    for new, again in (("false", "true"), ("true", "true"), ("true", "false")):
        rules = f"btrfs.relogs_ancestors: {again}"
        result = run(tmp_path, f"{SYNCED}, tasks: 4", f"new_directories: {new}", rules)
        taken[new, again] = the_lock(result, "btrfs.log tree L1").acquired / result.operations
    assert taken["true", "true"] > taken["false", "true"] + 1.5
    assert taken["true", "false"] < taken["true", "true"] - 1.5


MOVED = (
    "kind: mix, tasks: 16, files: 4, file_size: 4 KiB, operations: [{op: create, weight: 10}, {op: unlink, weight: 10},"
    " {op: append, weight: 8}, {op: move, weight: 1}, {op: fsync, weight: 4}]"
)


SLOW = "profile: nvme, flush: {time: 0.5 ms}"
"""A log takes a millisecond: a flush, and as much for the superblock, which goes past the cache."""


def renamed(tmp_path: Path, rules: str, workload: str = MOVED) -> RunResult:
    """A commit takes milliseconds here; who begins a log takes the mutex of commits as well, once a commit."""
    rules = f"btrfs.rename_syncs_log: false, btrfs.tree_log_mutex: log-start, btrfs.inode_logged: remembered, {rules}"
    return run(tmp_path, workload, rules=rules, device=SLOW)


def test_a_name_that_the_log_does_not_know_to_be_lost_makes_the_next_fsync_commit_everything(
    tmp_path: Path,
) -> None:
    plain = renamed(tmp_path, "", MOVED.replace(" {op: move, weight: 1},", ""))
    assert sum(lock.acquired for lock in plain.locks if lock.name == "btrfs.tree_log_mutex") <= 1, "one log"
    taken = {
        design: the_lock(renamed(tmp_path, f"btrfs.full_commit: {design}"), "btrfs.tree_log_mutex").acquired
        for design in ("running", "directory")
    }
    assert taken["running"] > 1.5 * taken["directory"], "since 5.12 only if the file lost its own name"
    assert taken["directory"] > 1, "2 to 14 by seed"


@pytest.mark.parametrize("design", ["since-committed", "running", "directory"])
def test_a_directory_whose_file_gets_another_name_in_it_has_lost_none(tmp_path: Path, design: str) -> None:
    """`btrfs_rename` calls `btrfs_record_unlink_dir` only where the directories differ."""
    inside = renamed(tmp_path, f"btrfs.full_commit: {design}", MOVED.replace("op: move", "op: rename"))
    assert inside.latency["rename"].count > 50
    assert sum(lock.acquired for lock in inside.locks if lock.name == "btrfs.tree_log_mutex") <= 1, "one log"


def test_from_4_19_to_5_9_a_rename_of_a_logged_file_waits_for_the_log(tmp_path: Path) -> None:
    turns = (
        "kind: mix, tasks: 2, files: 4, file_size: 4 KiB, order: in-turn,"
        " operations: [{op: append}, {op: fsync, on: written}, {op: rename, on: synced}]"
    )
    syncs, stays = (
        run(tmp_path, turns, rules=f"btrfs.rename_syncs_log: {syncs}", device=SLOW).latency["rename"].mean_ns
        for syncs in ("true", "false")
    )
    assert syncs > 1e6 > 10 * stays, "the log takes 1 ms"


def test_before_5_15_the_log_waits_for_the_first_insertion_of_a_rename(tmp_path: Path) -> None:
    """One that takes 2 ms here; who syncs waits for those that hold back the log."""
    turns = "kind: mix, tasks: 4, files: 4, file_size: 4 KiB, operations: [{op: rename}, {op: append}, {op: fsync}]"
    slow = "costs: {rename.insert_ref: 2 ms}"
    first, inserted, joined = (
        run(tmp_path, turns, slow, f"btrfs.rename_pin: {rule}, btrfs.space_cache: tree")
        .latency["fsync"]
        .mean_ns
        for rule in ("first", "inserted", "joined")
    )
    assert first > 1.02 * inserted, "1.04 to 1.34 times by seed"
    assert first > 1.02 * joined, "1.03 to 1.28"


def test_before_5_10_a_rename_takes_the_mutex_of_the_log_to_pin_it(tmp_path: Path) -> None:
    """Whether there is a log or not."""
    renames = "kind: mix, tasks: 1, files: 4, operations: [{op: rename}]"
    locked, counted = (
        run(tmp_path, renames, rules=f"btrfs.pin_locks_log: {locks}") for locks in ("true", "false")
    )
    assert acquired_each(locked, "btrfs.log_mutex") == pytest.approx(1, abs=0.01)
    assert acquired_each(counted, "btrfs.log_mutex") == 0


def test_before_5_18_a_rename_joins_the_log_to_take_the_old_name_out(tmp_path: Path) -> None:
    turns = (
        "kind: mix, tasks: 1, files: 4, file_size: 4 KiB, order: in-turn,"
        " operations: [{op: append}, {op: fsync, on: written}, {op: rename, on: synced}]"
    )
    others = "btrfs.rename_pin: joined, btrfs.rename_syncs_log: false"
    unlogs, stays = (
        run(tmp_path, turns, rules=f"btrfs.rename_unlogs: {unlogs}, {others}") for unlogs in ("true", "false")
    )
    joined = [the_lock(result, "btrfs.log_mutex").acquired / result.operations for result in (unlogs, stays)]
    assert joined[0] - joined[1] == pytest.approx(1, abs=0.1)
    assert unlogs.latency["rename"].mean_ns > stays.latency["rename"].mean_ns


UNSYNCED = (
    "kind: mix, tasks: 1, files: 1, file_size: 4 KiB, order: in-turn,"
    " operations: [{op: append}, {op: fsync, on: written}, {op: create}, {op: unlink, on: made}]"
)
"""The log has one file, and another comes and goes."""


def test_who_unlinks_a_file_that_was_never_synced_goes_to_its_log_from_5_3_to_5_17(tmp_path: Path) -> None:
    """He looks for the reference in vain, and for an extended one; since 5.18 he only asks, without the mutex."""
    designs = ("remembered", "assumed", "assumed-if-never", "searched")
    results = [run(tmp_path, UNSYNCED, rules=f"btrfs.inode_logged: {design}") for design in designs]
    joined, searched = (
        [acquired_each(result, lock) for result in results]
        for lock in ("btrfs.log_mutex", "btrfs.log tree L0")
    )
    assert [number - joined[0] for number in joined] == pytest.approx([0, 1, 1, 0], abs=0.1)
    assert searched[1] == pytest.approx(searched[2], abs=0.1)
    assert searched[1] > searched[3] + 1
    assert searched[3] - searched[0] == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("asks", [True, False])
def test_a_rename_of_a_file_that_was_never_synced_logs_it_from_5_14_to_5_17(
    tmp_path: Path, asks: bool
) -> None:
    turns = UNSYNCED.replace("{op: unlink, on: made}", "{op: rename, on: made}, {op: unlink, on: made}")
    others = "btrfs.rename_syncs_log: false, btrfs.rename_unlogs: false, btrfs.pin_locks_log: false"
    rules = f"btrfs.inode_logged: assumed, btrfs.new_name_asks: {str(asks).lower()}, {others}"
    joined = acquired_each(run(tmp_path, turns, rules=rules), "btrfs.log_mutex")
    without = acquired_each(run(tmp_path, UNSYNCED, rules=rules), "btrfs.log_mutex")
    assert joined - without == pytest.approx(int(asks), abs=0.1)


def test_an_fsync_searches_for_extended_attributes_until_it_knows_that_there_are_none(tmp_path: Path) -> None:
    """Here of one file that is written and synced again and again: one search less of the subvolume."""
    turn = "kind: mix, tasks: 1, operations: [{op: overwrite}, {op: fsync}], order: in-turn, files: 1, file_size: 4 KiB"
    each, once = (
        run(tmp_path, turn, rules=f"btrfs.remembers_no_xattrs: {remembers}")
        for remembers in ("false", "true")
    )
    searches = [the_lock(result, "btrfs.fs tree L0").acquired / result.operations for result in (each, once)]
    assert searches[0] - searches[1] == pytest.approx(1, abs=0.05)


def test_a_commit_that_waits_for_the_one_before_keeps_creates_out_until_6_5(tmp_path: Path) -> None:
    waits = {}
    for start in ("at-once", "after-previous"):
        result = renamed(tmp_path, f"btrfs.full_commit: since-committed, btrfs.commit_start: {start}")
        waits[start] = result.latency["create"].mean_ns
    assert waits["at-once"] > 1.7 * waits["after-previous"], "2.0 to 4.0 times by seed"


def test_until_5_10_an_fsync_beside_a_full_commit_makes_another(tmp_path: Path) -> None:
    """So that creates are kept out by one commit after the other."""
    waits = {}
    for design in ("since-committed", "running"):
        result = renamed(tmp_path, f"btrfs.full_commit: {design}, btrfs.commit_start: at-once")
        waits[design] = result.latency["create"].mean_ns
    assert waits["since-committed"] > waits["running"], "1.06 to 1.8 times by seed"


def again(names: int, design: str, logs_parent: bool = True) -> RunResult:
    """dbench's clients with so many names, which files that are gone leave to new ones."""
    (point,) = (
        p
        for p in expand(
            load("guest-dbench", ["workload.tasks=4", f"workload.params.names={names}", "sweep={}"])
        )
        if p.variant == "btrfs"
    )
    spec = to_run_spec(point, 0) | {"warmup_ns": 1e7, "duration_ns": 2e8}
    spec["kernel"]["rules"] |= {
        "btrfs.log_directory": design,
        "btrfs.logs_parent_of_deleted": logs_parent,
    }
    return RunResult.model_validate_json(answer(spec))


def test_a_new_file_with_the_name_of_a_deleted_one_takes_its_directory_into_the_log() -> None:
    """`log_conflicting_inodes`: the last commit knows the name; with names for ever none is used again. Until 6.0."""
    other, each, new = again(1_000_000, "each"), again(100, "each"), again(100, "new")
    since = again(100, "delayed", logs_parent=False)
    taken = [
        sum(lock.acquired for lock in result.locks if lock.name == "btrfs.directory log_mutex")
        / result.latency["Flush"].count
        for result in (other, each, new, since)
    ]
    assert taken[0] == taken[3] == 0
    assert 0.1 < taken[1] < 10
    touched = [
        the_lock(result, "btrfs.log tree L0").acquired / result.operations for result in (other, each, new)
    ]
    assert touched[1] > 1.1 * touched[2] > 1.1 * touched[0], "before 5.16 each entry is looked for by itself"
