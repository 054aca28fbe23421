"""Readers of 5.3 to 5.10 that leave to spin lose the wake-up of a hand-off: the kernel's own, until 617f3ef95177.

A reader whose fast path has failed is in the count until it takes itself out, to spin. If the last holder leaves
meanwhile, it wakes nobody (`__up_read` looks for a free count), and the reader that makes the count free does not
look at all. Who spins then cannot take the lock from the writer that has marked a hand-off and sleeps.
"""

from __future__ import annotations

import json
from functools import cache

import pytest
from machines import assert_same

from engine import CONSTANTS, SEED, Spec, lock_cycle
from simfs import _engine

TICK = 1e4
SEEDS = range(8)
COSTS = {
    **{"line_llc": 50, "line_socket": 50, "cpu_relax": 37, "instruction": 0.3},
    **{"wakeup": 1000, "context_switch": 1500},
}


def crowd(kind: str, seed: int) -> Spec:
    """Eight tasks with a CPU each read nine times of ten; who has waited for a tick asks for a hand-off."""
    constants = {**CONSTANTS, "rwsem_handoff_wait": TICK}
    rules = {"tick_ns": TICK, "base_slice_ns": TICK, "constants": constants}
    times: Spec = {"think_ns": 200.0, "hold_ns": 300.0, "think_distribution": "exponential"}
    spec = lock_cycle(kind, 8, duration_ns=1e6, readers=0.9, costs=COSTS, kernel=rules, **times)
    return {**spec, "seed": SEED + seed}


@cache
def stalled(kind: str) -> list[int]:
    """Seeds of runs in which nobody can go on."""
    return [seed for seed in SEEDS if json.loads(_engine.run(json.dumps(crowd(kind, seed))))["stall"]]


@pytest.mark.parametrize("kind", ["rwsem-5.3", "rwsem-5.4"])
def test_a_reader_that_leaves_to_spin_can_lose_the_wake_up_of_a_hand_off(kind: str) -> None:
    """The last reader leaves while another one is in the count; that one spins then, and all others sleep."""
    assert stalled(kind)
    _, events = _engine.trace(json.dumps(crowd(kind, stalled(kind)[0])))
    lock = [event for event in events if event[4].startswith("lock#")]
    *_, (left, last, *_) = (event for event in lock if event[3] == "release shared")
    asked = {task: time for time, task, _, what, _ in lock if what == "wait" and time < left and task != last}
    taken = {task: time for time, task, _, what, _ in lock if what.startswith("acquire")}
    came = {task for task, time in asked.items() if time > taken.get(task, 0) and left - time < TICK * 1000}
    slept = {task for time, task, _, what, _ in events if what == "sleep" and time > asked.get(task, left)}
    assert came - slept  # in the count when the last one left
    assert slept  # in the queue, a writer first
    guarded = [event for event in events if event[0] > left and event[4].startswith("lock.wait_lock")]
    assert not [event for event in guarded if event[1] == last]  # it wakes nobody


@pytest.mark.parametrize("kind", ["rwsem-5.11", "rwsem-5.16"])
def test_readers_that_do_not_spin_lose_no_wake_up(kind: str) -> None:
    assert not stalled(kind)


def test_both_machines_lose_the_same_wake_up() -> None:
    spec = crowd("rwsem-5.4", stalled("rwsem-5.4")[0])
    assert assert_same({**spec, "duration_ns": 2e5}) > 500
