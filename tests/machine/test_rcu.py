"""RCU's callbacks: when they are invoked, by whom, and that both machines agree on it."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from machines import ALL, assert_same

from engine import Spec, simulate, window
from simfs import _engine
from simfs.machine.recorder import Event
from simfs.scenario import expand, load, to_run_spec

CPUS = 2
KSOFTIRQD = range(-1, -1 - CPUS, -1)
"""On tmpfs they are the first threads of the kernel; the next one is RCU's."""
RCU = -1 - CPUS
TICK = 4_000_000_000


def spec(folder: Path, operation: str, think: str = "0 ns", cpus: int = CPUS, **changes: Any) -> Spec:  # noqa: ANN401
    """A task on each CPU that does one thing in a directory of its own on tmpfs, for six ticks of 4 ms."""
    workload = {
        "kind": "mix",
        "tasks": cpus,
        "operations": [{"op": operation, "think": think}],
        "files": 1,
        "directories": "per-task",
    } | changes
    path = folder / "rcu.yaml"
    path.write_text(
        "simfs: 1\nname: rcu\ntitle: rcu\n"
        f"machine: {{profile: emulated, cpus: {cpus}, costs: {{step_cv: 0.075}}}}\n"  # calls out of step with ticks
        f"kernel: linux-6.12\nfilesystem: {{kind: tmpfs}}\nworkload: {json.dumps(workload)}\n"
    )
    (point,) = expand(load(path))
    return to_run_spec(point, 0) | window(24e6)


def traced(given: Spec) -> list[Event]:
    _, _, events, _ = _engine.watch(json.dumps(given))
    return events


def times(events: list[Event], what: str, task: int | None) -> list[int]:
    return [at for at, who, _, happened, _ in events if (happened, who) == (what, task)]


def test_the_tick_invokes_a_hundred_callbacks_and_ksoftirqd_the_rest(tmp_path: Path) -> None:
    """`blimit` and `MAX_SOFTIRQ_RESTART` are 10: `ksoftirqd` is woken after ten rounds, or one if the CPU is wanted."""
    given = spec(tmp_path, "rename")
    events = traced(given)
    constants, costs = given["kernel"]["constants"], given["machine"]["costs"]
    callback = given["filesystem"]["costs"]["d_free"] * costs["speed"]
    a_round = 1000 * (10 * callback + constants["code_rcu_core"] * costs["instruction"])
    softirqs = [at for at, _, cpu, what, _ in events if what == "softirq" and cpu == 0]
    woken = [at for at in times(events, "wake", KSOFTIRQD[0]) if at > 0]
    rounds = [(at - max(begun for begun in softirqs if begun < at)) / a_round for at in woken]
    assert 10 in [round(number, 6) for number in rounds]
    assert {round(number, 6) for number in rounds} <= {1, 10}


def test_who_a_timer_wakes_in_a_tick_runs_when_its_softirqs_are_done(tmp_path: Path) -> None:
    """The interrupt ends, and only then its CPU looks for another task (`irq_exit`): here XFS's worker."""
    path = tmp_path / "compile.yaml"
    path.write_text(
        f"simfs: 1\nname: c\ntitle: c\nmachine: {{profile: emulated, cpus: {CPUS}}}\nkernel: linux-6.12\n"
        "filesystem: {kind: xfs}\nworkload: {kind: compile, tasks: 4, directories: shared, profile: compile-emulated}\n"
    )
    (point,) = expand(load(path))
    events = traced(to_run_spec(point, 0) | window(60e6))

    def places(what: str) -> set[tuple[int, int]]:
        return {(at, cpu) for at, _, cpu, happened, _ in events if happened == what}

    softirqs = places("softirq")
    assert softirqs & places("timer"), "in some tick there are both"
    assert not softirqs & places("preempt")


def test_a_grace_period_takes_two_ticks_of_busy_cpus(tmp_path: Path) -> None:
    """In the first they learn of it, in the second they report; then its end is known in the third."""
    events = traced(spec(tmp_path, "rename"))
    first = min(at for at in times(events, "wake", KSOFTIRQD[0]) if at > 0)
    assert round(first / TICK) == 4, (
        "callbacks of the first tick are asked for in it, and invoked three ticks later"
    )
    assert len(times(events, "wake", RCU)) >= 3


def invoked_at(given: Spec, **constants: float) -> int:
    """In which tick the first callbacks are invoked that are more than the tick's softirq does."""
    kernel = given["kernel"] | {"constants": given["kernel"]["constants"] | constants}
    events = traced(given | {"kernel": kernel})
    threads = range(-given["machine"]["cpus"], 0)
    woken = (at for task in threads for at in times(events, "wake", task) if at > 0)
    return min((round(at / TICK) for at in woken), default=99)


def test_where_the_lock_of_a_node_is_held_long_one_cpu_learns_in_each_tick(tmp_path: Path) -> None:
    """`note_gp_changes` only tries for it. The CPU of RCU's thread knows, so three others learn of a grace period.

    In two runs of five one of them is late, as another has the lock at that moment.
    """
    runs = [spec(tmp_path, "rename", cpus=4) | {"replication": number} for number in range(5)]
    for note, tick in ((0, 4), (1e6, 6)):
        assert median(invoked_at(given, rcu_inside=0, code_rcu_note=note) for given in runs) == tick


def test_a_cpu_in_a_reader_reports_later(tmp_path: Path) -> None:
    given = spec(tmp_path, "rename")
    assert invoked_at(given, rcu_inside=0) == 4
    assert invoked_at(given, rcu_inside=1) > 4


def test_few_callbacks_need_no_ksoftirqd(tmp_path: Path) -> None:
    events = traced(spec(tmp_path, "rename", think="1 ms"))
    assert times(events, "softirq", None)
    assert not [at for task in KSOFTIRQD for at in times(events, "wake", task) if at > 0]


def test_without_callbacks_rcu_does_nothing(tmp_path: Path) -> None:
    events = traced(spec(tmp_path, "stat"))
    assert not times(events, "softirq", None)
    assert not [at for task in (*KSOFTIRQD, RCU) for at in times(events, "run", task) if at > 1e9]


@pytest.mark.parametrize(("operation", "callbacks"), [("rename", 1), ("stat", 0)])
def test_callbacks_take_the_time_of_their_cpu(tmp_path: Path, operation: str, callbacks: int) -> None:
    """In the long run as much as is queued: in interrupts and in `ksoftirqd`."""
    given = spec(tmp_path, operation)
    costs = {"d_free": given["filesystem"]["costs"]["d_free"] * 10}
    dear = given | {"filesystem": given["filesystem"] | {"costs": given["filesystem"]["costs"] | costs}}
    lost = 1 - simulate(dear).operations / simulate(given).operations
    assert (lost > 0.05) == bool(callbacks)


@pytest.mark.parametrize("rule", [True, False])
def test_files_that_are_closed_go_to_rcu_until_6_6(tmp_path: Path, rule: bool) -> None:
    """`file_free_rcu`: a callback for each `open` and `close`, so ten rounds of ten are not enough for a tick."""
    given = spec(tmp_path, "open")
    assert given["kernel"]["rules"]["vfs.file_callback"] is False
    given["kernel"]["rules"]["vfs.file_callback"] = rule
    events = traced(given)
    assert bool(times(events, "softirq", None)) == rule
    assert any(at > 0 for task in KSOFTIRQD for at in times(events, "wake", task)) == rule


@pytest.mark.slow
@pytest.mark.parametrize(
    ("directories", "rules"),
    [("per-task", {}), ("shared", {"softirq.ksoftirqd_first": True, "rcu.preemptible": False})],
)
def test_both_machines_agree_on_softirqs_and_ksoftirqd(
    tmp_path: Path, directories: str, rules: dict[str, bool]
) -> None:
    given = spec(tmp_path, "rename", think="20 us", directories=directories) | {"duration_ns": 21e6}
    given["kernel"] = given["kernel"] | {"rules": given["kernel"]["rules"] | rules}
    events = traced(given)
    assert times(events, "softirq", None)
    assert all(any(at > 0 for at in times(events, "wake", task)) for task in KSOFTIRQD)
    assert_same(given, most=ALL)


@pytest.mark.slow
def test_both_machines_agree_on_softirqs_of_idle_cpus(tmp_path: Path) -> None:
    given = spec(tmp_path, "rename", think="100 us", tasks=1)
    assert_same(given)


def never_outside(tmp_path: Path) -> Spec:
    """Tasks that are in the kernel nearly all the time, where it cannot be preempted.

    RCU's thread leaves its run queue when it sleeps: else used-up slices of others are noticed in ticks, and these have
    one round of softirqs only.
    """
    given = spec(tmp_path, "rename")
    given["kernel"]["rules"] |= {"rcu.preemptible": False, "sched.delay_dequeue": False}
    costs = given["vfs"]["costs"]
    given["vfs"] = {"costs": {name: 20 * cost for name, cost in costs.items()}}
    return given | {"duration_ns": 280e6}


def test_who_never_leaves_the_kernel_is_asked_to_after_a_tenth_of_a_second(tmp_path: Path) -> None:
    """`rcu_urgent_qs`: 25 jiffies after a grace period began RCU's thread marks the CPUs, whose next ticks heed it.

    The first grace period has the callbacks of a tick only, so the second one is the first with many.
    """
    assert 2 * 26 <= invoked_at(never_outside(tmp_path)) <= 2 * 32


@pytest.mark.slow
def test_both_machines_agree_on_who_is_asked_to_leave_the_kernel(tmp_path: Path) -> None:
    assert_same(never_outside(tmp_path), most=ALL)
