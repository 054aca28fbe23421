"""The same spec gives the same bytes; random streams belong to names, so a change in one place leaves others alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from engine import Spec, answer, lock_cycle, replicate, scenario_spec, simulate

RANDOM: dict[str, Any] = {"think_distribution": "exponential", "hold_distribution": "lognormal"}


def busy(lock: str = "mutex", tasks: int = 6, cpus: int = 4) -> Spec:
    costs = {"context_switch": 1500, "wakeup": 1000, "line_llc": 50}
    return lock_cycle(lock, tasks, cpus, duration_ns=5e6, think_ns=2000, hold_ns=500, costs=costs, **RANDOM)


def undisturbed(lock: str, tasks: int = 1) -> Spec:
    """Tasks on CPUs of their own and a lock that nobody waits for: only the draws decide who does how much."""
    return lock_cycle(lock, tasks, duration_ns=5e6, think_ns=2000, hold_ns=500, readers=1.0, **RANDOM)


@pytest.mark.parametrize("lock", ["tas", "ticket", "qspinlock", "semaphore", "mutex", "rwsem"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_same_spec_gives_the_same_bytes(lock: str, shuffle: bool) -> None:
    spec = busy(lock) | {"shuffle_ties": shuffle}
    assert answer(spec) == answer(spec)


def test_the_same_file_workload_gives_the_same_bytes() -> None:
    spec = scenario_spec("compile-24", "xfs", "sweep.workload.tasks=[24]", warmup_ns=0, duration_ns=1e8)
    assert answer(spec) == answer(spec)


def test_runs_beside_each_other_do_not_disturb_each_other() -> None:
    specs = [replicate(busy(), number) for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(answer, specs)) == [answer(spec) for spec in specs]


def test_replications_and_seeds_differ() -> None:
    spec = busy()
    assert len({answer(spec), answer(spec | {"replication": 1}), answer(spec | {"seed": 2})}) == 3


@pytest.mark.parametrize("lock", ["tas", "ticket", "qspinlock", "semaphore", "mutex", "percpu-rwsem"])
def test_the_kind_of_lock_leaves_the_draws_of_a_task_alone(lock: str) -> None:
    other, rwsem = simulate(undisturbed(lock)), simulate(undisturbed("rwsem"))
    assert other.batch_operations == rwsem.batch_operations
    assert other.latency == rwsem.latency
    assert other.cpu_ns == rwsem.cpu_ns


def test_further_tasks_leave_the_draws_of_the_others_alone() -> None:
    few, many = simulate(undisturbed("rwsem", 2)), simulate(undisturbed("rwsem", 6))
    assert many.per_task_operations[:2] == few.per_task_operations
    assert len(set(many.per_task_operations)) > 1


def test_a_longer_warmup_shifts_the_same_history() -> None:
    whole = simulate(busy() | {"duration_ns": 4e6, "batches": 4})
    later = simulate(busy() | {"warmup_ns": 2e6, "duration_ns": 2e6, "batches": 2})
    assert later.batch_operations == whole.batch_operations[2:]
