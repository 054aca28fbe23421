"""Where tasks go: woken ones, new ones, and those that begin another program.

Shown on the machine on SimPy; `test_two_machines` has the native one do the same.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from busy_machines import MS, US, Machines
from machines import assert_same

from engine import Spec, simulate, window
from simfs.machine.cpus.cpu import Phase
from simfs.machine.sched.run_queue import Level
from simfs.machine.statistics import TaskKind
from simfs.machine.task import Steps, Task
from simfs.machine.task_state import Status
from simfs.scenario import expand, load, to_run_spec

# ---- woken tasks ---------------------------------------------------------------------------------------------------


def test_a_woken_task_goes_where_it_was_if_that_idles() -> None:
    here = Machines(4, idle=(1, 2))
    assert here.woken(here.task(2), by=0) == 2
    assert here.woken(here.task(2)) == 2
    assert here.woken(here.task(3, bound=True), by=0) == 3


@pytest.mark.parametrize(
    ("scan", "found"), [("all", 5), ("proportional", 5), ("utilization", 5), ("none", 3)]
)
def test_else_to_an_idle_cpu_upwards_from_its_own_if_any_is_looked_at(scan: str, found: int) -> None:
    here = Machines(8, idle=(1, 5), wake_scan=scan, recent_cpu=False)
    assert here.woken(here.task(3), by=0) == found


@pytest.mark.parametrize(("percent", "looked_at"), [(0, 16), (50, 10), (75, 3), (85, 0), (100, 0)])
def test_a_wakeup_looks_at_the_fewer_cpus_the_more_they_are_used(percent: int, looked_at: int) -> None:
    """16 CPUs, of which only one idles, further and further away."""
    here = Machines(16, idle=(8,), wake_scan="utilization", recent_cpu=False)
    here.use(1024 * percent // 100)
    found = [distance for distance in range(1, 16) if here.woken(here.task((8 - distance) % 16), by=9) == 8]
    assert found == list(range(1, min(looked_at, 15) + 1))


def test_how_many_are_looked_at_is_found_anew_once_in_as_many_ms_as_there_are_cpus() -> None:
    here = Machines(16, idle=(8,), wake_scan="utilization", recent_cpu=False)
    assert here.woken(here.task(7), by=0) == 8
    here.use(1024)
    assert here.woken(here.task(7), by=0) == 8
    here.pass_(16 * MS)
    here.use(1024)
    assert here.woken(here.task(7), by=0) == 7


@pytest.mark.parametrize(("average_idle_us", "looked_at"), [(1000, 15), (50, 2), (200, 5)])
def test_before_5_19_a_wakeup_looks_at_as_many_as_fit_into_a_part_of_its_idle_time(
    average_idle_us: int, looked_at: int
) -> None:
    """A search takes 0.8 us on average and the waker idles for so long. Its target and the last one do not count."""
    here = Machines(16, idle=(8,), wake_scan="proportional", recent_cpu=False)
    found = []
    for distance in range(1, 16):
        here.cpus[9].average_idle, here.cpus[9].scan_cost = average_idle_us * US, 800_000
        if here.woken(here.task((8 - distance) % 16), by=9) == 8:
            found.append(distance)
    assert found == list(range(1, looked_at + 1))


@pytest.mark.parametrize(
    ("stacking", "kind", "goes_to"),
    [(True, TaskKind.BOUND, 0), (False, TaskKind.BOUND, 1), (True, TaskKind.LOAD, 1)],
)
def test_whom_a_kernel_thread_of_its_cpu_wakes_stays_there(
    stacking: bool, kind: TaskKind, goes_to: int
) -> None:
    here = Machines(4, idle=(1, 2), kthread_stacking=stacking, wake_scan="all", recent_cpu=False)
    here.busy[0].pinned, here.busy[0].kind = True, kind
    assert here.woken(here.task(0), by=0) == goes_to
    here.wait(0)
    assert here.woken(here.task(0), by=0) == 1


@pytest.mark.parametrize(("recent", "goes_to"), [(True, 2), (False, 1)])
def test_the_cpu_before_the_last_one_is_looked_at_first(recent: bool, goes_to: int) -> None:
    here = Machines(4, idle=(1, 2), recent_cpu=recent, wake_scan="all")
    task = here.task(0)
    task.recent_used_cpu = here.cpus[2]
    assert here.woken(task, by=3) == goes_to


@pytest.mark.parametrize(("noted", "goes_to"), [(True, 1), (False, 2)])
def test_who_wakes_another_counts_its_own_cpu_as_the_last_one(noted: bool, goes_to: int) -> None:
    here = Machines(4, idle=(1, 2), recent_cpu=True, waker_recent_cpu=noted, wake_scan="all")
    task = here.busy[0]
    task.recent_used_cpu = here.cpus[2]
    here.woken(here.task(1), by=0)
    assert here.woken(task, by=3) == goes_to


@pytest.mark.parametrize(("noted", "kept"), [(True, 3), (False, 0)])
def test_a_cpu_that_was_busy_is_looked_at_again_if_only_wakers_note_theirs(noted: bool, kept: int) -> None:
    here = Machines(4, idle=(1,), recent_cpu=True, waker_recent_cpu=noted, wake_scan="all")
    task = here.task(0)
    task.recent_used_cpu = here.cpus[3]
    assert here.woken(task, by=2) == 1
    assert task.recent_used_cpu is here.cpus[kept]


def test_without_an_idle_cpu_it_goes_to_the_less_loaded_of_its_own_and_its_wakers() -> None:
    here = Machines(4)
    here.load(1000)
    assert here.woken(here.task(3), by=0) == 0
    here.cpus[0].queue_of(Level.ROOT).load.load = 1080
    assert here.woken(here.task(3), by=0) == 3
    assert here.woken(here.task(3), by=0) == 3


def test_who_wakes_ever_others_does_not_draw_them_to_its_cpu() -> None:
    here = Machines(4)
    here.load(1000)
    wakee = here.task(3)
    here.busy[0].wakee_flips, wakee.wakee_flips = 16, 4
    assert here.woken(wakee, by=0) == 3


def test_an_idle_core_comes_before_the_sibling_and_that_before_others() -> None:
    shape = {"cpus_per_core": 2}
    assert Machines(6, idle=(1, 4, 5), shape=shape).woken(Machines(6, shape=shape).task(0)) == 4
    here = Machines(6, idle=(1, 4), shape=shape, recent_cpu=False)
    assert here.woken(here.task(0)) == 1
    here = Machines(6, idle=(4,), shape=shape, recent_cpu=False)
    assert here.woken(here.task(0)) == 4


def test_where_a_core_is_said_to_idle_all_are_looked_at_once() -> None:
    """The note outlives the idle core; who finds none corrects it (`set_idle_cores`)."""
    here = Machines(16, idle=(9,), shape={"cpus_per_core": 2}, wake_scan="proportional", recent_cpu=False)
    here.cpus[0].average_idle = 0
    assert here.cpus[0].idle_cores
    assert here.woken(here.task(1), by=0) == 9
    assert not here.cpus[0].idle_cores
    assert here.woken(here.task(1), by=0) == 1


# ---- new tasks -----------------------------------------------------------------------------------------------------


def test_a_new_task_goes_to_the_idle_cpu_that_was_used_least() -> None:
    here = Machines(4, idle=(1, 2, 3))
    for number, used in enumerate((900, 300, 10, 200)):
        here.cpus[number].queue_of(Level.ROOT).load.utilization = used
    assert here.scheduler.idlest.cpu_for_new(here.cpus[0]).number == 2


def test_without_an_idle_cpu_it_stays_with_its_parent_unless_that_is_much_more_loaded() -> None:
    here = Machines(4)
    here.use(1000)
    for cpu, now in zip(here.cpus, (1100, 1020, 1000, 1030), strict=True):
        cpu.queue_of(Level.ROOT).load.load = now
    assert here.scheduler.idlest.cpu_for_new(here.cpus[0]).number == 0
    here.cpus[0].queue_of(Level.ROOT).load.load = 1200
    assert here.scheduler.idlest.cpu_for_new(here.cpus[0]).number == 2


def test_a_new_task_is_used_as_its_cpu_was_when_that_was_last_looked_at() -> None:
    """Nobody brings the averages of an idle CPU up to date for it; after 32 ms they would say half."""
    here = Machines(2, idle=(1,))
    queue = here.cpus[1].queue_of(Level.ROOT)
    here.pass_(MS)
    here.scheduler.policy.group.update_queue_load(queue)
    queue.load.utilization, queue.load.running_sum = 400, 400 * queue.load.divider
    here.pass_(32 * MS)
    task = here.task(1)
    here.scheduler.policy.group.load_of_new(task, here.cpus[1])
    assert task.entity.load.utilization == (1024 - 400) // 2


@pytest.mark.parametrize(
    ("kind", "started", "load"),
    [(TaskKind.LOAD, False, 1024), (TaskKind.BOUND, False, 0), (TaskKind.BOUND, True, 1024)],
)
def test_kernel_threads_that_were_there_before_weigh_nothing_as_they_have_slept(
    kind: TaskKind, started: bool, load: int
) -> None:
    here = Machines(2, idle=(1,))
    task = here.task(1)
    task.kind = kind
    here.scheduler.wakeups.start(task, here.busy[0] if started else None)
    assert here.cpus[1].queue_of(Level.ROOT).load.load == load


@pytest.mark.parametrize(("leaves", "goes_to"), [(True, 0), (False, 1)])
def test_who_ends_has_left_its_session_so_its_cpu_counts_as_loaded_and_its_parent_stays(
    leaves: bool, goes_to: int
) -> None:
    here = Machines(2, wake_scan="none", groups="autogroup", exit_leaves_autogroup=leaves)
    here.load(40)
    child, group = here.busy[1], here.scheduler.policy.group
    group.load_of_new(child, child.cpu)
    parent = here.task(0)
    here.cpus[0].queue_of(Level.ROOT).load.load = 60
    child.level = Level.GROUP
    here.scheduler.leave_autogroup(child)
    assert (child.level is Level.ROOT) is leaves
    assert here.woken(parent, by=1) == goes_to


def test_kernel_threads_that_were_there_before_are_spread() -> None:
    here = Machines(3, idle=(0, 1, 2))

    def nothing(_: Task) -> Steps:
        yield from ()

    threads = [here.machine.spawn(nothing, spawn_kind="background") for _ in range(6)]
    assert sorted(thread.cpu.number for thread in threads) == [0, 0, 1, 1, 2, 2]


def test_it_goes_to_the_socket_with_more_idle_cpus_and_there_to_the_idler_core() -> None:
    shape = {"cpus_per_core": 2, "cpus_per_llc": 4, "cpus_per_socket": 4}
    here = Machines(8, idle=(1, 4, 6, 7), shape=shape)
    assert here.scheduler.idlest.cpu_for_new(here.cpus[0]).number in (6, 7)


# ---- machines ------------------------------------------------------------------------------------------------------


def test_a_machine_says_what_its_kernels_do_differently_and_a_scenario_may_say_otherwise() -> None:
    def scan(*given: str) -> object:
        (point,) = [p for p in expand(load("guest-2cpu", list(given))) if p.variant == "xfs-shared"][:1]
        return to_run_spec(point, 0)["kernel"]["rules"]["sched.wake_scan"]

    assert scan() == "none"
    assert scan("kernel.rules={sched.wake_scan: utilization}") == "utilization"
    assert scan("machine=server-24") == "utilization"


# ---- who begins another program -------------------------------------------------------------------------------------


def test_who_calls_exec_beside_a_waiter_goes_to_an_idle_cpu() -> None:
    m = Machines(3, idle=(2,))
    m.use(1024)
    m.wait(0)
    assert m.scheduler.idlest.cpu_for_exec(m.busy[0]).number == 2


def test_who_calls_exec_alone_on_its_cpu_stays_since_that_would_idle_without_it() -> None:
    m = Machines(3, idle=(2,))
    m.use(1024)
    assert m.scheduler.idlest.cpu_for_exec(m.busy[0]).number == 0


def test_who_is_bound_stays() -> None:
    m = Machines(2, idle=(1,))
    m.use(1024)
    m.wait(0)
    m.busy[0].pinned = True
    assert m.scheduler.idlest.cpu_for_exec(m.busy[0]).number == 0


def test_the_stopper_moves_who_calls_exec_for_two_switches_and_the_waiter_runs() -> None:
    m = Machines(2, idle=(1,))
    caller, waiter = m.busy[0], m.wait(0)
    m.machine.costs = replace(m.machine.costs, context_switch=US, wakeup=US)
    switches = m.machine.counters.switches
    m.scheduler.move_running(caller, m.cpus[1])
    m.machine.clock.env.run(until=2 * US - 1)  # the stopper is woken and not there yet
    assert caller.status is Status.RUNNABLE
    assert m.cpus[1].next is None
    m.machine.clock.env.run(until=2 * US + 1)
    assert m.cpus[1].next is caller
    assert m.cpus[0].next is waiter
    assert m.machine.counters.switches == switches + 1
    m.machine.clock.env.run(until=3 * US - 1)
    assert m.cpus[0].phase is Phase.SWITCHING
    m.machine.clock.env.run(until=3 * US + 1)
    assert m.cpus[0].current is waiter


def test_both_machines_note_wakers_cpus(tmp_path: Path) -> None:
    def clients(noted: bool) -> Spec:
        scenario = tmp_path / "clients.yaml"
        scenario.write_text(
            "simfs: 1\nname: m\ntitle: m\nmachine: server-24\n"
            f"kernel: {{profile: linux-5.5, rules: {{sched.waker_recent_cpu: {str(noted).lower()}}}}}\n"
            "filesystem: {kind: xfs, size: 8 GiB}\ndevice: nvme\n"
            "workload: {kind: mix, tasks: 4, order: in-turn, operations: [{op: append, size: 4 KiB}, {op: fsync}]}\n"
        )
        (point,) = expand(load(scenario))
        return to_run_spec(point, 0) | window(2e6)

    assert simulate(clients(True)).migrations != simulate(clients(False)).migrations
    assert_same(clients(True))
