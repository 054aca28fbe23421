"""What was measured on a real 2-CPU guest, as far as it can be said without numbers.

Processes that create and unlink files in one XFS directory are slower together than one alone, although CPUs idle;
they are as fast as one when bound to one CPU, and nearly twice as fast with a directory each.
"""

from __future__ import annotations

import pytest

from engine import guest_run, idle, rate, the_lock

SHARED, OWN = "xfs-shared", "xfs-49-per-task"


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [2, 24])
def test_several_processes_in_one_directory_are_slower_than_one_while_cpus_idle(tasks: int) -> None:
    assert rate(guest_run(SHARED, tasks)) < 0.7 * rate(guest_run(SHARED, 1))
    assert idle(guest_run(SHARED, tasks)) > 0.2


@pytest.mark.slow
def test_bound_to_one_cpu_many_processes_are_as_fast_as_one() -> None:
    bound = guest_run(SHARED, 24, "0")
    assert rate(bound) == pytest.approx(rate(guest_run(SHARED, 1, "0")), rel=0.2)
    assert rate(bound) > 1.5 * rate(guest_run(SHARED, 24))
    assert the_lock(bound, "xfs.AGI").slept == 0


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [2, 24])
def test_with_a_directory_each_two_cpus_do_nearly_twice_the_work(tasks: int) -> None:
    assert 1.6 < rate(guest_run(OWN, tasks)) / rate(guest_run(OWN, 1)) < 2.05
    assert idle(guest_run(OWN, tasks)) < 0.05


@pytest.mark.slow
def test_creating_alone_hardly_suffers_in_one_directory() -> None:
    alone = rate(guest_run(SHARED, 1, kind="create"))
    assert rate(guest_run(SHARED, 24, kind="create")) > 0.8 * alone


@pytest.mark.parametrize("tasks", [2, 24])
def test_processes_sleep_for_the_agi(tasks: int) -> None:
    result = guest_run(SHARED, tasks)
    sleepiest = max(result.locks, key=lambda lock: lock.slept)
    assert (sleepiest.name, sleepiest.type) == ("xfs.AGI", "semaphore")
    assert sleepiest.slept > 0.5 * result.operations
    assert sleepiest.resolved_spinning < 0.05 * sleepiest.contended


@pytest.mark.parametrize("tasks", [1, 2, 24])
@pytest.mark.parametrize("variant", [SHARED, OWN])
def test_a_file_takes_the_agi_three_times_in_its_life(variant: str, tasks: int) -> None:
    result = guest_run(variant, tasks)
    assert the_lock(result, "xfs.AGI").acquired / result.operations == pytest.approx(3, rel=0.05)
