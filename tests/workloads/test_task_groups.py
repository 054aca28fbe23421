"""`groups:` of tasks: who does what, where, how nice, and what results say of each group."""

from __future__ import annotations

import json
from typing import Any

import pytest

import simfs
from simfs._engine import run
from simfs.results.by_run import value
from simfs.results.run_result import RunResult
from simfs.scenario import ScenarioError, expand, load, to_run_spec
from simfs.scenario.measured.metrics import metric

LOCKS: dict[str, Any] = {
    "simfs": 1,
    "name": "groups",
    "title": "Groups",
    "machine": {"profile": "server-24", "cpus": 8},
    "kernel": "linux-6.11",
    "workload": {"kind": "lock_cycle", "lock": "rwsem", "think": "10 us", "hold": "1 us"},
    "groups": [
        {"name": "readers", "workload": {"tasks": 3, "readers": 1.0}},
        {"name": "writers", "workload": {"tasks": 2, "think": {"gamma": "50 us", "cv": 0.5}}},
    ],
    "measure": {"warmup": "0 ns", "duration": "2 ms", "replications": 1},
}
FILES: dict[str, Any] = {
    **LOCKS,
    "filesystem": {"kind": "tmpfs"},
    "workload": {"kind": "create_unlink", "tasks": 3},
    "groups": [
        {"name": "mail"},
        {
            "name": "backup",
            "workload": {"kind": "mix", "tasks": 1, "files": 2, "operations": [{"op": "stat"}]},
        },
    ],
}


def _spec(given: dict[str, Any], **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return to_run_spec(expand(load({**given, **changes}))[0], 0)


def _result(spec: dict[str, Any]) -> RunResult:
    return RunResult.model_validate_json(run(json.dumps(spec)))


def test_a_group_is_the_workload_with_what_differs() -> None:
    spec = _spec(LOCKS)
    readers, writers = (group["workload"] for group in spec["groups"])
    assert spec["workload"]["tasks"] == 5
    assert (readers["tasks"], readers["params"]["readers"], readers["params"]["think_ns"]) == (3, 1.0, 10_000)
    assert writers["params"]["think_distribution"] == "gamma"
    assert (writers["tasks"], writers["params"]["readers"], writers["params"]["hold_ns"]) == (2, 0.0, 1_000)


def test_results_say_what_each_group_did() -> None:
    result = _result(_spec(LOCKS))
    of = result.group_operations
    assert {name: len(tasks) for name, tasks in of.items()} == {"readers": 3, "writers": 2}
    assert sum(map(sum, of.values())) == result.operations
    rate = {name: value(result, metric(f"group_{name}_per_s")) for name in of}
    assert rate == {name: pytest.approx(sum(tasks) / 0.002) for name, tasks in of.items()}
    shares = [value(result, metric(f"group_{name}_share_percent")) or 0 for name in of]
    assert sum(shares) == pytest.approx(100)
    # writers do a fifth of what readers do, so Jain's index of the two is (1 + 1/5)^2 / (2 (1 + 1/25))
    assert value(result, metric("groups_fairness")) == pytest.approx(1.44 / 2.08, rel=0.1)
    assert value(result, metric("group_nobody_per_s")) is None


def test_groups_on_files_do_different_things_in_one_directory() -> None:
    result = _result(_spec(FILES))
    assert all(min(tasks) > 0 for tasks in result.group_operations.values())
    (directory,) = [lock for lock in result.locks if lock.name == "vfs.i_rwsem (directory)"]
    assert directory.contended > 0


def test_bound_groups_stand_side_by_side_and_nice_ones_have_less() -> None:
    one_cpu = {"machine": {"profile": "server-24", "cpus": 1}}
    groups = [{"name": "a", "workload": {"tasks": 1}}, {"name": "b", "workload": {"tasks": 1, "nice": 5}}]
    work = {**LOCKS["workload"], "think": "1 us"}
    long = {"warmup": "0 ns", "duration": "200 ms", "replications": 1}
    of = _result(_spec(LOCKS, **one_cpu, groups=groups, workload=work, measure=long)).group_operations
    # sched_prio_to_weight: 1024 to 335
    assert sum(of["a"]) / sum(of["b"]) == pytest.approx(1024 / 335, rel=0.1)
    bound = [{"name": n, "workload": {"tasks": 1, "binding": "compact"}} for n in ("a", "b")]
    of = _result(_spec(LOCKS, groups=bound, workload={**work, "lock": "qspinlock"})).group_operations
    assert sum(of["a"]) == pytest.approx(sum(of["b"]), rel=0.2)


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ([{"name": "a"}, {"name": "a"}], "there is already a group 'a'"),
        ([{"name": "A"}], "groups.0.name"),
        ([{"name": "a", "workload": {"taks": 1}}], "unknown key 'taks' (did you mean 'tasks'?)"),
        ([{"name": "a", "workload": {"lock": "mutex"}}], "groups have their locks in common"),
        ([{"name": "a", "workload": {"kind": "create"}}], "lock_cycle has no filesystem"),
        (
            [{"name": "a", "workload": {"tasks": 9999}}, {"name": "b", "workload": {"tasks": 2}}],
            "10001 tasks",
        ),
        ([{"name": "a", "workload": {"pin_to_cpu": 8}}], "there is no CPU 8"),
    ],
)
def test_what_a_group_cannot_be_is_refused(groups: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        load({**LOCKS, "groups": groups})
    assert says in str(refused.value)


def test_python_programs_are_not_grouped() -> None:
    program = {
        "simfs": 1,
        "extends": "python-lock-cycle",
        "groups": [{"name": "a"}],
        "sweep": None,
        "variants": None,
    }
    with pytest.raises(ScenarioError, match="tasks of python cannot be in a group"):
        load(program)


def test_the_size_of_a_group_is_swept_and_metrics_of_groups_are_reported() -> None:
    swept = {**LOCKS, "sweep": {"groups.readers.workload.tasks": [1, 3]}}
    answer = simfs.load({**swept, "expect": ["group_readers_per_s[3] > 2 * group_readers_per_s[1]"]}).run(
        progress=False
    )
    assert answer.exit_code == 0
    assert [point.tasks for point in answer.result.points] == [3, 5]
    assert "groups_fairness" in answer.result.points[0].metrics
