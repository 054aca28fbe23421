"""A change of times on btrfs joins the transaction; as posted once it reserved room, under the space_info's lock."""

from __future__ import annotations

from pathlib import Path

from engine import run_scenario


def rate(tmp_path: Path, rule: str) -> float:
    text = (
        "simfs: 1\nname: times\ntitle: times\nmachine: {profile: cascade-lake-96}\n"
        f"kernel: {{profile: linux-5.11, rules: {{btrfs.preempt_sums: true, btrfs.dirty_inode: {rule}}}}}\n"
        "filesystem: {kind: btrfs, size: 16 GiB}\n"
        "workload: {kind: mix, operations: [{op: utimes}], directories: per-task, files: 1, tasks: 8}\n"
    )
    return run_scenario(tmp_path / "times.yaml", text, warmup_ns=1e6, duration_ns=4e6).operations


def test_who_reserves_room_for_new_times_waits_for_the_sums_of_others(tmp_path: Path) -> None:
    assert rate(tmp_path, "joins") > 2 * rate(tmp_path, "starts")
