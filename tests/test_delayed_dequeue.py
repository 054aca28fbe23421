"""Who sleeps ahead of its share works that off in the queue (Linux 6.12 and later); before, it stayed in debt.

Shown on the policy of the machine on SimPy; `test_two_machines` has the native one do the same.
"""

from __future__ import annotations

import pytest

from engine import lock_cycle
from simfs.machine.cpu import Cpu
from simfs.machine.machine import Machine
from simfs.machine.policy import Entering, Policy
from simfs.machine.task import Task

MS = 10**9
"""Picoseconds."""


def one_ahead(delay_dequeue: bool) -> tuple[Policy, Cpu, Task, Task]:
    """A task that has run for 2 ms and goes to sleep while another waits."""
    machine = Machine(lock_cycle(kernel={"rules": {"sched.delay_dequeue": delay_dequeue}}))
    policy, cpu = machine.scheduler.policy, machine.scheduler.cpus[0]
    ahead, other = Task(machine, 0, cpu), Task(machine, 1, cpu)
    ahead.entity.vruntime, ahead.entity.deadline = 2 * MS, 3 * MS
    other.entity.deadline = 5 * MS
    cpu.queue = [other]
    policy.sleep(ahead, cpu)
    return policy, cpu, ahead, other


@pytest.mark.parametrize(("delay_dequeue", "debt"), [(True, 0), (False, 2 * MS)])
def test_a_long_sleep_pays_for_having_run_ahead(delay_dequeue: bool, debt: int) -> None:
    """The other one, which is to have run as much, catches up; then the sleeper wakes beside it."""
    policy, cpu, ahead, other = one_ahead(delay_dequeue)
    assert policy.pick(cpu) is other
    other.entity.vruntime = 4 * MS
    assert policy.pick(cpu) is other
    assert cpu.delayed == []
    policy.enter(ahead, cpu, Entering.WOKEN)
    assert ahead.entity.vruntime == 4 * MS + debt


def test_who_wakes_before_that_goes_on_where_it_was() -> None:
    policy, cpu, ahead, other = one_ahead(delay_dequeue=True)
    other.entity.vruntime = MS
    assert policy.pick(cpu) is other
    assert cpu.delayed == [ahead]
    policy.requeue(ahead, cpu)
    cpu.queue.append(ahead)
    assert cpu.delayed == []
    assert ahead.entity.vruntime == 2 * MS
    assert policy.pick(cpu) is other


def test_who_is_not_ahead_leaves_at_once() -> None:
    policy, cpu, ahead, other = one_ahead(delay_dequeue=True)
    policy.requeue(ahead, cpu)
    cpu.queue = [ahead]
    policy.sleep(other, cpu)
    assert cpu.delayed == []
    assert other.entity.lag == MS
