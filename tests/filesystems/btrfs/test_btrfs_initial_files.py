"""Files that are there before a run, while workers still write what making their directories has delayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import audited, window, written_spec


@pytest.mark.parametrize("seed", range(1, 13))
def test_files_that_were_there_are_filled_in_when_nobody_is_in_the_tree(seed: int, tmp_path: Path) -> None:
    """They are put into a copy of the tree, which takes its place: what a search found there before may be gone."""
    text = (
        "simfs: 1\nname: s\ntitle: s\nmachine: {profile: server-24}\nkernel: linux-4.19\ndevice: nvme\n"
        "filesystem: {kind: btrfs}\n"
        "workload: {kind: fs_mark, tasks: 16, size: null, keep: true, directories: per-task, subdirectories: 300,"
        f" initial_files: 1000}}\nmeasure: {{seed: {seed}}}\n"
    )
    result = audited(written_spec(tmp_path / "s.yaml", text) | window(2e6))
    assert result.operations > 10
