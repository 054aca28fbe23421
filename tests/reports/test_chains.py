"""Why everybody waits: chains by hand, the law that they add up, and what it does to a run that they are recorded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest
from generated.scenarios import Drawn, lock_scenarios
from hypothesis import given, settings
from machines import assert_same
from places import DATA

from engine import Spec, lock_cycle, scenario_spec
from simfs import _engine
from simfs import machine as reference
from simfs._engine import Histogram, Lock, Machine, Step, Task
from simfs.machine.chains import ADD_UP
from simfs.results.chains import Why
from simfs.results.run_result import Link, RunResult

Program = Generator[Step, Any, None]

US = 1_000


def spec(tasks: int = 3, **changes: Any) -> Spec:  # noqa: ANN401
    made = lock_cycle("semaphore", tasks, duration_ns=200 * US) | changes
    return made | {"chains": True, "workload": {"kind": "python", "tasks": tasks, "params": {}}}


def two_locks(machine: Machine) -> tuple[Lock, Lock]:
    return machine.new_lock("x", "lock"), machine.new_lock("y", "lock")


def three(task: Task) -> Program:
    """`a` sleeps with x till 100 us; `b` has y from 10 us on, wants x, runs for 50 us; `c` wants y at 20 us."""
    x, y = task.shared
    yield task.at("abc"[task.id])
    if task.id == 0:
        yield task.lock(x)
        yield task.sleep(100 * US)
        yield task.unlock(x)
    elif task.id == 1:
        yield task.sleep(10 * US)
        yield task.lock(y)
        yield task.lock(x)
        yield task.run(50 * US, "system")
        yield task.unlock(x)
        yield task.unlock(y)
    else:
        yield task.sleep(20 * US)
        yield task.lock(y)
        yield task.unlock(y)
    yield task.sleep(1000 * US)


def test_a_circle_of_waits_is_cut_where_it_comes_back() -> None:
    """Virtual CPUs take two locks in opposite orders; the host preempts them, so this is no stall. Drawn at random, it
    was told differently by the machines."""
    drawn = json.loads((DATA / "circle_of_waits.json").read_text())
    assert_same(drawn)
    chains = RunResult.read(_engine.run(json.dumps(drawn | {"chains": True}))).chains
    assert chains is not None
    assert {(len(wait.links), wait.reason) for wait in chains.waits} == {(1, "preempted"), (2, "farther")}


@pytest.mark.parametrize("run", [_engine.run, reference.run])
def test_three_tasks_and_two_locks_wait_as_computed_by_hand(run: Any) -> None:  # noqa: ANN401
    result = RunResult.read(run(json.dumps(spec()), three, two_locks))
    assert result.chains is not None
    found = {(chain.waiter, chain.links, chain.reason): chain.wait_ns for chain in result.chains.waits}
    x, y = Link(lock="x", side="", holder="a"), Link(lock="y", side="", holder="b")
    assert found == {
        ("b", (x,), "timer"): 90 * US,  # from 10 to 100 us
        ("c", (y, x), "timer"): 80 * US,  # from 20 to 100 us
        ("c", (y,), "running"): 50 * US,  # from 100 to 150 us
    }
    held = {(had.lock, had.holder, had.reason, had.waits_for): had.time_ns for had in result.chains.holders}
    assert held == {
        ("x", "a", "timer", ""): 90 * US,
        ("y", "b", "lock", "x"): 80 * US,
        ("y", "b", "running", ""): 50 * US,
    }


def reader_behind_a_writer(task: Task) -> Program:
    """`w` writes for 100 us; `r` wants to read from 10 us on, is given the lock in its sleep and must be woken."""
    (x,) = task.shared
    yield task.at("wr"[task.id])
    if task.id == 0:
        yield task.lock(x)
        yield task.run(100 * US, "system")
        yield task.unlock(x)
    else:
        yield task.sleep(10 * US)
        yield task.lock(x, "read")
        yield task.unlock(x, "read")
    yield task.sleep(1000 * US)


@pytest.mark.parametrize("run", [_engine.run, reference.run])
def test_a_reader_that_is_being_woken_does_not_wait_for_readers(run: Any) -> None:  # noqa: ANN401
    rwsem = lock_cycle("rwsem", 2, duration_ns=200 * US, costs={"context_switch": 5 * US})
    made = rwsem | {"chains": True, "workload": spec(2)["workload"]}
    result = RunResult.read(
        run(json.dumps(made), reader_behind_a_writer, lambda m: [m.new_lock("x", "lock")])
    )
    assert result.chains is not None
    found = {
        (link.holder, chain.reason): chain.wait_ns for chain in result.chains.waits for link in chain.links
    }
    assert set(found) == {("w", "running"), ("r", "granted")}
    assert found["w", "running"] == pytest.approx(85 * US, rel=0.01)  # from 15 us, when it runs again, to 100
    assert found["r", "granted"] == pytest.approx(5 * US, rel=0.1)  # the switch to it


@settings(max_examples=15)
@given(lock_scenarios())
def test_the_chains_of_any_locks_add_up_to_their_waits(drawn: Drawn) -> None:
    run = RunResult.read(_engine.run(json.dumps(drawn.spec() | {"chains": True})))
    assert [law for law in run.laws if not law.ok] == []
    assert ADD_UP in [law.law for law in run.laws]
    assert run.chains is not None
    sums: Counter[str] = Counter()
    for chain in run.chains.waits:
        sums[chain.links[0].lock] += round(chain.wait_ns * 1000)
    for lock in run.locks:
        if run.stall is None and not lock.still_waiting:
            assert sums[lock.name] == round(lock.wait_total_ns * 1000)


@pytest.mark.parametrize("run", [_engine.run, reference.run])
def test_holds_last_as_computed_by_hand(run: Any) -> None:  # noqa: ANN401
    """`a` has x for 100 us and `b` for 50; y is held from 10 to 150 us, then for no time."""
    result = RunResult.read(run(json.dumps(spec()), three, two_locks))
    found = {of.lock: of for of in Why.of("a", "a", [result]).lasted()}
    x, y = found["x"], found["y"]
    assert (x.holds, y.holds) == (2, 2)
    assert x.p50_ns == pytest.approx(50 * US, rel=0.01)
    assert x.max_ns == pytest.approx(100 * US, rel=0.01)
    assert y.max_ns == pytest.approx(140 * US, rel=0.01)
    assert y.longest_percent == pytest.approx(100 * 0.02, rel=0.01)  # a fiftieth of one of the two holds


def test_the_longest_hundredth_of_holds_may_make_half_of_the_time() -> None:
    histogram = Histogram(3)
    for _ in range(99):
        histogram.record(1_000)
    histogram.record(99_000)
    assert histogram.share_of_largest(1) == pytest.approx(0.5, rel=0.01)
    assert histogram.share_of_largest(100) == pytest.approx(1)
    assert Histogram(3).share_of_largest(1) == 0


def test_it_changes_nothing_else_that_chains_are_recorded() -> None:
    plain = scenario_spec("compile-24", "xfs", "workload.tasks=24", warmup_ns=1e8, duration_ns=1e8)
    without, recorded = (json.loads(_engine.run(json.dumps(plain | {"chains": on}))) for on in (False, True))
    assert "chains" not in without
    assert recorded.pop("chains")["waits"]
    recorded["laws"].remove({"law": ADD_UP, "ok": True, "detail": ""})
    assert recorded == without


def test_a_chain_of_many_locks_is_cut() -> None:
    """Task n has lock n and waits for lock n - 1; task 0 sleeps."""

    def setup(machine: Machine) -> list[Lock]:
        return [machine.new_lock(f"lock {number}", "lock") for number in range(12)]

    def program(task: Task) -> Program:
        locks = task.shared
        yield task.sleep(task.id * US)
        yield task.lock(locks[task.id])
        if task.id:
            yield task.lock(locks[task.id - 1])
        yield task.sleep(1000 * US)

    made = spec(12)
    assert_same(made, program, setup)
    run = RunResult.read(_engine.run(json.dumps(made), program, setup))
    assert run.chains is not None
    longest = max(run.chains.waits, key=lambda chain: len(chain.links))
    assert len(longest.links) == 9
    assert {chain.reason for chain in run.chains.waits} == {"timer", "farther"}


def sleepers(task: Task) -> Program:
    """`a` sleeps with x till 100 us, `b` waits for x; then both sleep until the end."""
    (x,) = task.shared
    yield task.at("ab"[task.id])
    if task.id == 0:
        yield task.lock(x)
        yield task.sleep(100 * US)
        yield task.unlock(x)
    else:
        yield task.lock(x)
        yield task.unlock(x)
    yield task.sleep(1000 * US)


@pytest.mark.parametrize("run", [_engine.run, reference.run])
def test_sleeps_without_a_lock_are_told_apart_from_waits(run: Any) -> None:  # noqa: ANN401
    """A holder's sleep is one; who sleeps for x is in a chain and in no sleep."""
    result = RunResult.read(run(json.dumps(spec(2)), sleepers, lambda m: [m.new_lock("x", "lock")]))
    assert result.chains is not None
    found = {(slept.sleeper, slept.reason): slept.time_ns for slept in result.chains.sleeps}
    assert found == {("a", "timer"): 200 * US, ("b", "timer"): 100 * US}
    assert sum(chain.wait_ns for chain in result.chains.waits) == 100 * US
    assert Why.of("a", "a", [result]).sleeps == result.chains.sleeps
