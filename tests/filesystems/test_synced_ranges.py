"""Writes with `O_SYNC` wait for their own pages; random places of a file; a shared file beside the tasks' own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, simulate_whole, the_lock, window, written_spec
from simfs.scenario import ScenarioError

MADE = {"on": "made"}
CREATE, UNLINK = {"op": "create"}, {"op": "unlink"} | MADE
SYNCED = {"op": "overwrite", "size": "4 KiB", "places": "random", "sync": True} | MADE


def in_turn(path: Path, filesystem: str, *operations: dict[str, Any], **keys: Any) -> Spec:  # noqa: ANN401
    workload = {"kind": "mix", "order": "in-turn", "operations": operations} | keys
    text = (
        "simfs: 1\nname: m\ntitle: m\nmachine: server-24\nkernel: linux-6.12\ndevice: nvme\n"
        f"filesystem: {{kind: {filesystem}}}\nworkload: {json.dumps(workload)}\n"
    )
    return written_spec(path / "m.yaml", text) | window(50e6)


@pytest.mark.parametrize(("filesystem", "alone"), [("xfs", True), ("ext4", True), ("btrfs", False)])
def test_a_synced_write_leaves_the_other_pages_to_an_fsync(
    tmp_path: Path, filesystem: str, alone: bool
) -> None:
    """Not on btrfs, where the first sync of a new file logs all of it."""
    append = {"op": "append", "size": "4 MiB"} | MADE
    loop = in_turn(tmp_path, filesystem, CREATE, append, SYNCED, {"op": "fsync"} | MADE, UNLINK)
    latency = simulate_whole(loop).latency
    assert (latency["overwrite"].mean_ns < 0.5 * latency["fsync"].mean_ns) == alone
    assert (latency["overwrite"].mean_ns > 2 * latency["fsync"].mean_ns) == (not alone)


def test_readers_of_one_file_meet_less_at_random_places(tmp_path: Path) -> None:
    def per_read(places: str) -> float:
        read = {"op": "read", "size": "1 KiB", "places": places}
        loop = in_turn(
            tmp_path, "ext4", read, tasks=24, file_set="shared", directories="shared", file_size="1 MiB"
        )
        return simulate_whole(loop | {"duration_ns": 2e6}).latency["read"].p50_ns

    assert per_read("in-turn") > 1.5 * per_read("random") > per_read("own-block")


def test_who_reads_a_block_of_his_own_never_waits_for_its_folio(tmp_path: Path) -> None:
    """On tmpfs, where who reads a page takes its lock."""

    def waits(places: str) -> int:
        read = {"op": "read", "places": places}
        loop = in_turn(
            tmp_path, "tmpfs", read, tasks=4, file_set="shared", directories="shared", file_size="16 KiB"
        )
        return the_lock(simulate_whole(loop | {"duration_ns": 1e6}), "mm.folio_lock").contended

    assert waits("in-turn") > 0
    assert waits("own-block") == 0


COPY = (CREATE, {"op": "read", "on": "first", "repeat": 4}, {"op": "append", "repeat": 4} | MADE, UNLINK)
SHARED = {"file_set": "shared", "directories": "shared", "files": 1, "file_size": "16 KiB"}


def test_tasks_that_share_a_file_take_away_their_own(tmp_path: Path) -> None:
    result = simulate_whole(in_turn(tmp_path, "xfs", *COPY, tasks=8, **SHARED) | {"duration_ns": 5e6})
    made, gone = (result.latency[call].count for call in ("create", "unlink"))
    assert made > 100
    assert made - gone <= 8
    for other in ({"op": "read"}, {"op": "append", "on": "first"}):
        with pytest.raises(ScenarioError, match="file_set is shared"):
            in_turn(tmp_path, "xfs", CREATE, other, UNLINK, **SHARED)


@pytest.mark.slow
@pytest.mark.parametrize("filesystem", ["xfs", "ext4", "btrfs"])
def test_both_machines_sync_the_same_ranges(tmp_path: Path, filesystem: str) -> None:
    loop = (CREATE, {"op": "append", "repeat": 8} | MADE, SYNCED | {"size": "1 KiB", "repeat": 8}, UNLINK)
    assert_same(in_turn(tmp_path, filesystem, *loop, tasks=3) | {"duration_ns": 1e6})
    assert_same(in_turn(tmp_path, filesystem, *COPY, tasks=3, **SHARED) | {"duration_ns": 1e6})
