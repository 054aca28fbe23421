"""Counterfactuals on one lock class: exact where a full run can say the same, without effect where nobody waits."""

from __future__ import annotations

import json
from typing import Any

import pytest

import engine

REALISTIC = {
    "line_hit": 2,
    "line_llc": 49,
    "line_socket": 49,
    "line_overlap": 10,
    "step_cv": 0,
    "smt_speed": 1.0,
    "context_switch": 1500,
    "wakeup": 1000,
}


def what_if(spec: engine.Spec, lock: str, change: object) -> engine.Spec:
    return spec | {"whatif": {"lock": lock, "change": change}}


def contended(lock: str = "semaphore", **params: Any) -> engine.Spec:  # noqa: ANN401
    given: dict[str, Any] = {"think_ns": 20e3, "think_distribution": "exponential", "hold_ns": 5e3} | params
    return engine.lock_cycle(lock, 8, duration_ns=2e7, costs=REALISTIC, **given)


@pytest.mark.parametrize("lock", ["semaphore", "mutex", "rwsem", "ticket"])
def test_a_scaled_hold_is_the_run_with_that_hold(lock: str) -> None:
    scaled = engine.simulate(what_if(contended(lock=lock), "lock", {"hold_scale": 0.6}))
    shorter = engine.simulate(contended(lock=lock, hold_ns=3e3))
    assert scaled == shorter
    assert scaled != engine.simulate(contended(lock=lock))


def test_a_scaled_outer_hold_reaches_the_inner_one_and_not_the_other_way_round() -> None:
    both = contended(locks=2)
    assert engine.simulate(what_if(both, "lock", {"hold_scale": 0.6})) == engine.simulate(
        contended(locks=2, hold_ns=3e3)
    )


def test_time_that_a_device_holds_a_lock_is_not_scaled() -> None:
    handed = contended(device_ns=10e3)
    scaled = engine.simulate(what_if(handed, "lock", {"hold_scale": 0.6}))
    assert scaled == engine.simulate(contended(device_ns=10e3, hold_ns=3e3))
    # The submitting task goes on to think while its lock is held: thinking is no part of the hold.


def test_shared_holds_are_not_scaled() -> None:
    read = contended(lock="rwsem", readers=1.0)
    assert engine.simulate(what_if(read, "lock", {"hold_scale": 0.1})) == engine.simulate(read)


def test_a_scale_of_one_changes_nothing() -> None:
    assert engine.simulate(what_if(contended(), "lock", {"hold_scale": 1.0})) == engine.simulate(contended())


def test_another_kind_is_the_run_with_that_kind() -> None:
    replaced = engine.simulate(what_if(contended(), "lock", {"kind": "mutex"}))
    assert replaced == engine.simulate(contended(lock="mutex"))


@pytest.mark.parametrize("lock", ["semaphore", "mutex", "rwsem", "ticket"])
def test_without_the_lock_all_tasks_run_side_by_side(lock: str) -> None:
    result = engine.simulate(what_if(contended(lock=lock, think_distribution="constant"), "lock", "remove"))
    # Eight tasks on eight CPUs, 25 us a cycle, nothing to wait for: 800 cycles each in 20 ms,
    # but for the one that the first context switch makes late.
    assert result.per_task_operations == (799,) * 8
    assert engine.the_lock(result).type == "removed"
    assert engine.the_lock(result).acquired >= 8 * 799
    assert engine.the_lock(result).contended == 0


def test_a_lock_released_by_a_device_can_be_removed() -> None:
    result = engine.simulate(what_if(contended(device_ns=10e3), "lock", "remove"))
    assert engine.the_lock(result).contended == 0


@pytest.mark.parametrize("params", [{}, {"lock": "mutex"}, {"device_ns": 10e3}], ids=str)
def test_split_as_often_as_there_are_tasks_nobody_waits(params: dict[str, Any]) -> None:
    result = engine.simulate(what_if(contended(**params), "lock", {"split": 8}))
    lock = engine.the_lock(result)
    assert lock.instances == 8
    # A device may hold a task's own lock when the task comes back for it.
    assert (lock.contended == 0) == ("device_ns" not in params)


def test_split_in_two_is_two_halves_of_the_tasks() -> None:
    whole = contended(think_distribution="constant")
    half = engine.simulate(
        engine.lock_cycle(tasks=4, duration_ns=2e7, costs=REALISTIC, think_ns=20e3, hold_ns=5e3)
    )
    split = engine.simulate(what_if(whole, "lock", {"split": 2}))
    assert split.operations == pytest.approx(2 * half.operations, rel=0.02)


@pytest.mark.parametrize("change", ["remove", {"hold_scale": 0.5}, {"split": 3}, {"kind": "mutex"}], ids=str)
@pytest.mark.parametrize("variant", ["xfs", "ext4"])
def test_every_lock_of_a_filesystem_can_be_changed_and_the_laws_hold(variant: str, change: object) -> None:
    spec = engine.scenario_spec("compile-24", variant, "workload.tasks=8", warmup_ns=1e7, duration_ns=5e7)
    named = [
        lock.name for lock in engine.simulate(spec).locks if lock.role not in ("wait_lock", "completion")
    ]
    results = engine.simulate_all([what_if(spec, name, change) for name in named])
    assert [r.operations > 0 or r.stall is not None for r in results] == [True] * len(named)


def test_what_only_the_removed_lock_kept_in_order_deadlocks() -> None:
    spec = engine.scenario_spec("compile-24", "xfs", "workload.tasks=24", warmup_ns=1e8, duration_ns=3e8)
    stall = engine.simulate(what_if(spec, "xfs.AGI", "remove")).stall
    assert stall is not None
    assert stall.kind == "deadlock"
    assert any("xfs.finobt" in step for step in stall.cycle)


@pytest.mark.parametrize(
    ("whatif", "says"),
    [
        ({"lock": "lokc", "change": "remove"}, "whatif.lock: this run has no lock class 'lokc'; it has lock"),
        ({"lock": "lock.wait_lock", "change": "remove"}, "no lock class 'lock.wait_lock'"),
        ({"lock": "lock", "change": {"hold_scale": -1}}, "whatif.change.hold_scale"),
        ({"lock": "lock", "change": {"split": 0}}, "whatif.change.split"),
        ({"lock": "lock", "change": {"kind": "mutx"}}, "whatif.change.kind: unknown lock type 'mutx'"),
        ({"lock": "lock", "change": "vanish"}, "unknown variant"),
    ],
    ids=str,
)
def test_what_cannot_be_had_is_refused(whatif: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        engine.answer(contended() | {"whatif": whatif})


def test_a_lock_held_by_devices_stays_a_semaphore() -> None:
    with pytest.raises(ValueError, match="only a semaphore"):
        engine.answer(what_if(contended(device_ns=1e3), "lock", {"kind": "mutex"}))


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown field"):
        engine.answer(contended() | {"whatif": {"lock": "lock", "change": "remove", "by": 1}})


def test_the_reference_machine_does_not_pretend_to_answer() -> None:
    from simfs.machine import run

    with pytest.raises(ValueError, match="only the native machine"):
        run(json.dumps(what_if(contended(), "lock", "remove")))
