"""Wake-ups, grants and holds by kind of task: what is reported is what a count over the event trace gives."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from machines import assert_same

from engine import Spec, lock_cycle, scenario_spec, simulate, the_lock, window
from simfs import _engine
from simfs.results.run_result import LockKind, LockStats, RunResult, Wakes

Event = tuple[int, int | None, int, str, str]


@dataclass
class Recount:
    """What a trace says, by lock and task."""

    stayed: Counter[int] = field(default_factory=Counter)
    woken: Counter[int] = field(default_factory=Counter)
    to_run: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    grants: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    held: Counter[tuple[str, str]] = field(default_factory=Counter)


class Follower:
    """Follows every task through a trace: where it ran last, what it does, what it holds.

    All tasks were there before; who has not been seen yet sleeps where it ran last.
    """

    def __init__(self) -> None:
        self.found = Recount()
        self.status: dict[int, str] = defaultdict(lambda: "sleeping")
        self.last_cpu: dict[int, int] = {}
        self.woken_at: dict[int, int] = {}
        self.holds: dict[str, tuple[int, bool]] = {}
        self.since: dict[str, int] = {}
        self.granted_at: dict[str, int] = {}

    def book(self, lock: str, now: int) -> None:
        """Count how long the lock has been held since it was booked last, by what its holder did."""
        task, granted = self.holds[lock]
        state = "granted" if granted and self.status[task] == "runnable" else self.status[task]
        self.found.held[lock.partition("#")[0], state] += now - self.since[lock]
        self.since[lock] = now

    def become(self, task: int, state: str, now: int) -> None:
        """A task does something else."""
        for lock in [lock for lock, (holder, _) in self.holds.items() if holder == task]:
            self.book(lock, now)
            if state == "running" and self.holds[lock][1]:
                self.holds[lock] = (task, False)
                self.found.grants[lock.partition("#")[0]].append(now - self.granted_at[lock])
        self.status[task] = state

    def see(self, now: int, task: int, cpu: int, what: str, about: str) -> None:
        """An event of a task."""
        match what:
            case "wake":
                if self.status[task] != "dead":
                    self.found.woken[task] += 1
                    self.found.stayed[task] += cpu == self.last_cpu.get(task, cpu)
                    self.woken_at[task] = now
                self.become(task, "runnable", now)
            case "run":
                self.become(task, "running", now)
                self.last_cpu[task] = cpu
                if task in self.woken_at:
                    self.found.to_run[task].append(now - self.woken_at.pop(task))
            case "preempt" | "yield" | "sleep" | "exit":
                self.become(task, {"sleep": "sleeping", "exit": "dead"}.get(what, "runnable"), now)
            case "migrate":
                self.last_cpu[task] = cpu
            case "acquire":
                self.holds[about] = (task, self.status[task] != "running")
                self.since[about] = self.granted_at[about] = now
            case "release":
                self.book(about, now)
                del self.holds[about]


def recount(events: Iterable[Event], end: int) -> Recount:
    """What a trace says until it ends."""
    follower = Follower()
    for now, task, cpu, what, about in events:
        if task is not None:
            follower.see(now, task, cpu, what, about)
    for lock in follower.holds:
        follower.book(lock, end)
    return follower.found


@pytest.fixture(scope="module")
def spec() -> Spec:
    """24 processes that create and unlink in one XFS directory, on two CPUs."""
    settings = ("workload.tasks=24", "workload.kind=create_unlink", "workload.pin_to_cpu=null")
    return scenario_spec("guest-2cpu", "xfs-shared", *settings, warmup_ns=0, duration_ns=60e6)


@pytest.fixture(scope="module")
def traced(spec: Spec) -> tuple[RunResult, Recount]:
    text, events = _engine.trace(json.dumps(spec))
    return RunResult.model_validate_json(text), recount(events, round(spec["duration_ns"] * 1000))


def of(kinds: Iterable[Wakes], name: str) -> Wakes:
    return next(wakes for wakes in kinds if wakes.kind == name)


def part(lock: LockStats, name: str) -> LockKind:
    return next(kind for kind in lock.kinds if kind.kind == name)


def held(lock: LockStats, *parts: str) -> float:
    return sum(float(getattr(kind, f"{name}_ns")) for kind in lock.kinds for name in parts)


def test_wakeups_are_those_of_the_trace(traced: tuple[RunResult, Recount]) -> None:
    result, counted = traced
    assert sum(wakes.wakeups for wakes in result.wakes) == result.wakeups == counted.woken.total()
    assert sum(wakes.on_previous for wakes in result.wakes) == counted.stayed.total()
    waited = sorted(ps // 1000 for times in counted.to_run.values() for ps in times)
    reported = [took for wakes in result.wakes for took in (wakes.to_run_idle, wakes.to_run_busy)]
    assert sum(took.count for took in reported) == len(waited) > 1000
    assert max(took.max_ns for took in reported) == pytest.approx(waited[-1], rel=0.01)
    total = sum(took.count * took.mean_ns for took in reported)
    assert total == pytest.approx(sum(waited), rel=0.01)


def test_bound_workers_are_told_from_the_load(traced: tuple[RunResult, Recount]) -> None:
    result, _ = traced
    bound = of(result.wakes, "bound")
    assert bound.wakeups == bound.on_previous > 0
    assert bound.beside_idle == 0
    agi = the_lock(result, "xfs.AGI")
    sites = {site.site: site for site in agi.sites}
    assert part(agi, "bound").acquired == sites["inodegc"].acquired > 0
    others = [site.acquired for name, site in sites.items() if name != "inodegc"]
    assert part(agi, "load").acquired == sum(others) > 0


def test_children_of_the_load_are_of_the_load() -> None:
    settings = ("workload.tasks=4", "machine.cpus=2")
    result = simulate(scenario_spec("compile-24", "tmpfs", *settings, warmup_ns=0, duration_ns=40e6))
    woken = {wakes.kind: wakes.wakeups for wakes in result.wakes}
    assert woken["load"] >= 3 * result.operations  # the shell by gcc's end, gcc by those of cc1 and as


def test_what_stays_beside_an_idle_cpu_is_part_of_all_that_could_move(
    traced: tuple[RunResult, Recount],
) -> None:
    load = of(traced[0].wakes, "load")
    assert 0 <= load.stacked <= load.beside_idle <= load.wakeups
    assert load.stacked <= load.on_previous
    assert load.on_previous + load.on_waker <= load.wakeups


def test_grants_are_those_of_the_trace(traced: tuple[RunResult, Recount]) -> None:
    result, counted = traced
    agi, waited = the_lock(result, "xfs.AGI"), counted.grants["xfs.AGI"]
    grants = [kind.grant_to_run for kind in agi.kinds if kind.grant_to_run]
    before = sum(took.count for took in grants) - len(waited)  # granted before the clock started
    assert before in (0, 1)
    assert len(waited) > 100
    unseen = agi.grant_to_run_ns - sum(waited) / 1000
    assert -1 < unseen <= before * max(waited) / 1000 + 1
    assert max(took.max_ns for took in grants) == pytest.approx(max(waited) / 1000, rel=0.01)


def test_the_time_of_holds_by_state_is_that_of_the_trace(traced: tuple[RunResult, Recount]) -> None:
    result, counted = traced
    agi = the_lock(result, "xfs.AGI")
    known = {state: ps / 1000 for (lock, state), ps in counted.held.items() if lock == "xfs.AGI"}
    assert held(agi, "running") == pytest.approx(known["running"])
    assert held(agi, "granted_behind", "granted_idle") == pytest.approx(known["granted"])
    assert held(agi, "blocked") == pytest.approx(known.get("sleeping", 0.0))
    assert held(agi, "preempted") == pytest.approx(known.get("runnable", 0.0))
    assert agi.hold_total_ns == pytest.approx(sum(known.values()))


@pytest.mark.parametrize(("warmup_ns", "variant"), [(7e6, "xfs-shared"), (9e6, "btrfs-per-task")])
def test_parts_add_up_where_holds_reach_over_the_ends_of_the_window(
    spec: Spec, warmup_ns: float, variant: str
) -> None:
    settings = ("workload.tasks=24", "workload.kind=tmpfile", "workload.pin_to_cpu=null")
    result = simulate(scenario_spec("guest-2cpu", variant, *settings, warmup_ns=warmup_ns, duration_ns=11e6))
    for lock in result.locks:
        assert sum(kind.held_ns for kind in lock.kinds) == pytest.approx(lock.hold_total_ns)
        assert lock.busiest_held_ns <= min(lock.hold_total_ns, result.window_ns) * (1 + 1e-9)
        assert lock.held_shared_ns <= lock.hold_shared_total_ns * (1 + 1e-9)
        for field_ in ("acquired", "contended", "found_held"):
            total = getattr(lock, field_)
            assert sum(getattr(site, field_) for site in lock.sites) == total
            assert sum(getattr(kind, field_) for kind in lock.kinds) == total


def test_a_lock_that_is_never_released_is_held_all_the_time() -> None:
    spec = lock_cycle("semaphore", 2, 2, warmup_ns=1e5, duration_ns=1e6, think_ns=1, hold_ns=1e9)
    lock = the_lock(simulate(spec))
    assert lock.hold_total_ns == lock.busiest_held_ns == pytest.approx(1e6)


PRICES = {"wakeup": 1000, "ipi_send": 300, "ipi_deliver": 700, "context_switch": 1500}
IDLE = [{"name": "C1", "exit_ns": 500, "residency_ns": 0, "watts": 1}]


def test_who_is_granted_a_lock_waits_for_its_cpu_to_leave_idle_and_to_switch() -> None:
    """Two tasks in turn, each on a CPU of its own that idles while the other holds."""
    spec = lock_cycle("semaphore", 2, 2, think_ns=1, hold_ns=10_000, costs=PRICES, idle_states=IDLE)
    result = simulate(spec | {"warmup_ns": 1e6, "duration_ns": 1e8})
    lock, load = the_lock(result), of(result.wakes, "load")
    granted = part(lock, "load")
    assert granted.granted_idle_ns / lock.handoffs == pytest.approx(1000 + 300 + 700 + 500, rel=1e-3)
    assert granted.granted_behind_ns / lock.handoffs == pytest.approx(1500, rel=1e-3)  # the switch itself
    assert granted.grant_to_run is not None
    for took in (granted.grant_to_run, load.to_run_idle):
        assert took.p50_ns == took.p99_ns == pytest.approx(4000, rel=0.01)
    assert load.to_run_busy.count == 0


def test_who_is_granted_a_lock_waits_behind_who_uses_its_cpu() -> None:
    """Three tasks on one CPU; a device has the lock for a while and gives it to one of them while others think."""
    spec = lock_cycle(
        "semaphore", 3, 1, pin_to_cpu=0, think_ns=30_000, hold_ns=1_000, device_ns=25_000, costs=PRICES,
        think_distribution="exponential",
    )  # fmt: skip
    result = simulate(spec | {"warmup_ns": 1e6, "duration_ns": 2e7})
    lock, busy = the_lock(result), of(result.wakes, "load").to_run_busy
    assert busy.count > 0
    assert busy.max_ns > 20_000
    assert part(lock, "load").granted_behind_ns > 1.5 * 1500 * lock.handoffs
    assert part(lock, "load").device_ns > 0.5 * lock.hold_total_ns


def test_a_mutex_that_is_handed_over_counts_the_way_to_its_new_owner() -> None:
    costs = {**PRICES, "line_llc": 50, "line_hit": 2}
    spec = lock_cycle("mutex", 12, 4, think_ns=2_000, hold_ns=5_000, costs=costs, idle_states=IDLE)
    lock = the_lock(simulate(spec | {"warmup_ns": 1e6, "duration_ns": 5e7}))
    grants = part(lock, "load").grant_to_run
    assert lock.handoffs > 10
    assert grants is not None
    assert grants.count == pytest.approx(lock.handoffs, abs=1)


def test_a_histogram_tells_how_many_values_lie_above_one() -> None:
    histogram = _engine.Histogram(2)
    for us in range(1, 2001):
        histogram.record(us * 1000)
    assert histogram.above(1_000_000) == pytest.approx(1000, abs=10)
    assert histogram.above(3_000_000) == 0


@pytest.mark.parametrize("queue", [True, False])
def test_an_idle_cpu_does_the_rest_of_a_queued_wakeup(queue: bool) -> None:
    """The waker pays 400 ns of 1000; until the woken task runs it takes as long as ever."""
    costs = {**PRICES, "wakeup_queued": 400}
    kernel = {"rules": {"sched.wakeup_queue": queue}}
    spec = lock_cycle(
        "semaphore", 2, 2, think_ns=1, hold_ns=10_000, costs=costs, idle_states=IDLE, kernel=kernel
    )
    result = simulate(spec | {"warmup_ns": 1e6, "duration_ns": 1e8})
    lock = the_lock(result)
    granted, rest = part(lock, "load"), 600 * queue
    assert granted.granted_idle_ns / lock.handoffs == pytest.approx(1000 - rest + 300 + 700 + 500, rel=1e-3)
    assert granted.granted_behind_ns / lock.handoffs == pytest.approx(1500 + rest, rel=1e-3)
    assert of(result.wakes, "load").to_run_idle.p50_ns == pytest.approx(4000, rel=0.01)


@pytest.mark.parametrize(("sockets", "lines", "back"), [(1, 0, 0), (2, 11, 8)])
def test_a_wakeup_of_another_socket_waits_longer_for_its_lines(sockets: int, lines: int, back: int) -> None:
    """Each of them takes 100 ns more; the waker pays for its own, the sleeper's CPU for those that it fetches back."""
    costs = {**PRICES, "line_llc": 0, "line_socket": 0, "line_remote": 100, "line_hit": 0}
    spec = lock_cycle("semaphore", 2, 2, think_ns=1, hold_ns=10_000, costs=costs, idle_states=IDLE)
    spec["machine"] |= {"cpus_per_socket": 2 // sockets, "cpus_per_llc": 2 // sockets}
    result = simulate(spec | {"warmup_ns": 1e6, "duration_ns": 1e8})
    granted, handoffs = part(the_lock(result), "load"), the_lock(result).handoffs
    assert granted.granted_behind_ns / handoffs == pytest.approx(1500 + 100 * back, rel=1e-3)
    assert granted.granted_idle_ns / handoffs == pytest.approx(2500 + 100 * lines, abs=300 * (sockets - 1))
    assert_same(spec | window(1e6))


RULES = ("waits", "queues_beside_one", "queues_alone", "dequeued_first")


def in_turn(think: float, rule: str, **costs: float) -> Spec:
    """Two tasks in turn; until a sleeper has left its queue a CPU takes 734 ns of a switch of 1,500.

    Who waits for that has done 63 ns of the wake-up before.
    """
    prices = {**PRICES, "instruction": 0.5, **costs}
    kernel = {"rules": {"sched.descheduling": rule, "sched.wakeup_queue": rule != "queues_beside_one"}}
    spec = lock_cycle(
        "semaphore", 2, 2, think_ns=think, hold_ns=10_000, costs=prices, idle_states=IDLE, kernel=kernel
    )
    return spec | window(2e7)


def time_of_a_hand_over(spec: Spec) -> float:
    result = simulate(spec)
    assert the_lock(result).handoffs == pytest.approx(result.operations, abs=2)
    return result.window_ns / result.operations


BEING_DEQUEUED, SWITCHING, ASLEEP = 12_000, 11_300, 8_000
"""Times between two holds with which a task asks for the lock so shortly, or long, before the other one releases it."""


@pytest.mark.parametrize(
    ("think", "rule", "least", "most"),
    [
        (BEING_DEQUEUED, "waits", 703, 1500),
        (BEING_DEQUEUED, "queues_alone", 703, 1500),
        (BEING_DEQUEUED, "dequeued_first", 703, 1500),
        (SWITCHING, "waits", 1, 766),
    ],
)
def test_who_wakes_a_task_that_its_cpu_has_not_switched_from_waits(
    think: float, rule: str, least: float, most: float
) -> None:
    at_once = time_of_a_hand_over(in_turn(think, "queues_beside_one"))
    assert least < time_of_a_hand_over(in_turn(think, rule)) - at_once < most


def test_who_wakes_a_task_that_its_cpu_has_switched_from_does_not_wait() -> None:
    assert len({time_of_a_hand_over(in_turn(ASLEEP, rule)) for rule in RULES}) == 1


@pytest.mark.parametrize("think", [BEING_DEQUEUED, SWITCHING])
@pytest.mark.parametrize("rule", RULES)
def test_both_machines_agree_on_who_waits_for_a_switch(think: float, rule: str) -> None:
    assert_same(in_turn(think, rule, wakeup_queued=400) | {"duration_ns": 1e6})


@pytest.mark.parametrize("rule", RULES)
def test_both_machines_agree_on_switches_to_others(rule: str) -> None:
    """More tasks than CPUs, under two caches: whose CPU has others to run, or is under another cache."""
    costs = {**PRICES, "instruction": 0.5, "wakeup_queued": 400, "resched_serve": 300}
    kernel = {"rules": {"sched.descheduling": rule}}
    spec = lock_cycle("mutex", 9, 4, think_ns=3e3, hold_ns=2e3, costs=costs, kernel=kernel)
    spec["workload"]["params"] |= {"think_distribution": "exponential", "hold_distribution": "exponential"}
    spec["machine"] |= {"cpus_per_llc": 2, "idle_states": IDLE}
    assert_same(spec)
