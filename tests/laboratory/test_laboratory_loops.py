"""The laboratory's counter of loops: calls cut by the directory's lock, and ext4's allocator by the group's."""

from __future__ import annotations

import numpy as np
from laboratory import blocks, loops, trees
from laboratory.counted import Row
from laboratory.results import Result

TEXT, TASK, USER = 0xFFFFFFFF81000000, 0xFFFFC90000004000, 0x7FFF0000
NAMES = (
    "entry_SYSCALL_64", "__x64_sys_rename", "__x64_sys_mkdir", "__x64_sys_rmdir", "__x64_sys_newfstatat", "down_write",
    "up_write", "iput", "d_move", "ext4_mb_new_blocks", "ext4_mb_complex_scan_group", "ext4_mb_use_best_found",
    "mb_find_extent", "rcu_do_batch", "btrfs_read_lock_root_node", "btrfs_lock_root_node", "down_read", "up_read",
    "_find_next_bit",
    "_raw_spin_trylock", "_raw_spin_unlock", "ext4_free_blocks", "ext4_truncate",
    "__x64_sys_openat", "__x64_sys_getdents64", "__x64_sys_close",
    "xfs_dir_lookup_args", "xfs_dir_createname_args", "xfs_dir_removename_args", "__xfs_trans_commit",
    "__x64_sys_fsync", "schedule",
    "__x64_sys_ftruncate", "__x64_sys_pread64", "__x64_sys_pwrite64", "__x64_sys_write", "truncate_inode_pages_range",
    "vfs_open", "ext4_dirty_inode",
)  # fmt: skip
KALLSYMS = "".join(f"{TEXT + 0x100 * nth:x} T {name}\n" for nth, name in enumerate(NAMES))

Block = tuple[str, int, int]
"""The function that is entered (none: its caller goes on), the depth, and the instructions."""


def rows(kind: str, *executed: Block) -> list[Row]:
    """A loop whose task executes these blocks, and user code before and after."""
    records, ns = [], 0
    for nth, (name, depth, instructions) in enumerate((("", -1, 10), *executed, ("", -1, 10))):
        place = TEXT + 0x100 * NAMES.index(name) if name else TEXT + 0xFFFF + nth
        user = depth < 0
        records.append(
            (USER if user else place, USER if user else TASK + 0x800 - 8 * depth, ns, instructions, 0)
        )
        ns += instructions
    log = blocks.Log(np.array(records, dtype=blocks.RECORD), blocks.Symbols.parse(KALLSYMS))
    return [
        Row(Result("guest", {"kind": f"loop-{kind}", "prefix": "y"}, {"names": 0, "operations": 2}), log, "")
    ]


def locked(call: str, *inside: Block) -> list[Block]:
    """A call that locks the directory, does this, and unlocks."""
    return [
        ("entry_SYSCALL_64", 0, 5), (call, 1, 20), ("down_write", 2, 7), *inside, ("up_write", 2, 3), ("", 1, 4),
    ]  # fmt: skip


def test_a_call_is_cut_where_the_directory_is_locked_and_unlocked() -> None:
    found = loops.vfs(rows("rename", *locked("__x64_sys_rename", ("d_move", 2, 340), ("", 1, 60))), "ext4")
    assert found == {
        "ext4.call.rename_before_i_rwsem": [25],
        "ext4.call.rename_under_i_rwsem": [407],
        "ext4.call.rename_after_i_rwsem": [7],
    }


def test_an_fsync_ends_with_what_it_executes_after_its_last_wait() -> None:
    waits = [("schedule", 2, 900), ("", 1, 30)] * 2
    fsync = rows("sync", ("entry_SYSCALL_64", 0, 5), ("__x64_sys_fsync", 1, 40), *waits, ("", 1, 7))
    assert trees.synced(loops.loops(fsync)["sync"])["wfsync.exit"] == [37]


def test_a_call_without_a_lock_is_whole() -> None:
    stat = rows("stat", ("entry_SYSCALL_64", 0, 5), ("__x64_sys_newfstatat", 1, 40), ("", 0, 4))
    assert loops.vfs(stat, "xfs") == {"xfs.call.stat": [49]}


LOOK_UP: tuple[Block, ...] = (
    ("", 2, 900), ("btrfs_read_lock_root_node", 3, 20), ("down_read", 4, 500), ("up_read", 4, 30),
)  # fmt: skip
CHANGE: tuple[Block, ...] = (
    ("", 2, 1500), ("btrfs_read_lock_root_node", 3, 20), ("down_read", 4, 64), ("up_read", 4, 60),
    ("btrfs_lock_root_node", 3, 65), ("down_write", 4, 2800), ("up_write", 4, 40), ("", 1, 3000),
)  # fmt: skip


def test_what_a_rename_does_in_trees_is_not_its_own() -> None:
    found = loops.vfs(rows("rename", *locked("__x64_sys_rename", *LOOK_UP, *CHANGE)), "btrfs")
    assert found["btrfs.call.rename_under_i_rwsem"] == [7 + 900 + 20 + 30 + 1500 + 20 + 40 + 3000]


def test_the_rest_of_a_rename_lies_between_its_searches() -> None:
    found = loops.renames(rows("rename", *locked("__x64_sys_rename", *LOOK_UP, *CHANGE)))
    assert found == [[7 + 900 + 20, 30 + 1500 + 20, 40 + 3000]]


def test_the_eviction_of_a_directory_is_counted_apart() -> None:
    made = locked("__x64_sys_mkdir", ("", 1, 30))
    freed = (("rcu_do_batch", 1, 500), ("", 2, 100), ("", 0, 1))
    removed = locked("__x64_sys_rmdir", ("", 1, 50), ("iput", 2, 900), ("", 3, 100), ("", 1, 1))
    found = loops.tmpfs(rows("mkdir_rmdir", *made, ("", -1, 9), *removed, *freed))
    assert found["mkdir.under_i_rwsem"] == [37]
    assert (found["rmdir.under_i_rwsem"], found["rmdir.evict"], found["rmdir.softirq"]) == (
        [58],
        [1000],
        [300],
    )


def allocation() -> list[Block]:
    """Three pieces of 40 and a word of bits for each are looked at; a second lock of the group marks the block."""
    pieces: list[Block] = [("mb_find_extent", 4, 30), ("", 3, 10)] * 3
    return [
        ("ext4_mb_new_blocks", 1, 600), ("_raw_spin_trylock", 2, 11), ("", 1, 100), 
        ("ext4_mb_complex_scan_group", 3, 0),
        *pieces, *[("_find_next_bit", 4, 8), ("", 3, 0)] * 3, ("ext4_mb_use_best_found", 4, 500),
        ("_raw_spin_unlock", 2, 7), ("", 1, 300), ("_raw_spin_trylock", 2, 11), ("", 1, 2000),
        ("_raw_spin_unlock", 2, 7),
        ("", 1, 50), ("", 0, 1),
    ]  # fmt: skip


def test_an_allocation_is_cut_at_both_locks_of_the_group_and_the_search_is_apart() -> None:
    freed: list[Block] = [
        ("ext4_truncate", 1, 900), ("ext4_free_blocks", 2, 200), ("_raw_spin_trylock", 3, 11), ("", 2, 1500),
        ("_raw_spin_unlock", 3, 7), ("", 2, 30), ("", 1, 80), ("", 0, 1),
    ]  # fmt: skip
    found = loops.ext4(rows("mkdir_rmdir", ("entry_SYSCALL_64", 0, 5), *allocation(), *freed))
    assert found["mballoc.load_buddy"] == [600]
    assert found["mballoc.mark_used"] == [11 + 100 + 500]
    assert found["mballoc.get_write_access"] == [7 + 300]
    assert found["mballoc.mark_diskspace"] == [11 + 2000]
    assert found["mballoc.dirty_metadata"] == [7 + 50]
    assert found["mballoc.free_blocks"] == [200 + 7 + 30]
    assert found["mballoc.remove_space"] == [900 + 80]
    assert (found["mballoc.scan_piece"], found["mballoc.scan_word"]) == ([40], [8])
