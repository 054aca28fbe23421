"""What idle CPUs take from others, and how long they look for it.

Shown on the machine on SimPy; `test_two_machines` has the native one do the same.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from busy_machines import MS, US, Machines

from simfs.machine.cpus.cpu import Phase
from simfs.machine.sched.policy import Leaving
from simfs.machine.sched.run_queue import Level


@pytest.mark.parametrize(("seconds", "less", "takes"), [(0, 0, True), (0, 1, False), (1, 1, True)])
def test_a_cpu_about_to_idle_looks_if_it_idles_longer_than_the_longest_look(
    seconds: int, less: int, takes: bool
) -> None:
    """Which counts 253/256 when another one ends a second later."""
    here = Machines(4, idle=(3,))
    waiting = here.wait(1)
    here.pass_(MS)
    waiting.last_ran = here.machine.now
    assert here.pull(3) is None  # it ran a moment ago
    (cost,) = here.scheduler.newidle._costs.values()
    longest = cost.most
    assert longest >= 3 * 3 * 50_000  # three lines of each other CPU
    for _ in range(seconds):
        here.pass_(1001 * MS)
        waiting.pinned = here.busy[1].pinned = True
        assert here.pull(3) is None
        waiting.pinned = here.busy[1].pinned = False
    here.pass_(MS)
    here.cpus[3].average_idle = longest - less
    assert here.pull(3) is (waiting if takes else None)


def test_a_look_takes_time_in_which_its_cpu_does_not_idle_and_who_is_woken_there_waits() -> None:
    here = Machines(4, idle=(3,))
    cpu, waiting = here.cpus[3], here.wait(1)
    here.pass_(MS)
    waiting.last_ran = here.machine.now
    here.machine.costs = replace(here.machine.costs, context_switch=US, wakeup=0)
    here.machine.kernel = replace(here.machine.kernel, look_cpu=US - 3 * 50_000)
    here.scheduler.idle.discard(3)
    here.scheduler.newidle.begin(cpu)
    here.pass_(3 * US)
    assert cpu.phase is Phase.SWITCHING
    assert not here.scheduler.is_idle(cpu)
    sleeper = here.task(3, bound=True)
    here.scheduler.wakeups.wake(sleeper, here.busy[0])
    here.pass_(US + 1)  # the look ends and finds nobody to take
    assert cpu.phase is Phase.SWITCHING
    assert cpu.next is None
    here.pass_(US)  # it idles for the interrupt
    assert cpu.next is sleeper


def test_to_take_a_task_takes_time_before_that_runs() -> None:
    here = Machines(2, idle=(1,))
    cpu, waiting = here.cpus[1], here.wait(0)
    here.pass_(MS)
    here.machine.costs = replace(here.machine.costs, context_switch=US)
    here.machine.kernel = replace(here.machine.kernel, take_task=5 * US)
    assert here.pull(1) is waiting
    here.pass_(6 * US - 1)
    assert cpu.phase is Phase.SWITCHING
    here.pass_(2)
    assert cpu.current is waiting


def test_a_cpu_looks_once_in_vain_when_nobody_waits_any_more() -> None:
    """`rd->overloaded` says that somebody may wait, until a look at all CPUs finds nobody."""
    here = Machines(2, idle=(1,))
    cpu, waiting = here.cpus[1], here.wait(0)
    here.scheduler.policy.dequeue(waiting, here.cpus[0], Leaving.MOVED)
    here.scheduler.idle.discard(1)
    here.scheduler.newidle.begin(cpu)
    assert cpu.looks
    assert here.pull(1) is None
    here.scheduler.newidle.begin(cpu)
    assert not cpu.looks


@pytest.mark.parametrize(("rule", "takes"), [("above_migration_cost", False), ("always", True)])
def test_before_5_16_it_looks_only_if_it_idles_longer_than_a_migration_costs(rule: str, takes: bool) -> None:
    here = Machines(4, idle=(3,), newidle=rule)
    waiting = here.wait(1)
    here.pass_(MS)
    here.cpus[3].average_idle = 500 * US - 1
    assert here.pull(3) is (waiting if takes else None)
    here.cpus[3].average_idle += 1
    if not takes:
        assert here.pull(3) is waiting


def test_who_ran_a_moment_ago_or_is_bound_is_not_taken() -> None:
    here = Machines(4, idle=(3,))
    bound, hot = here.wait(0), here.wait(1)
    bound.pinned = here.busy[0].pinned = True
    here.pass_(MS)
    hot.last_ran = here.machine.now - 400 * US
    assert here.pull(3) is None
    hot.last_ran -= 100 * US
    assert here.pull(3) is hot


def test_who_ran_a_moment_ago_is_taken_after_two_looks_in_vain() -> None:
    """`nr_balance_failed`: looks of an idle CPU count, those of one about to idle do not."""
    here = Machines(2, idle=(1,))
    cpu, balance = here.cpus[1], here.scheduler.balance
    hot = here.wait(0)

    def look() -> bool:
        here.pass_(10 * MS)
        hot.last_ran = here.machine.now
        balance.kick_idle_cpus(here.cpus[0])
        return hot in cpu.queue

    assert not look()
    assert here.pull(1) is None
    assert here.pull(1) is None
    assert not look()
    assert look()


def test_looks_in_vain_are_forgotten_when_nobody_waits_where_one_is_taken_from() -> None:
    here = Machines(2, idle=(1,))
    balance = here.scheduler.balance
    hot = here.wait(0)
    for _ in range(2):
        here.pass_(10 * MS)
        hot.last_ran = here.machine.now
        balance.kick_idle_cpus(here.cpus[0])
    hot.pinned = here.busy[0].pinned = True
    assert here.pull(1) is None  # nobody to take from: all are bound
    hot.pinned = here.busy[0].pinned = False
    assert here.pull(1) is None


def test_a_bound_task_behind_one_that_is_not_keeps_an_idle_cpu_from_looking_further() -> None:
    """`LBF_ALL_PINNED` is about all tasks there, the running one included; so nobody looks at the next CPU."""
    here = Machines(4, idle=(3,))
    bound, waiting = here.wait(0), here.wait(1)
    bound.pinned = True
    here.pass_(MS)
    assert here.pull(3) is None
    here.busy[0].pinned = True
    assert here.pull(3) is waiting


@pytest.mark.parametrize(
    ("busiest", "used", "wanted", "takes"),
    [
        ("waiting", 500, 0, True),
        ("utilization", 500, 0, False),
        ("utilization", 900, 0, True),
        ("utilization", 500, 1300, False),
        ("runnable", 500, 1100, False),
        ("runnable", 500, 1300, True),
    ],
)
def test_a_cpu_that_is_used_all_the_time_hides_one_where_two_compete(
    busiest: str, used: int, wanted: int, takes: bool
) -> None:
    """CPU 2 has one task and is used all the time: fully busy, which ranks above two tasks on a CPU less used."""
    here = Machines(4, idle=(3,), busiest=busiest)
    waiting = here.wait(1)
    here.pass_(MS)
    averages = [cpu.queue_of(Level.ROOT).load for cpu in here.cpus]
    averages[2].utilization = 1000
    averages[1].utilization, averages[1].runnable = used, wanted
    found = here.pull(3)
    assert found is (waiting if takes else None)


def test_with_siblings_a_core_takes_from_a_core_that_has_two_tasks_more() -> None:
    """`SD_PREFER_SIBLING`; within the core there is nothing to take."""
    here = Machines(8, idle=(2, 3, 6, 7), shape={"cpus_per_core": 2, "cpus_per_llc": 8, "cpus_per_socket": 8})
    here.pass_(MS)
    assert here.pull(2) is None  # two CPUs, two tasks each
    waiting = here.wait(1)
    here.pass_(MS)
    assert here.pull(2) is waiting


def test_looks_become_as_rare_as_they_are_in_vain() -> None:
    """Half of the first go; after 512 in vain one in four, and so on."""
    here = Machines(2, idle=(1,), newidle="by_success")
    here.wait(0).pinned = True
    here.pass_(MS)
    taken: list[int] = []
    look = here.scheduler.balance._busiest.cpu_in
    here.scheduler.balance._busiest.cpu_in = lambda *at: taken.append(1) or look(*at)  # type: ignore[func-returns-value, method-assign]
    rates = []
    for _ in range(4):
        taken.clear()
        for _ in range(512):
            here.pull(1)
        rates.append(len(taken) / 512)
    assert rates == pytest.approx([1 / 2, 1 / 4, 1 / 8, 1 / 16], rel=0.3)


def test_an_idle_cpu_looks_for_tasks_once_in_as_many_ms_as_there_are_cpus_and_half_as_often_in_vain() -> None:
    here = Machines(8, idle=(3,))
    cpu, kick = here.cpus[3], here.scheduler.balance.kick_idle_cpus
    here.pass_(20 * MS)
    kick(here.cpus[0])  # in vain
    assert cpu.next_balance == here.machine.now + 16 * MS
    here.wait(1)
    here.pass_(12 * MS)
    kick(here.cpus[1])
    assert cpu.queue == []
    here.pass_(4 * MS)
    kick(here.cpus[1])
    assert len(cpu.queue) == 1
    assert cpu.next_balance == here.machine.now + 8 * MS


def test_how_long_a_cpu_idles_is_averaged_at_wakeups() -> None:
    here = Machines(2, idle=(1,))
    cpu, balance = here.cpus[1], here.scheduler.balance
    assert cpu.average_idle == MS
    here.pull(1)
    here.pass_(200 * US)
    balance.note_idle_time(cpu)
    assert cpu.average_idle == 900 * US
    balance.note_idle_time(cpu)
    assert cpu.average_idle == 900 * US
