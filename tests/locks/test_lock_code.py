"""What the code of contended locks costs, and when a poller looks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from machines import assert_same

from engine import CONSTANTS, Spec, lock_cycle, rate, simulate, the_lock
from simfs import _engine

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
    assert period == pytest.approx(
        500 + CONSTANTS["code_mutex_attempt"] + CONSTANTS["code_mutex_taken"], rel=0.01
    )


@pytest.mark.parametrize(
    ("lock", "tasks", "stretches"),
    [
        ("qspinlock", 2, ("qspinlock_pending_take", "qspinlock_pending_taken")),
        ("qspinlock", 4, ("qspinlock_take", "qspinlock_taken")),
        ("qrwlock", 4, ("qrwlock_enter", "qrwlock_leave", "qrwlock_taken")),
    ],
)
def test_between_two_holds_is_the_code_from_the_look_to_the_program(
    lock: str, tasks: int, stretches: Sequence[str]
) -> None:
    """What a waiter does before it looks goes on during the hold before; lines are free."""
    period = 1 / cycles(lock, tasks, instruction=INSTRUCTION)
    assert period == pytest.approx(500 + sum(CONSTANTS[f"code_{name}"] for name in stretches), rel=0.001)


def test_who_comes_to_a_lock_that_was_just_given_back_has_yet_to_queue() -> None:
    """It takes as long to the pending bit, whether the lock is free by then or not."""
    late, soon = (
        simulate(
            lock_cycle(
                "qspinlock",
                2,
                costs={"instruction": INSTRUCTION},
                kernel={"constants": {**CONSTANTS, "code_qspinlock_pend": n}},
                hold_ns=100.0,
                think_ns=1e3,
                think_distribution="exponential",
            )
        )
        for n in (1_000, 0)
    )
    assert the_lock(late).contended > 0
    assert rate(late) < rate(soon)


@pytest.mark.parametrize("lock", ["qspinlock", "cna", "hqlock", "qrwlock", "qrwlock-3.16"])
@pytest.mark.parametrize("tasks", [2, 8])
def test_both_machines_take_the_same_code_of_spinlocks(lock: str, tasks: int) -> None:
    readers = 0.5 if lock.startswith("qrw") else 0.0
    costs = {"instruction": 3.0, "line_llc": 50.0, "cpu_relax": 20.0}
    times: dict[str, Any] = {"think_ns": 300.0, "hold_ns": 100.0, "think_distribution": "exponential"}
    spec = lock_cycle(lock, tasks, duration_ns=1e5, readers=readers, costs=costs, **times)
    assert assert_same(spec) > 500


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


LOOK, TAKE, GRANT, UNDO = 777, 5_555, 1_111, 22_222


def crowd(kind: str, **more: float) -> Spec:
    """Readers and writers that spin, steal and sleep; nothing of the code takes time but four stretches, and `more`."""
    free = {name: 0.0 for name in CONSTANTS if name.startswith(("code_rwsem_", "code_mutex_"))}
    counts = {"look": LOOK, "take": TAKE, "grant": GRANT, "undo": UNDO}
    taken = {f"code_{lock}_{name}": n for lock in ("rwsem", "mutex") for name, n in counts.items() if n}
    constants = {**CONSTANTS, **free, **{name: n for name, n in taken.items() if name in CONSTANTS}, **more}
    times: dict[str, Any] = {"think_ns": 3e3, "hold_ns": 3e3, "think_distribution": "exponential"}
    costs = {"instruction": INSTRUCTION, "context_switch": 1500, "wakeup": 1000, "cpu_relax": 100}
    readers = 0.5 if kind.startswith("rwsem") else 0.0
    return lock_cycle(
        kind, 12, duration_ns=2e7, readers=readers, costs=costs, kernel={"constants": constants}, **times
    )


def spans(kind: str) -> Counter[int]:
    """For how many instructions the wait lock was held, and how often."""
    since: dict[int, int] = {}
    found: Counter[int] = Counter()
    for time, task, _, what, about in _engine.trace(json.dumps(crowd(kind)))[1]:
        if task is not None and about.startswith("lock.wait_lock"):
            if what == "acquire":
                since[task] = time
            elif what == "release":
                found[round((time - since.pop(task)) / 1000)] += 1
    return found


@pytest.mark.parametrize("kind", ["rwsem", "rwsem-5.11", "rwsem-4.8"])
def test_a_writer_that_is_woken_in_vain_has_the_wait_lock_for_a_look(kind: str) -> None:
    """Only with the lock it takes itself out of the queue."""
    held = spans(kind)
    assert held[LOOK] > 5
    assert held[LOOK + TAKE] > 5


@pytest.mark.parametrize("kind", ["rwsem", "rwsem-5.11"])
def test_a_granter_that_finds_a_writer_undoes_its_grant(kind: str) -> None:
    """The spinner was there before the first reader was granted the lock."""
    assert spans(kind)[GRANT + UNDO] > 5


@pytest.mark.parametrize("kind", ["rwsem", "rwsem-5.4", "rwsem-4.8", "mutex", "mutex-3.10"])
def test_both_machines_take_the_same_stretches_of_code(kind: str) -> None:
    assert assert_same(crowd(kind)) > 500


@pytest.mark.parametrize("kind", ["rwsem", "rwsem-5.11"])
def test_who_wakes_a_waiter_that_is_awake_pays_for_it(kind: str) -> None:
    """`wake_up_q` and `try_to_wake_up` look at its state before they know: nothing else costs more."""
    free, dear = (simulate(crowd(kind, code_wake_awake=n)) for n in (0, 20_000))
    assert rate(dear) < 0.98 * rate(free)


def test_a_waker_that_waits_for_a_switch_has_done_a_part_of_the_wake_up() -> None:
    """`try_to_wake_up` comes to the lock of the run queue and waits there."""
    late, soon = (simulate(crowd("rwsem", code_wake_before_wait=n)) for n in (0, 2_000))
    assert rate(late) != rate(soon)
