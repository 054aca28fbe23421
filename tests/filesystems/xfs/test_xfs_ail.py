"""When XFS's `xfsaild` runs, by kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import run_scenario


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "looks"), [("reservations", 0), ("items", 3)])
def test_before_6_11_the_thread_sleeps_until_a_reservation_wakes_it(
    tmp_path: Path, rule: str, looks: int
) -> None:
    """The AIL has what setting up has logged. Since 6.11 the thread looks every 50 ms (56 with ticks of 4 ms)."""
    text = (
        "simfs: 1\nname: ail\ntitle: ail\nmachine: {profile: server-24, cpus: 2}\n"
        f"kernel: {{profile: linux-6.12, rules: {{xfs.ail_target: {rule}}}}}\n"
        "filesystem: {kind: xfs, size: 8 GiB}\n"
        "workload: {kind: mix, tasks: 1, files: 4, synced: true, operations: [{op: stat}]}\n"
    )
    result = run_scenario(tmp_path / "ail.yaml", text, warmup_ns=0, duration_ns=200e6)
    assert result.context_switches == pytest.approx(2 + 2 * looks, abs=2)
