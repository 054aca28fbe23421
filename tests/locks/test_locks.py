"""Each lock waits by its own rules: who spins, who sleeps, who is handed the lock, who may overtake whom.

Also that a deadlock is recognised, whether its tasks sleep or spin.
"""

from __future__ import annotations

from math import sqrt
from statistics import fmean
from typing import Any

import pytest

from engine import CONSTANTS, Spec, answer, lock_cycle, rate, simulate, the_lock
from simfs.results.run_result import RunResult, Stall
from simfs.results.statistics import jain

REAL = {"context_switch": 1500, "wakeup": 1000, "ipi_deliver": 700, "line_llc": 50, "line_hit": 2}
FAR = {f"line_{near}": 50.0 for near in ("smt", "llc", "socket", "remote")}
RANDOM: dict[str, Any] = {"think_distribution": "exponential", "hold_distribution": "exponential"}


# ---- spinlocks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lock", ["tas", "ticket", "qspinlock"])
def test_waiters_of_a_spinlock_stay_on_their_cpus(lock: str) -> None:
    result = simulate(lock_cycle(lock, 8, duration_ns=1e6, think_ns=100, hold_ns=50, costs=REAL, **RANDOM))
    waited = the_lock(result)
    assert waited.contended == waited.resolved_spinning > 0
    assert waited.slept == waited.wakeups == 0
    assert result.cpu_ns.idle < 0.01 * result.cpu_ns.total


@pytest.mark.parametrize(("lock", "moved"), [("ticket", 1 + 8 + 1 + 8), ("mcs", 1)])
def test_who_comes_takes_a_ticket_lock_from_all_who_poll_it(lock: str, moved: int) -> None:
    """Of 9 tasks 8 fetch the word after a release, and fetch it back after the attempt that soon follows."""
    spec = lock_cycle(lock, 9, warmup_ns=1e5, duration_ns=1e6, think_ns=100, hold_ns=2000, costs=FAR)
    polled = the_lock(simulate(spec))
    assert polled.line_transfers / polled.acquired == pytest.approx(moved, abs=0.5)


def test_test_and_set_is_unfair_but_everybody_goes_on() -> None:
    """Chance decides who is next: counts spread like those of a Poisson process, with some twice the variance."""
    by_lock = {
        lock: simulate(
            lock_cycle(
                lock, 16, warmup_ns=1e5, duration_ns=3e6, think_ns=100, hold_ns=50, costs=FAR, **RANDOM
            )
        ).per_task_operations
        for lock in ("tas", "ticket")
    }
    assert jain(by_lock["tas"]) < 0.995 < 0.999 < jain(by_lock["ticket"])
    mean = fmean(by_lock["tas"])
    assert min(by_lock["tas"]) > mean - 5 * sqrt(2 * mean) > 10


def test_test_and_set_starves_the_unlucky_where_the_last_holder_always_returns_first() -> None:
    spec = lock_cycle("tas", 8, duration_ns=1e6, think_ns=0.1, hold_ns=50)
    assert jain(simulate(spec).per_task_operations) < 0.5


# ---- semaphore -------------------------------------------------------------------------------------------


def test_a_semaphore_never_spins_and_hands_over_every_time() -> None:
    result = simulate(lock_cycle("semaphore", 8, duration_ns=1e7, think_ns=1000, hold_ns=500, costs=REAL))
    lock = the_lock(result)
    assert result.cpu_ns.spin < 1e-3 * result.cpu_ns.total  # its own inner spinlock
    assert lock.contended == lock.slept > 0.9 * lock.acquired
    assert lock.resolved_spinning == lock.steals == 0
    assert abs(lock.handoffs - lock.slept) <= 1
    assert lock.wakeups == lock.handoffs


def test_a_semaphore_is_strictly_first_come_first_served() -> None:
    spec = lock_cycle("semaphore", 8, duration_ns=1e7, think_ns=1000, hold_ns=500, costs=REAL)
    served = simulate(spec).per_task_operations
    assert max(served) - min(served) <= 1


# ---- mutex -----------------------------------------------------------------------------------------------


def test_waiters_of_a_mutex_do_not_sleep_while_its_owner_runs() -> None:
    result = simulate(
        lock_cycle("mutex", 8, duration_ns=1e8, think_ns=1e5, hold_ns=1e5, costs=REAL, **RANDOM)
    )
    lock = the_lock(result)
    assert lock.contended == lock.resolved_spinning > 0.9 * lock.acquired
    assert lock.slept == lock.handoffs == 0


def test_waiters_of_a_mutex_sleep_when_its_owner_does_not_run() -> None:
    spec = lock_cycle("mutex", 3, 1, duration_ns=1e9, think_ns=1, hold_ns=1e7, kernel={"preemption": "full"})
    assert the_lock(simulate(spec)).slept > 0


@pytest.mark.parametrize("tasks", [2, 3])
def test_a_mutex_is_stolen_from_its_first_sleeper_once_and_then_handed_over(tasks: int) -> None:
    """On one CPU where nobody preempts the old owner takes it again before the sleeper runs, who asks for it."""
    spec = lock_cycle("mutex", tasks, 1, warmup_ns=1e7, duration_ns=1e10, think_ns=1, hold_ns=1e7)
    cfs = {"rules": {"sched.class": "cfs"}, "cfs": {"latency_ns": 24e6, "wakeup_granularity_ns": 1e9}}
    spec["kernel"] |= {"preemption": "full", **cfs}
    result = simulate(spec)
    lock = the_lock(result)
    assert lock.handoffs > 0.3 * lock.acquired
    assert abs(lock.steals - lock.handoffs) <= 1
    assert lock.wait_max_ns < (2 * tasks - 1) * 1e7  # at most two holds of every other task
    assert jain(result.per_task_operations) > 0.999


def test_a_mutex_with_more_tasks_than_cpus_starves_nobody() -> None:
    spec = lock_cycle("mutex", 8, 4, duration_ns=1e9, think_ns=1e5, hold_ns=1e5, **RANDOM)
    result = simulate(spec)
    lock = the_lock(result)
    assert lock.handoffs > 0
    assert lock.wait_max_ns < 20 * spec["kernel"]["tick_ns"]
    assert jain(result.per_task_operations) > 0.9


# ---- rwsem -----------------------------------------------------------------------------------------------


def test_writers_of_an_rwsem_spin_on_a_writer_and_on_short_readers() -> None:
    spec = lock_cycle("rwsem", 8, duration_ns=1e7, think_ns=1e3, hold_ns=8e3, readers=0.05, costs=REAL)
    lock = the_lock(simulate(spec))
    assert lock.resolved_spinning > 0.9 * lock.contended


def test_writers_of_an_rwsem_give_up_spinning_on_long_readers() -> None:
    """With free wake-ups, so that nobody who runs already takes the lock before a sleeper wakes."""
    spec = lock_cycle("rwsem", 8, duration_ns=1e8, think_ns=1e3, hold_ns=1e5, readers=0.5)
    lock = the_lock(simulate(spec))
    assert lock.slept > 0.99 * lock.contended


def test_queued_readers_of_an_rwsem_are_granted_together() -> None:
    """Alone with its hold, each reader would keep the others out; together they exceed one acquisition a hold."""
    hold = 1e5
    kernel = {"tick_ns": 1e6}  # readers ask for a hand-off after 4 to 5 ms
    spec = lock_cycle(
        "rwsem", 32, duration_ns=1e9, think_ns=1e3, hold_ns=hold, readers=0.9, costs=REAL, kernel=kernel
    )
    result = simulate(spec)
    assert rate(result) * hold > 1.8
    assert the_lock(result).handoffs > 0.35 * result.operations


# ---- percpu-rwsem ----------------------------------------------------------------------------------------


def test_readers_of_a_percpu_rwsem_share_no_line() -> None:
    spec = lock_cycle("percpu-rwsem", 8, duration_ns=1e6, think_ns=50, hold_ns=50, readers=1.0, costs=REAL)
    result = simulate(spec | {"warmup_ns": 1e5})
    lock = the_lock(result)
    assert lock.acquired == pytest.approx(8 * 1e4, abs=8)
    assert lock.contended == lock.line_transfers == 0


def test_readers_of_an_rwsem_do_share_one() -> None:
    spec = lock_cycle("rwsem", 8, duration_ns=1e6, think_ns=50, hold_ns=50, readers=1.0, costs=REAL)
    result = simulate(spec)
    assert the_lock(result).line_transfers > result.operations
    assert result.operations < 8 * 1e4 / 4


@pytest.mark.parametrize("kind", ["mutex-3.0", "mutex", "rwsem-3.16", "rwsem"])
def test_who_spins_on_the_owner_fetches_the_line_back_from_who_joins_the_queue(kind: str) -> None:
    """Six transfers a hold: a vain attempt, the spinner's copy, the release, its copy and attempt, the next copy."""
    spec = lock_cycle(kind, 4, duration_ns=4e6, think_ns=5e2, hold_ns=2e4, costs=REAL | {"cpu_relax": 40})
    result = simulate(spec)
    assert the_lock(result).line_transfers > 5.9 * result.operations


@pytest.mark.slow
def test_a_writer_of_a_percpu_rwsem_waits_a_grace_period_and_lets_the_readers_go_on() -> None:
    spec = lock_cycle("percpu-rwsem", 8, duration_ns=1e9, think_ns=1e3, hold_ns=1e3, readers=0.999, **RANDOM)
    spec["kernel"]["constants"] = {**CONSTANTS, "percpu_rwsem_grace_period": 1e6}
    result = simulate(spec)
    assert min(result.per_task_operations) > 0
    assert the_lock(result).wait_max_ns >= 1e6
    assert the_lock(result).handoffs > 0


def percpu(grace: float, **params: Any) -> RunResult:  # noqa: ANN401
    spec = lock_cycle("percpu-rwsem", **params)
    spec["kernel"]["constants"] = {**CONSTANTS, "percpu_rwsem_grace_period": grace}
    return simulate(spec)


def test_readers_go_on_in_the_grace_period_that_the_first_writer_waits() -> None:
    params = {"tasks": 8, "duration_ns": 1e7, "think_ns": 1e3, "hold_ns": 1e3, "readers": 0.99, **RANDOM}
    result = percpu(1e9, **params)  # which is longer than the run
    waiting = sum(done < 2000 for done in result.per_task_operations)
    assert waiting == 8  # everybody is a writer once in a while, and waits then
    assert the_lock(result).contended == 0
    assert the_lock(result).acquired > 8 * 25  # and has read 100 times in the meantime, on average


def test_writers_that_follow_each_other_wait_for_one_grace_period_only() -> None:
    result = percpu(1e5, tasks=2, duration_ns=1e7, think_ns=1e3, hold_ns=1e3)
    assert the_lock(result).wait_max_ns == pytest.approx(1e5, rel=0.01)
    assert result.operations > 0.95 * 1e7 / 1e3 * 0.99


def test_a_writer_that_comes_a_grace_period_after_the_last_waits_again() -> None:
    result = percpu(1e5, tasks=1, duration_ns=1e7, think_ns=2e5, hold_ns=1e3)
    lock = the_lock(result)
    assert lock.slept == lock.acquired == 1e7 // (2e5 + 1e5 + 1e3)


# ---- deadlock --------------------------------------------------------------------------------------------


def opposite(lock: str, tasks: int, cpus: int) -> Spec:
    return lock_cycle(
        lock, tasks, cpus, duration_ns=1e7, think_ns=1000, hold_ns=500, locks=2, order="opposite", **RANDOM
    )


def stall(spec: Spec) -> Stall:
    found = RunResult.model_validate_json(answer(spec)).stall
    assert found is not None
    return found


@pytest.mark.parametrize("tasks", [2, 4, 6])
@pytest.mark.parametrize("lock", ["semaphore", "mutex", "rwsem", "ticket", "qspinlock", "tas"])
def test_two_locks_in_opposite_order_deadlock_and_the_cycle_is_named(lock: str, tasks: int) -> None:
    """Waiters for the semaphore sleep; those for a mutex or a spinlock spin, as long as nobody wants the CPU."""
    found = stall(opposite(lock, tasks, tasks))
    assert found.kind == "deadlock"
    assert len(found.cycle) == 2
    first, second = (step.split() for step in found.cycle)  # task A waits for lock#X held by task B
    assert first[1] == second[-1] != first[-1] == second[1]
    assert first[4] != second[4]
    assert first[4].startswith("lock#")


def test_a_mutex_deadlock_of_tasks_that_had_to_sleep_is_found_too() -> None:
    assert stall(opposite("mutex", 4, 2)).kind == "deadlock"


@pytest.mark.parametrize("lock", ["semaphore", "mutex", "rwsem", "ticket"])
def test_two_locks_in_the_same_order_do_not_deadlock(lock: str) -> None:
    spec = opposite(lock, 4, 4)
    spec["workload"]["params"]["order"] = "same"
    result = simulate(spec)
    assert result.stall is None
    assert min(result.per_task_operations) > 0
