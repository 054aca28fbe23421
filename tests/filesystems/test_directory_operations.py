"""`mkdir` and `rmdir` as loads: which locks they take in which order, where inodes go, and what is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, acquired_each, answer, audited, simulate, window
from simfs.scenario import expand, load, to_run_spec

FILESYSTEMS = ("xfs", "btrfs", "ext4", "tmpfs")
DIRECTORY = "vfs.i_rwsem (directory)"


def spec(folder: Path, filesystem: str, *operations: str, **keys: Any) -> Spec:  # noqa: ANN401
    """A mix of these operations, in turn; `keys` replace those of the load."""
    workload = {
        "kind": "mix",
        "operations": [{"op": operation, "on": "made"} for operation in operations],
        "order": "in-turn",
        "files": 1,
    } | keys
    place = f"{{kind: {filesystem}}}" if filesystem == "tmpfs" else f"{{kind: {filesystem}, size: 8 GiB}}"
    path = folder / "d.yaml"
    path.write_text(
        "simfs: 1\nname: d\ntitle: d\nmachine: {profile: server-24, cpus: 4}\nkernel: linux-6.12\n"
        f"filesystem: {place}\nworkload: {json.dumps(workload)}\n"
    )
    (point,) = expand(load(path))
    return to_run_spec(point, 0) | {"warmup_ns": 5e5, "duration_ns": 8e6}


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_a_directory_is_made_under_its_parents_lock_and_removed_under_its_own_too(
    tmp_path: Path, filesystem: str
) -> None:
    """`vfs_mkdir`, `vfs_rmdir`."""
    made = audited(spec(tmp_path, filesystem, "mkdir"))
    assert acquired_each(made, DIRECTORY) == pytest.approx(1, abs=0.05)
    both = audited(spec(tmp_path, filesystem, "mkdir", "rmdir"))
    assert acquired_each(both, DIRECTORY) == pytest.approx(3, abs=0.05)
    assert set(both.latency) == {"mkdir", "rmdir"}


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_what_tasks_make_and_remove_together_is_all_accounted_for(tmp_path: Path, filesystem: str) -> None:
    """The audit at the end: names and links of parents, inodes, blocks, delayed items, with files beside."""
    operations = ("mkdir", "rmdir", "create", "unlink", "mkdir", "readdir")
    made = spec(tmp_path, filesystem, *operations, order="drawn", tasks=8, subdirectories=3)
    audited(made | {"duration_ns": 2e7})


def test_a_directory_of_btrfs_is_not_in_the_memory_of_a_file_that_comes_later(tmp_path: Path) -> None:
    """However many lines a file's inode has, a load that makes and removes directories does not look at them."""

    def took(lines: float) -> object:
        made = spec(tmp_path, "btrfs", "mkdir", "rmdir")
        made["filesystem"]["costs"]["btrfs_inode.struct"] = lines
        made["machine"]["caches"]["core_bytes"] = 4096
        return simulate(made).cpu_ns

    assert took(18) == took(1800)


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_directories_grow_and_empty_again(tmp_path: Path, filesystem: str) -> None:
    """1,500 in a row, past the forms of a small parent, and away: numbers and inodes are used again."""
    rounds = [{"op": "mkdir", "repeat": 1500}, {"op": "rmdir", "repeat": 1500}]
    result = simulate(spec(tmp_path, filesystem, operations=rounds) | window(3e8))
    assert result.stall is None
    assert result.operations > 2


def test_xfs_spreads_directories_over_its_groups_and_holds_their_agi_as_for_files(tmp_path: Path) -> None:
    """`xfs_ialloc_next_ag`: the AGI of the next group each time; the parent's is not locked for that."""
    result = audited(spec(tmp_path, "xfs", "mkdir", tasks=4, directories="per-task"))
    assert acquired_each(result, "xfs.AGI") == pytest.approx(1, abs=0.05)
    assert acquired_each(result, "xfs.ILOCK (directory)") == pytest.approx(
        3, abs=0.05
    )  # lookup, parent, new one
    groups = [lock for lock in result.locks if lock.name == "xfs.AGI"]
    assert sum(lock.instances for lock in groups) == 4
    both = audited(spec(tmp_path, "xfs", "mkdir", "rmdir"))
    assert acquired_each(both, "xfs.AGI") == pytest.approx(
        3, abs=0.3
    )  # as a file: made, unlinked, freed by the worker


def test_ext4_gives_a_directory_a_block_at_once(tmp_path: Path) -> None:
    """The inode and the block take the lock of a group twice each; one handle, and two to remove it."""
    result = audited(spec(tmp_path, "ext4", "mkdir"))
    assert acquired_each(result, "ext4.group lock") == pytest.approx(4, abs=0.1)
    assert acquired_each(result, "ext4.j_state_lock") == pytest.approx(1, abs=0.05)
    both = audited(spec(tmp_path, "ext4", "mkdir", "rmdir"))
    assert acquired_each(both, "ext4.j_state_lock") == pytest.approx(3, abs=0.1)
    # The block waits for the commit on a list, from which its neighbour comes and onto which both go.
    assert acquired_each(both, "ext4.s_md_lock") == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_a_directory_is_looked_at_like_a_file(tmp_path: Path, filesystem: str) -> None:
    """`stat` walks to it without a lock, whichever it is; where none was made one is."""
    both = audited(spec(tmp_path, filesystem, "mkdir", "stat_dir", "stat", "rmdir"))
    assert both.latency["stat_dir"].mean_ns == pytest.approx(both.latency["stat"].mean_ns, rel=0.05)
    alone = audited(spec(tmp_path, filesystem, "stat_dir"))
    assert acquired_each(alone, DIRECTORY) == pytest.approx(0, abs=0.01)


def test_btrfs_searches_the_tree_as_for_a_file(tmp_path: Path) -> None:
    """`btrfs_create_common`; `btrfs_rmdir` makes an orphan before it takes the name out, a file is one after."""
    dirs = audited(spec(tmp_path, "btrfs", "mkdir", "rmdir"))
    files = audited(spec(tmp_path, "btrfs", "create", "unlink"))
    name = "btrfs.tree (fs, level 0)"
    locks = {lock.name for lock in dirs.locks}
    tree = next((lock for lock in sorted(locks) if "level 0" in lock or "leaf" in lock), name)
    assert acquired_each(dirs, tree) == pytest.approx(acquired_each(files, tree), rel=0.05)


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_both_machines_do_the_same(tmp_path: Path, filesystem: str) -> None:
    made = spec(tmp_path, filesystem, "mkdir", "mkdir", "rmdir", "create", tasks=3)
    assert assert_same(made | window(2e5)) > 50
    assert answer(made) == answer(made)
