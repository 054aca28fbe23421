"""What nothing reads is refused, with the nearest word; schema and engine know the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine import lock_cycle, refused
from simfs.scenario import ScenarioError, expand, load, to_run_spec
from simfs.scenario.checks import names
from simfs.scenario.json_schema import json_schema
from simfs.scenario.models import load_filesystem, load_timeline
from simfs.scenario.paths import MODELS
from simfs.vocabulary import vocabulary


def point(scenario: str, *settings: str) -> dict[str, Any]:
    short = ["measure.duration=1 ms", "measure.warmup=0 ms"]
    return to_run_spec(expand(load(scenario, [*short, *settings]))[0], 0)


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"readesr": 0.5}, "workload.params: nothing reads 'readesr' (did you mean 'readers'?)"),
        ({"hold_ns": "long"}, 'workload.params.hold_ns: "long" is not a number of at least 0'),
        ({"hold_ns": -1}, "workload.params.hold_ns: -1 is not a number of at least 0"),
        ({"order": "samee"}, 'workload.params.order: "samee" is not one of same, opposite'),
        ({"hold_distribution": "normal"}, "constant, exponential, lognormal"),
    ],
)
def test_a_parameter_that_nothing_reads_or_understands_is_refused(params: dict[str, Any], told: str) -> None:
    assert told in refused(lock_cycle(**params))


@pytest.mark.parametrize(("scenario", "name"), [("lock-cycle", "hold_ns"), ("guest-dbench", "writex")])
def test_a_parameter_that_is_missing_is_refused(scenario: str, name: str) -> None:
    spec = point(scenario)
    del spec["workload"]["params"][name]
    assert f"workload.params: '{name}' is missing" in refused(spec)


def test_what_an_operation_of_a_mix_does_not_read_is_refused() -> None:
    spec = point("will-it-scale")
    spec["workload"]["params"]["operations"][0]["wieght"] = 2
    assert "operations.0: nothing reads 'wieght' (did you mean 'weight'?)" in refused(spec)


@pytest.mark.parametrize("table", ["filesystem", "vfs"])
def test_a_cost_that_nothing_reads_is_refused(table: str) -> None:
    spec = point("xfs-log-size")
    spec[table]["costs"]["cu_short.lock_agii"] = 1.0
    assert f"{table}.costs: nothing reads 'cu_short.lock_agii' (did you mean" in refused(spec)


def test_a_lock_role_that_nothing_takes_is_refused() -> None:
    spec = lock_cycle()
    spec["kernel"]["locks"]["xfs.ilok"] = "rwsem"
    assert "kernel.locks: nothing takes 'xfs.ilok' (did you mean 'xfs.ilock'?)" in refused(spec)


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"xfs.inodgc": "task"}, "kernel.rules: unknown rule 'xfs.inodgc' (did you mean 'xfs.inodegc'?)"),
        ({"xfs.inodegc": "nobody"}, 'kernel.rules.xfs.inodegc: "nobody" is not one of "task"'),
        ({"btrfs.early_unlock": "true"}, 'kernel.rules.btrfs.early_unlock: "true" is not one of false, true'),
    ],
)
def test_a_rule_that_the_engine_does_not_know_is_refused(rules: dict[str, Any], told: str) -> None:
    assert told in refused(lock_cycle(kernel={"rules": rules}))


@pytest.mark.parametrize(
    ("cfs", "kind"), [(None, "cfs"), ({"latency_ns": 1e6, "wakeup_granularity_ns": 1e6}, "eevdf")]
)
def test_the_times_of_cfs_are_given_where_it_is_the_scheduler(cfs: object, kind: str) -> None:
    spec = lock_cycle(kernel={"rules": {"sched.class": kind}, "cfs": cfs})
    assert "kernel.cfs: must be given where the rule sched.class is cfs" in refused(spec)


HEAD = "simfs: 1\nname: t\ntitle: t\nmachine: server-24\nkernel: linux-6.12\n"


def problem(tmp_path: Path, text: str) -> str:
    path = tmp_path / "t.yaml"
    path.write_text(HEAD + text)
    with pytest.raises(ScenarioError) as error:
        load(path)
    (only,) = error.value.problems
    return str(only).removeprefix(f"{path}:")


def test_provenance_is_no_cost_of_a_scenario(tmp_path: Path) -> None:
    """This step was traced, and no program reads it."""
    text = "filesystem: {kind: xfs, costs: {create_node.lock_agi: 1 us}}\nworkload: {kind: create}\n"
    assert problem(tmp_path, text).startswith("6:33: unknown cost 'create_node.lock_agi' (did you mean '")


def test_a_profile_with_a_cost_that_nothing_reads_is_refused(tmp_path: Path) -> None:
    own = (MODELS / "filesystems" / "tmpfs.yaml").read_text()
    (tmp_path / "own.yaml").write_text(own.replace("  cu.close:", "  cu.closed:", 1))
    text = "filesystem: {kind: tmpfs, profile: ./own.yaml}\nworkload: {kind: create}\n"
    told = problem(tmp_path, text)
    assert told.startswith("6:36: ")
    assert "nothing of tmpfs reads the cost 'cu.closed' (did you mean 'cu.close'?)" in told


def test_a_shipped_model_with_a_cost_that_nothing_reads_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever adds a cost meets this before the engine is built again; it said `None: nothing of tmpfs`."""
    monkeypatch.setattr(names, "filesystem_costs", lambda _: {"cu.close": 1.0, "cu.no_such_step": 1.0})
    text = "filesystem: {kind: tmpfs, costs: {cu.close: 1 us}}\nworkload: {kind: create}\n"
    told = problem(tmp_path, text)
    assert told.startswith("6:13: nothing of tmpfs reads the cost 'cu.no_such_step'")


def test_an_operation_that_there_is_not_is_refused_with_the_nearest(tmp_path: Path) -> None:
    text = "filesystem: {kind: xfs}\nworkload: {kind: mix, operations: [{op: raed}]}\n"
    told = problem(tmp_path, text)
    assert told.startswith("7:41: workload.operations.0.op: raed is not one of read, ")
    assert told.endswith("(did you mean 'read'?)")


def test_schema_and_engine_have_the_same_words() -> None:
    words, sections = vocabulary(), json_schema()["$defs"]
    kernel = sections["KernelUse"]["properties"]
    assert {rule: tuple(p["enum"]) for rule, p in kernel["rules"]["properties"].items()} == {
        name: rule.values for name, rule in words.rules.items()
    }
    assert set(kernel["constants"]["propertyNames"]["enum"]) == words.constants
    assert tuple(sections["MixOperation"]["properties"]["op"]["enum"]) == words.operations
    for kind, section in (("xfs", "Xfs"), ("btrfs", "Btrfs"), ("ext4", "Ext4"), ("tmpfs", "Tmpfs")):
        assert set(sections[section]["properties"]["costs"]["propertyNames"]["enum"]) == words.costs[kind]
    locks = json_schema()["else"]["properties"]["locks"]  # of a scenario that does not extend another
    assert locks["additionalProperties"]["anyOf"][0]["enum"] == list(words.lock_kinds)
    assert set(locks["propertyNames"]["anyOf"][0]["enum"]) == set(words.roles)


def test_the_timeline_has_the_roles_and_constants_of_the_engine() -> None:
    assert set(load_timeline().roles) == set(vocabulary().roles) - {"lock", "range_lock"}
    kernel = load_timeline().kernel((6, 12))
    assert kernel.constants.keys() == vocabulary().constants


def test_the_costs_of_a_scenario_can_be_any_that_are_read() -> None:
    costs = load_filesystem("xfs").costs
    name = next(iter(costs))
    assert point("xfs-log-size", f"filesystem.costs.{name}=7 ns")["filesystem"]["costs"][name] == 7
