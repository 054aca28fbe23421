"""The mutex of user space on a futex: its protocol, what its system calls take, and the lock of its hash bucket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import assert_same

from engine import CONSTANTS, Spec, lock_cycle, rate, simulate, the_lock
from simfs import _engine
from simfs.scenario import ScenarioError, load

REAL = {"context_switch": 1500, "wakeup": 1000, "ipi_deliver": 700, "line_llc": 50, "line_hit": 2}
CODE = {"code_futex": 1000.0, "code_futex_return": 200.0}
CALLS = 2 * 30.0
"""Of a lock and an unlock, in instructions of a nanosecond."""


def cycle(tasks: int, cpus: int = 8, **params: Any) -> Spec:  # noqa: ANN401
    given: dict[str, Any] = {
        "think_ns": 1000,
        "hold_ns": 2000,
        "costs": {**REAL, "instruction": 1.0},
    } | params
    spec = lock_cycle("pthread-mutex", tasks, cpus, **{"duration_ns": 1e6, **given})
    spec["kernel"]["constants"] = {**CONSTANTS, **CODE, "code_pthread": CALLS / 2}
    return spec


def test_one_task_makes_no_system_call() -> None:
    result = simulate(cycle(1))
    lines = 2 * REAL["line_hit"]
    assert rate(result) == pytest.approx(1 / (1000 + 2000 + lines + CALLS), rel=0.005)
    assert [lock.name for lock in result.locks] == ["lock"]  # its bucket was not taken


def test_a_waiter_sleeps_and_the_release_wakes_it() -> None:
    """A hold is much longer than a system call: who comes sleeps, and each release wakes one."""
    lock = the_lock(simulate(cycle(2, think_ns=20_000, hold_ns=50_000)))
    assert lock.slept > 10
    assert lock.acquired == pytest.approx(lock.slept, abs=1)
    assert lock.wakeups == pytest.approx(lock.slept, abs=1)


def test_both_system_calls_take_their_code() -> None:
    """Two tasks take turns: each wait is a call before the sleep and a way back, each release a call and a way back."""
    dear, free = (cycle(2, think_ns=20_000, hold_ns=50_000, duration_ns=50e6) for _ in range(2))
    free["kernel"]["constants"] |= dict.fromkeys(CODE, 0)
    took = [simulate(spec) for spec in (dear, free)]
    spent = [run.cpu_ns.system / run.operations for run in took]
    calls = the_lock(took[0], "lock.hash_bucket").acquired / took[0].operations
    assert spent[0] - spent[1] == pytest.approx(
        calls * (CODE["code_futex"] + CODE["code_futex_return"]), rel=0.1
    )


def test_a_release_that_queues_for_the_line_holds_the_mutex_until_it_comes() -> None:
    """Whoever asked for the word before, to mark it or to sleep, finds the mutex held."""
    far = {**REAL, "instruction": 1.0, "line_llc": 500}
    lock = the_lock(simulate(cycle(4, think_ns=2000, hold_ns=300, duration_ns=3e6, costs=far)))
    assert lock.hold_total_ns / lock.acquired > 300 + 1.5 * far["line_llc"]


def test_who_comes_takes_it_before_who_was_woken() -> None:
    """A wake-up is a hint: while the first sleeper wakes, a task that runs takes the mutex."""
    lock = the_lock(simulate(cycle(12, think_ns=200, hold_ns=300)))
    assert lock.steals > 50
    assert lock.handoffs == 0


def test_who_comes_back_at_once_starves_all_others() -> None:
    """The release leaves the mutex free, and who was woken takes longer than the next look of who released it."""
    result = simulate(cycle(2, think_ns=1, hold_ns=50_000))
    assert the_lock(result).wakeups > 10
    assert the_lock(result).contended == 0  # no wait has ended


def test_the_bucket_has_the_kind_of_its_role() -> None:
    spec = cycle(12, cpus=12, think_ns=200, hold_ns=300)
    spec["kernel"]["locks"]["futex.bucket"] = "ticket"
    text, _ = _engine.trace(json.dumps(spec))
    kinds = {lock["name"]: lock["type"] for lock in json.loads(text)["locks"]}
    assert kinds["lock"] == "futex"
    assert kinds["lock.hash_bucket"] == "spinlock"
    assert rate(simulate(spec)) != rate(simulate(cycle(12, cpus=12, think_ns=200, hold_ns=300)))


SCENARIO = """simfs: 1
name: a
title: a
machine: server-24
kernel: linux-6.12
workload: {kind: lock_cycle, tasks: 2, lock: pthread-mutex, think: 1 us, hold: 1 us}
locks: {futex.bucket: mutex}
"""


def test_a_bucket_is_guarded_by_a_spinlock(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(SCENARIO, "utf-8")
    with pytest.raises(
        ScenarioError, match=r"a\.yaml:7:23: locks\.futex\.bucket: mutex is none of tas, ticket"
    ):
        load(path)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    tasks=st.sampled_from([2, 3, 5, 9]),
    cpus=st.sampled_from([1, 2, 8]),
    hold=st.sampled_from([50.0, 700.0, 6000.0]),
    preemption=st.sampled_from(["none", "full", "voluntary"]),
    bucket=st.sampled_from(["tas", "ticket", "mcs", "qspinlock", "cna", "hqlock"]),
    seed=st.integers(0, 2**32),
)
def test_both_machines_do_the_same(
    tasks: int, cpus: int, hold: float, preemption: str, bucket: str, seed: int
) -> None:
    spec = cycle(tasks, cpus, hold_ns=hold, think_distribution="exponential", hold_distribution="exponential")
    spec["kernel"] |= {"preemption": preemption, "tick_ns": 1e5, "base_slice_ns": 3e4}
    spec["kernel"]["locks"]["futex.bucket"] = bucket
    spec["machine"] |= {"watts_active": 0.0, "watts_spin": 0.0}  # the machines add them up in another order
    assert_same(spec | {"seed": seed, "duration_ns": 2e5})
