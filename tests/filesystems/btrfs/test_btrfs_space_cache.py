"""Where btrfs keeps free space: in files that commits write (`space_cache=v1`), or in the free space tree."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from test_btrfs_commit import acquired

from engine import audited, run_scenario
from simfs.results.run_result import RunResult
from simfs.scenario import expand, load, to_run_spec


def text(kept: str, interval: str, workload: str, size: str) -> str:
    return (
        "simfs: 1\nname: cache\ntitle: cache\nmachine: {profile: dual-socket-48, cpus: 4}\n"
        f"kernel: {{profile: linux-5.10, rules: {{btrfs.space_cache: {kept}}}}}\ndevice: {{profile: nvme}}\n"
        f"filesystem: {{kind: btrfs, size: {size}, costs: {{commit_interval: {interval}}}}}\n"
        f"workload: {{{workload}}}\n"
    )


CREATES = "kind: mix, tasks: 2, operations: [{op: create}]"
WRITES = "kind: fs_mark, tasks: 2, files: 1000, size: 16 KiB, write: 16 KiB, sync: 1, keep: true"


@cache
def run(
    folder: Path, kept: str, *, interval: str = "12 ms", workload: str = CREATES, size: str = "100 GiB"
) -> RunResult:
    path = folder / "cache.yaml"
    path.write_text(text(kept, interval, workload, size))
    (point,) = expand(load(path))
    return audited(to_run_spec(point, 0) | {"warmup_ns": 2e6, "duration_ns": 6e7})


@pytest.mark.parametrize("workload", [CREATES, WRITES])
def test_what_the_files_and_what_the_tree_say_of_free_space_is_right_after_commits(
    tmp_path: Path, workload: str
) -> None:
    """The audit at the end: every extent is known to the extent tree, and only data of tasks have checksums."""
    files, tree = (run(tmp_path, kept, workload=workload) for kept in ("files", "tree"))
    assert acquired(files, "btrfs.root tree L0") > 0 == acquired(tree, "btrfs.root tree L0")
    assert acquired(tree, "btrfs.free space tree L0") > 0 == acquired(files, "btrfs.free space tree L0")
    assert acquired(tree, "btrfs.free_space_lock") > 0 == acquired(files, "btrfs.free_space_lock")


def test_each_commit_writes_the_file_of_each_large_group_that_has_changed(tmp_path: Path) -> None:
    """A commit writes tree blocks and a superblock; with files also those of two groups, some of them twice."""
    files, tree = (run(tmp_path, kept) for kept in ("files", "tree"))
    writes = [
        result.requests["write"].count / acquired(result, "btrfs.tree_log_mutex") for result in (files, tree)
    ]
    assert 1 <= writes[0] - writes[1] <= 4


def test_groups_of_less_than_100_mib_have_no_file(tmp_path: Path) -> None:
    small = run(tmp_path, "files", size="900 MiB")
    assert acquired(small, "btrfs.root tree L0") == 0


def test_kernels_before_5_15_have_files(tmp_path: Path) -> None:
    """The time of btrfs-progs 5.15."""
    kept = {}
    for kernel in ("linux-5.10", "linux-6.1"):
        scenario = text("tree", "12 ms", CREATES, "100 GiB").replace(
            "{profile: linux-5.10, rules: {btrfs.space_cache: tree}}", kernel
        )
        result = run_scenario(tmp_path / "era.yaml", scenario, warmup_ns=2e6, duration_ns=4e7)
        kept[kernel] = acquired(result, "btrfs.root tree L0") > 0
    assert kept == {"linux-5.10": True, "linux-6.1": False}
