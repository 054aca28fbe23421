"""The btrfs tree lock before it became an rwsem: spinning and blocking holders, polls, and who is woken."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from engine import Spec, lock_cycle, rate, simulate, the_lock
from simfs import _engine
from simfs._engine import Machine, Step, Task

WAKE = {"context_switch": 1500, "wakeup": 1000, "ipi_deliver": 700}
POLLS = 512
GENERATION_3 = ("btrfs-tree-3-biased", "btrfs-tree-3")
RANDOM: dict[str, Any] = {"think_distribution": "exponential", "hold_distribution": "exponential"}


def one_round(lock: str, tasks: int, hold: float = 1e6, **params: Any) -> Spec:  # noqa: ANN401
    """Everybody asks at the same moment and takes the lock once within the run."""
    think = 2 * hold * (tasks + 1)
    return lock_cycle(
        lock, tasks, duration_ns=2 * think - 1, think_ns=think, hold_ns=hold, blocking=1.0, **params
    )


@pytest.mark.parametrize("waiters", [1, 4, 16, 64])
def test_generation_2_wakes_one_sleeper_at_each_release(waiters: int) -> None:
    lock = the_lock(simulate(one_round("btrfs-tree-2", waiters + 1, costs=WAKE)))
    assert lock.acquired == waiters + 1
    assert lock.slept == lock.wakeups == waiters


def test_waiters_for_a_spinning_holder_of_generation_2_spin() -> None:
    spec = lock_cycle("btrfs-tree-2", 8, duration_ns=1e7, think_ns=1e4, hold_ns=1e5, costs=WAKE)
    result = simulate(spec)
    lock = the_lock(result)
    assert lock.slept == lock.wakeups == 0
    assert lock.resolved_spinning == lock.contended > 0
    assert rate(result) == pytest.approx(1 / 1e5, rel=0.02)


@pytest.mark.parametrize(("share", "sleeps"), [(0.5, False), (2.0, True)])
def test_a_waiter_of_generation_2_polls_a_blocking_holder_512_times_and_then_sleeps(
    share: float, sleeps: bool
) -> None:
    poll = 20.0
    costs = WAKE | {"line_hit": 2, "cpu_relax": poll - 2}
    spec = one_round("btrfs-tree-2", 2, hold=share * POLLS * poll, costs=costs)
    lock = the_lock(simulate(spec))
    assert lock.contended == 1
    assert lock.slept == int(sleeps)


def test_a_release_to_a_sleeper_of_generation_2_is_a_hint_that_others_may_beat() -> None:
    """Everybody else is faster than the woken sleeper, so throughput does not fall to hold plus wake-up."""
    spec = lock_cycle(
        "btrfs-tree-2",
        8,
        warmup_ns=1e6,
        duration_ns=1e7,
        think_ns=100,
        hold_ns=2000,
        blocking=1.0,
        costs=WAKE,
    )
    result = simulate(spec)
    assert the_lock(result).slept > 0
    assert 1 / rate(result) < 2000 + 1500


def test_a_blocking_holder_may_sleep_for_a_second_lock_and_a_spinning_one_never_does() -> None:
    spec = lock_cycle(
        "btrfs-tree-2", 4, duration_ns=1e8, think_ns=1e5, hold_ns=1e4, locks=2, costs=WAKE, **RANDOM
    )
    result = simulate(spec)
    assert next(law for law in result.laws if law.law == "no sleep while atomic").ok
    assert result.stall is None
    assert min(result.per_task_operations) > 0


# ---- generation 3 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("waiters", [1, 4, 16, 64])
@pytest.mark.parametrize("kind", GENERATION_3)
def test_generation_3_wakes_everybody_again_at_each_release(kind: str, waiters: int) -> None:
    """Each of n waiters goes blocking in turn and sends the others back to sleep: n(n+1)/2 wake-ups."""
    lock = the_lock(simulate(one_round(kind, waiters + 1, costs=WAKE)))
    assert lock.acquired == waiters + 1
    assert lock.slept == waiters
    assert lock.wakeups == waiters * (waiters + 1) // 2


def test_switches_for_an_acquisition_grow_with_the_waiters_in_generation_3_and_not_in_generation_2() -> None:
    switches = {
        kind: [simulate(one_round(kind, tasks, costs=WAKE)).context_switches / tasks for tasks in (5, 17, 65)]
        for kind in ("btrfs-tree-2", "btrfs-tree-3")
    }
    assert max(switches["btrfs-tree-2"]) - min(switches["btrfs-tree-2"]) < 1
    small, middle, large = switches["btrfs-tree-3"]
    assert middle - small > 5
    assert large - middle > 20


@pytest.mark.parametrize("kind", GENERATION_3)
def test_waiters_for_a_spinning_holder_of_generation_3_spin_and_nobody_is_woken(kind: str) -> None:
    spec = lock_cycle(kind, 8, duration_ns=1e7, think_ns=1e4, hold_ns=1e5, costs=WAKE, readers=0.3)
    result = simulate(spec)
    lock = the_lock(result)
    assert lock.slept == lock.wakeups == 0
    assert lock.resolved_spinning == lock.contended > 0


@pytest.mark.parametrize("kind", GENERATION_3)
def test_the_newest_sleeper_of_generation_3_goes_first(kind: str) -> None:
    """The order in which they went to sleep is that in which they saw the count."""
    spec = one_round(kind, 6, costs=WAKE | {"line_llc": 50, "line_hit": 1})
    _, trace = _engine.trace(json.dumps(spec))
    asked = [event[1] for event in trace if event[3:] == ("sleep", "")][:5]
    served = [event[1] for event in trace if event[3] == "acquire" and event[4].startswith("lock#")]
    assert len(asked) == 5
    assert served[1] == asked[-1]


@pytest.mark.parametrize("kind", GENERATION_3)
def test_blocking_readers_of_generation_3_hold_it_together_and_keep_writers_out(kind: str) -> None:
    alone = lock_cycle(kind, 8, duration_ns=1e7, think_ns=1e3, hold_ns=1e4, readers=1.0, blocking=1.0)
    assert the_lock(simulate(alone)).contended == 0
    mixed = lock_cycle(
        kind,
        8,
        duration_ns=1e8,
        think_ns=2e4,
        hold_ns=1e4,
        readers=0.7,
        blocking=0.5,
        costs=WAKE,
        **RANDOM,
    )
    result = simulate(mixed)  # the law of mutual exclusion holds
    assert min(result.per_task_operations) > 0
    assert rate(result) > 1.1 / 1e4


# ---- the trylock of searches -----------------------------------------------------------------------------


def attempt(lock: str, blocking_after: float | None) -> tuple[bool, float]:
    """One task holds a lock from 0 to 100 us, another tries at 8 us: whether it got it, and when it knew."""
    came_to: list[tuple[bool, float]] = []

    def holder(task: Task) -> Generator[Step, Any, None]:
        yield task.lock(task.shared)
        if blocking_after is not None:
            yield task.run(blocking_after)
            yield task.convert(task.shared, "blocking")
        yield task.run(100_000 - (blocking_after or 0))
        yield task.unlock(task.shared)

    def worker(task: Task) -> Generator[Step, Any, None]:
        if task.number == 0:
            yield from holder(task)
            return
        yield task.sleep(8_000)
        taken = yield task.try_lock_spinning(task.shared)
        came_to.append((taken, task.now))
        if taken:
            yield task.unlock(task.shared)

    def setup(machine: Machine) -> object:
        return machine.new_lock("lock")

    spec = lock_cycle(lock, 2, costs=WAKE | {"line_hit": 2, "line_llc": 23, "cpu_relax": 18})
    spec["workload"] = {"kind": "python", "tasks": 2, "params": {}}
    result = json.loads(_engine.run(json.dumps(spec), worker, setup))
    assert [law for law in result["laws"] if not law["ok"]] == []
    return came_to[0]


@pytest.mark.parametrize("kind", ["btrfs-tree-2", *GENERATION_3])
def test_a_trylock_of_a_search_waits_for_a_holder_that_spins(kind: str) -> None:
    taken, at = attempt(kind, None)
    assert taken
    assert 100_000 < at < 102_000


@pytest.mark.parametrize(("kind", "longest"), [("btrfs-tree-2", POLLS * 20 + 1000), ("btrfs-tree-3", 1000)])
def test_a_trylock_of_a_search_fails_against_a_holder_that_blocks(kind: str, longest: float) -> None:
    """In generation 2 only after it has polled the bit for its 512 times."""
    taken, at = attempt(kind, 1_000)
    assert not taken
    assert at < 8_000 + 3_000 + longest


@pytest.mark.parametrize("kind", GENERATION_3)
def test_a_trylock_of_a_search_fails_when_the_holder_it_spins_for_turns_to_blocking(kind: str) -> None:
    taken, at = attempt(kind, 50_000)
    assert not taken
    assert 50_000 < at < 52_000


def test_a_trylock_of_a_lock_without_modes_waits_for_nobody() -> None:
    taken, at = attempt("mutex", None)
    assert not taken
    assert at < 12_000
