"""btrfs transactions: delayed references wait for the commit, which runs them in the extent and free space trees.

The engine checks as it goes: what is inserted is not there, what is deleted is, and free space is free.
"""

from __future__ import annotations

from functools import cache

import pytest

from engine import scenario_spec, simulate
from simfs.results.run_result import RunResult


@cache
def with_commits(kind: str, tasks: int, interval_ns: float) -> RunResult:
    """One point of the guest's scenario, for a quarter of a second, with a commit so often."""
    sweep = [
        f"sweep.workload.tasks=[{tasks}]",
        f"sweep.workload.kind=[{kind}]",
        "sweep.workload.pin_to_cpu=[null]",
    ]
    spec = scenario_spec("guest-2cpu", "btrfs-per-task", *sweep, warmup_ns=5e7, duration_ns=2.5e8)
    spec["filesystem"]["costs"]["commit_interval"] = interval_ns
    return simulate(spec)


def acquired(result: RunResult, name: str) -> int:
    """How often a lock was taken; one that never was is not listed."""
    return sum(lock.acquired for lock in result.locks if lock.name == name)


@pytest.mark.slow
def test_until_the_commit_the_extent_tree_is_not_touched() -> None:
    result = with_commits("create", 1, 30e9)
    assert acquired(result, "btrfs.delayed_refs") > 0
    assert acquired(result, "btrfs.extent tree L0") == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["create", "create_unlink"])
def test_each_delayed_ref_takes_one_search_of_the_extent_tree_and_two_to_five_of_the_free_space_tree(
    kind: str,
) -> None:
    result = with_commits(kind, 2, 5e7)
    heads = acquired(result, "btrfs.delayed_ref_head")
    assert heads > 20
    assert acquired(result, "btrfs.free_space_lock") == pytest.approx(heads, rel=0.05)
    # Each search reads the root, which is the leaf, before it locks it for writing; block groups are written too.
    assert 2 < acquired(result, "btrfs.free space tree L0") / 2 / heads < 5
    assert 1 <= acquired(result, "btrfs.extent tree L0") / heads < 3


@pytest.mark.slow
def test_a_transaction_copies_each_block_that_it_changes_once() -> None:
    """More commits, more copies: each is a delayed ref for the new place and one for the old."""
    few, many = (with_commits("create_unlink", 1, interval) for interval in (1e8, 2e7))
    heads = [acquired(result, "btrfs.delayed_ref_head") for result in (few, many)]
    assert 3 < heads[1] / heads[0] < 10


@cache
def reclaiming(design: str, size: str) -> RunResult:
    """24 creating tasks for 0.8 s, without a commit."""
    sweep = ["sweep.workload.tasks=[24]", "sweep.workload.kind=[create]", "sweep.workload.pin_to_cpu=[null]"]
    spec = scenario_spec(
        "guest-2cpu",
        "btrfs-per-task",
        *sweep,
        f"filesystem.size={size}",
        f"kernel={{profile: linux-6.18, rules: {{btrfs.reclaim: {design}}}}}",
        warmup_ns=5e8,
        duration_ns=3e8,
    )
    return simulate(spec)


@pytest.mark.slow
def test_a_worker_runs_delayed_refs_when_their_reservations_are_half_of_the_room() -> None:
    """512 KiB a head and 256 KiB a delayed item: on 12 GiB some 900 heads are too many, on 1 TiB 60,000."""
    small = reclaiming("preemptive", "12 GiB")
    assert acquired(small, "btrfs.delayed_ref_head") > 100
    assert acquired(small, "btrfs.extent tree L0") > 100
    on_demand = reclaiming("on-demand", "12 GiB")  # when all of it is taken
    assert acquired(on_demand, "btrfs.delayed_ref_head") < acquired(small, "btrfs.delayed_ref_head") / 3
    assert acquired(reclaiming("preemptive", "1 TiB"), "btrfs.delayed_ref_head") == 0
