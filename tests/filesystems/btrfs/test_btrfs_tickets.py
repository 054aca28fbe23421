"""Tasks on btrfs that find no room for metadata: tickets since 4.8, before that each makes room for itself."""

from __future__ import annotations

from functools import cache

import pytest
from machines import assert_same

from engine import Spec, scenario_spec, simulate_whole
from simfs.results.run_result import RunResult


def creating(reserving: str, size: str, *options: str, duration_ns: float = 3e8) -> Spec:
    """24 tasks that create files, without a commit and without anybody who makes room before it is short."""
    sweep = ["sweep.workload.tasks=[24]", "sweep.workload.kind=[create]", "sweep.workload.pin_to_cpu=[null]"]
    rules = f"{{btrfs.reclaim: on-demand, btrfs.reserving: {reserving}}}"
    kernel = f"kernel={{profile: linux-6.18, rules: {rules}}}"
    return scenario_spec(
        "guest-2cpu", "btrfs-per-task", *sweep, f"filesystem.size={size}", kernel, *options,
        warmup_ns=0.0, duration_ns=duration_ns,
    )  # fmt: skip


@cache
def run(reserving: str, size: str) -> RunResult:
    return simulate_whole(creating(reserving, size))


def who(result: RunResult, lock: str) -> set[str]:
    """The sites that took a lock."""
    return {site.site for one in result.locks if one.name == lock for site in one.sites if site.acquired}


def acquired(result: RunResult, lock: str) -> int:
    return sum(one.acquired for one in result.locks if one.name == lock)


@pytest.mark.slow
def test_a_worker_makes_room_for_tickets_and_before_4_8_the_task_itself_does() -> None:
    assert who(run("tickets", "1 GiB"), "btrfs.delayed_ref_head") >= {"reclaim"}
    assert "reclaim" not in who(run("own", "1 GiB"), "btrfs.delayed_ref_head")
    assert acquired(run("own", "1 GiB"), "btrfs.delayed_ref_head") > 50


@pytest.mark.slow
@pytest.mark.parametrize("reserving", ["tickets", "own"])
def test_where_there_is_room_nobody_waits_for_it(reserving: str) -> None:
    small, large = run(reserving, "1 GiB"), run(reserving, "1 TiB")
    assert acquired(large, "btrfs.delayed_ref_head") == 0
    assert small.operations < large.operations


@pytest.mark.slow
@pytest.mark.parametrize("reserving", ["tickets", "own"])
def test_both_machines_do_the_same_where_room_is_short(reserving: str) -> None:
    """On less than the scenario's other filesystems could have."""
    spec = creating(reserving, "1 GiB", duration_ns=4e6)
    spec["filesystem"]["size_bytes"] = 128 << 20
    assert ("reclaim" in who(simulate_whole(spec), "btrfs.space_info")) == (reserving == "tickets")
    assert assert_same(spec, most=6_000) > 100  # room is made from the 4,199th event on
