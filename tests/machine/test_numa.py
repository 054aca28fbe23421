"""Sockets are NUMA nodes: where new tasks stay, what balancing leaves, and what idle CPUs take from afar.

Shown on the machine on SimPy; the last test has the native one do the same.
"""

from __future__ import annotations

from typing import Any

import pytest
from busy_machines import MS, Machines
from machines import assert_same

from engine import CONSTANTS, lock_cycle
from simfs.machine.cpus.topology import Topology
from simfs.machine.sched.run_queue import Level
from simfs.machine.task import Steps, Task

SOCKETS = {"cpus_per_llc": 16, "cpus_per_socket": 16}
"""Of a machine with 32 CPUs: two."""


def busy(first: int, second: int, numa_imbalance: str, size: int = 16) -> Machines:
    """Two sockets; so many CPUs of each have a task."""
    idle = (*range(first, size), *range(size + second, 2 * size))
    shape = {"cpus_per_llc": size, "cpus_per_socket": size}
    return Machines(2 * size, idle=idle, shape=shape, numa_imbalance=numa_imbalance)


# ---- new tasks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "most"),
    [
        ("spread", 0),
        ("idle_cpu", 15),
        ("pair", 15),
        ("quarter_of_domain", 7),
        ("quarter_of_node", 3),
        ("eighth_of_node", 1),
    ],
)
def test_a_new_task_stays_on_its_node_while_that_has_so_few(rule: str, most: int) -> None:
    stays = []
    for tasks in range(1, 17):
        here = busy(tasks, 0, rule)
        stays.append(here.scheduler.idlest.cpu_for_new(here.cpus[0]).number < 16)
    assert stays == [True] * most + [False] * (16 - most)


@pytest.mark.parametrize(("others", "stays"), [(0, False), (1, True)])
def test_since_6_0_the_other_node_may_have_two_idle_cpus_more(others: int, stays: bool) -> None:
    """Nodes of 32 CPUs may have four tasks; the new one is the fourth."""
    here = busy(3, others, "eighth_of_node", size=32)
    assert (here.scheduler.idlest.cpu_for_new(here.cpus[0]).number < 32) is stays


def test_where_no_cpu_idles_a_node_keeps_its_tasks_for_a_sixth_of_one_more() -> None:
    here = Machines(4, shape={"cpus_per_llc": 2, "cpus_per_socket": 2})
    here.use(1000)
    here.load(1000)
    for number in (0, 1):
        here.cpus[number].queue_of(Level.ROOT).load.load = 1174
    assert here.scheduler.idlest.cpu_for_new(here.cpus[0]).number == 0
    for number in (0, 1):
        here.cpus[number].queue_of(Level.ROOT).load.load = 1175
    assert here.scheduler.idlest.cpu_for_new(here.cpus[0]).number == 2


@pytest.mark.parametrize(("rule", "goes_to"), [("idle_cpu", 1), ("spread", 2)])
def test_who_begins_another_program_stays_on_its_node_as_a_new_task_does(rule: str, goes_to: int) -> None:
    shape = {"cpus_per_llc": 2, "cpus_per_socket": 2}
    here = Machines(4, idle=(1, 2, 3), shape=shape, numa_imbalance=rule)
    here.wait(0)
    here.use(0)
    assert here.scheduler.idlest.cpu_for_exec(here.busy[0]).number == goes_to


@pytest.mark.parametrize(("llc", "tasks"), [(16, 2), (4, 4), (8, 2)])
def test_a_node_may_have_a_task_for_each_of_its_caches(llc: int, tasks: int) -> None:
    """With one cache, an eighth of its CPUs."""
    spec = lock_cycle(cpus=32)["machine"] | SOCKETS | {"cpus_per_llc": llc}
    assert Topology(spec).tasks_of_node(8) == tasks


# ---- the start -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "on_second"),
    [
        ("spread", [0, 1, 1, 2, 2, 3, 3, 4]),
        ("idle_cpu", [0, 1, 1, 2, 2, 3, 3, 4]),
        ("pair", [0, 0, 1, 2, 2, 3, 3, 4]),
        ("quarter_of_domain", [0, 0, 0, 1, 2, 3, 3, 4]),
        ("quarter_of_node", [0, 0, 0, 0, 1, 2, 3, 4]),
        ("eighth_of_node", [0, 0, 1, 2, 2, 3, 3, 4]),
    ],
)
def test_tasks_start_where_balancing_would_have_left_them(rule: str, on_second: list[int]) -> None:
    here = Machines(32, idle=tuple(range(32)), shape=SOCKETS, numa_imbalance=rule)

    def nothing(_: Task) -> Steps:
        yield from ()

    cpus = [here.machine.spawn(nothing, spawn_kind="background").cpu.number for _ in range(8)]
    assert [sum(cpu >= 16 for cpu in cpus[: n + 1]) for n in range(8)] == on_second


def test_who_sets_up_and_threads_that_it_keeps_from_sleeping_count_for_nothing() -> None:
    """Workers of its CPU have not run once when the tasks of the load start, and sleep as soon as they do."""
    here = Machines(32, idle=tuple(range(1, 32)), shape=SOCKETS, numa_imbalance="quarter_of_node")
    here.machine.setting_up = here.busy[0]
    for _ in range(8):
        here.wait(0).background = True

    def nothing(_: Task) -> Steps:
        yield from ()

    cpus = [here.machine.spawn(nothing, parent=here.busy[0]).cpu.number for _ in range(4)]
    assert [cpu >= 16 for cpu in cpus] == [False] * 4


# ---- idle CPUs -----------------------------------------------------------------------------------------------------


def crowded(first: int, numa_imbalance: str = "spread", **rules: str) -> tuple[Machines, Task]:
    """So many tasks of the first socket, of which one waits for CPU 0."""
    here = Machines(
        32, idle=tuple(range(first - 1, 32)), shape=SOCKETS, numa_imbalance=numa_imbalance, **rules
    )
    waiting = here.wait(0)
    here.pass_(MS)
    return here, waiting


@pytest.mark.parametrize(("rule", "takes"), [("runnable", True), ("utilization", True), ("waiting", False)])
def test_since_5_5_a_cpu_about_to_idle_takes_a_task_from_another_socket(rule: str, takes: bool) -> None:
    here, waiting = crowded(6, busiest=rule)
    assert here.pull(20) is (waiting if takes else None)


@pytest.mark.parametrize(
    ("rule", "most"),
    [("spread", 1), ("idle_cpu", 1), ("pair", 2), ("quarter_of_domain", 3), ("quarter_of_node", 5)],
)
def test_balancing_leaves_so_many_tasks_on_a_node(rule: str, most: int) -> None:
    left = []
    for tasks in range(2, 9):
        here, _ = crowded(tasks, rule)
        left.append(here.pull(20) is None)
    assert left == [True] * (most - 1) + [False] * (8 - most)


@pytest.mark.parametrize(("others", "left"), [(0, True), (1, True), (2, False), (3, False)])
def test_since_5_18_it_counts_how_many_the_node_has_that_would_take(others: int, left: bool) -> None:
    """An eighth of 16 CPUs is two."""
    here = busy(others + 4, others, "eighth_of_node")
    here.wait(0)
    here.pass_(MS)
    assert (here.pull(31) is None) is left


def test_an_overloaded_node_is_relieved_all_the_same() -> None:
    here = busy(16, 0, "quarter_of_node")
    waiting = here.wait(0)
    here.pass_(MS)
    here.use(1000)
    assert here.pull(20) is waiting


@pytest.mark.parametrize(("less", "takes"), [(0, True), (1, False)])
def test_a_look_at_another_socket_takes_longer(less: int, takes: bool) -> None:
    """Three lines each: 16 CPUs at 50 ns, once for their own cache and once more, and 16 at 100 ns."""
    here, waiting = crowded(6)
    spec = here.machine.topology
    spec._remote = 100_000
    spec._levels = [(share, 50_000) for share, _ in spec._levels]
    waiting.last_ran = here.machine.now
    assert here.pull(20) is None  # it ran a moment ago
    costs = [cost.most for cost in here.scheduler.newidle._costs.values()]
    code = 16 * here.machine.kernel.look_cpu
    assert costs == [2_400_000 + code, 7_200_000 + 2 * code]
    here.pass_(MS)
    here.cpus[20].average_idle = sum(costs) - less
    assert here.pull(20) is (waiting if takes else None)


def test_at_a_tick_the_first_idle_cpu_of_another_socket_takes_one_now_and_then() -> None:
    here, _ = crowded(17)
    kick, cpus = here.scheduler.balance.kick_idle_cpus, here.cpus
    kick(cpus[0])
    assert [cpu.number for cpu in cpus[16:] if cpu.queue] == [16]
    here.wait(1)
    kick(cpus[1])
    assert not any(cpu.queue for cpu in cpus[17:])
    here.pass_(64 * MS)
    kick(cpus[1])
    assert [cpu.number for cpu in cpus[17:] if cpu.queue] == [17]


# ---- both machines -------------------------------------------------------------------------------------------------


RULES = ("spread", "idle_cpu", "pair", "quarter_of_domain", "quarter_of_node", "eighth_of_node")


@pytest.mark.slow
@pytest.mark.parametrize("llc", [1, 2])
def test_both_machines_move_the_same_tasks_between_sockets(llc: int) -> None:
    """Some hundred times; where they do so by another rule, another number of events follows."""

    def events(rule: str) -> int:
        kernel = {"tick_ns": 2.5e5, "constants": {**CONSTANTS, "migration_cost": 5e4}}
        rules = {"sched.numa_imbalance": rule, "sched.wake_scan": "none", "sched.groups": "autogroup"}
        spec: dict[str, Any] = lock_cycle(
            "semaphore",
            14,
            12,
            think_ns=3e5,
            hold_ns=1.5e4,
            duration_ns=1e7,
            kernel={**kernel, "rules": rules},
        )
        spec["machine"] |= {"cpus_per_llc": llc, "cpus_per_socket": 4}
        spec["machine"]["costs"] |= {"line_llc": 50.0, "line_socket": 60.0, "line_remote": 120.0}
        return assert_same(spec)

    assert len({events(rule) for rule in RULES}) >= 3
