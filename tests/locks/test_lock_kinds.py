"""Semaphores that count, seqlocks, RCU, locks that stay on a socket, and the queued spinlock of guests: their rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import assert_same
from places import ROOT

from engine import CONSTANTS, Spec, lock_cycle, rate, simulate, the_lock
from simfs import _engine
from simfs.machine.recorder import Event
from simfs.results.statistics import jain
from simfs.scenario import ScenarioError, load

REAL = {"context_switch": 1500, "wakeup": 1000, "ipi_deliver": 700, "line_llc": 50, "line_hit": 2}
RANDOM: dict[str, Any] = {"think_distribution": "exponential", "hold_distribution": "exponential"}
SOCKETS = {"line_smt": 10, "line_llc": 20, "line_socket": 20, "line_remote": 120}


def events(spec: Spec) -> list[Event]:
    _, trace = _engine.trace(json.dumps(spec))
    return list(trace)


def with_constants(spec: Spec, **constants: float) -> Spec:
    spec["kernel"]["constants"] = {**CONSTANTS, **constants}
    return spec


def inside(trace: list[Event]) -> Iterator[int]:
    """How many are inside after each acquisition and release of the lock itself."""
    steps = {"acquire": 1, "acquire shared": 1, "release": -1, "release shared": -1}
    now = 0
    for _, _, _, what, about in trace:
        if what in steps and about.startswith("lock#"):
            now += steps[what]
            yield now


# ---- counting semaphores ---------------------------------------------------------------------------------


def counting(count: int, tasks: int = 12, **params: Any) -> Spec:  # noqa: ANN401
    given: dict[str, Any] = {"think_ns": 500, "hold_ns": 2000, "costs": REAL, **RANDOM} | params
    spec = lock_cycle("counting-semaphore", tasks, duration_ns=1e6, **given)
    return with_constants(spec, semaphore_count=count)


@pytest.mark.parametrize("count", [1, 3, 7])
def test_so_many_hold_a_counting_semaphore_and_no_more(count: int) -> None:
    assert max(inside(events(counting(count)))) == count


def test_a_counting_semaphore_of_one_is_a_semaphore() -> None:
    spec = counting(1)
    binary = json.loads(json.dumps(spec).replace("counting-semaphore", "semaphore"))
    assert rate(simulate(spec)) == rate(simulate(binary))


def test_nobody_waits_for_a_counting_semaphore_of_as_many_as_there_are() -> None:
    lock = the_lock(simulate(counting(12, think_ns=20_000)))
    assert lock.slept == lock.handoffs == 0
    assert lock.acquired > 0


# ---- seqlock ---------------------------------------------------------------------------------------------


def test_readers_of_a_seqlock_share_its_line_and_move_nothing() -> None:
    spec = lock_cycle(
        "seqlock", 8, warmup_ns=1e5, duration_ns=1e6, think_ns=50, hold_ns=50, readers=1.0, costs=REAL
    )
    lock = the_lock(simulate(spec))
    assert lock.line_transfers == lock.contended == 0
    assert lock.acquired == pytest.approx(8 * 1e6 / (50 + 50 + 2 * REAL["line_hit"]), rel=0.01)


def seqlock(readers: float) -> Spec:
    return lock_cycle(
        "seqlock", 8, duration_ns=5e6, think_ns=2e4, hold_ns=1e3, readers=readers, costs=REAL, **RANDOM
    )


def test_a_writer_of_a_seqlock_waits_for_writers_only() -> None:
    """As a spinlock without the readers: it is held a fifth of the time by them, and no write waits for that."""
    written = [_writes(seqlock(readers)) for readers in (0.0, 0.9)]
    assert written[1][0] == pytest.approx(0.1 * written[0][0], rel=0.3)
    assert written[1][1] < 0.3 * written[0][1]


def _writes(spec: Spec) -> tuple[int, float]:
    """How many writes, and which share of them waited for the spinlock."""
    spinlock = the_lock(simulate(spec), "lock.lock")
    return spinlock.acquired, spinlock.contended / spinlock.acquired


def test_a_read_that_a_write_comes_into_is_done_again() -> None:
    result = simulate(seqlock(0.5))
    again = the_lock(result).acquired - result.operations
    assert 0.02 * result.operations < again < 0.5 * result.operations
    assert the_lock(result).contended >= again * 0.5


def test_reads_are_done_once_where_nobody_writes() -> None:
    result = simulate(seqlock(1.0))
    assert abs(the_lock(result).acquired - result.operations) <= 8


def test_a_reader_who_only_waits_for_an_even_sequence_does_not_look_again() -> None:
    """As `path_init`: a writer who comes while the reader still pays for the line makes it repeat nothing."""
    result = simulate(
        lock_cycle("seqlock", 8, duration_ns=5e6, think_ns=2e3, hold_ns=0, readers=0.5, costs=REAL, **RANDOM)
    )
    assert abs(the_lock(result).acquired - result.operations) <= 8


# ---- RCU -------------------------------------------------------------------------------------------------


def rcu(grace: float, **params: Any) -> Spec:  # noqa: ANN401
    return with_constants(lock_cycle("rcu", **params), percpu_rwsem_grace_period=grace)


def test_readers_under_rcu_cost_nothing_and_wait_for_nobody() -> None:
    spec = rcu(1e5, tasks=8, duration_ns=1e6, think_ns=50, hold_ns=50, readers=1.0, costs=REAL)
    result = simulate(spec)
    assert result.operations == pytest.approx(8 * 1e4, rel=0.002)
    assert the_lock(result).contended == the_lock(result).line_transfers == 0


def test_an_updater_waits_for_a_grace_period_after_its_update() -> None:
    result = simulate(rcu(1e5, tasks=1, duration_ns=1e7, think_ns=1e4, hold_ns=1e3))
    assert result.operations == 1e7 // (1e4 + 1e3 + 1e5)
    assert the_lock(result).hold_total_ns == pytest.approx(1e3 * result.operations, rel=0.02)


def test_updaters_share_grace_periods() -> None:
    """Each waits for the rest of the one under way and for the next: two periods at most, however many they are."""
    result = simulate(rcu(1e5, tasks=16, duration_ns=1e7, think_ns=1e3, hold_ns=100, cpus=16))
    assert 16 * 1e7 / 2.1e5 - 16 <= result.operations <= 16 * 1e7 / 1e5
    assert jain(result.per_task_operations) > 0.99


def test_a_grace_period_lasts_until_readers_that_were_there_have_left() -> None:
    spec = rcu(1e4, tasks=3, duration_ns=5e6, think_ns=1e4, hold_ns=2e5, readers=0.7, **RANDOM)
    trace, readers = events(spec), dict[int | None, int]()
    updates = 0
    for n, (time, who, _, what, about) in enumerate(trace):
        if not about.startswith("lock#"):
            continue
        if what == "acquire shared":
            readers[who] = time
        elif what == "release shared":
            readers.pop(who)
        elif what == "release":
            ends = next((at for at, task, _, done, _ in trace[n:] if (task, done) == (who, "end")), None)
            left = [
                next(
                    (at for at, task, _, done, _ in trace[n:] if (task, done) == (reader, "release shared")),
                    None,
                )
                for reader in readers
            ]
            assert ends is None or all(at is not None and at <= ends for at in left)
            updates += bool(ends and left)
    assert updates > 3


# ---- locks that stay on a socket -------------------------------------------------------------------------


def sockets(lock: str, count: int, **constants: float) -> Spec:
    """So saturated that the tasks of one socket alone never let the queue run empty."""
    spec = lock_cycle(
        lock, 16, warmup_ns=1e6, duration_ns=3e6, think_ns=50, hold_ns=200, costs=SOCKETS, **RANDOM
    )
    spec["machine"] |= {"cpus_per_llc": 16 // count, "cpus_per_socket": 16 // count}
    return with_constants(spec, **constants)


def stays(spec: Spec) -> list[int]:
    """How many holders in a row are of one socket, each time."""
    own: int = spec["machine"]["cpus_per_socket"]
    at = [cpu // own for time, _, cpu, what, _ in events(spec) if what == "acquire" and time > 1e9]
    return [len(list(run)) for _, run in groupby(at)][1:-1]


@pytest.mark.parametrize("lock", ["cohort", "hmcs"])
@pytest.mark.parametrize("most", [0, 5, 64])
def test_a_cohort_lock_leaves_a_socket_after_so_many_hand_offs(lock: str, most: int) -> None:
    assert set(stays(sockets(lock, 2, cohort_handoffs=most))) == {most + 1}


@pytest.mark.parametrize("lock", ["cohort", "hmcs"])
@pytest.mark.parametrize("count", [2, 4])
def test_locks_that_stay_on_a_socket_are_faster_across_sockets_and_fair(lock: str, count: int) -> None:
    near, stock = (simulate(sockets(kind, count)) for kind in (lock, "qspinlock"))
    assert rate(near) > 1.15 * rate(stock)
    assert jain(near.per_task_operations) > 0.98


def test_hmcs_on_one_socket_is_an_mcs_lock() -> None:
    hmcs, mcs = (rate(simulate(sockets(lock, 1, cohort_handoffs=1e6))) for lock in ("hmcs", "mcs"))
    assert hmcs == pytest.approx(mcs, rel=0.02)


def test_sockets_have_a_cohort_lock_in_turn() -> None:
    spec = sockets("hmcs", 4, cohort_handoffs=3)
    at = [cpu // 4 for time, _, cpu, what, _ in events(spec) if what == "acquire" and time > 1e9]
    turns = [socket for socket, _ in groupby(at)]
    assert {tuple(sorted(turns[n : n + 4])) for n in range(1, len(turns) - 5)} == {(0, 1, 2, 3)}


def busy(lock: str, **constants: float) -> Spec:
    """A lock whose queue runs empty now and then, which is when an hqlock may turn to queues by socket."""
    spec = sockets(lock, 2, hqlock_general_handoffs_turn_numa=20, **constants)
    spec["workload"]["params"]["think_ns"] = 4000
    return spec


def test_an_hqlock_stays_on_a_socket_and_is_faster_than_a_qspinlock() -> None:
    stock, near = (stays(busy(lock)) for lock in ("qspinlock", "hqlock"))
    assert sum(near) / len(near) > 2 * sum(stock) / len(stock)
    assert rate(simulate(busy("hqlock"))) > 1.05 * rate(simulate(busy("qspinlock")))


def test_an_hqlock_leaves_a_socket_the_sooner_the_lower_its_threshold() -> None:
    runs = [stays(busy("hqlock", hqlock_fairness_threshold=most)) for most in (0, 1, 3, 1000)]
    means = [sum(run) / len(run) for run in runs]
    assert means == sorted(means)
    assert means[0] < 0.5 * means[-1]


def test_an_hqlock_is_a_qspinlock_until_many_queue() -> None:
    calm, stock = (
        simulate(sockets(lock, 2, hqlock_general_handoffs_turn_numa=1e6)) for lock in ("hqlock", "qspinlock")
    )
    assert rate(calm) == rate(stock)


# ---- guests ----------------------------------------------------------------------------------------------


def virtual_cpus(lock: str, tasks: int) -> Spec:
    """So many virtual CPUs on four real ones, at a lock that is nearly always wanted; a spin lasts 33 us at most."""
    kernel = {"preemption": "host", "tick_ns": 1e6, "base_slice_ns": 1e6}
    costs = {f"line_{near}": 50.0 for near in ("smt", "llc", "socket", "remote")}
    costs |= {"context_switch": 1500, "wakeup": 1000, "cpu_relax": 1}
    given: dict[str, Any] = {"think_ns": 200, "hold_ns": 100, **RANDOM}
    return lock_cycle(lock, tasks, 4, warmup_ns=1e7, duration_ns=1e8, costs=costs, kernel=kernel, **given)


def test_waiters_of_a_pvqspinlock_halt_where_the_next_one_does_not_run() -> None:
    halts, polls = (simulate(virtual_cpus(lock, 8)) for lock in ("pvqspinlock", "qspinlock"))
    assert the_lock(halts).slept > 0 == the_lock(polls).slept
    assert rate(halts) > 100 * rate(polls)


@pytest.mark.slow
def test_nobody_halts_at_a_pvqspinlock_while_all_run() -> None:
    lock = the_lock(simulate(virtual_cpus("pvqspinlock", 4)))
    assert lock.slept == lock.wakeups == 0 < lock.contended


def test_a_pvqspinlock_is_stolen_while_its_head_does_not_poll() -> None:
    assert the_lock(simulate(virtual_cpus("pvqspinlock", 8))).steals > 0


def guest(lock: str, tasks: int) -> float:
    """Turns a nanosecond at a lock of a guest whose virtual CPUs have CPUs of their own."""
    costs = {f"line_{near}": 100.0 for near in ("smt", "llc", "socket", "remote")}
    return rate(simulate(lock_cycle(lock, tasks, 8, duration_ns=2e6, costs=costs, think_ns=500, hold_ns=100)))


def test_a_turn_of_a_busy_pvqspinlock_moves_more_lines() -> None:
    """The head takes the word for its pending bit, and who has the lock waits for its store to the next one's node."""
    stock, paravirt = (1 / guest(lock, 4) for lock in ("qspinlock", "pvqspinlock"))
    assert stock + 100 < paravirt < stock + 500


def test_the_page_of_locks_says_how_long_such_turns_take() -> None:
    stock, paravirt, busier = (
        round(1 / guest(lock, n), -1)
        for lock, n in [("qspinlock", 4), ("pvqspinlock", 4), ("pvqspinlock", 8)]
    )
    said = f"have a turn of {paravirt:.0f} ns instead of {stock:.0f}, eight one of {busier:.0f}"
    assert said in (ROOT / "docs" / "machine" / "locks.md").read_text("utf-8")


def test_a_pvqspinlock_that_nobody_else_wants_is_a_qspinlock() -> None:
    assert guest("pvqspinlock", 1) == pytest.approx(guest("qspinlock", 1), rel=0.01)


# ---- refusals --------------------------------------------------------------------------------------------

CYCLE = "workload: {kind: lock_cycle, tasks: 2, lock: KIND, think: 1 us, hold: 1 us}\n"
FILES = "filesystem: {kind: xfs}\nlocks: {xfs.buffer: KIND}\nworkload: {kind: create_unlink, tasks: 2}\n"
LATER: Callable[[str], str] = "simfs: 1\nname: a\ntitle: a\nmachine: server-24\nkernel: linux-6.12\n{}".format


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        (FILES.replace("KIND", "seqlock"), "7:21", "seqlock lets others in beside a holder"),
        (FILES.replace("KIND", "rcu"), "7:21", "rcu lets others in beside a holder"),
        (FILES.replace("KIND", "counting-semaphore"), "7:21", "counting-semaphore lets others in"),
    ],
)
def test_kinds_are_refused_where_they_cannot_stand(text: str, where: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(LATER(text), "utf-8")
    with pytest.raises(ScenarioError) as refused:
        load(path)
    assert f"a.yaml:{where}: " in str(refused.value)
    assert said in str(refused.value)


# ---- both machines ---------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    kind=st.sampled_from(
        ["counting-semaphore", "seqlock", "rcu", "cohort", "hmcs", "hqlock", "pvqspinlock", "pvqspinlock"]
    ),
    tasks=st.sampled_from([2, 5, 9]),
    cpus=st.sampled_from([1, 3, 8]),
    few=st.sampled_from([0, 1, 3]),
    preemption=st.sampled_from(["none", "full", "host"]),
    relax=st.sampled_from([0.0, 0.1, 20.0]),
    readers=st.sampled_from([0.0, 0.5]),
    seed=st.integers(0, 2**32),
)
def test_both_machines_do_the_same(
    kind: str, tasks: int, cpus: int, few: int, preemption: str, relax: float, readers: float, seed: int
) -> None:
    kernel = {
        "preemption": preemption,
        "tick_ns": 1e5,
        "base_slice_ns": 3e4,
    }
    spec = lock_cycle(
        kind, tasks, cpus, duration_ns=2e5, think_ns=1e3, hold_ns=1e3, readers=readers,
        costs={**SOCKETS, **REAL, "cpu_relax": relax}, kernel=kernel, **RANDOM,
    )  # fmt: skip
    spec["machine"] |= {"cpus_per_llc": 2, "cpus_per_socket": 2} if cpus > 2 else {}
    spec["machine"] |= {"watts_active": 0.0, "watts_spin": 0.0}  # the machines add them up in another order
    with_constants(
        spec, semaphore_count=few + 1, cohort_handoffs=few, hqlock_fairness_threshold=few,
        hqlock_general_handoffs_turn_numa=few, percpu_rwsem_grace_period=few * 1e4,
    )  # fmt: skip
    assert_same(spec | {"seed": seed})


@pytest.mark.parametrize("lock", ["cohort", "hmcs"])
def test_nobody_is_passed_over_by_its_own_socket(lock: str) -> None:
    """First come, first served within a socket."""
    queues: dict[int, list[int | None]] = {0: [], 1: []}
    served = 0
    for _, who, cpu, what, _ in events(sockets(lock, 2)):
        queue = queues[cpu // 8]
        if what == "wait":
            queue.append(who)
        elif what == "acquire" and queue:
            assert queue.pop(0) == who
            served += 1
    assert served > 1000
