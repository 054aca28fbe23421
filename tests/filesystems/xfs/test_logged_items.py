"""What a transaction of XFS logs, and when fs_mark syncs: seen by the locks of one task and how long it holds them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import lock_steps

from engine import window
from simfs import _engine
from simfs.scenario import expand, load, to_run_spec

US = 10**6
"""Picoseconds."""

FILES = """
simfs: 1
name: files
title: one task makes files
machine: {{profile: server-24, cpus: 2, costs: {{step_cv: 0}}}}
kernel: linux-6.12
device: nvme
filesystem: {{kind: xfs, costs: {{cil_item: {item}}}}}
workload: {{kind: fs_mark, tasks: 1, directories: per-task, size: null, sync: 0}}
"""


def items_of_creates(folder: Path) -> list[tuple[bool, int]]:
    """Of each create: whether it allocated a chunk of inodes, and how many items it inserted into the log.

    Linux 5.10 inserts them under one lock, for a time an item.
    """
    path = folder / "files.yaml"
    path.write_text(FILES.format(item="1 us"))
    (point,) = expand(load(path, ["kernel=linux-5.10"]))
    spec = to_run_spec(point, 0) | window(6e6)
    found: list[tuple[bool, int]] = []
    allocates, since = False, 0
    for time, _, _, what, about in _engine.trace(json.dumps(spec))[1]:
        if what == "begin":
            allocates = False
        elif what == "acquire" and about.startswith("xfs.AGF"):
            allocates = True
        elif what == "acquire" and about.startswith("xfs.xc_cil_lock"):
            since = time
        elif what == "release" and about.startswith("xfs.xc_cil_lock"):
            found.append((allocates, round((time - since) / US)))
    return found


def test_a_create_that_allocates_logs_the_agf_and_a_block_of_both_free_space_trees(tmp_path: Path) -> None:
    counts = items_of_creates(tmp_path)
    more = [count - after for (allocates, count), (later, after) in pairwise(counts) if allocates > later]
    assert len(more) > 3
    assert set(more) == {3}


def test_fs_mark_syncs_a_file_before_it_closes_it() -> None:
    text = FILES.format(item="100 ns").replace("sync: 0", "sync: 1")
    steps = lock_steps.traced(text.strip() + "\n", warmup_ms=5, run_ms=5)["file"]
    for sequence in steps:
        logged, closed = sequence.rindex("xc_ctx_lock"), sequence.index("+i_flags_lock")
        assert logged < closed


def log_writes(folder: Path, ms: float) -> list[float]:
    """Return the bytes of each log write of one task that syncs each empty file that it makes, those beyond 4 KiB."""
    path = folder / "files.yaml"
    slow = "device: {profile: nvme, write: {time: 10 us, cv: 0, per_kib: 10 us}}"
    path.write_text(FILES.format(item="100 ns").replace("device: nvme", slow).replace("sync: 0", "sync: 1"))
    (point,) = expand(load(path))
    spec = to_run_spec(point, 0) | window(ms * 1e6)
    found: list[float] = []
    since = 0
    for time, _, _, what, about in _engine.trace(json.dumps(spec))[1]:
        if what == "submit" and about.startswith("device"):
            since = time
        elif what == "device done":
            found.append(((time - since) / US - 10) / 10 * 1024)
    return found


def test_each_sync_logs_all_of_a_directory_block_that_was_logged_since_it_was_written(tmp_path: Path) -> None:
    """The log has the names of before, too, as the block is not yet in its place: `xfs_buf_item_format`."""
    written = log_writes(tmp_path, ms=10)
    assert written[:5] == [0] * 5  # names in the inode, and items of one chunk
    assert max(written) > 1500
    grown = written[20 : written.index(max(written))]
    assert sum(later >= before for before, later in pairwise(grown)) > 0.9 * (len(grown) - 1)
