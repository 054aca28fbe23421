"""Moments at locks that runs seldom come by: made by hand, or in runs whose constants make them common."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from machines import ALL, assert_same
from python_programs import Program, simulate, spec

from engine import CONSTANTS, Spec, lock_cycle, one_lock
from simfs import _engine
from simfs._engine import Device, Lock, Machine, Task
from simfs.machine.locks.kinds import KINDS


def moments(lock: str, tasks: int) -> Spec:
    """A run of 300 us from its beginning, on a CPU for each task."""
    return spec(lock, tasks, warmup_ns=0, duration_ns=3e5)


def sleeps(worker: Callable[[Task], Program], of: int, given: Spec) -> int:
    """How often a task has gone to sleep in a run."""
    _, events = _engine.trace(json.dumps(given), worker, one_lock)
    return sum(task == of and what == "sleep" for _, task, _, what, _ in events)


def test_the_first_waiter_of_a_mutex_that_finds_it_stolen_spins_and_does_not_sleep_again() -> None:
    """It sleeps as the owner does; woken at 100 us it finds the owner with the mutex again, running until 130 us."""

    def worker(task: Task) -> Program:
        if task.number == 0:
            yield task.lock(task.shared)
            yield task.sleep(100_000)
            yield task.unlock(task.shared)
            yield task.lock(task.shared)
            yield task.run(30_000, "system")
        else:
            yield task.run(10_000)
            yield task.lock(task.shared)
        yield task.unlock(task.shared)

    assert_same(moments("mutex", 2), worker, one_lock)
    assert sleeps(worker, 1, moments("mutex", 2)) == 1


def lock_and_device(machine: Machine) -> tuple[Lock, Device]:
    return machine.new_lock("lock"), machine.new_device(interrupt=0)


@pytest.mark.parametrize(("somebody_asks", "gets_it"), [(True, False), (False, True)])
def test_a_trylock_does_not_take_a_semaphore_past_its_inner_lock(somebody_asks: bool, gets_it: bool) -> None:
    """An interrupt frees it at 5 us, while who asked at 4.99 us has the inner spinlock and is about to take it."""
    got: list[Any] = []

    def worker(task: Task) -> Program:
        semaphore, device = task.shared
        if task.number == 0:
            yield task.lock(semaphore)
            yield task.submit(device, 5000, release=semaphore)
        elif task.number == 2:
            yield task.run(5010)
            got.append((yield task.try_lock(semaphore)))
        elif somebody_asks:
            yield task.run(4990)
            yield task.lock(semaphore)

    simulate(worker, lock_and_device, moments("semaphore", 3))
    assert got == [gets_it]
    assert_same(moments("semaphore", 3), worker, lock_and_device)


RANDOM: Spec = {"think_distribution": "exponential", "hold_distribution": "exponential"}
COSTS = {"line_hit": 2, "line_llc": 50, "context_switch": 1500, "wakeup": 1000, "ipi_deliver": 700}


@pytest.mark.slow
@pytest.mark.parametrize("batch", [2, 256])
@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"mutex", "rwsem"}))
def test_both_machines_agree_where_waiters_lose_patience_soon(kind: str, batch: int) -> None:
    """More tasks than CPUs, a tick of 10 us, and sleepers ask for a hand-off after one; few readers go together."""
    constants = {"rwsem_handoff_wait": 1e4, "rwsem_reader_batch_max": batch, "percpu_rwsem_grace_period": 2e4}
    constants |= {"numa_spinlock_threshold": 5e3}
    kernel = {"tick_ns": 1e4, "base_slice_ns": 3e4, "constants": {**CONSTANTS, **constants}}
    reads = kind.startswith(("rw", "qrw", "percpu", "btrfs-tree-3"))
    given = lock_cycle(
        kind,
        8,
        6,
        duration_ns=3e5,
        costs=COSTS,
        kernel=kernel,
        readers=0.5 * reads,
        think_ns=3e3,
        hold_ns=3e3,
        **RANDOM,
    )
    assert assert_same(given, most=ALL) > 500


@pytest.mark.slow
@pytest.mark.parametrize("slices", [(1e4, 3e4), (1e5, 3e3)], ids=["short ticks", "short slices"])
@pytest.mark.parametrize("groups", ["none", "autogroup", "cgroup"])
@pytest.mark.parametrize("newer", [True, False])
def test_both_machines_agree_where_slices_end_soon(
    slices: tuple[float, float], groups: str, newer: bool
) -> None:
    """Many tasks and kernel threads on three CPUs; a tick is shorter than a slice, or longer than several."""
    rules = {
        "sched.groups": groups,
        "sched.run_to_parity": newer,
        "sched.delay_dequeue": newer,
        "sched.place_deadline_initial": True,
        "sched.place_rel_deadline": newer,
        "sched.preempt_short": newer,
    }
    threads = {"bound_interval_ns": 5e4, "unbound_interval_ns": 5e4, "run_ns": 5e3}
    kernel = {"tick_ns": slices[0], "base_slice_ns": slices[1], "rules": rules, "kernel_threads": threads}
    given = lock_cycle(
        "mutex", 8, 3, duration_ns=6e5, costs=COSTS, kernel=kernel, think_ns=3e3, hold_ns=2e3, **RANDOM
    )
    assert assert_same(given, most=ALL) > 500
