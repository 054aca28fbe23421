"""Model files of users: whatever is in one, it loads or is refused with its place."""

from __future__ import annotations

import os
import re
from datetime import date
from pathlib import Path
from time import process_time

import pytest
from ruamel.yaml import YAML

from simfs.scenario import Problem, ScenarioError, load
from simfs.scenario.measured.dataset import load_dataset
from simfs.scenario.models import load_device, load_kernel, load_machine, load_workload
from simfs.scenario.paths import MEASURED, MODELS
from simfs.scenario.reading.document import Document

SCENARIO = """\
simfs: 1
name: own
title: A profile of one's own
machine: {profile: ./own.yaml}
kernel: linux-6.11
workload: {kind: lock_cycle, tasks: 2, lock: mutex, think: 1 us, hold: 1 us}
"""


def refusal(path: Path, text: str) -> Problem:
    path.write_text(text, "utf-8")
    with pytest.raises(ScenarioError) as refused:
        load_machine(path)
    return refused.value.problems[0]


def machine(old: str = "", new: str = "") -> str:
    text = (MODELS / "machines" / "server-24.yaml").read_text("utf-8")
    assert old in text
    return text.replace(old, new, 1)


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_a_model_nested_without_end_is_refused(tmp_path: Path) -> None:
    # The recursive composer of libyaml killed the interpreter here.
    problem = refusal(tmp_path / "deep.yaml", "x: " + "[" * 200_000)
    assert "nested more than" in problem.message


def test_a_large_model_is_refused(tmp_path: Path) -> None:
    assert "larger than 1 MiB" in refusal(tmp_path / "large.yaml", "#" * (1 << 21)).message


def test_a_duplicate_key_of_a_model_is_refused_at_its_place(tmp_path: Path) -> None:
    problem = refusal(tmp_path / "twice.yaml", "name: a\ntitle: b\nname: c\n")
    assert problem == Problem(f"{tmp_path / 'twice.yaml'}:3:1", "duplicate key 'name'")


def test_an_unknown_key_of_a_model_is_refused_with_the_nearest(tmp_path: Path) -> None:
    text = machine("watts_spin:", "watts_spinn: 0\nwatts_spin:")
    path = tmp_path / "own.yaml"
    problem = refusal(path, text)
    place = f"{path}:{line_of(text, 'watts_spinn')}:1"
    assert problem == Problem(place, "unknown key 'watts_spinn'", "watts_spin")


OUT_OF_BOUNDS = {
    "watts_active: {value: -1, unit: W, range: [-1, 0], evidence: derived, source: of a test}": "0 to 1e+06 W",
    "watts_active: {value: 1, unit: ns, range: [0, 1], evidence: derived, source: of a test}": "given in W",
    "watts_active: {value: '1', unit: W, range: [0, 1], evidence: derived, source: of a test}": "valid number",
}


@pytest.mark.parametrize("line", OUT_OF_BOUNDS)
def test_numbers_are_bounded_by_their_unit(tmp_path: Path, line: str) -> None:
    text = "\n".join(line if known.startswith("watts_active:") else known for known in machine().splitlines())
    problem = refusal(tmp_path / "own.yaml", text)
    assert problem.where.startswith(f"{tmp_path / 'own.yaml'}:{line_of(text, 'watts_active')}:")
    assert OUT_OF_BOUNDS[line] in problem.message


@pytest.mark.parametrize(
    ("kind", "name", "key", "value"),
    [
        ("machines", "server-24", "context_switch", "{value: 1.0e+18, unit: ns, range: [0, 1.0e+19]"),
        ("machines", "server-24", "smt_speed", "{value: 2, unit: ratio, range: [0, 3]"),
        ("kernels", "linux-6.18", "tick", "{value: 0, unit: ms, range: [0, 3]"),
        ("kernels", "linux-6.18", "tick", "{value: 1.0e+18, unit: ms, range: [0, 1.0e+19]"),
        ("devices", "nvme", "parallelism", "{value: 1000000, unit: count, range: [1, 1000000]"),
    ],
)
def test_what_no_machine_can_run_is_refused(
    tmp_path: Path, kind: str, name: str, key: str, value: str
) -> None:
    loaders = {"machines": load_machine, "kernels": load_kernel, "devices": load_device}
    text = (MODELS / kind / f"{name}.yaml").read_text("utf-8")
    text = re.sub(rf"(\b{key}: ){{.*?\]", rf"\g<1>{value}", text, count=1)
    path = tmp_path / "own.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(ScenarioError) as refused:
        loaders[kind](path)
    assert refused.value.problems[0].where.startswith(f"{path}:{line_of(text, f'{key}: {value}')}:")


def test_the_scenario_and_the_place_in_its_model_are_told(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO, "utf-8")
    (tmp_path / "own.yaml").write_text("name: [\n", "utf-8")
    with pytest.raises(ScenarioError) as refused:
        load(tmp_path / "scenario.yaml")
    (problem,) = refused.value.problems
    assert problem.where == f"{tmp_path / 'scenario.yaml'}:4:20"
    assert problem.message.startswith(f"{tmp_path / 'own.yaml'}:2:1: not valid YAML")


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    """As in a notebook, also where neither its size nor its time tell."""
    shipped = (MODELS / "machines/server-24.yaml").read_text()
    path = tmp_path / "own.yaml"
    for title in ("one", "two"):
        path.write_text(re.sub("title: .*", f"title: {title}", shipped, count=1))
        os.utime(path, (1, 1))
        assert load_machine(str(path)).title == title


def test_a_data_set_that_has_changed_is_read_again(tmp_path: Path) -> None:
    shipped = (MEASURED / "seed-xfs-compile-2024.yaml").read_text()
    path = tmp_path / "own.yaml"
    for name in ("one", "two"):
        path.write_text(re.sub("name: .*", f"name: {name}", shipped, count=1))
        os.utime(path, (1, 1))
        assert load_dataset("./own.yaml", tmp_path).name == name


def test_a_model_that_has_not_changed_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text((MODELS / "machines/server-24.yaml").read_text())
    assert load_machine(str(path)) is load_machine(str(path))


def test_a_relative_path_means_the_file_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = (MODELS / "machines/server-24.yaml").read_text()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "own.yaml").write_text(re.sub("title: .*", f"title: {name}", shipped, count=1))
        monkeypatch.chdir(tmp_path / name)
        assert load_machine("./own.yaml").title == name


def test_a_name_of_thousands_of_characters_is_not_repeated_in_full(tmp_path: Path) -> None:
    """Found by damaged data sets: the series, and what nearest name it may mean."""
    shipped = (MEASURED / "seed-xfs-compile-2024.yaml").read_text()
    path = tmp_path / "own.yaml"
    path.write_text(re.sub(r"series: xfs\b", f"series: x{5000 * 'y'}", shipped))
    with pytest.raises(ScenarioError) as refused:
        load_dataset("./own.yaml", tmp_path)
    assert len(str(refused.value.problems[0])) < 3000


def test_a_pipe_is_no_model(tmp_path: Path) -> None:
    # Opening it would wait for a writer for ever.
    os.mkfifo(tmp_path / "own.yaml")
    with pytest.raises(ScenarioError, match="is not a file"):
        load_workload(tmp_path / "own.yaml")


def test_a_scenario_of_many_brackets_is_refused_at_once() -> None:
    for text in ("x: " + "[" * 100_000, "x: [" + "{a: " * 100_000, "- [1]\n" * 150_000 + "]"):
        begin = process_time()
        with pytest.raises(ScenarioError) as refused:
            Document.parse(text, "brackets")
        assert process_time() - begin < 1
        assert refused.value.problems[0].where.startswith("brackets:")


@pytest.mark.parametrize(
    "text", ['title: "\\e[31m"', 'title: "\\x9b31m"', '"a\\a": 1', 'a: [{b: "\\u007f"}]']
)
def test_orders_to_the_terminal_are_refused(text: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        Document.parse(text, "name")
    (problem,) = refused.value.problems
    assert str(problem).isprintable()


@pytest.mark.parametrize(
    "word", ["1", "-1.5", "1e3", "true", "no", "~", "null", "", "0x1f", "2020-01-01", "1:30", "a", "'1'"]
)
def test_a_word_that_comes_again_stands_for_the_same(word: str) -> None:
    read = Document.parse(f"a: {word}\nb: [{word or '~'}]\nc: {word}\n'1': {word}\n", "own").data
    (value,) = read["b"]
    told = YAML(typ="safe").load(f"- {word}")[0]
    expected = str(told) if isinstance(told, date) else told
    assert read == {"a": expected, "b": [expected], "c": expected, "1": expected}
    assert {type(part) for part in (*(read[key] for key in "ac1"), value)} == {type(expected)}


DATA = """\
name: own
title: Numbers of ours
source: {author: A, date: "2026-01-31", where: own}
machine: m
kernel: k
series: {one: {}}
rows:
  - {series: one, x: 4, metric: operations_per_s, unit: 1/s, value: 48000, role: predict}
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("value: 48000", "value: -5", "rows.0.value: should be greater than or equal to 0"),
        (DATA[DATA.index("  - {") :], 2 * DATA[DATA.index("  - {") :], "rows.1: .* is rows.0 already"),
        (
            "unit: 1/s, value: 48000",
            "unit: ratio, value: 2, over: {series: one, x: 4}",
            "over: is the row's own place",
        ),
    ],
)
def test_a_row_that_cannot_be_is_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    """A table pasted twice counted twice; less than nothing was an error of more than 100 %."""
    (tmp_path / "own.yaml").write_text(DATA, "utf-8")
    assert load_dataset("./own.yaml", tmp_path).rows
    (tmp_path / "own.yaml").write_text(DATA.replace(old, new), "utf-8")
    with pytest.raises(ScenarioError, match=said):
        load_dataset("./own.yaml", tmp_path)
