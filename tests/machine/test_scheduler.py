"""The scheduler gives everybody a CPU, preempts only where it may, and wakes at the price of its parts.

Also that no time is lost: whatever is asked of the machine, its laws hold to the picosecond.
"""

from __future__ import annotations

from typing import Any

import pytest
from generated.kernels import scheduler_rules
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engine import CONSTANTS, FREE, Spec, lock_cycle, rate, simulate, the_lock
from simfs.results.run_result import RunResult
from simfs.results.statistics import jain

RANDOM: dict[str, Any] = {"think_distribution": "exponential", "hold_distribution": "exponential"}
LOCKS = ("tas", "ticket", "qspinlock", "semaphore", "mutex", "rwsem")
PREEMPTION = ("none", "voluntary", "full")


# ---- fairness --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tasks", [2, 5, 24])
def test_tasks_bound_to_one_cpu_share_it_fairly(tasks: int) -> None:
    result = simulate(
        lock_cycle("semaphore", tasks, 2, duration_ns=2e9, think_ns=1e5, hold_ns=10, pin_to_cpu=1)
    )
    assert jain(result.per_task_operations) > 0.99
    assert result.cpu_ns.idle == result.window_ns  # the other CPU
    assert result.migrations == 0


@pytest.mark.parametrize("preemption", PREEMPTION)
@pytest.mark.parametrize("lock", LOCKS)
def test_with_more_tasks_than_cpus_everybody_goes_on(lock: str, preemption: str) -> None:
    spec = lock_cycle(lock, 20, 3, duration_ns=1e9, think_ns=1e5, hold_ns=2e4, **RANDOM)
    spec["kernel"]["preemption"] = preemption
    result = simulate(spec)
    assert jain(result.per_task_operations) > 0.9
    assert min(result.per_task_operations) > 0.4 * max(result.per_task_operations)


# ---- CFS -------------------------------------------------------------------------------------------------

CFS: dict[str, Any] = {
    "rules": {"sched.class": "cfs"},
    "cfs": {"latency_ns": 24e6, "wakeup_granularity_ns": 4e6},
    "tick_ns": 1e6,
}
"""The times of a CFS kernel on eight and more CPUs, with a minimum granularity of 3 ms, and ticks often enough."""


@pytest.mark.parametrize(("tasks", "slice_ms"), [(2, 12), (3, 8), (6, 4), (8, 3), (16, 3)])
def test_cfs_gives_each_task_its_share_of_the_period_but_not_less_than_the_minimum(
    tasks: int, slice_ms: int
) -> None:
    """A slice ends at the first tick after it is used up."""
    result = simulate(
        lock_cycle(
            "semaphore", tasks, 1, duration_ns=4.8e9, think_ns=1e5, hold_ns=10, pin_to_cpu=0, kernel=CFS
        )
    )
    assert result.context_switches == pytest.approx(4800 / (slice_ms + 1), rel=0.08)
    assert jain(result.per_task_operations) > 0.99


@pytest.mark.parametrize(("granularity_ms", "preempts"), [(1, True), (30, False)])
def test_a_task_woken_under_cfs_preempts_who_is_further_ahead_than_the_granularity(
    granularity_ms: float, preempts: bool
) -> None:
    """Who slept long comes back half a period (12 ms) behind: that is more than 1 ms and less than 30 ms."""
    kernel = {
        **CFS,
        "cfs": {"latency_ns": 24e6, "wakeup_granularity_ns": granularity_ms * 1e6},
        "preemption": "full",
    }
    times: dict[str, Any] = {"think": "sleep", "think_ns": 40e6, "hold_ns": 2e6, **RANDOM}
    result = simulate(
        lock_cycle("rwsem", 4, 1, duration_ns=4e9, pin_to_cpu=0, readers=1.0, kernel=kernel, **times)
    )
    assert (result.involuntary_switches > 20) == preempts


# ---- preemption ------------------------------------------------------------------------------------------


def sleepers_on_one_cpu(preemption: str, run_to_parity: bool) -> RunResult:
    """Tasks that sleep, then run in the kernel for a while, none in the way of another but for the CPU."""
    rules = {"sched.run_to_parity": run_to_parity, "sched.delay_dequeue": False}
    kernel = {"preemption": preemption, "rules": rules, "tick_ns": 1e6}
    times: dict[str, Any] = {"think": "sleep", "think_ns": 5e6, "hold_ns": 1e6, **RANDOM}
    return simulate(
        lock_cycle("rwsem", 6, 1, duration_ns=1e9, pin_to_cpu=0, readers=1.0, kernel=kernel, **times)
    )


@pytest.mark.parametrize("run_to_parity", [True, False])
@pytest.mark.parametrize("preemption", ["none", "voluntary"])
def test_kernel_code_is_not_preempted_unless_preemption_is_full(preemption: str, run_to_parity: bool) -> None:
    assert sleepers_on_one_cpu(preemption, run_to_parity).involuntary_switches == 0


@pytest.mark.parametrize(
    ("preemption", "locks", "overtaken"),
    [
        *[("none", 1, False), ("voluntary", 1, False), ("full", 1, True)],
        *[("none", 2, False), ("voluntary", 2, True), ("full", 2, True)],
    ],
)
def test_a_holder_loses_its_cpu_where_the_kernel_may_be_preempted(
    preemption: str, locks: int, overtaken: bool
) -> None:
    """Two tasks on one CPU meet at a lock only if the holder was taken off: anywhere, or at its second lock."""
    spec = lock_cycle("semaphore", 2, 1, duration_ns=1e9, think_ns=0, hold_ns=5e6, locks=locks, pin_to_cpu=0)
    spec["kernel"]["preemption"] = preemption
    assert (the_lock(simulate(spec)).contended > 0) == overtaken


# ---- the parts of a wake-up ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part", ["none", "wakeup", "ipi_send", "ipi_deliver", "context_switch", "exit", "all"]
)
def test_each_part_of_a_wakeup_shows_in_the_latency_exactly(part: str) -> None:
    """One waker and one sleeper in turn: each turn is a hold and the way from a release to the next holder."""
    prices = {"wakeup": 1000, "ipi_send": 300, "ipi_deliver": 700, "context_switch": 1500, "exit": 500}
    paid = {name: price for name, price in prices.items() if part in (name, "all")}
    latency = sum(paid.values())
    idle = [{"name": "C1", "exit_ns": paid.pop("exit", 0), "residency_ns": 0, "watts": 1}]
    spec = lock_cycle("semaphore", 2, 2, think_ns=1, hold_ns=10_000, costs=paid, idle_states=idle)
    result = simulate(spec | {"warmup_ns": 1e6, "duration_ns": 1e8})
    assert rate(result) == pytest.approx(1 / (10_000 + latency), abs=2 / result.window_ns)
    lock = the_lock(result)
    assert lock.grant_to_run_ns / lock.handoffs == pytest.approx(latency, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize(
    ("hold", "deliver", "latency"),
    [(100, 2000, 4000), (1400, 2000, 4000), (5000, 2000, 4000), (100, 400, 2900), (1400, 400, 2400)],
)
def test_who_is_woken_while_its_cpu_switches_to_idle_waits_for_the_interrupt(
    hold: float, deliver: float, latency: float
) -> None:
    """Two tasks meet once: the second sleeps from 0 on, its CPU idles from 1500, the first releases after its hold.

    An interrupt that comes while the CPU still switches is taken when that is done; a later one ends its idling.
    """
    idle = [{"name": "C1", "exit_ns": 500, "residency_ns": 0, "watts": 1}]
    costs = {"ipi_deliver": deliver, "context_switch": 1500}
    spec = lock_cycle("semaphore", 2, 2, think_ns=1e5, hold_ns=hold, costs=costs, idle_states=idle)
    lock = the_lock(simulate(spec | {"duration_ns": 2e5}))
    assert lock.handoffs == 1
    assert lock.grant_to_run_ns == latency


IDLE_STATES = [
    {"name": "shallow", "exit_ns": 500, "residency_ns": 0, "watts": 2.0},
    {"name": "deep", "exit_ns": 7000, "residency_ns": 20_000, "watts": 0.5},
]


@pytest.mark.parametrize(("sleep", "exit_ns"), [(10_000, 500), (21_499, 500), (21_500, 7000), (50_000, 7000)])
def test_a_timer_wakes_from_the_idle_state_whose_residency_has_passed(sleep: float, exit_ns: float) -> None:
    """A cycle is the sleep, the way out of the idle state, a switch in, and the hold; the switch out is slept."""
    spec = lock_cycle(
        "semaphore",
        think="sleep",
        think_ns=sleep,
        hold_ns=1000,
        costs={"context_switch": 1500},
        idle_states=IDLE_STATES,
        kernel={"rules": {"idle.governor": "residency"}},
    )
    result = simulate(spec | {"warmup_ns": 1e6, "duration_ns": 1e8})
    assert rate(result) == pytest.approx(1 / (sleep + exit_ns + 1500 + 1000), abs=2 / result.window_ns)
    assert result.cpu_ns.switch / result.operations == pytest.approx(2 * 1500, rel=1e-3)


@pytest.mark.parametrize("exit_ns", [0, 500])
def test_a_machine_that_draws_the_same_in_every_state_uses_power_times_time(exit_ns: float) -> None:
    idle = [{"name": "C1", "exit_ns": exit_ns, "residency_ns": 0, "watts": 4.0}]
    result = simulate(
        lock_cycle("mutex", 6, 4, duration_ns=1e7, think="sleep", think_ns=1e4, hold_ns=1e3, idle_states=idle)
    )
    assert result.energy_joules == pytest.approx(4.0 * 4 * result.window_ns * 1e-9, rel=1e-6)


# ---- laws ------------------------------------------------------------------------------------------------

TIMES = st.sampled_from(["constant", "exponential", "lognormal"])
PRICES = st.fixed_dictionaries(
    {
        name: st.integers(0, 3000)
        for name in FREE
        if name not in ("line_overlap", "step_cv", "smt_speed", "speed")
    }
)


@st.composite
def specs(draw: st.DrawFn, shuffle_ties: bool) -> Spec:
    """Any small machine under any lock cycle that the engine accepts."""
    lock = draw(st.sampled_from([*LOCKS, "percpu-rwsem"]))
    cpus = draw(st.integers(1, 8))
    params: dict[str, Any] = {
        "think_ns": draw(st.integers(1, 50_000)),
        "hold_ns": draw(st.integers(1, 50_000)),
        "think_distribution": draw(TIMES),
        "hold_distribution": draw(TIMES),
        "think": draw(st.sampled_from(["cpu", "sleep"])),
        "locks": draw(st.integers(1, 2)),
        "readers": draw(st.sampled_from([0.0, 0.3, 0.9, 1.0])),
    }
    if lock == "semaphore" and draw(st.booleans()):
        params["device_ns"] = draw(st.integers(1, 20_000))
    spec = lock_cycle(
        lock,
        draw(st.integers(1, 20)),
        cpus,
        warmup_ns=draw(st.sampled_from([0.0, 1e5])),
        duration_ns=draw(st.sampled_from([1e5, 777_777.0, 2e6])),
        costs=draw(PRICES),
        idle_states=draw(st.sampled_from([[], IDLE_STATES])),
        kernel={
            "preemption": draw(st.sampled_from(PREEMPTION)),
            "rules": draw(scheduler_rules),
            "tick_ns": draw(st.sampled_from([1e4, 1e5, 4e6])),
            "base_slice_ns": draw(st.sampled_from([1e4, 3e6])),
            "constants": {
                **CONSTANTS,
                "percpu_rwsem_grace_period": 1e4,
                "rwsem_handoff_wait": draw(st.sampled_from([1e4, 4e6])),
            },
        },
        pin_to_cpu=draw(st.sampled_from([None, cpus - 1])),
        **params,
    )
    return spec | {"seed": draw(st.integers(0, 2**32)), "shuffle_ties": shuffle_ties}


def lawful(spec: Spec) -> None:
    """Run a spec and check what holds for every run."""
    result = simulate(spec)  # fails on a broken law
    assert result.stall is None
    assert result.window_ns == spec["duration_ns"]
    assert result.cpu_ns.total == pytest.approx(spec["machine"]["cpus"] * result.window_ns, rel=1e-12)
    assert result.operations == sum(result.per_task_operations) == sum(result.batch_operations)
    assert len(result.per_task_operations) == result.tasks
    for lock in result.locks:
        assert lock.contended == lock.slept + lock.resolved_spinning
        assert lock.wait_max_ns <= lock.wait_total_ns <= result.window_ns * result.tasks * (1 + 1e-12)


# No shrinking: a failing spec is small enough to read, and shrinking a simulation takes long.
every_run = settings(
    max_examples=250,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
@given(specs(shuffle_ties=False))
@every_run
def test_no_time_and_no_operation_is_lost_on_any_machine(spec: Spec) -> None:
    lawful(spec)


@pytest.mark.slow
@given(specs(shuffle_ties=True))
@every_run
def test_none_is_lost_either_when_events_of_one_instant_come_in_random_order(spec: Spec) -> None:
    lawful(spec)
