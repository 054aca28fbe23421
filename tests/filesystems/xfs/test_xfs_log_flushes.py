"""Which writes of XFS's log flush the device, by kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import run_scenario
from simfs.results.run_result import RunResult

FLUSH = 20e6


def run(tmp_path: Path, rule: str, workload: str, filesystem: str = "") -> RunResult:
    text = (
        "simfs: 1\nname: flushes\ntitle: flushes\nmachine: {profile: server-24, cpus: 8}\n"
        f"kernel: {{profile: linux-5.18, rules: {{xfs.log_flushes: {rule}}}}}\n"
        "device: {profile: nvme, flush: {time: 20 ms, cv: 0}}\n"
        f"filesystem: {{kind: xfs, size: 8 GiB, log_size: 64 MiB{filesystem}}}\nworkload: {{{workload}}}\n"
    )
    return run_scenario(tmp_path / "flushes.yaml", text, warmup_ns=300e6, duration_ns=200e6)


@pytest.mark.parametrize(("rule", "flushes"), [("each", 1), ("before", 2), ("ends", 1)])
def test_an_fsync_alone_waits_for_so_many_flushes(tmp_path: Path, rule: str, flushes: int) -> None:
    """Its checkpoint fits one log buffer, written behind a flush. From 5.14 to 5.17 the worker flushes first.

    The buffer goes past the drive's cache, which takes as long as a flush.
    """
    operations = "[{op: append, size: 4 KiB}, {op: fsync, on: written}]"
    result = run(tmp_path, rule, f"kind: mix, tasks: 1, files: 4, order: in-turn, operations: {operations}")
    assert result.latency["fsync"].mean_ns / FLUSH == pytest.approx(flushes + 1, abs=0.4)


def test_creates_that_fill_the_log_wait_for_a_flush_of_each_write_before_5_14(tmp_path: Path) -> None:
    """Eight buffers of 32 KiB share a flush; a checkpoint of 8 MiB has 256 of them, and since then two flushes."""
    created = {
        rule: run(tmp_path, rule, "kind: create, tasks: 8, directories: per-task", ", agcount: 8").operations
        for rule in ("each", "ends")
    }
    assert created["ends"] > 1.3 * created["each"]
