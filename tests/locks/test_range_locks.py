"""Range locks as a workload: laws under random loads, and what their indices must cost by the rules of cache lines."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import FREE, Spec, answer, lock_cycle, rate, simulate, the_lock
from simfs.scenario import ScenarioError, expand, load, to_run_spec
from simfs.scenario.models import load_machine, load_workload

AROUND = {"interval-tree": "qspinlock", "btree": "mutex", "optimistic": "mutex", "rwsem": "rwsem"}
LINES = {
    "line_hit": 2,
    "line_llc": 50,
    "line_socket": 50,
    "line_smt": 50,
    "line_remote": 50,
    "line_overlap": 10,
    "step_cv": 0,
    "smt_speed": 1.0,
}


def range_lock(
    design: str,
    tasks: int,
    cpus: int | None = None,
    *,
    lock: str | None = None,
    **params: Any,  # noqa: ANN401
) -> Spec:
    """A RunSpec of tasks that lock ranges, on a machine whose lines alone cost time."""
    spec = lock_cycle(tasks=tasks, cpus=cpus, costs={**FREE, **LINES}, warmup_ns=2e5, duration_ns=1e6)
    spec["kernel"]["locks"] = {"range_lock": lock or AROUND[design]}
    own = load_workload("range_lock").spec()
    spec["workload"] = {
        "kind": "range_lock",
        "tasks": tasks,
        "params": {**own, "hold_ns": 0, "design": design, **params},
    }
    return spec


def throughput(design: str, tasks: int, **params: Any) -> float:  # noqa: ANN401
    """Locks and unlocks a nanosecond."""
    return rate(simulate(range_lock(design, tasks, **params)))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    design=st.sampled_from(["interval-tree", "btree", "optimistic", "rwsem"]),
    pthread=st.booleans(),
    tasks=st.integers(1, 12),
    cpus=st.integers(1, 8),
    units=st.sampled_from([1, 3, 20, 500]),
    length=st.sampled_from([1, 2, 10]),
    readers=st.sampled_from([0.0, 0.5, 1.0]),
    hold=st.sampled_from([1, 200, 5000]),
    shuffle=st.booleans(),
)
def test_nobody_holds_what_excludes_another_and_nobody_is_stuck_under_any_load(
    design: str,
    pthread: bool,
    shuffle: bool,
    **load: Any,  # noqa: ANN401
) -> None:
    hold = load.pop("hold")
    spec = range_lock(
        design,
        load.pop("tasks"),
        load.pop("cpus"),
        index_lock="pthread" if pthread else "kernel",
        ranges="shared",
        hold_ns=hold,
        hold_distribution="exponential",
        think_ns=100,
        think_distribution="exponential",
        **load,
    )
    spec["machine"] = load_machine("server-24").spec(spec["machine"]["cpus"])
    result = simulate(spec | {"shuffle_ties": shuffle})
    assert result.stall is None
    assert result.operations > 0


@pytest.mark.parametrize(("design", "hits"), [("interval-tree", 9), ("btree", 12), ("optimistic", 19)])
def test_one_task_alone_pays_two_searches_and_a_hit_for_each_line_it_uses(design: str, hits: int) -> None:
    """Interval tree: the spinlock's line four times, count and root beside it, its node written, blackened, read.

    The others counted in the same way.
    """
    work = load_workload("range_lock").spec()[design.replace("-", "_") + "_work_ns"]
    assert 1 / throughput(design, 1) == pytest.approx(2 * work + hits * LINES["line_hit"], rel=1e-3)


def test_a_task_alone_on_an_rwsem_pays_two_line_hits() -> None:
    assert 1 / throughput("rwsem", 1) == pytest.approx(2 * LINES["line_hit"])


@pytest.mark.parametrize(("tasks", "transfers"), [(2, 2.5), (8, 3), (16, 3)])
def test_shared_holders_of_an_rwsem_pay_three_line_transfers_a_pair_where_others_wait(
    tasks: int, transfers: float
) -> None:
    """The counts of coming and going, and the owner word that a reader looks at; beside one other it may be there."""
    each = transfers * LINES["line_llc"]
    assert 1 / throughput("rwsem", tasks, readers=1.0) == pytest.approx(each, rel=0.01)


def test_the_interval_tree_is_bound_by_its_spinlock_and_gains_nothing_by_more_tasks() -> None:
    work = load_workload("range_lock").spec()["interval_tree_work_ns"]
    rates = [throughput("interval-tree", tasks, outstanding=16) for tasks in (1, 2, 4, 8, 16)]
    assert all(later < 1.03 * earlier for earlier, later in pairwise(rates))
    assert rates[4] < 0.9 * rates[1] < 0.5 * rates[0]
    # Two holds, each of which gets at least the lock's word from another CPU.
    floor = 2 * (work + LINES["line_llc"])
    assert all(1 / x > floor for x in rates[1:])


def mean_hold(design: str, tasks: int, **params: Any) -> float:  # noqa: ANN401
    """Mean time that the lock around an index is held, with the same lock and search for all designs."""
    spec = range_lock(design, tasks, lock="qspinlock", ranges="interleaved", btree_work_ns=80, **params)
    lock = the_lock(simulate(spec), "range_lock.tree")
    return lock.hold_total_ns / lock.acquired


def test_packed_records_cost_fewer_transfers_than_a_node_for_each() -> None:
    """Chasing pointers through nodes that others wrote costs more than reading leaves, the more there are."""
    transfer = LINES["line_llc"]
    tree_of_few, tree_of_many = (mean_hold("interval-tree", 8, outstanding=n) for n in (1, 200))
    leaves_of_few, leaves_of_many = (mean_hold("btree", 8, outstanding=n) for n in (1, 200))
    assert tree_of_few > leaves_of_few + transfer
    assert tree_of_many > leaves_of_many + 4 * transfer
    assert leaves_of_many < leaves_of_few + 2 * transfer


def test_tasks_at_leaves_of_their_own_scale_with_optimistic_lock_coupling() -> None:
    alone = throughput("optimistic", 1, outstanding=64)
    assert throughput("optimistic", 8, outstanding=64) > 6.5 * alone


def test_who_always_removes_the_first_record_of_a_leaf_writes_above_it_and_ends_the_scaling() -> None:
    """Keys follow a child's first record: ranges unlocked in order change the nodes that tasks share."""
    in_order, anywhere = (
        throughput("optimistic", 16, outstanding=100, order=order) for order in ("batches", "rotating")
    )
    assert in_order < 0.6 * anywhere


def test_tasks_at_one_leaf_gain_nothing_from_optimistic_lock_coupling() -> None:
    assert throughput("optimistic", 8) < 1.2 * throughput("optimistic", 1)


def test_neighbours_of_different_tasks_make_optimistic_searches_begin_again() -> None:
    results = {
        ranges: simulate(range_lock("optimistic", 8, outstanding=64, ranges=ranges))
        for ranges in ("per-task", "interleaved")
    }
    restarts = {ranges: r.latency["restart"].count / r.operations for ranges, r in results.items()}
    assert restarts["interleaved"] > 2 * restarts["per-task"]


def test_at_many_tasks_the_optimistic_tree_beats_the_mutex_and_the_mutex_the_interval_tree() -> None:
    rates = [throughput(design, 16, outstanding=64) for design in ("optimistic", "btree", "interval-tree")]
    assert rates == sorted(rates, reverse=True)


def test_disjoint_holders_overlap_under_range_locks_and_not_under_an_rwsem() -> None:
    hold = 20_000.0
    whole = throughput("rwsem", 8, hold_ns=hold)
    assert whole <= 1 / hold
    for design in ("interval-tree", "btree", "optimistic"):
        assert throughput(design, 8, hold_ns=hold) > 0.9 * 8 / hold


@pytest.mark.parametrize("design", AROUND)
def test_the_same_seed_gives_the_same_bytes(design: str) -> None:
    spec = range_lock(design, 6, 3, ranges="shared", units=10, hold_ns=500, hold_distribution="exponential")
    assert answer(spec) == answer(spec)


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"design": "list"}, 'workload.params.design: "list" is not one of interval-tree, btree'),
        ({"ranges": "any"}, 'workload.params.ranges: "any" is not one of per-task, interleaved, shared'),
        ({"outstanding": 0}, "workload.params.outstanding: must be between 1 and 2^20"),
        ({"order": "any"}, 'workload.params.order: "any" is not one of rotating, batches'),
        ({"order": "batches", "ranges": "shared"}, "workload.params.order: ranges that may have to wait"),
        ({"outstanding": 2, "ranges": "shared"}, "workload.params.outstanding: a task that may have to wait"),
    ],
)
def test_a_bad_parameter_is_an_error_that_names_it(params: dict[str, Any], complaint: str) -> None:
    spec = range_lock("btree", 1)
    spec["workload"]["params"] |= params
    with pytest.raises(ValueError, match=complaint.replace("^", r"\^")):
        answer(spec)


def test_a_scenario_of_waiting_tasks_with_several_ranges_each_is_refused_where_it_says_so() -> None:
    with pytest.raises(ScenarioError, match="a task that may have to wait can hold only one range"):
        load("range-locks", ["workload.ranges=shared"])


def test_the_shipped_scenario_gives_each_design_its_lock() -> None:
    specs = {p.variant: to_run_spec(p, 0) for p in expand(load("range-locks", ["workload.tasks=1"]))}
    kinds = {variant: spec["kernel"]["locks"]["range_lock"] for variant, spec in specs.items()}
    assert (kinds["interval-tree"], kinds["btree-kernel"], kinds["rwsem"]) == ("qspinlock", "mutex", "rwsem")
    assert specs["btree"]["workload"]["params"]["index_lock"] == "pthread"
