"""What the code of contended locks costs, and when a poller looks."""

from __future__ import annotations

import pytest

from engine import CONSTANTS, lock_cycle, rate, simulate, the_lock

INSTRUCTION = 1.0
"""ns: times are counts of instructions."""


def cycles(lock: str, tasks: int, **costs: float) -> float:
    """Lock cycles a nanosecond of tasks that hold a lock for 500 ns and think for 100 ns."""
    return rate(simulate(lock_cycle(lock, tasks, costs=costs, think_ns=100.0, hold_ns=500.0)))


@pytest.mark.parametrize("lock", ["qspinlock", "semaphore", "mutex", "rwsem", "rwsem-4.8", "mutex-3.10"])
def test_lock_code_costs_nothing_where_nobody_waits(lock: str) -> None:
    """The steps of operations were traced with the fast paths."""
    assert cycles(lock, 1, instruction=INSTRUCTION) == cycles(lock, 1)


def test_a_mutex_is_handed_to_a_spinner_by_the_next_attempt_and_the_way_out() -> None:
    """Between two holds of a mutex: a spinner's attempt; in the hold: its way to the program; lines are free."""
    period = 1 / cycles("mutex", 3, instruction=INSTRUCTION)
    assert period == pytest.approx(500 + CONSTANTS["code_mutex_attempt"] + CONSTANTS["code_mutex_taken"], rel=0.01)


def test_who_queues_holds_the_wait_lock_for_its_code() -> None:
    """Each acquisition of a semaphore that is never free is one turn in its queue."""
    spec = lock_cycle("semaphore", 4, costs={"instruction": INSTRUCTION}, think_ns=100.0, hold_ns=500.0)
    result = simulate(spec)
    inner, outer = the_lock(result, "lock.wait_lock"), the_lock(result)
    assert inner.hold_total_ns / outer.handoffs == pytest.approx(CONSTANTS["code_semaphore_queue"], rel=0.02)


@pytest.mark.parametrize("lock", ["qspinlock", "mcs", "ticket"])
def test_who_polls_looks_once_a_round(lock: str) -> None:
    """Where in the round a release comes is chance: half a round is lost on average."""
    period = 1 / cycles(lock, 2, cpu_relax=100.0)
    assert period == pytest.approx(500 + 50, rel=0.02)
