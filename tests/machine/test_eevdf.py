"""EEVDF in one run queue: who is picked, what a sleep costs, what another weight changes.

Shown on the rules of the machine on SimPy; `test_two_machines` has the native one do the same.
"""

from __future__ import annotations

import pytest

from engine import lock_cycle
from simfs.machine.cpus.cpu import Phase
from simfs.machine.machine import Machine
from simfs.machine.sched.entity import NICE_0, weight_of
from simfs.machine.sched.policy import Entering, Leaving
from simfs.machine.sched.run_queue import Level
from simfs.machine.task import Task

MS = 10**9
"""Picoseconds."""


class OneCpu:
    """A CPU whose tasks have run for given times, with a slice of 3 ms and a tick of 4 ms."""

    def __init__(self, **rules: bool) -> None:
        given = {f"sched.{rule}": value for rule, value in rules.items()}
        machine = Machine(lock_cycle(kernel={"rules": given}))
        self.machine, self.policy, self.cpu = machine, machine.scheduler.policy, machine.scheduler.cpus[0]
        self.root = self.cpu.queue_of(Level.ROOT)
        self.numbers = 0

    def task(self, ran_ms: float, deadline_ms: float = 5, nice: int = 0) -> Task:
        """A task that waits."""
        task = Task(self.machine, self.numbers, self.cpu)
        self.numbers += 1
        task.entity.weight = weight_of(nice)
        self.policy.enqueue(task, self.cpu, Entering.WOKEN)
        task.entity.vruntime, task.entity.deadline = round(ran_ms * MS), round(deadline_ms * MS)
        return task

    def run(self, task: Task) -> None:
        """Let a waiting task have the CPU."""
        self.policy.set_next(self.cpu, task)
        self.cpu.queue.remove(task)
        self.cpu.current = task

    def sleep(self, task: Task) -> None:
        """Let the task that has the CPU sleep."""
        self.policy.dequeue(task, self.cpu, Leaving.SLEEPING)
        self.cpu.current = None


# ---- who is picked -------------------------------------------------------------------------------------------------


def test_of_those_not_ahead_of_the_average_the_earliest_deadline_is_picked() -> None:
    one = OneCpu()
    one.task(3, deadline_ms=1)  # ahead
    late, early = one.task(1, deadline_ms=4), one.task(2, deadline_ms=3)
    assert one.policy.pick(one.cpu) is early
    assert late.entity.vruntime < early.entity.vruntime


def test_the_average_is_weighted() -> None:
    """A task of nice level 5 counts a third: who has run for 1.4 ms is ahead of the average and behind the middle."""
    one = OneCpu()
    one.task(1, deadline_ms=5), one.task(1.4, deadline_ms=4), one.task(2, deadline_ms=6, nice=5)
    average, weight = one.root.average()
    assert weight == 1024 + 1024 + 335
    assert average == (1024 * MS + 1024 * 1.4 * MS + 335 * 2 * MS) // weight < 1.4 * MS


@pytest.mark.parametrize(
    ("run_to_parity", "current_ms", "preempts"),
    [(True, 1.0, False), (False, 1.0, True), (True, 2.5, True), (False, 2.5, True)],
)
def test_a_woken_task_with_an_earlier_deadline_preempts_who_is_not_protected(
    run_to_parity: bool, current_ms: float, preempts: bool
) -> None:
    """Run to parity protects the current task until it has used up its slice, or is ahead of the average."""
    one = OneCpu(run_to_parity=run_to_parity)
    one.run(one.task(current_ms, deadline_ms=5))
    woken = one.task(0.9, deadline_ms=4)
    one.task(1.5, deadline_ms=9)
    assert one.policy.preempts(woken, one.cpu) == preempts


def test_a_used_up_slice_makes_the_cpu_look_for_another_if_there_is_one() -> None:
    one = OneCpu()
    task = one.task(4, deadline_ms=5)
    one.run(task)
    one.machine.clock.env.run(until=2 * MS)
    one.policy.update_current(one.cpu)
    assert (task.entity.vruntime, task.entity.deadline) == (6 * MS, 9 * MS)
    assert not one.cpu.need_resched
    one.task(0)
    one.machine.clock.env.run(until=5 * MS)
    one.policy.update_current(one.cpu)
    assert one.cpu.need_resched


# ---- weights -------------------------------------------------------------------------------------------------------


def test_virtual_time_passes_by_weight_and_slices_last_as_long_for_everybody() -> None:
    one = OneCpu()
    task = one.task(0, nice=-5)
    one.run(task)
    one.machine.clock.env.run(until=4 * MS)
    one.policy.update_current(one.cpu)
    assert task.entity.vruntime == 4 * MS * 1024 // 3121
    one = OneCpu()
    entered = one.task(0, nice=-5).entity
    one.policy.rules.enter(one.root, entered, Entering.WOKEN)
    assert entered.deadline - entered.vruntime == 3 * MS * 1024 // 3121


def test_another_weight_leaves_lag_and_the_time_to_the_deadline_what_they_are_and_ends_protection() -> None:
    one = OneCpu()
    task, other = one.task(1, deadline_ms=4), one.task(3)
    one.run(task)
    assert task.entity.protected
    one.policy.group.reweigh(one.root, task.entity, NICE_0 // 4)
    average, _ = one.root.average()
    assert average == pytest.approx(2 * MS, abs=2)
    assert average - task.entity.vruntime == pytest.approx(4 * (2 - 1) * MS, abs=8)
    assert task.entity.deadline == 2 * MS + 4 * (4 - 2) * MS
    assert not task.entity.protected
    assert other.entity.vruntime == 3 * MS


@pytest.mark.parametrize(("place_lag", "lag_ms"), [(True, -0.5), (False, 0.0)])
def test_lag_is_kept_over_a_sleep_and_is_the_same_after_the_return(place_lag: bool, lag_ms: float) -> None:
    """Placing it moves the average toward it: so it is placed further away, by (W + w) / W."""
    one = OneCpu(place_lag=place_lag)
    ahead, _ = one.task(2), one.task(1)
    one.run(ahead)
    one.sleep(ahead)
    assert ahead.entity.lag == -MS // 2
    one.policy.enqueue(ahead, one.cpu, Entering.WOKEN)
    average, _ = one.root.average()
    assert average - ahead.entity.vruntime == pytest.approx(lag_ms * MS, abs=1)


@pytest.mark.parametrize(("initial", "slice_ms"), [(True, 1.5), (False, 3.0)])
def test_a_new_task_has_half_a_slice_from_6_12_on(initial: bool, slice_ms: float) -> None:
    one = OneCpu(place_deadline_initial=initial)
    entity = Task(one.machine, 0, one.cpu).entity
    one.policy.rules.enter(one.root, entity, Entering.NEW)
    assert entity.deadline - entity.vruntime == slice_ms * MS


@pytest.mark.parametrize(("kept", "left_ms"), [(True, 1), (False, 3)])
def test_who_is_moved_to_another_queue_goes_on_with_its_slice_from_6_12_on(
    kept: bool, left_ms: float
) -> None:
    one = OneCpu(place_rel_deadline=kept)
    task = one.task(2, deadline_ms=3)
    one.task(1)
    one.policy.dequeue(task, one.cpu, Leaving.MOVED)
    one.policy.enqueue(task, one.cpu, Entering.MOVED)
    assert task.entity.deadline - task.entity.vruntime == left_ms * MS
    one.run(task)
    one.sleep(task)
    one.policy.enqueue(task, one.cpu, Entering.WOKEN)
    assert task.entity.deadline - task.entity.vruntime == 3 * MS


@pytest.mark.parametrize(
    ("rule", "protected", "asks"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_who_is_ahead_and_not_protected_gives_way_before_its_slice_ends(
    rule: bool, protected: bool, asks: bool
) -> None:
    """`did_preempt_short` (6.12): what has the CPU account its time, say a wake-up, makes it look for another."""
    one = OneCpu(preempt_short=rule)
    task, _ = one.task(1, deadline_ms=9), one.task(1, deadline_ms=8)
    one.run(task)
    task.entity.protected = protected
    one.machine.clock.env.run(until=MS)
    one.policy.update_current(one.cpu)
    assert one.cpu.need_resched == asks


# ---- delayed dequeue ----------------------------------------------------------------------------------------------


def one_ahead(delay_dequeue: bool) -> tuple[OneCpu, Task, Task]:
    """A task that has run for 2 ms goes to sleep while another, which has not run yet, waits."""
    one = OneCpu(delay_dequeue=delay_dequeue)
    ahead, other = one.task(2, deadline_ms=3), one.task(0)
    one.run(ahead)
    one.sleep(ahead)
    return one, ahead, other


@pytest.mark.parametrize(("delay_dequeue", "debt"), [(True, 0), (False, 2 * MS)])
def test_a_long_sleep_pays_for_having_run_ahead(delay_dequeue: bool, debt: int) -> None:
    """The other one, which is to have run as much, catches up; then the sleeper wakes beside it."""
    one, ahead, other = one_ahead(delay_dequeue)
    assert one.policy.pick(one.cpu) is other
    other.entity.vruntime = 4 * MS
    assert one.policy.pick(one.cpu) is other
    assert one.cpu.delayed == []
    one.policy.enqueue(ahead, one.cpu, Entering.WOKEN)
    assert ahead.entity.vruntime == 4 * MS + debt


def test_who_wakes_before_that_goes_on_where_it_was() -> None:
    one, ahead, other = one_ahead(delay_dequeue=True)
    other.entity.vruntime = MS
    assert one.policy.pick(one.cpu) is other
    assert one.cpu.delayed == [ahead]
    one.policy.requeue(ahead)
    assert one.cpu.delayed == []
    assert ahead.entity.vruntime == 2 * MS
    assert one.policy.pick(one.cpu) is other


def test_who_wakes_in_the_queue_is_placed_where_the_current_one_was_last_accounted() -> None:
    """So who has run since is ahead, and gives way although its slice is protected (`requeue_delayed_entity`)."""
    one, ahead, other = one_ahead(delay_dequeue=True)
    other.entity.vruntime = 3 * MS
    one.run(other)
    one.cpu.phase = Phase.RUNNING
    one.machine.clock.env.run(until=MS)
    assert other.entity.protected
    one.policy.requeue(ahead)
    assert (ahead.entity.vruntime, other.entity.vruntime) == (3 * MS, 4 * MS)
    assert one.policy.preempts(ahead, one.cpu)


def test_who_is_not_ahead_leaves_at_once() -> None:
    one, ahead, other = one_ahead(delay_dequeue=True)
    one.policy.requeue(ahead)
    one.run(other)
    one.sleep(other)
    assert one.cpu.delayed == []
    assert other.entity.lag == MS
