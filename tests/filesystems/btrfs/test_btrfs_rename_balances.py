"""A rename on btrfs looks for what is delayed since 6.0, and waits with the directories locked."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import run_scenario
from simfs.results.run_result import RunResult


def moved(tmp_path: Path, balances: bool) -> RunResult:
    text = (
        "simfs: 1\nname: moves\ntitle: moves\nmachine: {profile: server-24, cpus: 8}\n"
        f"kernel: {{profile: linux-6.0, rules: {{btrfs.rename_balances: {str(balances).lower()}}}}}\n"
        "filesystem: {kind: btrfs, size: 16 GiB}\n"
        "workload: {kind: mix, operations: [{op: move}], directories: per-task, files: 300, file_size: null, tasks: 8,"
        " binding: compact}\n"
    )
    return run_scenario(tmp_path / "moves.yaml", text, warmup_ns=30e6, duration_ns=40e6)


@pytest.mark.slow
def test_who_moves_files_sleeps_for_delayed_items_since_6_0(tmp_path: Path) -> None:
    """One of eight tasks moves at a time. If he never sleeps, the others spin for him."""
    before, after = (moved(tmp_path, balances) for balances in (False, True))
    sleeps = [result.context_switches / result.operations for result in (before, after)]
    assert sleeps[1] > max(0.5, 2 * sleeps[0])
