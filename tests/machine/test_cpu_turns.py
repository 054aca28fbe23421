"""CPUs that take turns (`cpu.turns`), as those of the laboratory do: when who spins sees that a lock is free."""

from __future__ import annotations

import json

import pytest
from machines import assert_same

from engine import Spec, lock_cycle, rate, simulate
from simfs import _engine

ROUND = 1000
"""ns."""
TASKS = 8


def spec(lock: str, *, turns: bool) -> Spec:
    """A lock cycle of tasks that come at random times, one on each CPU."""
    return lock_cycle(
        lock, TASKS, costs={"cpu_relax": ROUND}, kernel={"rules": {"cpu.turns": turns}}, think_ns=2000.0, hold_ns=300.0,
        think_distribution="exponential", hold_distribution="exponential",
    )  # fmt: skip


def test_who_had_its_turn_before_the_writers_looks_in_the_next_round_and_others_at_once() -> None:
    """After a hold that began in an earlier round; a hold within a turn is met by nobody."""
    waiting: set[int | None] = set()
    released, holder_cpu, began, holds = 0, 0, 0, 0
    at_once = next_round = 0
    for time, who, cpu, what, _ in _engine.trace(json.dumps(spec("tas", turns=True)))[1]:
        begins = released - released % (ROUND * 1000)
        if what == "wait":
            waiting.add(who)
        elif what == "release":
            released, holder_cpu, began = time, cpu, holds
        elif what == "acquire" and who in waiting:
            if began < begins and cpu < holder_cpu:
                next_round += time >= begins + ROUND * 1000
            else:
                at_once += time == released
        if what == "acquire":
            waiting.discard(who)
            holds = time
    assert at_once > 20
    assert next_round > 10


@pytest.mark.parametrize("lock", ["qspinlock", "mcs", "seqlock"])
def test_hand_overs_do_not_wait_for_half_a_round_each(lock: str) -> None:
    """Who waits stands in the order of the CPUs, so that one after the other has the lock in its own turn."""
    assert rate(simulate(spec(lock, turns=True))) > 1.15 * rate(simulate(spec(lock, turns=False)))


@pytest.mark.parametrize("lock", ["qspinlock", "tas", "seqlock", "mutex", "rwsem"])
def test_both_machines_take_the_same_turns(lock: str) -> None:
    assert assert_same(spec(lock, turns=True)) > 100
