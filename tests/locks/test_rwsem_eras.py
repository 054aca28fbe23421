"""What tells the eras of `rw_semaphore` apart: who starves and for how long, and how many readers go together."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import pytest

from engine import CONSTANTS, Spec, lock_cycle, rate, simulate, the_lock
from simfs import _engine
from simfs.results.statistics import jain

REAL = {"context_switch": 1500, "wakeup": 1000, "ipi_deliver": 700, "line_llc": 50, "line_hit": 2}
RANDOM: Spec = {"think_distribution": "exponential", "hold_distribution": "exponential"}
IN_ORDER = ("rwsem-2.6", "rwsem-3.10")
WITHOUT_HANDOFF = ("rwsem-3.16", "rwsem-4.8")
THREADS: Spec = {
    "tick_ns": 1e6,
    "constants": {**CONSTANTS, "rwsem_handoff_wait": 1e6},
    "kernel_threads": {"bound_interval_ns": 5e6, "unbound_interval_ns": 5e6, "run_ns": 5e4},
}
VARIED: Spec = {"think_ns": 200, "hold_distribution": "lognormal", "hold_cv": 0.1}
PHASES = ("rwsem-5.3", "rwsem-5.4", "rwsem-5.11", "rwsem-5.16")


def spinning_writers(kind: str, tasks: int = 8, patience: float = 4e6) -> Spec:
    """Writers that spin and steal, and now and then a long reader that makes all of them sleep."""
    kernel = {"tick_ns": 1e6, "constants": {**CONSTANTS, "rwsem_handoff_wait": patience}}
    return lock_cycle(
        kind,
        tasks,
        warmup_ns=1e7,
        duration_ns=1e9,
        think_ns=1e3,
        hold_ns=6e4,
        readers=0.01,
        costs=REAL,
        kernel=kernel,
        **RANDOM,
    )


def phases(spec: Spec) -> list[int]:
    """How many readers took the lock between two writers, wherever any did."""
    _, trace = _engine.trace(json.dumps(spec))
    taken = [event[3] for event in trace if event[3].startswith("acquire") and event[4].startswith("lock#")]
    return [len(list(run)) for what, run in groupby(taken) if what == "acquire shared"]


def mean_phase(spec: Spec) -> float:
    found = phases(spec)
    return sum(found) / len(found)


@pytest.mark.parametrize("kind", WITHOUT_HANDOFF)
def test_a_sleeper_of_3_16_to_5_2_starves_as_long_as_spinning_writers_come(kind: str) -> None:
    """It has no hand-off, so its patience is of no account."""
    waits = [
        the_lock(simulate(spinning_writers(kind, patience=patience))).wait_max_ns for patience in (1e6, 4e6)
    ]
    assert waits[0] == waits[1] > 5 * 4e6
    assert the_lock(simulate(spinning_writers(kind))).steals > 0


def writers(kind: str, kernel: Spec | None = None, **times: Any) -> Spec:  # noqa: ANN401
    """Eight writers on eight CPUs."""
    return lock_cycle(
        kind, 8, warmup_ns=5e6, duration_ns=5e7, hold_ns=2e3, costs=REAL, kernel=kernel, **times
    )


def test_from_4_8_on_a_spinner_stays_when_another_writer_takes_the_lock() -> None:
    slept = {
        kind: the_lock(simulate(writers(kind, think_ns=1e3, **RANDOM))).slept for kind in WITHOUT_HANDOFF
    }
    assert slept["rwsem-3.16"] > 0
    assert slept["rwsem-4.8"] == 0


def test_kernel_threads_put_spinners_to_sleep_and_without_a_hand_off_most_of_them_stay_asleep() -> None:
    """A thread that takes the owner's CPU makes all who spin on it sleep; who still spins steals from then on."""
    busy = {}
    for kind in ("rwsem-4.8", "rwsem-5.11"):
        undisturbed, disturbed = (simulate(writers(kind, kernel, **VARIED)) for kernel in (None, THREADS))
        assert undisturbed.cpu_ns.idle < 0.01 * 8 * undisturbed.window_ns
        busy[kind] = 8 - disturbed.cpu_ns.idle / disturbed.window_ns
    assert busy["rwsem-4.8"] < 4.5 < busy["rwsem-5.11"]


def test_in_5_3_a_hand_off_sends_all_who_spin_to_sleep() -> None:
    """Kernel threads put one writer to sleep; when it asks for the lock, it is all others' turn."""
    slept = {
        kind: the_lock(simulate(writers(kind, THREADS, **VARIED))).slept
        for kind in ("rwsem-5.3", "rwsem-5.4")
    }
    assert slept["rwsem-5.3"] > 2 * slept["rwsem-5.4"] > 0


def test_the_wait_lock_lies_in_the_line_of_its_lock() -> None:
    locks = {lock.name: lock for lock in simulate(spinning_writers("rwsem-5.11")).locks}
    assert locks["lock.wait_lock"].acquired > 0
    assert locks["lock.wait_lock"].line_transfers == 0
    assert locks["lock"].line_transfers > 0


@pytest.mark.parametrize("patience", [1e6, 4e6, 16e6])
@pytest.mark.parametrize("kind", PHASES)
def test_from_5_3_on_a_sleeper_starves_for_the_handoff_wait_and_no_longer(kind: str, patience: float) -> None:
    lock = the_lock(simulate(spinning_writers(kind, patience=patience)))
    assert lock.steals > 0
    assert (
        patience < lock.wait_max_ns < patience + 3e6
    )  # as many ticks have passed, the last one up to 1 ms later


def test_nobody_steals_a_lock_that_is_granted() -> None:
    result = simulate(spinning_writers("rwsem-2.6"))
    lock = the_lock(result)
    assert lock.steals == 0
    assert lock.resolved_spinning == 0
    assert jain(result.per_task_operations) > 0.999


@pytest.mark.parametrize("kind", IN_ORDER)
def test_to_5_2_as_many_readers_go_together_as_come_in_a_row(kind: str) -> None:
    """However many queue: with half of them readers, 1/(1 - 1/2) = 2 on average where there is one at all."""
    for tasks in (8, 32, 64):
        spec = lock_cycle(kind, tasks, duration_ns=5e7, think_ns=1, hold_ns=1e4, readers=0.5)
        assert mean_phase(spec) == pytest.approx(2, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PHASES)
def test_from_5_3_on_more_readers_go_together_the_more_of_them_queue(kind: str) -> None:
    sizes = [
        mean_phase(lock_cycle(kind, tasks, duration_ns=5e7, think_ns=1, hold_ns=1e5, readers=0.5))
        for tasks in (4, 8, 16, 32, 64)
    ]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 5 * sizes[0]


@pytest.mark.parametrize("tasks", [16, 32])
def test_readers_that_spin_go_in_more_and_smaller_groups_than_readers_that_queue(tasks: int) -> None:
    """To 5.10 a reader that spins at a free lock whose hand-off is marked spins until its CPU is wanted."""
    groups = {
        kind: phases(
            lock_cycle(
                kind,
                tasks,
                duration_ns=2e7,
                think_ns=500,
                hold_ns=2000,
                readers=0.5,
                costs=REAL,
                kernel={"kernel_threads": THREADS["kernel_threads"]},
                **RANDOM,
            )
        )
        for kind in PHASES
    }
    spinning, queueing = groups["rwsem-5.4"], groups["rwsem-5.11"]
    assert len(spinning) > len(queueing)
    assert sum(spinning) / len(spinning) < sum(queueing) / len(queueing)


@pytest.mark.parametrize("kind", [*WITHOUT_HANDOFF, *PHASES])
def test_the_first_waiter_that_takes_its_turn_steals_nothing(kind: str) -> None:
    """On an ideal machine who is woken runs at once, so nobody comes before it; others wait behind it."""
    spec = lock_cycle(kind, 4, duration_ns=1e8, think_ns=1e5, hold_ns=1e5, readers=0.3, think="sleep")
    lock = the_lock(simulate(spec))
    assert lock.slept > 200
    assert lock.steals == 0


def test_short_sections_gain_by_spinning_readers() -> None:
    rates = {
        kind: rate(
            simulate(
                lock_cycle(
                    kind, 16, duration_ns=2e7, think_ns=500, hold_ns=200, readers=0.5, costs=REAL, **RANDOM
                )
            )
        )
        for kind in PHASES
    }
    assert rates["rwsem-5.4"] > 1.2 * rates["rwsem-5.11"]


def test_time_held_shared_is_that_of_all_readers_together() -> None:
    """Constant holds of 5 us: as many shared ones as there were readers, and the exclusive ones apart.

    The hold of a reader that sleeps begins when it is granted; with these times few sleep.
    """
    spec = lock_cycle("rwsem-5.11", 8, duration_ns=2e7, think_ns=1.5e4, hold_ns=5e3, readers=0.8, costs=REAL)
    lock = the_lock(simulate(spec))
    assert 0.5 < lock.acquired_shared / lock.acquired < 0.9
    assert lock.hold_shared_total_ns / lock.acquired_shared == pytest.approx(5e3, rel=0.25)
    exclusive = lock.acquired - lock.acquired_shared
    assert lock.hold_total_ns / exclusive == pytest.approx(5e3, rel=0.25)
