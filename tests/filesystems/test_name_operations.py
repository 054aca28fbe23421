"""Renames between directories, attributes, blocks without data, truncations: which locks, and what is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, acquired_each, answer, audited, rate, simulate, window
from simfs.scenario import ScenarioError, expand, load, to_run_spec

FILESYSTEMS = ("xfs", "btrfs", "ext4", "tmpfs")
FILE = {"xfs": "xfs.IOLOCK"}
"""What a file's `i_rwsem` is called, where it has a name of its own."""


def spec(
    folder: Path, filesystem: str, *operations: str,
    size: str = "8 GiB", kernel: str = "linux-6.12", bytes_: str = "64 KiB", **keys: Any,  # noqa: ANN401
) -> Spec:  # fmt: skip
    listed = [{"op": op, "size": bytes_} for op in operations]
    workload = {
        "kind": "mix",
        "operations": listed,
        "order": "in-turn",
        "files": 2,
        "subdirectories": 2,
    } | keys
    path = folder / "m.yaml"
    place = (
        "" if filesystem == "tmpfs" else f"device: nvme\nfilesystem: {{kind: {filesystem}, size: {size}}}\n"
    )
    path.write_text(
        f"simfs: 1\nname: m\ntitle: m\nmachine: {{profile: server-24, cpus: 4}}\nkernel: {kernel}\n"
        f"{place or 'filesystem: {kind: tmpfs}'}\nworkload: {json.dumps(workload)}\n"
    )
    (point,) = expand(load(path))
    return to_run_spec(point, 0) | {"warmup_ns": 5e5, "duration_ns": 4e6}


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
@pytest.mark.parametrize(("operation", "mutex", "directories"), [("rename", 0, 1), ("move", 1, 2)])
def test_a_rename_locks_its_directories_and_moves_the_dentry_under_the_one_rename_lock(
    tmp_path: Path, filesystem: str, operation: str, mutex: int, directories: int
) -> None:
    """`lock_rename`, `d_move`."""
    result = audited(spec(tmp_path, filesystem, operation))
    assert acquired_each(result, "vfs.s_vfs_rename_mutex") == pytest.approx(mutex, abs=0.05)
    assert acquired_each(result, "vfs.i_rwsem (directory)") == pytest.approx(directories, abs=0.05)
    assert acquired_each(result, FILE.get(filesystem, "vfs.i_rwsem (file)")) == pytest.approx(1, abs=0.05)
    assert acquired_each(result, "vfs.rename_lock") == pytest.approx(5, abs=0.05)


@pytest.mark.parametrize(
    ("kernel", "walks"), [("linux-5.5", 0), ("linux-5.6", 1)], ids=["before path_init reads it", "after"]
)
@pytest.mark.parametrize(
    ("operation", "paths", "lookups"),
    [("stat", 1, 0), ("mkdir", 1, 1), ("link", 2, 1), ("rename", 2, 2), ("fstat", 0, 0)],
)
def test_where_somebody_renames_others_read_the_rename_lock(
    tmp_path: Path, operation: str, paths: int, lookups: int, kernel: str, walks: int
) -> None:
    """`path_init`, `d_lookup`; `d_move` writes it."""
    result = audited(spec(tmp_path, "tmpfs", "rename", operation, kernel=kernel))
    renames = 1 + 2 + 2 * walks
    reads = paths * walks + lookups + (operation == "rename")
    assert acquired_each(result, "vfs.rename_lock") == pytest.approx(renames + reads, abs=0.1)


def test_who_never_renames_reads_no_rename_lock(tmp_path: Path) -> None:
    result = audited(spec(tmp_path, "tmpfs", "stat", "mkdir"))
    assert acquired_each(result, "vfs.rename_lock") == 0


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_who_has_one_directory_moves_files_into_the_root_and_back(tmp_path: Path, filesystem: str) -> None:
    """As FxMark's MWRM."""
    result = audited(spec(tmp_path, filesystem, "move", subdirectories=1, directories="per-task", tasks=4))
    assert acquired_each(result, "vfs.s_vfs_rename_mutex") == pytest.approx(1, abs=0.05)
    assert acquired_each(result, "vfs.i_rwsem (directory)") == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
@pytest.mark.parametrize("operation", ["utimes", "chmod", "chown"])
def test_attributes_change_under_the_lock_of_the_file(
    tmp_path: Path, filesystem: str, operation: str
) -> None:
    result = audited(spec(tmp_path, filesystem, operation))
    assert acquired_each(result, FILE.get(filesystem, "vfs.i_rwsem (file)")) == pytest.approx(1, abs=0.05)
    handles = 2 if operation == "chown" else 1  # quotas have a handle of their own
    assert acquired_each(result, "ext4.j_state_lock") == pytest.approx(
        handles if filesystem == "ext4" else 0, abs=0.1
    )


@pytest.mark.parametrize(("kernel", "mutex"), [("linux-3.15", 1), ("linux-3.16", 0)])
def test_until_3_15_ext4_took_the_orphans_mutex_for_every_attribute(
    tmp_path: Path, kernel: str, mutex: int
) -> None:
    """`ext4_orphan_del` at the end of `ext4_setattr`."""
    result = audited(spec(tmp_path, "ext4", "chown", kernel=kernel))
    assert acquired_each(result, "ext4.orphan lock") == pytest.approx(mutex, abs=0.05)


@pytest.mark.parametrize(("kernel", "bytes_", "looks", "noted"), [
    ("linux-5.2", "1 B", 1, 0), ("linux-5.3", "1 B", 1, 1), ("linux-5.3", "4 KiB", 0, 0),
])  # fmt: skip
def test_since_5_3_a_truncation_within_a_block_notes_its_range_under_j_list_lock(
    tmp_path: Path, kernel: str, bytes_: str, looks: int, noted: int
) -> None:
    """`jbd2_journal_file_inode`, after a look under both locks at an inode that is on a transaction's list
    (`jbd2_journal_begin_ordered_truncate`). Blocks are filed under the lock, too, but rarely: the transaction has them.
    """
    result = audited(
        spec(tmp_path, "ext4", "shorten", kernel=kernel, bytes_=bytes_, file_size="1 MiB", files=1)
    )
    assert acquired_each(result, "ext4.j_state_lock") == pytest.approx(3 + looks, abs=0.1)
    assert acquired_each(result, "ext4.j_list_lock") == pytest.approx(looks + noted, abs=0.3)


def test_fallocate_and_truncate_on_xfs_take_what_their_transactions_do(tmp_path: Path) -> None:
    """Two transactions and the AGF for new blocks; two of one chain, the second with the AGF, to give them back."""
    result = audited(spec(tmp_path, "xfs", "fallocate", "truncate", files=1))
    assert acquired_each(result, "xfs.IOLOCK") == pytest.approx(2, abs=0.05)
    assert acquired_each(result, "xfs.AGF") == pytest.approx(2, abs=0.05)
    assert acquired_each(result, "xfs.ILOCK (file)") == pytest.approx(3, abs=0.1)
    kept = audited(spec(tmp_path, "xfs", "create", "fallocate", "unlink", files=0) | {"duration_ns": 2e7})
    assert acquired_each(kept, "xfs.AGF") == pytest.approx(2, abs=0.25)  # the inodegc worker gives them back


@pytest.mark.parametrize("filesystem", ["xfs", "ext4", "tmpfs"])
def test_a_file_that_is_shortened_gives_back_its_end(tmp_path: Path, filesystem: str) -> None:
    """Blocks that it was given go last first, and all are accounted for at the end of the run."""
    drawn = ("append", "fallocate", "shorten", "overwrite", "fsync", "shorten", "truncate", "create")
    audited(spec(tmp_path, filesystem, *drawn, order="drawn", tasks=4, files=3) | {"duration_ns": 3e7})


@pytest.mark.parametrize(("piece", "given_back"), [("64 KiB", 1), ("16 KiB", 1), ("1 KiB", 0)])
@pytest.mark.parametrize(
    ("filesystem", "lock", "each_time"), [("xfs", "xfs.AGF", 1), ("ext4", "ext4.group lock", 2)]
)
def test_each_whole_block_of_the_end_is_given_back(
    tmp_path: Path, filesystem: str, lock: str, each_time: int, piece: str, given_back: int
) -> None:
    """`xfs_itruncate_extents`, `ext4_ext_remove_space`: after a `fallocate` of 64 KiB, the locks of what gives back."""
    operations = [{"op": "fallocate", "size": "64 KiB"}, {"op": "shorten", "size": piece}]
    with_it = audited(spec(tmp_path, filesystem, operations=operations, files=1))
    without = audited(spec(tmp_path, filesystem, operations=operations[:1], files=1) | {"duration_ns": 2e6})
    assert acquired_each(with_it, lock) - acquired_each(without, lock) == pytest.approx(
        each_time * given_back, abs=0.1
    )


def test_xfs_writes_what_stays_before_it_is_shorter(tmp_path: Path) -> None:
    """`xfs_setattr_size`: blocks are allocated and the device is waited for, unless an fsync has done so."""
    shorten = {"op": "shorten", "size": "4 KiB"}
    append = {"op": "append", "size": "64 KiB"}
    waits = audited(spec(tmp_path, "xfs", operations=[append, shorten], files=1)).latency["shorten"]
    synced = audited(spec(tmp_path, "xfs", operations=[append, {"op": "fsync"}, shorten], files=1)).latency[
        "shorten"
    ]
    assert waits.mean_ns > 10e3 + 1.5 * synced.mean_ns


def test_btrfs_does_not_shorten_files(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="btrfs gives back the extents of a file only together here"):
        spec(tmp_path, "btrfs", "shorten")


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
def test_a_full_filesystem_is_told_by_its_name(tmp_path: Path, filesystem: str) -> None:
    made = spec(tmp_path, filesystem, *["fallocate"] * 40, size="320 MiB", tasks=2)
    result = simulate(made | {"duration_ns": 3e9})
    assert result.stall is not None
    assert result.stall.kind == "no space left"


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_what_was_written_can_be_truncated_while_others_sync(tmp_path: Path, filesystem: str) -> None:
    """One set of files for all: pages on their way to the device, items of extents, checksums."""
    operations = ("append", "overwrite", "fsync", "truncate", "create", "fiemap")[
        : 5 if filesystem == "tmpfs" else 6
    ]
    made = spec(tmp_path, filesystem, *operations, order="drawn", tasks=8, files=3, file_set="shared")
    audited(made | {"duration_ns": 3e7})


def test_a_listing_of_a_large_directory_takes_its_lock_for_each_buffer(tmp_path: Path) -> None:
    """`iterate_dir`: 3,000 names, of which 1,024 fit."""
    result = audited(
        spec(tmp_path, "ext4", "readdir", subdirectories=1, initial_files=3000) | {"duration_ns": 2e7}
    )
    assert acquired_each(result, "vfs.i_rwsem (directory)") == pytest.approx(3, abs=0.1)


def test_a_name_of_xfs_takes_no_less_where_its_hash_has_a_block_of_its_own(tmp_path: Path) -> None:
    """64 names are one block, 200 have blocks of names and one of hashes (`xfs_dir2_leaf_lookup_int`)."""
    block, leaf = (
        rate(simulate(spec(tmp_path, "xfs", "rename", subdirectories=1, initial_files=names)))
        for names in (64, 200)
    )
    assert leaf < block


@pytest.mark.parametrize(("names", "searches"), [(27, 2), (300, 4)])
def test_a_listing_of_btrfs_searches_for_each_page_of_entries_and_at_the_end(
    tmp_path: Path, names: int, searches: int
) -> None:
    """`btrfs_real_readdir`: 128 entries are a page here. The `getdents` after the last name searches, too."""
    made = spec(tmp_path, "btrfs", "readdir", subdirectories=1, initial_files=names, tasks=1)
    result = audited(made | {"duration_ns": 2e7})
    leaf = next(lock for lock in result.locks if lock.name == "btrfs.fs tree L0")
    assert leaf.acquired / result.operations == pytest.approx(searches, abs=0.1)


def test_names_of_btrfs_go_to_the_caller_without_the_leafs_lock(tmp_path: Path) -> None:
    """75 ns a name to collect it with the leaf locked, of 149 in all."""
    made = spec(tmp_path, "btrfs", "readdir", subdirectories=1, initial_files=100, tasks=1)
    result = audited(made | {"duration_ns": 2e7})
    leaf = next(lock for lock in result.locks if lock.name == "btrfs.fs tree L0")
    assert 75 * 100 < leaf.hold_shared_total_ns / result.operations < 75 * 100 * 1.2


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_both_machines_do_the_same(tmp_path: Path, filesystem: str) -> None:
    operations = ["create", "move", "chown", "append", "truncate"]
    operations += [] if filesystem == "tmpfs" else ["fiemap"]
    operations += [] if filesystem == "btrfs" else ["fallocate"]
    made = spec(tmp_path, filesystem, *operations, tasks=3)
    assert assert_same(made | window(2e5)) > 100
    assert answer(made) == answer(made)


@pytest.mark.parametrize(
    ("kernel", "operation", "handles"),
    [
        ("linux-5.14", "append", 16),  # a handle for each page
        ("linux-5.14", "overwrite", 16),
        ("linux-6.5", "append", 1),  # the inode, as the file grows
        ("linux-6.5", "overwrite", 0),
        ("linux-6.6", "append", 0),  # 03de20bed203
    ],
)
def test_a_buffered_write_on_ext4_starts_the_handles_of_its_era(
    tmp_path: Path, kernel: str, operation: str, handles: int
) -> None:
    made = spec(tmp_path, "ext4", operation, kernel=kernel, file_size="64 KiB")
    result = audited(made | {"duration_ns": 2e7})
    assert acquired_each(result, "ext4.j_state_lock") == pytest.approx(handles, abs=0.2)


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_what_fits_the_last_page_of_a_file_is_no_new_page(tmp_path: Path, filesystem: str) -> None:
    """Of four pieces of 1 KiB one begins a page: the others take the time of a write over what is there."""
    took = audited(spec(tmp_path, filesystem, "append", bytes_="1 KiB", files=1)).latency["append"]
    whole = audited(spec(tmp_path, filesystem, "append", bytes_="4 KiB", files=1)).latency["append"]
    over = audited(spec(tmp_path, filesystem, "overwrite", bytes_="1 KiB", file_size="4 KiB")).latency[
        "overwrite"
    ]
    assert took.mean_ns == pytest.approx((whole.mean_ns + 3 * over.mean_ns) / 4, rel=0.06)
