"""Before 5.8 the transactions of XFS are counted in one word, which all tasks write."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import run_scenario
from simfs.results.run_result import RunResult


def created(tmp_path: Path, tasks: int, counts: bool) -> RunResult:
    others = "vfs.remove_count: none, vfs.creat_counts_root: false"  # lines that all creates share, too
    rules = f"{others}, xfs.counts_transactions: {str(counts).lower()}"
    text = (
        "simfs: 1\nname: count\ntitle: count\n"
        "machine: {profile: server-24, cpus: 8, costs: {step_cv: 0, line_llc: 1 us, line_socket: 1 us}}\n"
        f"kernel: {{profile: linux-5.7, rules: {{{rules}}}}}\n"
        "filesystem: {kind: xfs, size: 8 GiB, agcount: 8}\n"
        f"workload: {{kind: create, directories: per-task, tasks: {tasks}, binding: compact}}\n"
    )
    return run_scenario(tmp_path / "count.yaml", text, warmup_ns=1e6, duration_ns=10e6)


def test_a_transaction_writes_the_word_when_it_begins_and_when_it_ends(tmp_path: Path) -> None:
    """Its line takes a microsecond here, and each of four tasks fetches it twice, behind three others at most.

    With eight tasks `xc_cil_lock` is held most of the time, and what is compared is the queue for that.
    """
    times = [4e9 / created(tmp_path, 4, counts).throughput_per_s for counts in (True, False)]
    assert 2_000 < times[0] - times[1] < 8_000


def test_nobody_pays_for_a_word_that_is_his_alone(tmp_path: Path) -> None:
    counted, not_counted = (created(tmp_path, 1, counts).throughput_per_s for counts in (True, False))
    assert counted / not_counted == pytest.approx(1, abs=0.005)
