"""The lock cycle against closed forms of queueing theory and of the lock literature.

Machine repairman by exact mean value analysis; deterministic bounds; the Markov chain of Boyd-Wickizer et al.
(Linux Symposium 2012) for locks that every waiter polls; the convoy of directly granted locks; spinning for a
while before parking; readers and writers served first come, first served.
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator
from typing import Any

import pytest

from engine import (
    CONSTANTS,
    Spec,
    lock_cycle,
    rate,
    replicate,
    replications,
    simulate,
    simulate_all,
    the_lock,
)
from simfs import _engine
from simfs._engine import Step, Task
from simfs.results.run_result import RunResult
from simfs.results.statistics import Estimate, interval

EXCLUSIVE = (
    *("tas", "ticket", "mcs", "qspinlock", "cna", "rwlock-2.6", "qrwlock", "semaphore"),
    *("mutex-2.6.16", "mutex-2.6.30", "mutex-3.0", "mutex-3.10", "mutex"),
    *("rwsem-2.6", "rwsem-3.10", "rwsem-3.16", "rwsem-4.8", "rwsem-5.3", "rwsem-5.4", "rwsem"),
    *("btrfs-tree-2", "btrfs-tree-3-biased", "btrfs-tree-3"),
)
Z, S = 1000.0, 50.0
CHECK_VALUES = {1: 0.952381, 4: 3.781373, 8: 7.460407, 16: 14.159331, 24: 18.678066, 32: 19.932394, 48: 20.0}
"""Acquisitions per 1000 ns at `Z` and `S`, from the reference table of the machine repairman."""

COLLAPSE = {4: 3.716827, 8: 7.136633, 16: 7.809168, 24: 4.041381, 32: 2.945010, 48: 1.960853}
"""Tasks that think, by the ticket lock chain at `Z`, `S` and `TRANSFER`."""
TRANSFER = 20.0


def repairman(tasks: int, think: float, hold: float) -> float:
    """Throughput of the closed queue of one exponential server, by mean value analysis."""
    queue, throughput = 0.0, 0.0
    for n in range(1, tasks + 1):
        response = hold * (1 + queue)
        throughput = n / (think + response)
        queue = throughput * response
    return throughput


def chain(tasks: int, transfer: float, think: float = Z, hold: float = S) -> float:
    """Mean number of thinking tasks when a hand-over with k tasks at the lock takes k/2 transfers."""
    weights = [1.0]
    for k in range(1, tasks + 1):
        weights.append(weights[-1] * (tasks - k + 1) / think * (hold + transfer * k / 2))
    return tasks - sum(k * w for k, w in enumerate(weights)) / sum(weights)


def random_cycle(
    lock: str, tasks: int, think: float, hold: float, transfer: float = 0, duration: float = 2e6
) -> Spec:
    return lock_cycle(
        lock,
        tasks,
        warmup_ns=1e5,
        duration_ns=duration,
        think_ns=think,
        hold_ns=hold,
        think_distribution="exponential",
        hold_distribution="exponential",
        costs={f"line_{near}": transfer for near in ("smt", "llc", "socket", "remote")},
    )


def constant_cycle(lock: str, tasks: int, think: float, hold: float, transfer: float = 0) -> Spec:
    near = {f"line_{near}": transfer for near in ("smt", "llc", "socket", "remote")}
    return lock_cycle(
        lock, tasks, warmup_ns=1e5, duration_ns=1.05e6, think_ns=think, hold_ns=hold, costs=near
    )


def estimate(spec: Spec) -> Estimate:
    """The 99 % interval of the throughput."""
    return interval([rate(run) for run in replications(spec, 6)], level=0.99)


def thinking(result: RunResult) -> float:
    """Mean number of tasks that think (on their CPUs)."""
    return result.cpu_ns.user / result.window_ns


# ---- machine repairman -----------------------------------------------------------------------------------


def test_the_recursion_gives_the_printed_check_values() -> None:
    found = {n: round(1000 * repairman(n, Z, S), 6) for n in CHECK_VALUES}
    assert found == pytest.approx(CHECK_VALUES, abs=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("lock", EXCLUSIVE)
@pytest.mark.parametrize("tasks", [1, 8, 24, 48])
def test_free_locks_agree_with_mean_value_analysis_at_the_check_values(lock: str, tasks: int) -> None:
    """By at most some 10,000 acquisitions in each of six runs."""
    spec = random_cycle(lock, tasks, Z, S, duration=min(2e6, 1e4 / repairman(tasks, Z, S)))
    assert estimate(spec).contains(repairman(tasks, Z, S))


@pytest.mark.parametrize("think", [0.0, 200.0, 20_000.0])
@pytest.mark.parametrize("hold", [20.0, 500.0])
@pytest.mark.parametrize("lock", ["qspinlock", "semaphore", "mutex"])
def test_free_locks_agree_with_mean_value_analysis_on_a_grid(lock: str, think: float, hold: float) -> None:
    tasks, time = 6, 4000 * max(hold, (think + hold) / 6)
    spec = random_cycle(lock, tasks, think, hold, duration=time)
    assert estimate(spec).contains(repairman(tasks, think, hold))


# ---- deterministic times ---------------------------------------------------------------------------------


@pytest.mark.parametrize("lock", EXCLUSIVE)
@pytest.mark.parametrize("tasks", [1, 5, 20, 21, 24, 32])
def test_constant_times_give_exactly_the_lesser_of_both_bounds(lock: str, tasks: int) -> None:
    result = simulate(constant_cycle(lock, tasks, Z, S))
    assert result.operations == round(min(tasks / (Z + S), 1 / S) * result.window_ns)


@pytest.mark.parametrize("lock", EXCLUSIVE)
def test_no_distribution_beats_the_bounds(lock: str) -> None:
    spec = random_cycle(lock, 24, Z, S)
    spec["workload"]["params"] |= {"hold_distribution": "lognormal", "hold_cv": 3.0}
    result = simulate(spec)
    held = the_lock(result).hold_total_ns / the_lock(result).acquired
    assert rate(result) <= min(24 / (Z + held), 1 / held) * 1.02


# ---- collapse --------------------------------------------------------------------------------------------


def test_the_chain_gives_its_printed_check_values() -> None:
    assert {n: chain(n, TRANSFER) for n in COLLAPSE} == pytest.approx(COLLAPSE, abs=2e-6)
    assert chain(24, 0) == pytest.approx(Z * repairman(24, Z, S))


def test_ticket_throughput_peaks_and_falls_and_queued_stays_flat() -> None:
    tasks = (1, 4, 8, 16, 32, 48)
    rates = {
        lock: [rate(run) for run in simulate_all([random_cycle(lock, n, Z, S, TRANSFER) for n in tasks])]
        for lock in ("ticket", "qspinlock")
    }
    ticket, queued = rates["ticket"], rates["qspinlock"]
    assert tasks[ticket.index(max(ticket))] in (8, 16)
    assert ticket[-1] < ticket[-2] < max(ticket) / 3
    assert queued[-1] > 0.97 * max(queued)


@pytest.mark.parametrize("tasks", [4, 8, 16, 24, 32, 48])
def test_the_ticket_lock_lies_between_the_chain_and_one_in_which_all_refetches_come_first(tasks: int) -> None:
    """The chain lets a release pass the refetches still under way, and who comes takes the word from nobody.

    Here the line serves all in order, and both a release and who comes are followed by refetches: at most all of both.
    """
    found = thinking(simulate(random_cycle("ticket", tasks, Z, S, TRANSFER)))
    assert chain(tasks, 4 * TRANSFER) <= found <= chain(tasks, TRANSFER) * 1.02


def loaded(lock: str, tasks: int, hold: float, load: float) -> Spec:
    """Some 4000 acquisitions, by tasks that together want `load` times what the lock can serve."""
    think = hold * tasks / load
    time = 4000 * max(hold, (think + hold) / tasks)
    return random_cycle(lock, tasks, think, hold, TRANSFER, duration=time)


LOADS = (0.5, 1.0, 3.0)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize(
    ("tasks", "hold"), [(4, 1000.0), (4, 3000.0), (12, 1000.0), (12, 3000.0), (32, 3000.0)]
)
def test_the_ticket_lock_is_the_chain_where_all_refetches_end_within_a_hold(
    tasks: int, hold: float, load: float
) -> None:
    """The store that releases belongs to the serial section, the fetch of a ticket to the thinking."""
    found = estimate(loaded("ticket", tasks, hold, load))
    think = hold * tasks / load + TRANSFER
    assert found.contains(chain(tasks, TRANSFER, think, hold + TRANSFER) / think)
    if load == max(LOADS):
        assert not found.contains(repairman(tasks, think, hold)), "the transfers are not lost in the noise"


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("hold", [300.0, 1000.0])
@pytest.mark.parametrize("tasks", [4, 12, 32])
def test_the_mcs_lock_is_the_repairman_whose_service_is_two_transfers_longer(
    tasks: int, hold: float, load: float
) -> None:
    """By one where nobody is next: then only the word moves."""
    found = estimate(loaded("mcs", tasks, hold, load))
    think = hold * tasks / load
    two, one = (repairman(tasks, think, hold + n * TRANSFER) for n in (2, 1))
    assert found.low is not None
    assert found.high is not None
    assert found.high >= two
    assert found.low <= (two if load == max(LOADS) else one)
    if load == max(LOADS) and hold == 300:
        assert not found.contains(repairman(tasks, think, hold)), "the transfer is not lost in the noise"


@pytest.mark.parametrize("tasks", [3, 8, 24])
def test_a_queued_lock_hands_over_in_two_transfers_however_many_wait(tasks: int) -> None:
    """The copy of the head goes, and the word comes to it. Its own store waits in the store buffer."""
    result = simulate(constant_cycle("qspinlock", tasks, 0, 10 * TRANSFER, TRANSFER))
    assert 1 / rate(result) == pytest.approx(12 * TRANSFER, rel=0.001)


@pytest.mark.parametrize("tasks", [3, 8, 24])
def test_the_next_head_of_a_queue_is_the_limit_where_holds_are_short(tasks: int) -> None:
    """Its copy of its node goes, that comes back, and it looks at the word: three transfers, with the hold beside."""
    result = simulate(constant_cycle("qspinlock", tasks, 0, TRANSFER / 2, TRANSFER))
    assert 1 / rate(result) == pytest.approx(3 * TRANSFER, rel=0.001)


@pytest.mark.parametrize("tasks", [4, 8, 16])
def test_a_ticket_lock_with_long_holds_hands_over_in_half_the_refetches(tasks: int) -> None:
    """All refetches end within the hold: only the next owner's place among them counts, and the release."""
    hold = 100 * TRANSFER * tasks
    spec = constant_cycle("ticket", tasks, 0, hold, TRANSFER) | {"duration_ns": 2000 * hold}
    handover = 1 / rate(simulate(spec)) - hold
    assert handover == pytest.approx(TRANSFER * (tasks / 2 + 1), rel=0.08)


# ---- convoy ----------------------------------------------------------------------------------------------

WAKE = {"wakeup": 1000, "ipi_send": 300, "ipi_deliver": 700, "context_switch": 1500}
IDLE = [{"name": "C1", "exit_ns": 500, "residency_ns": 0, "watts": 1}]
LATENCY = 4000.0
"""From a release until the woken task runs: what `WAKE` and `IDLE` make up."""


def convoy(lock: str, tasks: int, think: float) -> RunResult:
    return simulate(
        lock_cycle(
            lock,
            tasks,
            warmup_ns=1e7,
            duration_ns=1e7,
            think_ns=think,
            hold_ns=1000,
            costs=WAKE,
            idle_states=IDLE,
        )
    )


@pytest.mark.parametrize(("tasks", "think"), [(8, 5000), (16, 5000), (8, 20_000), (7, 25_000)])
def test_a_saturated_semaphore_pays_the_whole_wakeup_at_each_handover(tasks: int, think: float) -> None:
    result = convoy("semaphore", tasks, think)
    assert rate(result) == pytest.approx(1 / (1000 + LATENCY), rel=1e-3)
    lock = the_lock(result)
    assert lock.acquired == lock.slept == lock.handoffs
    assert lock.grant_to_run_ns / lock.handoffs == pytest.approx(LATENCY, rel=1e-3)


@pytest.mark.parametrize(("tasks", "think"), [(4, 19_000), (4, 24_000), (2, 9000), (8, 59_000)])
def test_a_semaphore_that_is_never_queued_for_costs_nothing(tasks: int, think: float) -> None:
    result = convoy("semaphore", tasks, think)
    assert result.operations == pytest.approx(tasks / (think + 1000) * result.window_ns, abs=tasks)
    assert the_lock(result).slept == 0


@pytest.mark.parametrize("lock", ["mutex", "rwsem"])
def test_locks_that_spin_and_steal_have_no_convoy_at_the_same_load(lock: str) -> None:
    assert rate(convoy(lock, 7, 25_000)) == pytest.approx(7 / 26_000, rel=1e-3)
    assert rate(convoy(lock, 16, 5000)) == pytest.approx(1 / 1000, rel=1e-3)


# ---- spin, then park -------------------------------------------------------------------------------------


def spin_then_park(mean: float, cost: float, limit: float) -> float:
    """Expected cost of a wait of exponential length that spins up to a limit and then parks."""
    parks = math.exp(-limit / mean)
    return mean * (1 - parks) + cost * parks


def test_spin_then_park_gives_its_printed_check_values() -> None:
    found = [spin_then_park(1, 3, limit) for limit in (0, 1, 3)]
    assert found == pytest.approx([3, 1.73576, 1.09957], abs=5e-6)


def reader(task: Task) -> Generator[Step, Any, None]:
    pause, hold = task.sleep(task.exponential(5 * MEAN)), task.run(task.exponential(MEAN), "system")
    while True:
        yield pause
        yield task.lock(task.shared, "read")
        yield hold
        yield task.unlock(task.shared, "read")


def writer(task: Task) -> Generator[Step, Any, None]:
    pause = task.sleep(task.exponential(5 * MEAN))
    while True:
        yield pause
        yield task.lock(task.shared)
        yield task.unlock(task.shared)


MEAN = 10_000.0
"""Of the reader's hold, and so (it has no memory) of what is left of it when the writer comes."""


def waiting_costs(cost: float, limit: float, number: int) -> float:
    """CPU time for each wait of a writer that spins on a reader for at most `limit`."""
    patience = {"base": limit, "per_reader": 0.0, "cap": limit}
    constants = {**CONSTANTS} | {f"rwsem_reader_spin_{name}": time for name, time in patience.items()}
    spec = lock_cycle("rwsem", 2, duration_ns=1e9, costs={"wakeup": cost}, kernel={"constants": constants})
    workload = {"kind": "python", "tasks": 2, "params": {}}
    text = json.dumps(replicate(spec | {"workload": workload}, number))

    def worker(task: Task) -> Generator[Step, Any, None]:
        yield from writer(task) if task.number else reader(task)

    result = RunResult.model_validate_json(
        _engine.run(text, worker, lambda machine: machine.new_lock("lock"))
    )
    lock = the_lock(result)
    assert lock.wakeups == pytest.approx(lock.slept, abs=1)
    return (result.cpu_ns.spin + cost * lock.slept) / lock.contended


@pytest.mark.slow
@pytest.mark.parametrize("cost", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("limit", [0.0, 0.5, 1.0, 3.0])
def test_spinning_for_a_while_and_then_sleeping_costs_what_the_formula_says(
    cost: float, limit: float
) -> None:
    """In units of the mean: longer spins pay where a wake-up costs more than the mean wait, and cost where less."""
    costs = [waiting_costs(cost * MEAN, limit * MEAN, number) / MEAN for number in range(6)]
    found, said = interval(costs, level=0.99), spin_then_park(1, cost, limit)
    assert found.low is not None
    assert found.high is not None
    tick = 2e-3 / MEAN  # a limit is over when the clock, which counts ps, is past it
    assert found.low - tick <= said <= found.high + tick


# ---- readers and writers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("lock", ["rwsem", "percpu-rwsem"])
def test_readers_alone_do_not_wait_for_each_other(lock: str) -> None:
    result = simulate(lock_cycle(lock, 8, warmup_ns=1e5, think_ns=1000, hold_ns=1000, readers=1.0))
    assert result.operations == 8 * 500
    assert the_lock(result).contended == 0


def served_in_order(share: float, hold: float, exponential: bool) -> float:
    """Throughput when the readers between two writers go together."""
    phase = hold * math.log(1 / (1 - share)) if exponential else share * hold
    return 1 / ((1 - share) * (hold + phase))


@pytest.mark.parametrize("distribution", ["constant", "exponential"])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_readers_served_in_order_of_arrival_go_in_the_batches_of_the_formula(
    share: float, distribution: str
) -> None:
    hold = 1e5
    spec = lock_cycle(
        "percpu-rwsem",
        128,
        warmup_ns=1e7,
        duration_ns=3e8,
        think_ns=1,
        hold_ns=hold,
        hold_distribution=distribution,
        readers=share,
        kernel={"constants": {**CONSTANTS, "percpu_rwsem_grace_period": 1e6}},
    )
    assert estimate(spec).contains(served_in_order(share, hold, distribution == "exponential"))


def test_readers_of_an_rwsem_share_more_the_more_of_them_queue() -> None:
    """All queued readers go in one phase, so phases grow with the queue; writers bound what that gives."""
    share, hold = 0.9, 1000.0
    specs = [
        lock_cycle("rwsem", n, warmup_ns=1e6, duration_ns=1e7, think_ns=1, hold_ns=hold, readers=share)
        for n in (4, 8, 16, 32, 64)
    ]
    rates = [rate(run) * hold for run in simulate_all(specs)]
    assert rates == sorted(rates)
    assert rates[-1] > 2 * rates[0]
    assert rates[-1] < 1 / (1 - share)
