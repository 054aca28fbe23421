"""What processes leave behind: callbacks of RCU, and kernel stacks that a worker frees. Both machines agree on it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from machines import ALL, assert_same

from engine import Spec, simulate, window
from simfs import _engine
from simfs.machine.stacks import KEPT
from simfs.scenario import expand, load, to_run_spec

CPUS = 2
PROCESSES = 3
"""Driver, compiler, assembler."""


def compiling(tasks: int = 1, filesystem: str = "tmpfs", **changes: Any) -> Spec:  # noqa: ANN401
    """Compiles on two CPUs, for a second."""
    settings = [
        f"filesystem.kind={filesystem}",
        "variants=[]",
        "calibrate=[]",
        "measured=null",
        "machine.cpus=2",
    ]
    (point,) = expand(load("emulated-compile", [*settings, f"sweep.workload.tasks=[{tasks}]"]))
    spec: Spec = to_run_spec(point, 0) | window(1e9)
    rules = spec["kernel"]["rules"] | changes.pop("rules", {})
    constants = spec["kernel"]["constants"] | changes.pop("constants", {})
    return spec | {"kernel": spec["kernel"] | {"rules": rules, "constants": constants}} | changes


def kernel_time(spec: Spec) -> float:
    """CPU time (us) of the kernel for each operation, with softirqs."""
    run = simulate(spec)
    return (run.cpu_ns.irq + run.cpu_ns.system) / run.operations / 1e3


def woken(spec: Spec) -> Counter[int]:
    """How often each task is woken."""
    _, _, events, _ = _engine.watch(json.dumps(spec))
    return Counter(who for _, who, _, what, _ in events if what == "wake" and who is not None)


def workers(spec: Spec) -> int:
    """How often stacks' workers are woken: the threads after `ksoftirqd` of each CPU and RCU's thread."""
    counts = woken(spec)
    return sum(counts[-1 - (CPUS + 1 + cpu)] - 1 for cpu in range(CPUS))  # once they start


@pytest.mark.parametrize(
    ("constant", "callbacks"),
    [
        ("code_free_task", PROCESSES),
        ("code_free_cred", PROCESSES),
        ("code_free_map", 33),
        ("code_free_dentry", 20),
        ("code_free_proc", 2 * PROCESSES),
        ("code_free_area", 0),
    ],
)
def test_a_compile_queues_the_callbacks_that_were_counted(constant: str, callbacks: int) -> None:
    """Each made 50,000 instructions longer takes 50 us more on the emulated machine.

    That is long beside what two runs differ by, some 20 us a compile, as events come in another order. The 45 us
    that it may be off are less than one callback.
    """
    longer = {constant: compiling()["kernel"]["constants"][constant] + 50_000}
    spent = [kernel_time(compiling(constants=constants)) for constants in ({}, longer)]
    assert spent[1] - spent[0] == pytest.approx(50 * callbacks, rel=0.1, abs=45)


def test_kernels_before_maple_trees_queue_no_nodes() -> None:
    dear = {"code_free_map": 10_000.0}
    with_nodes, without = (
        kernel_time(compiling(constants=dear, rules={"mm.maple_tree": maple})) for maple in (True, False)
    )
    assert with_nodes - without == pytest.approx(330, rel=0.1)


def test_stacks_that_a_cpu_cannot_keep_are_freed_by_its_worker() -> None:
    """Four tasks on two CPUs, whose processes are moved at each exec: a CPU often has more stacks than it keeps.

    The workers are woken 118 to 130 times, whatever the seed.
    """
    assert KEPT == 2
    assert workers(compiling(4)) > 50
    assert workers(compiling(4, rules={"process.stack_free": "worker"})) > 50


def test_stacks_that_are_no_vmalloc_memory_have_no_worker() -> None:
    few = compiling(rules={"process.stack_free": "pages"})
    assert min(woken(few)) > min(woken(compiling()))


def test_a_process_runs_on_after_it_has_woken_its_parent_which_cannot_have_its_cpu_meanwhile() -> None:
    spec = compiling()
    gone = spec["workload"]["params"]["start.gone_ns"] * spec["machine"]["costs"]["speed"] * 1e3
    _, _, events, _ = _engine.watch(json.dumps(spec | {"duration_ns": 50e6}))
    ends = [number for number, event in enumerate(events) if event[3] == "exit"]
    assert len(ends) > PROCESSES
    for end in ends:
        time, _, cpu, *_ = events[end]
        woken = max(number for number in range(end) if events[number][3] == "wake")
        assert time - events[woken][0] > 0.7 * gone  # as its pace is
        assert not [event for event in events[woken:end] if event[2:4] == (cpu, "run")]


def test_a_parent_reaps_its_child_and_calls_vfork_before_the_next_one_is_there() -> None:
    """So the CPU of the one that has ended idles by then, and the next may go there."""
    spec = compiling()
    start = {
        name: spec["workload"]["params"][f"start.{name}_ns"] * spec["machine"]["costs"]["speed"] * 1e3
        for name in ("reap", "fork")
    }
    _, _, events, _ = _engine.watch(json.dumps(spec | {"duration_ns": 50e6}))
    starts = [number for number, event in enumerate(events) if event[3] == "start" and event[2] is not None]
    ends = [event[0] for event in events if event[3] == "exit"]
    assert len(ends) > PROCESSES
    for number in starts:
        before = [end for end in ends if end < events[number][0]]
        if before:
            assert events[number][0] - before[-1] > 0.7 * sum(start.values())  # as its pace is


@pytest.mark.slow
@pytest.mark.parametrize("stack_free", ["pages", "worker", "callback"])
@pytest.mark.parametrize("tasks", [1, 4])
def test_both_machines_agree_on_what_processes_leave(stack_free: str, tasks: int) -> None:
    assert_same(compiling(tasks, rules={"process.stack_free": stack_free}, duration_ns=60e6), most=ALL)


@pytest.mark.slow
def test_both_machines_agree_where_timers_wake_workers_in_the_tick_of_a_softirq() -> None:
    """Those of XFS's inodegc: the CPU is wanted, so RCU's softirq ends after a round, and `ksoftirqd` goes on."""
    assert_same(compiling(4, "xfs", duration_ns=150e6), most=ALL)
