"""The eras of `struct mutex`: who spins, on what, and whether a sleeper can starve."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest

from engine import Spec, lock_cycle, rate, simulate, simulate_all, the_lock

REAL = {"context_switch": 1500, "wakeup": 1000, "ipi_deliver": 700, "line_hit": 2}
NEAR = {f"line_{distance}": 20.0 for distance in ("smt", "llc", "socket", "remote")}
RANDOM: dict[str, Any] = {"think_distribution": "exponential", "hold_distribution": "exponential"}
COUNTED = ("mutex-2.6.16", "mutex-2.6.30", "mutex-3.0", "mutex-3.10")


def cycle(lock: str, tasks: int, hold: float = 300.0, think: float = 1000.0) -> Spec:
    costs = {**REAL, **NEAR}
    return lock_cycle(
        lock, tasks, warmup_ns=1e5, duration_ns=1e7, think_ns=think, hold_ns=hold, costs=costs, **RANDOM
    )


def test_before_2_6_30_nobody_spins() -> None:
    result = simulate(cycle("mutex-2.6.16", 8))
    lock = the_lock(result)
    assert lock.slept > 0.9 * lock.contended > 0
    assert lock.steals > 0


@pytest.mark.parametrize("lock", ["mutex-2.6.30", "mutex-3.10"])
def test_adaptive_mutexes_hardly_ever_sleep_while_the_owner_runs(lock: str) -> None:
    found = the_lock(simulate(cycle(lock, 4, hold=3000, think=10_000)))
    assert found.resolved_spinning > 0.9 * found.contended > 0


@pytest.mark.slow
def test_spinners_of_2_6_30_collapse_on_the_line_that_they_all_poll_and_those_of_3_10_do_not() -> None:
    tasks = (8, 16, 32, 48)
    storm, queue = (
        [rate(run) for run in simulate_all([cycle(lock, n, hold=50) for n in tasks])]
        for lock in ("mutex-2.6.30", "mutex-3.10")
    )
    assert storm[-1] < storm[1] < storm[0]
    assert storm[-1] < 0.3 * max(storm)
    assert queue[-1] > 0.9 * max(queue)
    assert queue[-1] > 4 * storm[-1]


def test_spinners_of_3_0_give_up_when_the_lock_goes_to_another_and_those_of_2_6_30_spin_on() -> None:
    going_on, quitting = (the_lock(simulate(cycle(lock, 8))) for lock in ("mutex-2.6.30", "mutex-3.0"))
    assert going_on.slept < 0.01 * going_on.contended
    assert quitting.slept > 0.1 * quitting.contended


def lost_after_waking(lock: str) -> int:
    """How often others take the mutex after a sleeper has come to run, before it has it: the worst case."""
    spec = lock_cycle(
        lock, 8, 4, duration_ns=1e8, think_ns=1e5, hold_ns=1e5, costs={**REAL, **NEAR}, **RANDOM
    )
    _, trace = import_module("simfs._engine").trace(json.dumps(spec))
    taken = worst = 0
    waiting, woken, ran = set[int](), set[int](), dict[int, int]()
    for _, task, _, what, about in trace:
        if (what, about) == ("wait", "lock#1"):
            waiting.add(task)
        elif what == "wake" and task in waiting:
            woken.add(task)
        elif what == "run" and task in woken:
            ran.setdefault(task, taken)
        elif (what, about) == ("acquire", "lock#1"):
            worst = max(worst, taken - ran.pop(task, taken))
            taken += 1
            waiting.discard(task)
            woken.discard(task)
    return worst


def test_the_first_sleeper_of_4_10_gets_the_mutex_at_the_first_unlock_after_its_first_failed_attempt() -> (
    None
):
    spec = lock_cycle(
        "mutex-4.10", 8, 4, duration_ns=1e8, think_ns=1e5, hold_ns=1e5, costs={**REAL, **NEAR}, **RANDOM
    )
    assert the_lock(simulate(spec)).handoffs > 0
    assert lost_after_waking("mutex-4.10") <= 1  # who takes it between the sleeper's run and its attempt


@pytest.mark.parametrize("lock", ["mutex-2.6.30", "mutex-3.10"])
def test_before_4_10_a_sleeper_loses_against_spinners_again_and_again(lock: str) -> None:
    assert lost_after_waking(lock) > 10
    assert the_lock(simulate(cycle(lock, 8))).handoffs == 0


@pytest.mark.parametrize("lock", COUNTED)
def test_an_uncontended_counted_mutex_costs_its_two_accesses(lock: str) -> None:
    spec = lock_cycle(lock, 1, duration_ns=1.04e6, think_ns=900, hold_ns=100, costs={"line_hit": 20})
    assert simulate(spec).operations == 1000


@pytest.mark.parametrize("lock", COUNTED)
def test_more_tasks_than_cpus_go_on_with_every_mutex(lock: str) -> None:
    spec = lock_cycle(
        lock, 12, 3, duration_ns=5e7, think_ns=1e4, hold_ns=5e3, costs={**REAL, **NEAR}, **RANDOM
    )
    result = simulate(spec)
    assert result.stall is None
    assert min(result.per_task_operations) > 0
