"""Calls whose code and data were driven out of the caches, against sums by hand and a list of all that was used."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from math import sqrt
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from machines import assert_same

from engine import Spec, lock_cycle, scenario_spec
from simfs import _engine, machine
from simfs._engine import Step, Task

MIB = 1 << 20
CORE, LLC = MIB, 16 * MIB
NEAR, FAR, OVERLAP = 50.0, 150.0, 10.0
LINES = 400.0
"""Of the first microsecond."""

CACHES = {
    "core_bytes": CORE,
    "llc_bytes": LLC,
    "llc_ns": NEAR,
    "memory_ns": FAR,
    "memory_bandwidth": 1e10,
    "code_lines": LINES,
}
MACHINES = pytest.mark.parametrize("trace", [_engine.trace, machine.trace], ids=["native", "reference"])

Program = Generator[Step, Any, None]
Act = tuple[str, float]
"""A call by its site and time (ns), or `use` or `code` and bytes."""


def spec(cpus: int = 1, tasks: int = 1, **machine_changes: object) -> Spec:
    made = lock_cycle(tasks=tasks, cpus=cpus, duration_ns=1e9, costs={"line_overlap": OVERLAP})
    made["machine"] |= {"caches": CACHES, **machine_changes}
    return made | {"workload": {"kind": "python", "tasks": tasks, "params": {}}}


def act(task: Task, acts: Sequence[Act]) -> Program:
    for what, amount in acts:
        if what in {"use", "code"}:
            yield (task.use_memory if what == "use" else task.use_code)(int(amount))
            yield task.run(1)
        else:
            yield task.begin()
            yield task.at(what)
            yield task.run(amount, "system")
            yield task.end(what)


def times(trace: Callable[..., Any], worker: Callable[[Task], Program], given_spec: Spec) -> list[float]:
    """How long the calls took (ns), in their order."""
    _, events = trace(json.dumps(given_spec), worker, None)
    begins = [event[0] for event in events if event[3] == "begin"]
    ends = [event[0] for event in events if event[3] == "end"]
    return [(end - begin) / 1000 for begin, end in zip(begins, ends, strict=True)]


def played(trace: Callable[..., Any], acts: Sequence[Act], **changes: Any) -> list[float]:  # noqa: ANN401
    def worker(task: Task) -> Program:
        yield from act(task, acts)
        yield task.sleep(1e12)

    return times(trace, worker, spec(**changes))


WARM_UP: list[Act] = [("a", 4000), ("b", 2000), ("a", 4000), ("b", 2000)]


@MACHINES
def test_a_loop_that_does_nothing_else_stays_warm(trace: Callable[..., Any]) -> None:
    assert played(trace, WARM_UP)[2:] == [4000, 2000]


@MACHINES
@pytest.mark.parametrize(("walked", "line"), [(2 * MIB, NEAR), (32 * MIB, FAR)])
def test_a_call_fetches_its_lines_from_the_nearest_cache_that_has_them(
    trace: Callable[..., Any], walked: int, line: float
) -> None:
    """400 sqrt(4) = 800 lines of the first call; 400 (sqrt(6) - sqrt(4)) = 179.8 of the second, which shares some."""
    a, b = played(trace, [*WARM_UP, ("use", walked), ("a", 4000), ("b", 2000)])[4:]
    assert a == pytest.approx(4000 + 800 * line / OVERLAP, rel=1e-4)
    assert b == pytest.approx(2000 + 179.8 * line / OVERLAP, rel=1e-3)


@MACHINES
def test_half_of_the_lines_are_gone_after_as_much_as_the_cache_holds(trace: Callable[..., Any]) -> None:
    a = played(trace, [*WARM_UP, ("use", MIB), ("a", 4000)])[4]
    assert a == pytest.approx(4000 + 0.5 * 800 * NEAR / OVERLAP, rel=1e-3)


@MACHINES
def test_little_memory_costs_nothing(trace: Callable[..., Any]) -> None:
    assert played(trace, [*WARM_UP, ("use", MIB // 2), ("a", 4000)])[4] == 4000


@MACHINES
def test_lines_are_counted_by_the_time_of_the_traced_machine(trace: Callable[..., Any]) -> None:
    """On a machine that is half as fast the same code takes 8000 ns."""
    slow = spec()["machine"]["costs"] | {"speed": 2.0}
    a = played(trace, [*WARM_UP, ("use", 2 * MIB), ("a", 8000)], costs=slow)[4]
    assert a == pytest.approx(8000 + 800 * NEAR / OVERLAP, rel=1e-4)


@MACHINES
def test_another_core_is_cold_until_the_call_was_made_there(trace: Callable[..., Any]) -> None:
    """The last-level cache, which both share, has the lines."""

    def elsewhere(task: Task) -> Program:
        yield from act(task, [("a", 4000), ("a", 4000)])

    def worker(task: Task) -> Program:
        yield from act(task, [("a", 4000), ("a", 4000)])
        yield task.spawn(elsewhere, pinned=1)
        yield task.sleep(1e12)

    cold, again = times(trace, worker, spec(cpus=2))[2:]
    assert cold == pytest.approx(4000 + 800 * NEAR / OVERLAP, rel=1e-4)
    assert again == 4000


BODIES = [
    {"calls": ["x", "y"], "lines": 300},
    {"calls": ["x"], "lines": 500},
    {"calls": ["y"], "lines": 200},
]


@MACHINES
def test_a_call_whose_lines_were_counted_misses_those_that_no_other_has_used_since(
    trace: Callable[..., Any],
) -> None:
    """800 lines of `x`; then the 200 of `y` alone, of whose 500 `x` has brought in the others."""
    warm: list[Act] = [("x", 4000), ("y", 2000), ("x", 4000), ("y", 2000)]
    took = played(
        trace,
        [*warm, ("use", 2 * MIB), ("x", 4000), ("y", 2000), ("x", 4000)],
        caches=CACHES | {"bodies": BODIES},
    )
    cost = NEAR / OVERLAP
    assert took[2:] == [4000, 2000, 4000 + 800 * cost, 2000 + 200 * cost, 4000]


@MACHINES
def test_a_counted_call_fetches_its_lines_evenly_over_its_time(trace: Callable[..., Any]) -> None:
    """Its first quarter brings in a quarter of its 500 lines, as long as it takes as long as the last one."""

    def worker(task: Task) -> Program:
        yield from act(task, [("y", 4000), ("use", 2 * MIB)])
        yield task.at("y")
        yield task.begin()
        yield task.run(1000, "system")
        yield task.end("quarter")
        yield task.sleep(1e12)

    took = times(trace, worker, spec(caches=CACHES | {"bodies": BODIES}))
    assert took[1] == 1000 + 125 * NEAR / OVERLAP


@MACHINES
def test_a_counted_call_on_another_core_finds_its_lines_in_the_cache_that_both_share(
    trace: Callable[..., Any],
) -> None:
    def elsewhere(task: Task) -> Program:
        yield from act(task, [("y", 2000), ("y", 2000)])

    def worker(task: Task) -> Program:
        yield from act(task, [("x", 4000), ("y", 2000)])
        yield task.spawn(elsewhere, pinned=1)
        yield task.sleep(1e12)

    cold, again = times(trace, worker, spec(cpus=2, caches=CACHES | {"bodies": BODIES}))[2:]
    assert (cold, again) == (2000 + 500 * NEAR / OVERLAP, 2000)


KNOWN, STALL = 7.0, 3.0
FRONT_END = {"front_end_bytes": MIB / 4, "front_end_ns": KNOWN, "front_end_stall_ns": STALL}


@MACHINES
@pytest.mark.parametrize(
    ("before", "line"),
    [
        (("use", 3 * MIB / 8), 0),
        (("code", MIB / 8), 0),
        (("code", MIB / 4), KNOWN / 2),
        (("code", 3 * MIB / 8), KNOWN),
        (("use", 2 * MIB), NEAR / OVERLAP),
        (("code", 2 * MIB), NEAR / OVERLAP + KNOWN + STALL),
        (("code", 32 * MIB), FAR / OVERLAP + KNOWN + STALL),
    ],
)
def test_code_drives_a_calls_branches_out_of_the_front_end_and_data_do_not(
    trace: Callable[..., Any], before: Act, line: float
) -> None:
    """Of 800 lines, be they counted (`x`) or not."""
    caches = CACHES | FRONT_END | {"bodies": BODIES}
    warm: list[Act] = [("a", 4000), ("x", 4000), ("a", 4000), ("x", 4000)]
    assert played(trace, [*warm, before, ("x", 4000)], caches=caches)[4] == 4000 + 800 * line
    uncounted = played(trace, [("a", 4000), ("a", 4000), before, ("a", 4000)], caches=CACHES | FRONT_END)[2]
    assert uncounted == pytest.approx(4000 + 800 * line, rel=1e-3)


@MACHINES
def test_a_call_brings_its_branches_in_for_others(trace: Callable[..., Any]) -> None:
    """`x` has brought in 300 of the 500 lines of `y`."""
    acts = [("x", 4000), ("y", 2000), ("code", 3 * MIB / 8), ("x", 4000), ("y", 2000), ("y", 2000)]
    took = played(trace, acts, caches=CACHES | FRONT_END | {"bodies": BODIES})[2:]
    assert took == [4000 + 800 * KNOWN, 2000 + 200 * KNOWN, 2000]


WALK = 9.0
TLB = {"tlb_bytes": MIB / 4, "tlb_walk_ns": WALK}
PAGED = [body | {"pages": pages} for body, pages in zip(BODIES, (30, 50, 20), strict=True)]


@MACHINES
@pytest.mark.parametrize(
    ("walked", "line", "page"),
    [
        (MIB / 8, 0, 0),
        (3 * MIB / 8, 0, WALK),
        (2 * MIB, NEAR / OVERLAP, WALK + NEAR),
        (32 * MIB, FAR / OVERLAP, WALK + FAR),
    ],
)
def test_a_page_whose_translation_is_missing_takes_a_walk_to_where_the_lines_are(
    trace: Callable[..., Any], walked: float, line: float, page: float
) -> None:
    """80 pages of `x`; it has brought in all but 20 of those of `y`. Walks are waited for, and lines overlap."""
    warm: list[Act] = [("x", 4000), ("y", 2000), ("x", 4000), ("y", 2000)]
    took = played(
        trace, [*warm, ("use", walked), ("x", 4000), ("y", 2000)], caches=CACHES | TLB | {"bodies": PAGED}
    )
    assert took[4:] == [4000 + 800 * line + 80 * page, 2000 + 200 * line + 20 * page]


@MACHINES
def test_half_of_the_translations_are_gone_after_as_many_pages_as_the_tlb_has(
    trace: Callable[..., Any],
) -> None:
    acts: list[Act] = [("x", 4000), ("x", 4000), ("use", MIB / 4), ("x", 4000)]
    assert played(trace, acts, caches=CACHES | TLB | {"bodies": PAGED})[2] == 4000 + 40 * WALK


@MACHINES
def test_a_machine_that_says_nothing_of_its_tlb_misses_no_translation(trace: Callable[..., Any]) -> None:
    acts: list[Act] = [("x", 4000), ("use", 2 * MIB), ("x", 4000)]
    paged, unpaged = CACHES | {"tlb_walk_ns": WALK, "bodies": PAGED}, CACHES | {"bodies": BODIES}
    assert played(trace, acts, caches=paged) == played(trace, acts, caches=unpaged)


class Listed:
    """The same from a list of all that was used: no counters, no marks."""

    def __init__(self) -> None:
        self.used: list[tuple[str, float]] = []
        """Who used how many bytes; calls also by what they brought in."""

    def gone(self, cache: float, since: str) -> float:
        """The part that is gone of the lines of the last call of a kind."""
        last = max((i for i, (who, _) in enumerate(self.used) if who == since), default=None)
        if last is None:
            return 1
        count = sum(count for _, count in self.used[last:])
        return min(max((count - cache / 2) / cache, 0), 1)


@pytest.mark.slow
@example([("use", 3 * MIB), ("a", 4000), ("use", 0.7 * MIB), ("b", 10), ("a", 4000)])
@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from([100.0, 1500.0, 4000.0])),
            st.tuples(st.just("use"), st.floats(0.01, 4).map(lambda part: part * MIB)),
        ),
        min_size=2,
        max_size=12,
    )
)
def test_calls_cost_what_a_list_of_all_uses_says(acts: list[Act]) -> None:
    """In the core's cache; the last-level cache holds all that this uses."""
    acts = [*WARM_UP, ("c", 1000.0), *acts]
    listed, expected, warm, between = Listed(), [], 0.0, 0.0
    for what, amount in acts:
        if what == "use":
            listed.used.append((what, int(amount)))
            between += int(amount)
            continue
        if between > CORE / 2:
            warm = 0
        missing, between = listed.gone(CORE, what), 0.0
        lines = missing * LINES * (sqrt((warm + amount) / 1000) - sqrt(warm / 1000))
        warm += amount
        first = what not in [who for who, _ in listed.used]
        listed.used.append((what, 64 * lines))
        expected.append(None if first else amount + lines * NEAR / OVERLAP)
    took_all = played(_engine.trace, acts, caches=CACHES | {"llc_bytes": 2**40})
    for took, said in zip(took_all, expected, strict=True):
        assert said is None or took == pytest.approx(said, rel=2e-3, abs=2)


def test_a_machine_whose_code_has_no_lines_is_one_without_caches() -> None:
    cold = scenario_spec("guest-cold", "xfs", "sweep={}", warmup_ns=1e6, duration_ns=2e6)
    cold["workload"]["params"] |= {"footprint_bytes": 4 * MIB}
    none = cold["machine"]["caches"] | {"code_lines": 0}

    def trace(caches: dict[str, float] | None) -> Any:  # noqa: ANN401
        return _engine.trace(json.dumps(cold | {"machine": cold["machine"] | {"caches": caches}}))[1]

    assert trace(none) == trace(None) != trace(cold["machine"]["caches"])


@pytest.mark.parametrize("variant", ["xfs", "tmpfs", "ext4", "btrfs"])
def test_both_machines_agree_on_cold_filesystems(variant: str) -> None:
    cold = scenario_spec("guest-cold", variant, "sweep={}", warmup_ns=0, duration_ns=3e5)
    cold["workload"] |= {"tasks": 3, "pin_to_cpu": None}
    cold["workload"]["params"] |= {"footprint_bytes": 48 * MIB, "code_bytes": MIB / 3}
    assert assert_same(cold) > 100


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"core_bytes": 0}, "machine.caches.core_bytes: must be between 64 and 2^40"),
        ({"front_end_bytes": -1}, "machine.caches.front_end_bytes: must be between 0 and 2^40"),
        ({"front_end_ns": -1}, "machine.caches.front_end_ns: must be between 0 and 10,000"),
        ({"front_end_stall_ns": 1e5}, "machine.caches.front_end_stall_ns: must be between 0 and 10,000"),
        ({"code_lines": -1}, "machine.caches.code_lines: must be between 0 and 10,000"),
        (
            {"bodies": [{"calls": [], "lines": -1}]},
            "machine.caches.bodies: must have between 0 and 1,000,000 lines and pages each",
        ),
        ({"tlb_bytes": -1}, "machine.caches.tlb_bytes: must be between 0 and 2^40"),
        ({"tlb_walk_ns": 1e5}, "machine.caches.tlb_walk_ns: must be between 0 and 10,000"),
    ],
)
def test_caches_that_cannot_be_are_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("^", r"\^")):
        _engine.run(json.dumps(spec(caches=CACHES | change)), lambda task: act(task, []), None)


def test_a_program_cannot_use_more_memory_than_there_is() -> None:
    for step in (Task.use_memory, Task.use_code):
        with pytest.raises(ValueError, match="at most 1099511627776 bytes"):
            step(2**41)
