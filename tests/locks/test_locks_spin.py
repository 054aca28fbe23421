"""Spinlocks and rwlocks by their rules: who polls what, what a hand-over moves, who is overtaken, what sockets cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from statistics import fmean
from typing import Any

import pytest
from machines import ALL, assert_same

from engine import CONSTANTS, Spec, lock_cycle, rate, replications, simulate, simulate_all, the_lock
from simfs.results.statistics import interval

HOLD, TRANSFER = 50.0, 20.0
RANDOM: dict[str, Any] = {"think_distribution": "exponential", "hold_distribution": "exponential"}
Event = tuple[int, int | None, int, str, str]
"""Time (ps), task, CPU, what, about what."""


def near(transfer: float) -> dict[str, float]:
    return {f"line_{distance}": transfer for distance in ("smt", "llc", "socket", "remote")}


def events(spec: Spec) -> list[Event]:
    _, trace = import_module("simfs._engine").trace(json.dumps(spec))
    return list(trace)


def random_cycle(lock: str, tasks: int, transfer: float = TRANSFER, think: float = 1000.0) -> Spec:
    return lock_cycle(
        lock,
        tasks,
        warmup_ns=1e5,
        duration_ns=2e6,
        think_ns=think,
        hold_ns=HOLD,
        costs=near(transfer),
        **RANDOM,
    )


# ---- queues of nodes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("lock", ["mcs", "qspinlock", "cna"])
def test_throughput_of_queued_locks_stays_where_the_ticket_lock_collapses(lock: str) -> None:
    peak, far = (rate(run) for run in simulate_all([random_cycle(lock, n) for n in (24, 48)]))
    assert far > 0.97 * peak
    ticket = rate(simulate(random_cycle("ticket", 48)))
    assert far > 5 * ticket


@pytest.mark.parametrize("tasks", [3, 8, 48])
def test_an_mcs_lock_hands_over_in_two_transfers_however_many_wait(tasks: int) -> None:
    """The next one's copy of its node goes, and the node comes back."""
    runs = replications(random_cycle("mcs", tasks, think=1.0), 6)
    assert interval([rate(run) for run in runs], level=0.99).contains(1 / (HOLD + 2 * TRANSFER))


def test_a_qspinlock_moves_the_word_and_at_most_one_node_at_a_hand_over() -> None:
    """The copy of the head goes, and the word comes; the node is hidden behind the critical section.

    It is not where that is shorter than what makes the next one head, nor is its first look at the word.
    """
    found = 1 / rate(simulate(random_cycle("qspinlock", 48)))
    assert HOLD + 2 * TRANSFER < found < HOLD + 4 * TRANSFER


def burst(lock: str, tasks: int) -> list[Event]:
    """All tasks ask at 1000 ns, hold for 2000 ns, and never come back."""
    spec = lock_cycle(
        lock, tasks, duration_ns=3000 * tasks, think_ns=1000, hold_ns=2000, costs=near(50), order="same"
    )
    return events(spec)


def first(trace: list[Event], what: str, task: int) -> int:
    return next(time for time, who, _, happening, _ in trace if (who, happening) == (task, what))


def looks_until_first_release_of(trace: list[Event], releaser: int, task: int) -> int:
    end = first(trace, "release", releaser)
    return sum(who == task and what == "look" for time, who, _, what, _ in trace if time < end)


def test_the_pending_waiter_and_the_head_of_a_qspinlock_poll_the_word_and_nobody_else() -> None:
    trace = burst("qspinlock", 5)
    order = [who for _, who, _, what, _ in trace if what == "acquire"][:5]
    assert None not in order
    holder, pending, head, third, fourth = (task for task in order if task is not None)
    assert first(trace, "look", pending) == first(trace, "acquire", pending)
    assert first(trace, "look", head) < first(trace, "acquire", head)  # at the release to the pending waiter
    assert looks_until_first_release_of(trace, pending, third) == 0
    assert looks_until_first_release_of(trace, head, fourth) == 0
    assert first(trace, "release", holder) < first(trace, "acquire", pending)


def test_who_takes_a_qspinlock_from_the_queue_makes_the_next_one_head_one_transfer_later() -> None:
    trace = burst("qspinlock", 5)
    order = [who for _, who, _, what, _ in trace if what == "acquire"]
    head, third = order[2], order[3]
    assert head is not None
    assert third is not None
    promoted = first(trace, "look", third) - first(trace, "acquire", head)
    assert 50_000 <= promoted <= 100_000  # ps: the store to the word may have to wait for it


def test_all_waiters_of_a_ticket_lock_look_at_every_release() -> None:
    trace = burst("ticket", 5)
    order = [who for _, who, _, what, _ in trace if what == "acquire"]
    assert order[1] is not None
    assert order[4] is not None
    assert looks_until_first_release_of(trace, order[1], order[4]) == 1


# ---- guests ----------------------------------------------------------------------------------------------


def virtual_cpus(lock: str, tasks: int, preemption: str = "host") -> Spec:
    """So many virtual CPUs on four real ones, at a lock that is nearly always wanted."""
    kernel = {"preemption": preemption, "tick_ns": 1e6, "base_slice_ns": 1e6}
    costs = near(TRANSFER) | {"context_switch": 1500}
    given: dict[str, Any] = {"think_ns": 200, "hold_ns": 100, **RANDOM}
    return lock_cycle(lock, tasks, 4, warmup_ns=1e7, duration_ns=2e8, costs=costs, kernel=kernel, **given)


def per_slice(spec: Spec) -> float:
    return rate(simulate(spec)) * float(spec["kernel"]["base_slice_ns"])


@pytest.mark.slow
@pytest.mark.parametrize("lock", ["ticket", "mcs", "qspinlock"])
def test_a_fifo_spinlock_with_more_virtual_cpus_than_cpus_is_taken_a_few_times_a_slice(lock: str) -> None:
    """Whoever is next often does not run, and all others wait for it to come to run again."""
    assert per_slice(virtual_cpus(lock, 4)) > 2000
    assert per_slice(virtual_cpus(lock, 5)) < 3 * 4
    assert per_slice(virtual_cpus(lock, 8)) < 3 * 4


@pytest.mark.slow
def test_a_spinlock_that_anybody_may_take_loses_only_the_slices_of_preempted_holders() -> None:
    assert per_slice(virtual_cpus("tas", 8)) > 100 * per_slice(virtual_cpus("ticket", 8))


@pytest.mark.slow
def test_where_nobody_preempts_a_spinlock_more_tasks_than_cpus_cost_nothing() -> None:
    crowded, alone = (per_slice(virtual_cpus("ticket", tasks, "full")) for tasks in (8, 4))
    assert crowded == pytest.approx(alone, rel=0.05)


@pytest.mark.slow
def test_time_goes_on_where_hits_are_free_and_the_head_of_the_queue_loses_its_copy_of_the_word() -> None:
    """It reads the word as long as it has no copy; a request that is under way to it leaves it one, which is a hit."""
    assert_same(virtual_cpus("qspinlock", 8) | {"seed": 17, "warmup_ns": 0, "duration_ns": 2.1e6}, most=ALL)


# ---- sockets ---------------------------------------------------------------------------------------------


def sockets(lock: str, count: int, threshold: float = 1e6, tasks: int = 32, **params: Any) -> Spec:  # noqa: ANN401
    """So saturated that the tasks of one socket alone never let the queue run empty."""
    costs = {"line_smt": 10, "line_llc": 20, "line_socket": 20, "line_remote": 120}
    given: dict[str, Any] = {"think_ns": 50, "hold_ns": 200, **RANDOM} | params
    spec = lock_cycle(lock, tasks, warmup_ns=1e6, duration_ns=5e6, costs=costs, **given)
    share = {"cpus_per_llc": tasks // count, "cpus_per_socket": tasks // count}
    spec["machine"] |= share
    spec["kernel"]["constants"] = {**CONSTANTS, "numa_spinlock_threshold": threshold}
    return spec


def remote_share(spec: Spec) -> float:
    """How many of the hand-overs go to another socket."""
    own: int = spec["machine"]["cpus_per_socket"]
    at = [cpu // own for _, _, cpu, what, _ in events(spec) if what == "acquire"]
    return sum(a != b for a, b in pairwise(at)) / (len(at) - 1)


def remote_shares(spec: Spec, runs: int = 8) -> list[float]:
    return [remote_share(spec | {"replication": number}) for number in range(runs)]


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_cna_rarely_leaves_a_socket_where_a_qspinlock_mostly_does(count: int) -> None:
    """Not never: the secondary queue is flushed every millisecond, and only one head in 128 begins the next.

    The order of a qspinlock's waiters hardly changes in a run: each run has about one random arrangement, in which the
    next of n tasks is of another socket in n - n/count of n - 1 cases. A run of four sockets with CNA has a share of
    0.11 with a deviation of 0.05, so the limit for the mean of eight is more than four standard errors away.
    """
    stock, cna = (remote_shares(sockets(lock, count, think_ns=100)) for lock in ("qspinlock", "cna"))
    assert interval(stock, level=0.999).contains((32 - 32 / count) / 31)
    assert fmean(cna) < 0.25 * fmean(stock)


@pytest.mark.parametrize("count", [2, 4])
def test_cna_is_faster_than_a_qspinlock_across_sockets(count: int) -> None:
    cna, stock = (rate(simulate(sockets(lock, count))) for lock in ("cna", "qspinlock"))
    assert cna > 1.2 * stock


def test_cna_on_one_socket_is_a_qspinlock() -> None:
    cna, stock = (rate(simulate(sockets(lock, 1))) for lock in ("cna", "qspinlock"))
    assert cna == pytest.approx(stock, rel=0.02)


ALL_ONCE = 32 * (200 + 240) * 3
"""In this time (ns) everybody has had the lock: a hold is drawn, and three times its mean is long."""


@pytest.mark.parametrize("threshold", [1e5, 5e5])
def test_nobody_waits_for_cna_much_longer_than_its_threshold_a_socket(threshold: float) -> None:
    lock = the_lock(simulate(sockets("cna", 2, threshold)))
    assert threshold < lock.wait_max_ns < threshold + ALL_ONCE


def test_a_larger_threshold_makes_cna_less_fair_and_not_slower() -> None:
    """Shares of a window tell nothing of fairness: they hang on where the turns of the sockets begin.

    A turn of 3 ms ends in any window of 5 ms. Its waits are counted from the window's start; they are shortest, 2 ms,
    where the next turn ends just behind the window.
    """
    short, long = (simulate(sockets("cna", 2, threshold)) for threshold in (2e4, 3e6))
    assert the_lock(short).wait_max_ns < 2e4 + ALL_ONCE
    assert the_lock(long).wait_max_ns > 5e6 - 3e6
    assert remote_share(sockets("cna", 2, 2e4)) > remote_share(sockets("cna", 2, 3e6))
    assert rate(long) > 0.98 * rate(short)


# ---- rwlocks ---------------------------------------------------------------------------------------------


def mixed(lock: str, tasks: int = 16, readers: float = 0.95, **params: Any) -> Spec:  # noqa: ANN401
    """Readers that overlap nearly always."""
    given: dict[str, Any] = {"think_ns": 500, "hold_ns": 500, "readers": readers, **RANDOM} | params
    return lock_cycle(lock, tasks, warmup_ns=1e5, duration_ns=5e6, costs=near(TRANSFER), **given)


def test_a_stream_of_readers_starves_the_writers_of_the_biased_rwlock_and_not_of_a_qrwlock() -> None:
    biased, fair = (the_lock(simulate(mixed(lock))).wait_max_ns for lock in ("rwlock-2.6", "qrwlock"))
    assert biased > 20 * fair
    assert fair < 16 * 2 * 4000  # everybody else twice, with long holds


def readers_before_each_writer(spec: Spec) -> Iterator[int]:
    """How many readers enter while a writer waits, for each wait of a writer."""
    entered = 0
    waiting: dict[int | None, int] = {}
    for _, task, _, what, about in events(spec):
        if not about.startswith("lock#"):
            continue
        entered += what == "acquire shared"
        if what == "wait":
            waiting[task] = entered
        elif what == "acquire" and task in waiting:
            yield entered - waiting.pop(task)
        elif what == "acquire shared":
            waiting.pop(task, None)


def test_readers_overtake_a_waiting_writer_of_the_biased_rwlock_only() -> None:
    biased, fair = (max(readers_before_each_writer(mixed(lock))) for lock in ("rwlock-2.6", "qrwlock"))
    assert biased > 100
    assert fair < 2 * 16


def test_a_reader_at_the_head_of_a_qrwlock_enters_later_if_it_counts_itself_last() -> None:
    """A transfer of the word between the writer's end and its entry: writers and readers by turns get less done."""
    last, first = (
        rate(simulate(mixed(lock, readers=0.5, think_ns=1, hold_ns=1)))
        for lock in ("qrwlock-3.16", "qrwlock")
    )
    assert last < 0.99 * first


@pytest.mark.parametrize("lock", ["rwlock-2.6", "qrwlock-3.16", "qrwlock"])
def test_readers_of_an_rwlock_share_it_and_their_counter_is_the_limit(lock: str) -> None:
    alone = mixed(lock, 8, readers=1.0, think_ns=1000, hold_ns=1000, **{k: "constant" for k in RANDOM})
    result = simulate(alone)
    assert the_lock(result).contended == 0
    assert rate(result) == pytest.approx(8 / 2000, rel=0.15)
    short = simulate(mixed(lock, 32, readers=1.0, think_ns=1, hold_ns=1))
    assert rate(short) <= 1 / (2 * TRANSFER) * 1.01  # two transfers of the word a cycle


@pytest.mark.parametrize("lock", ["rwlock-2.6", "qrwlock-3.16", "qrwlock"])
def test_waiters_of_an_rwlock_stay_on_their_cpus(lock: str) -> None:
    result = simulate(mixed(lock, 8, readers=0.5))
    waited = the_lock(result)
    assert waited.contended == waited.resolved_spinning > 0
    assert waited.slept == waited.wakeups == 0
    assert result.cpu_ns.idle < 0.01 * result.cpu_ns.total
