"""Hyper-threads share a core: what each gets while both execute, when they do not, and who has to run on one."""

from __future__ import annotations

import pytest
from machines import assert_same

from engine import Spec, lock_cycle, simulate

SPEED = 0.6
THINK_NS = 1e5


def core(
    tasks: int,
    cpus: int = 2,
    lock: str = "mcs",
    think_ns: float = THINK_NS,
    hold_ns: float = 0,
    per_core: int = 2,
) -> Spec:
    """Cores of two CPUs or more, and tasks that compute."""
    spec = lock_cycle(
        lock, tasks, cpus, duration_ns=1e9, costs={"smt_speed": SPEED}, think_ns=think_ns, hold_ns=hold_ns
    )
    spec["machine"]["cpus_per_core"] = per_core
    return spec


def speed(spec: Spec, tasks: int) -> float:
    """What a task computes in a second of its time."""
    result = simulate(spec)
    return result.operations * THINK_NS / (result.window_ns * tasks)


def test_two_busy_siblings_each_run_at_the_speed_of_the_machine() -> None:
    assert speed(core(1), 1) == pytest.approx(1, rel=1e-3)
    assert speed(core(2), 2) == pytest.approx(SPEED, rel=1e-3)


@pytest.mark.parametrize(("tasks", "expected"), [(2, SPEED), (3, 2 * SPEED / 3), (4, SPEED / 2)])
def test_more_than_two_siblings_do_together_what_two_do(tasks: int, expected: float) -> None:
    crowded = core(tasks, cpus=4, per_core=4)
    assert speed(crowded, tasks) == pytest.approx(expected, rel=1e-3)
    assert_same(crowded | {"duration_ns": 1e7})


def test_a_program_is_slowed_for_as_long_as_its_sibling_executes() -> None:
    """One computes for 100 us while the other holds for 200 us, and then sleeps: 100 us of the hold are slow."""
    result = simulate(core(2, lock="semaphore", hold_ns=2 * THINK_NS))
    assert result.window_ns / result.operations == pytest.approx(THINK_NS / SPEED + THINK_NS, rel=1e-3)


def test_a_spinning_sibling_leaves_the_core_to_the_holder() -> None:
    """All time is in the hold, so one of the two spins all the time."""
    alone, both = (simulate(core(tasks, think_ns=0, hold_ns=THINK_NS)).operations for tasks in (1, 2))
    assert both == pytest.approx(alone, abs=2)


def test_tasks_take_whole_cores_before_siblings() -> None:
    assert speed(core(2, cpus=4), 2) == pytest.approx(1, rel=1e-3)
    assert speed(core(3, cpus=4), 3) == pytest.approx((1 + 2 * SPEED) / 3, rel=1e-3)
    assert speed(core(4, cpus=4), 4) == pytest.approx(SPEED, rel=1e-3)
