"""Every broken scenario is refused with its place and a reason; none gives a traceback."""

from __future__ import annotations

from io import BytesIO, TextIOWrapper
from os import mkfifo
from pathlib import Path

import pytest
from broken_scenarios import BASE, CASES, Case
from typer.testing import CliRunner

from simfs.cli import app
from simfs.scenario import ScenarioError, expand, load, paths, to_run_spec


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    return tmp_path / "scenario.yaml"


def test_base_is_well(scenario: Path) -> None:
    scenario.write_text(BASE)
    points = expand(load(scenario))
    assert [point.id for point in points][:2] == ["a workload.tasks=1", "a workload.tasks=2"]
    assert to_run_spec(points[0], 0)["workload"]["params"]["user_cpu_ns"] == 15e6


@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{c.says[:30]}" for i, c in enumerate(CASES)])
def test_broken_scenario_is_told_with_its_place(case: Case, scenario: Path) -> None:
    assert case.old in BASE
    scenario.write_text(BASE.replace(case.old, case.new, 1))
    with pytest.raises(ScenarioError) as refused:
        load(scenario)
    told = [str(problem) for problem in refused.value.problems]
    place = f"{scenario}:{case.place}"
    assert any(line.startswith(place) and case.says in line for line in told), "\n".join(told)
    assert all("\n" not in line for line in told)


@pytest.mark.parametrize("case", CASES[::8], ids=lambda case: case.says[:30])
def test_command_line_says_the_same_without_a_traceback(case: Case, scenario: Path) -> None:
    scenario.write_text(BASE.replace(case.old, case.new, 1))
    answer = CliRunner().invoke(app, ["run", str(scenario)])
    assert answer.exit_code == 2
    assert answer.stdout == ""
    assert case.says in answer.stderr
    assert "Traceback" not in answer.stderr


def test_all_problems_are_told_at_once(scenario: Path) -> None:
    text = BASE.replace("cpus: 4", "cpus: 0").replace("size: 8 GiB", "size: 8").replace("seed: 1", "sead: 1")
    scenario.write_text(text)
    with pytest.raises(ScenarioError) as refused:
        load(scenario)
    assert [p.where.split(":")[-2] for p in refused.value.problems] == ["4", "6", "18"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x7fELF\x00\x01\x02", "is a binary file"),
        (BASE.encode("utf-16"), "is a binary file"),
        (b"simfs: 1\ntitle: caf\xe9\n", "2:11: is not UTF-8"),
        (b"#" * (2 << 20), "is larger than 1 MiB"),
        (b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
            b"%c: &%c [%s]\n" % (c + 1, c + 1, b",".join([b"*%c" % c] * 9)) for c in range(97, 105)
        ), "has more than"),
    ],
    ids=["binary", "utf-16", "latin-1", "huge", "alias-bomb"],
)  # fmt: skip
def test_files_that_are_no_scenarios(content: bytes, says: str, scenario: Path) -> None:
    scenario.write_bytes(content)
    with pytest.raises(ScenarioError, match=says):
        load(scenario)


def test_a_byte_order_mark_is_no_problem(scenario: Path) -> None:
    scenario.write_bytes(b"\xef\xbb\xbf" + BASE.encode())
    assert load(scenario).name == "base"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("compil-24", "there is no scenario of this name (did you mean 'compile-24'?)"),
        ("zzzzzz", "there is no scenario of this name; `simfs list` names all "),
        ("no/such/file.yaml", "no such file"),
        ("", "there is no scenario of this name"),
        ("x" * 5000, "there is no scenario of this name"),
        ("a\0b", "no such file"),
        (".", "this is a folder, not a scenario"),
        ("./", "is a directory"),
        ("/dev/null", "is not a file"),
        ("/root/" + "y" * 300 + ".yaml", "no such file"),
    ],
)
def test_names_that_are_no_scenarios(name: str, says: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        load(name)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("workload.tsks=3", "--set workload.tsks=3: unknown key 'tsks' (did you mean 'tasks'?)"),
        ("worklod.tasks=3", "unknown key 'worklod' (did you mean 'workload'?)"),
        (
            "machine.costs.step_c=1",
            "--set machine.costs.step_c=1: unknown key 'step_c' (did you mean 'step_cv'?)",
        ),
        (
            "kernel.constants.rwsem_handoff_wait=-1",
            "--set kernel.constants.rwsem_handoff_wait=-1: should be greater",
        ),
        ("workload.tasks=0", "--set workload.tasks=0: should be greater than or equal to 1"),
        ("workload.user_cpu=3", "has no unit"),
        ("workload.tasks", "write it as KEY=VALUE"),
        ("=3", "write it as KEY=VALUE"),
        ("workload.tasks=", "write it as KEY=VALUE"),
        ("workload.tasks=[", "not valid YAML"),
        ("workload.tasks.x=3", "single value"),
        ("variants.c.filesystem.agcount=3", "there is no entry 'c'"),
        ("variants.7.name=x", "there is no entry '7'"),
        ("machine=sever-24", "did you mean 'server-24'?"),
        ("simfs=3", "version 3"),
        ("locks.xfs.bufer=mutex", "did you mean 'xfs.buffer'?"),
        ("filesystem=3", "expected a mapping"),
        ("a..b=3", "unknown key 'a'"),
        ("..=3", "unknown key"),
    ],
)
def test_options_that_cannot_be_set(option: str, says: str, scenario: Path) -> None:
    scenario.write_text(BASE)
    with pytest.raises(ScenarioError) as refused:
        load(scenario, [option])
    assert says in str(refused.value)


@pytest.mark.parametrize(
    "options",
    [
        ("calibrate.0=x", "calibrate.0.prior=1"),
        ("variants=[a]", "variants.0.name=b"),
        ("measured=" + "x" * 300,),
        ('measured="a\\nb"',),
    ],
)
def test_options_that_depend_on_each_other(options: tuple[str, ...], scenario: Path) -> None:
    scenario.write_text(BASE)
    with pytest.raises(ScenarioError) as refused:
        load(scenario, options)
    assert refused.value.problems[0].where.startswith("--set ")
    assert not any("\n" in str(problem) for problem in refused.value.problems)


def test_standard_input_is_a_scenario(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    profile = paths.MODELS / "machines" / "server-24.yaml"
    (tmp_path / "own.yaml").write_text(profile.read_text("utf-8"), "utf-8")
    text = BASE.replace("server-24", "./own.yaml")
    for name in ("-", "/dev/stdin"):
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text.encode())))
        scenario = load(name)
        assert scenario.text == text
        assert scenario.machine.profile == "own.yaml"


def test_a_named_pipe_is_no_scenario(tmp_path: Path) -> None:
    mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ScenarioError, match="is not a file"):
        load(tmp_path / "pipe.yaml")


@pytest.mark.parametrize(
    ("scenario", "option", "says"),
    [
        ("compile-24", "filesystem.agcuont=3", "unknown key 'agcuont' (did you mean 'agcount'?)"),
        ("compile-24", "filesystem.misspelt=1", "unknown key 'misspelt'"),
        ("xfs-dio-limits", "locks.misspelt=mutex", "unknown lock role 'misspelt'; there are "),
        ("lock-cycle", "filesystem.agcount=4", "key 'kind' is missing: set filesystem.kind as well"),
        ("apparmor-open", "device.misspelt=1", "key 'profile' is missing: set device.profile as well"),
    ],
)
def test_one_mistake_in_an_option_is_told_once(scenario: str, option: str, says: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        load(scenario, [option])
    (told,) = map(str, refused.value.problems)
    assert told.startswith(f"--set {option}: {says}")
