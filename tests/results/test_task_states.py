"""The time line: a partition of time, and the same totals as the statistics of the run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Spec, lock_cycle, scenario_spec, the_lock
from simfs import _engine
from simfs.machine.recorder import Event
from simfs.results.run_result import RunResult
from simfs.results.timeline import Doing, Interval, Ran, State, Timeline, follow, state_of

KINDS = ("semaphore", "mutex-4.10", "rwsem-5.11", "qspinlock", "qrwlock", "ticket")
PRICES = {"context_switch": 1500.0, "wakeup": 1000.0, "ipi_deliver": 500.0}


def watched(spec: Spec, start: int = 0) -> tuple[RunResult, Timeline]:
    end = round((spec["warmup_ns"] + spec["duration_ns"]) * 1000)
    text, in_force, events, _ = _engine.watch(json.dumps(spec), start=start)
    return RunResult.model_validate_json(text), follow(in_force, events, start, end)


def partitions(parts: Sequence[Interval | Ran], begin: int, end: int) -> bool:
    """Whether the parts cover the window in order, without gap or overlap."""
    gapless = all(before.end == after.begin for before, after in pairwise(parts))
    return parts[0].begin == begin and parts[-1].end == end and gapless


@settings(max_examples=30, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    tasks=st.integers(1, 9),
    cpus=st.integers(1, 4),
    start=st.integers(0, 390_000_000),
    readers=st.sampled_from([0.0, 0.5]),
)
def test_each_task_does_one_thing_at_a_time_and_each_cpu_runs_one(
    kind: str, tasks: int, cpus: int, start: int, readers: float
) -> None:
    shared = readers if kind.startswith(("rw", "qrw")) else 0.0
    spec = lock_cycle(
        kind, tasks, cpus, duration_ns=4e5, costs=PRICES, hold_ns=4e3, think_ns=9e3, readers=shared
    )
    _, line = watched(spec, start)
    assert len(line.tasks) == tasks
    for intervals in line.tasks.values():
        assert partitions(intervals, line.begin, line.end)
        assert not any(set(each.granted) - set(each.holds) for each in intervals)
    assert all(partitions(ran, line.begin, line.end) for ran in line.cpus.values())
    running = Counter[tuple[int, int, int, int]]()
    for number, intervals in line.tasks.items():
        running.update(merged(number, intervals))
    assert running == Counter(
        (ran.task, cpu, ran.begin, ran.end)
        for cpu, parts in line.cpus.items()
        for ran in parts
        if ran.task is not None
    )


def merged(task: int, intervals: list[Interval]) -> list[tuple[int, int, int, int]]:
    """When and where a task ran, whatever it held meanwhile."""
    found: list[tuple[int, int, int, int]] = []
    for each in intervals:
        if each.doing is not Doing.RUN:
            continue
        if found and found[-1][1:] == (each.cpu, found[-1][2], each.begin):
            found[-1] = (*found[-1][:3], each.end)
        else:
            found.append((task, each.cpu, each.begin, each.end))
    return found


def held(line: Timeline, focus: str) -> Counter[str]:
    """Time of exclusive holds of one lock, by what the holder did."""
    time = Counter[str]()
    for intervals in line.tasks.values():
        for each in intervals:
            if focus in each.holds:
                granted = focus in each.granted and each.doing is Doing.RUNNABLE
                time["granted" if granted else each.doing] += each.end - each.begin
    return time


@pytest.mark.parametrize("kind", ["semaphore", "mutex-3.10", "mutex-4.10"])
def test_the_totals_are_those_of_the_run(kind: str) -> None:
    spec = lock_cycle(kind, 8, 3, duration_ns=2e6, costs=PRICES, hold_ns=4e3, think_ns=9e3)
    result, line = watched(spec)
    lock = the_lock(result, "lock")
    (name,) = {span.about for span in line.of("hold") if span.about.startswith("lock#")}
    time = {what: ps / 1000 for what, ps in held(line, name).items()}
    kinds = lock.kinds
    assert time[Doing.RUN] == pytest.approx(sum(each.running_ns for each in kinds))
    assert time.get(Doing.ASLEEP, 0) == pytest.approx(sum(each.blocked_ns for each in kinds))
    waited = sum(each.granted_behind_ns + each.granted_idle_ns for each in kinds)
    assert time.get("granted", 0) == pytest.approx(waited)
    assert time.get(Doing.RUNNABLE, 0) == pytest.approx(sum(each.preempted_ns for each in kinds))
    assert sum(1 for span in line.of("hold") if span.about == name) == lock.acquired
    idle = sum(ran.end - ran.begin for parts in line.cpus.values() for ran in parts if ran.idle) / 1000
    assert idle <= result.cpu_ns.idle


def test_waits_add_up_to_those_of_the_run() -> None:
    """Of a lock whose waiters run when they have it: no grants."""
    spec = lock_cycle("qspinlock", 6, 6, duration_ns=1e6, hold_ns=4e3, think_ns=9e3)
    result, line = watched(spec)
    lock = the_lock(result, "lock")
    spans = [span for span in line.of("wait") if span.about.startswith("lock#")]
    total = sum((span.end or line.end) - span.begin for span in spans)
    over = sum(span.end - span.begin for span in spans if span.end is not None)
    assert over / 1000 == pytest.approx(lock.wait_total_ns)
    assert sum(span.end is None for span in spans) == lock.still_waiting
    spun = sum(
        each.end - each.begin
        for intervals in line.tasks.values()
        for each in intervals
        if state_of(each, frozenset()) is State.SPINS
    )
    assert spun == total
    queue = line.waiting(frozenset({spans[0].about}))
    area = sum(n * (until - since) for (since, n), (until, _) in pairwise([*queue, (line.end, 0)]))
    assert area == total


def events(*rows: tuple[int, int | None, str, str]) -> list[Event]:
    return [(time, task, 0 if task is None else task, what, about) for time, task, what, about in rows]


def test_a_grant_shows_a_holder_that_does_not_run() -> None:
    line = follow(
        events((-9, 1, "sleep", ""), (-9, 0, "run", ""), (-9, 1, "wait", "a#1"), (-8, 0, "acquire", "a#1")),
        events(
            (10, 0, "segment end", ""),
            (10, 0, "release", "a#1"),
            (10, 1, "acquire", "a#1"),
            (12, 1, "wake", ""),
            (30, 1, "run", ""),
            (40, 1, "release", "a#1"),
        ),
        0,
        50,
    )
    focus = frozenset({"a#1"})
    states = [(state_of(each, focus), each.begin) for each in line.tasks[1]]
    assert states == [
        (State.WAITS, 0),
        (State.GRANTED, 10),
        (State.GRANTED, 12),
        (State.HOLDS, 30),
        (State.RUNS, 40),
    ]
    assert line.tasks[1][0].woken_by == "task 0"
    (over,) = line.hand_overs
    assert (over.giver, over.released, over.taker, over.acquired) == (0, 10, 1, 10)
    assert line.waiting(focus) == [(0, 1), (10, 0)]


def test_sleeps_end_by_a_device_a_timer_or_a_task() -> None:
    told = [
        (20, None, "device done", "device#0"),
        (20, 1, "wake", ""),
        (30, 2, "timer", ""),
        (30, 2, "wake", ""),
    ]
    asleep = [(0, task, "sleep", "") for task in (1, 2, 3)]
    line = follow([], events(*asleep, *told), 0, 50)
    first = [line.tasks[task][0] for task in (1, 2, 3)]
    assert [each.woken_by for each in first] == ["device#0", "timer", ""]
    states = [state_of(each, frozenset()) for each in first]
    assert states == [State.DEVICE, State.SLEEPS, State.SLEEPS]


def test_a_lock_that_a_device_has_is_not_its_tasks() -> None:
    held = events(
        (0, 1, "run", ""),
        (0, 1, "acquire", "a#1"),
        (10, 1, "hand to device", "a#1"),
        (40, 1, "release", "a#1"),
    )
    line = follow([], held, 0, 50)
    assert [bool(each.holds) for each in line.tasks[1]] == [True, False, False]


def test_a_whole_filesystem_is_followed_from_the_middle() -> None:
    spec = scenario_spec("compile-24", "xfs", "workload.tasks=6", warmup_ns=0.0, duration_ns=60e6)
    _, line = watched(spec, 40_000_000_000)
    assert all(partitions(parts, line.begin, line.end) for parts in line.tasks.values())
    assert all(partitions(parts, line.begin, line.end) for parts in line.cpus.values())
    assert any(span.kind == "operation" for span in line.spans)
