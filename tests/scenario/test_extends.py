"""`extends:`, and scenarios that are mappings of Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

import simfs
from simfs.cli import app
from simfs.scenario import ScenarioError, expand, load
from simfs.scenario.json_schema import json_schema

BASE = """\
simfs: 1
name: base
title: Base
machine: server-24
kernel: linux-6.11
workload: {kind: lock_cycle, tasks: 4, think: 10 us, hold: 1 us}
variants:
  - {name: one}
  - {name: two, workload: {lock: mutex}}
sweep: {workload.tasks: [1, 4], workload.readers: [0, 1]}
expect: [throughput > 1]
"""


def _files(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder / "own.yaml"


def test_sections_variants_and_sweeps_are_laid_over(tmp_path: Path) -> None:
    own = """\
simfs: 1
extends: base.yaml
name: own
machine: {cpus: 8}
workload: {think: {exponential: 20 us}}
variants:
  - {name: two, workload: {lock: rwsem}}
  - {name: three, workload: {lock: mcs, hold: {lognormal: 2 us, cv: 0.5}}}
sweep: {workload.tasks: [2], workload.readers: null}
expect: null
"""
    found = load(_files(tmp_path, base=BASE, own=own))
    assert (found.name, found.title, found.machine.profile, found.machine.cpus) == (
        "own",
        "Base",
        "server-24",
        8,
    )
    assert found.sweep == {"workload.tasks": (2,)}
    assert found.expect == ()
    works: list[Any] = [point.scenario.workload for point in expand(found)]
    assert [work.lock for work in works] == ["semaphore", "rwsem", "mcs"]
    assert [work.hold.kind for work in works] == ["constant", "constant", "lognormal"]
    assert {work.think.exponential for work in works} == {20_000.0}


@pytest.mark.parametrize("kernel", ["linux-6.12", "{profile: linux-6.12, tick: 1 ms}"])
def test_a_variant_may_name_a_kernel_and_the_other_say_more(tmp_path: Path, kernel: str) -> None:
    """The name stands for `{profile: NAME}` in a variant, as it does in the scenario."""
    base = BASE.replace("{name: one}", f"{{name: one, kernel: {kernel}}}")
    own = "simfs: 1\nextends: base.yaml\nname: own\nvariants: [{name: one, kernel: {rules: {sched.groups: none}}}]\n"
    scenario = load(_files(tmp_path, base=base, own=own))
    (point, *_) = expand(scenario)
    assert (point.scenario.kernel.profile, point.scenario.kernel.rules) == (
        "linux-6.12",
        {"sched.groups": "none"},
    )
    (point, *_) = expand(load(tmp_path / "base.yaml", ["variants.one.kernel.tick=2 ms"]))
    assert point.scenario.kernel.tick == 2_000_000


def test_paths_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    profile = Path(simfs.__file__).parent / "_data/models/machines/server-24.yaml"
    (tmp_path / "below/mine.yaml").write_bytes(profile.read_bytes())
    _files(tmp_path / "below", base=BASE.replace("server-24", "{profile: ./mine.yaml}"))
    own = _files(tmp_path, own="simfs: 1\nextends: below/base.yaml\n")
    assert Path(load(own).machine.profile).samefile(tmp_path / "below/mine.yaml")


def test_what_is_wrong_is_told_in_the_right_file(tmp_path: Path) -> None:
    own = "simfs: 1\nextends: base.yaml\nvariants:\n  - {name: x, workload: {lock: mutx}}\n"
    path = _files(tmp_path, base=BASE.replace("think: 10", "think: -10"), own=own)
    with pytest.raises(ScenarioError) as refused:
        load(path)
    said = str(refused.value)
    assert f"{tmp_path / 'base.yaml'}:6:47" in said
    path = _files(tmp_path, base=BASE, own=own)
    with pytest.raises(ScenarioError, match="did you mean 'mutex'") as refused:
        load(path)
    assert refused.value.problems[0].where == f"{path}:4:32"


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (
            {"own": "simfs: 1\nextends: own.yaml\n"},
            "own.yaml:2:10: a scenario cannot extend itself: own.yaml -> own",
        ),
        (
            {"own": "simfs: 1\nextends: a.yaml\n", "a": "simfs: 1\nextends: own.yaml\n"},
            "a.yaml:2:10: a scenario cannot extend itself: own.yaml -> a.yaml -> own.yaml",
        ),
        ({"own": "simfs: 1\nextends: lock-cycel\n"}, "did you mean 'lock-cycle'"),
        ({"own": "simfs: 1\nextends: no.yaml\n"}, "there is no scenario 'no.yaml' to extend"),
        ({"own": "simfs: 1\nextends: [a]\n"}, "expected a scenario's name or file, got a list"),
        ({"own": "simfs: 1\nextends: a.yaml\n", "a": "simfs: 2\n"}, "a.yaml:1:8: version 2 is not supported"),
        ({"own": "simfs: 1\nextends: a.yaml\n", "a": "simfs: 1\n"}, "key 'workload' is missing"),
        ({"own": "simfs: 1\nextend: lock-cycle\n"}, "unknown key 'extend' (did you mean 'extends'?)"),
    ],
)
def test_what_cannot_be_extended_is_refused(tmp_path: Path, texts: dict[str, str], says: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        load(_files(tmp_path, **texts))
    assert says in str(refused.value)


def test_a_setting_cannot_extend() -> None:
    with pytest.raises(ScenarioError, match="only the scenario itself"):
        load("lock-cycle", ["extends=lock-order"])


def test_a_mapping_is_a_scenario_and_its_places_are_those_of_python() -> None:
    given = {"simfs": 1, "extends": "lock-cycle", "name": "mine", "workload": {"tasks": 3}, "sweep": None}
    asked = simfs.load(given, "measure.seed=7").scenario
    assert (asked.name, asked.workload.tasks, asked.measure.seed, asked.sweep) == ("mine", 3, 7, {})
    assert json.loads(asked.text) == given
    with pytest.raises(
        ScenarioError, match=r"dict\['workload'\]\['taks'\]: unknown key 'taks' \(did you mean 'tasks'"
    ):
        simfs.load({**given, "workload": {"taks": 3}})
    with pytest.raises(ScenarioError, match="dict: is not plain data"):
        simfs.load({**given, "workload": {"tasks": object()}})


def test_standard_input_may_extend() -> None:
    found = CliRunner().invoke(app, ["run", "-", "--quick"], input="simfs: 1\nextends: nothing.yaml\n")
    assert found.exit_code == 2
    assert "there is no scenario 'nothing.yaml' to extend" in found.stderr


def test_the_schema_lets_a_scenario_that_extends_be_a_part() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    part = {
        "simfs": 1,
        "extends": "lock-cycle",
        "workload": {"tasks": 3},
        "machine": {"cpus": 4},
        "sweep": None,
    }
    assert validator.is_valid({key: value for key, value in part.items() if key != "sweep"})
    assert not validator.is_valid({"simfs": 1, "workload": {"tasks": 3}})
    assert not validator.is_valid({**part, "machine": {"cpu": 4}})
