"""README.md and docs/: examples load, commands parse, links and files exist, lock names are the engine's."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest
from places import ROOT
from ruamel.yaml import YAML
from shorter import shorter
from typer.testing import CliRunner

from simfs.cli import COMMANDS as OWN
from simfs.cli import app
from simfs.scenario import Scenario, expand, load, paths, to_run_spec
from simfs.scenario.measured.dataset import load_dataset, placed_rows
from simfs.scenario.models import load_kernel
from simfs.scenario.sections.quantity import Quantity
from simfs.vocabulary import vocabulary

MADE = ("generated", "_build")
"""Folders of docs that the build of the site makes, and whose links it checks."""
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *(page for page in sorted((ROOT / "docs").glob("**/*.md")) if not set(MADE) & set(page.parts)),
]
RUNNER = CliRunner()

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FILE = re.compile(r"`((?:engine|simfs|models|scenarios|tests|docs|benchmarks)/[\w./-]+\.\w+)`")
EXAMPLE = re.compile(r"foo|rename_loop|my-server|NAME|KIND")
"""Files that a recipe tells the reader to make."""


def text(page: Path) -> str:
    return page.read_text("utf-8")


def blocks(page: Path, language: str) -> list[tuple[str, str]]:
    """Return the fenced blocks of one language, each with a name for messages."""
    found = [match for match in FENCE.finditer(text(page)) if match[2] == language]
    line = [text(page).count("\n", 0, match.start()) + 1 for match in found]
    return [(f"{page.name}:{at}", textwrap.dedent(match[3])) for at, match in zip(line, found, strict=True)]


def parametrized(pairs: list[tuple[str, str]]) -> list[Any]:
    return [pytest.param(body, id=name) for name, body in pairs]


def parsed(snippet: str) -> dict[str, Any]:
    data: dict[str, Any] = YAML(typ="safe").load(snippet)
    return data


def is_scenario(snippet: str) -> bool:
    return "simfs" in parsed(snippet)


def is_dataset(snippet: str) -> bool:
    return "rows" in parsed(snippet)


YAMLS = [block for page in PAGES for block in blocks(page, "yaml")]
SCENARIOS = [(name, body) for name, body in YAMLS if is_scenario(body)]
DATASETS = [(name, body) for name, body in YAMLS if is_dataset(body)]
FRAGMENTS = [(name, body) for name, body in YAMLS if not is_scenario(body) and not is_dataset(body)]
COMMANDS = [
    (f"{name} {line}", line)
    for page in PAGES
    for name, body in blocks(page, "sh")
    for line in body.splitlines()
    if line.startswith("simfs")
]


def test_there_is_something_to_check() -> None:
    assert len(SCENARIOS) >= 4
    assert DATASETS
    assert len(FRAGMENTS) >= 8
    assert len(COMMANDS) >= 10


@pytest.mark.parametrize("snippet", parametrized(SCENARIOS))
def test_a_complete_scenario_loads(snippet: str, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    datasets = {parsed(dataset)["name"]: dataset for _, dataset in DATASETS}
    for name, dataset in datasets.items():  # of the reader's, not shipped: beside the scenario
        (tmp_path / f"{name}.yaml").write_text(dataset, "utf-8")
        snippet = snippet.replace(f"measured: {name}", f"measured: {name}.yaml")
    path.write_text(snippet, "utf-8")
    for file, page, part in (
        ("mine.py", "docs/extending.md", "def worker"),
        ("newest.py", "CONTRIBUTING.md", "class Newest"),
    ):
        program = next(body for _, body in blocks(ROOT / page, "python") if part in body)
        (tmp_path / file).write_text(program, "utf-8")
    scenario = load(path)
    points = expand(scenario)
    for point in points:
        to_run_spec(point, 0)
    for row in (row for row in placed_rows(scenario.measured) if row.dataset in datasets):
        there = (p.values.items() for p in points if p.variant == row.variant)
        assert any(row.values.items() <= values for values in there), f"not in the sweep: {row.values}"


@pytest.mark.parametrize("snippet", parametrized(DATASETS))
def test_a_data_set_loads(snippet: str, tmp_path: Path) -> None:
    path = tmp_path / "dataset.yaml"
    path.write_text(snippet, "utf-8")
    assert load_dataset(str(path)).rows


@pytest.mark.parametrize("snippet", parametrized(FRAGMENTS))
def test_a_fragment_fits_into_a_scenario_or_a_model(snippet: str, tmp_path: Path) -> None:
    fragment = parsed(snippet)
    if "version" in fragment:
        (tmp_path / "kernel.yaml").write_text(snippet, "utf-8")
        assert load_kernel(tmp_path / "kernel.yaml").name == fragment["name"]
        return
    if not set(fragment) <= set(Scenario.model_fields):
        for quantity in fragment.values():
            Quantity.model_validate(quantity)
        return
    shutil.copy(paths.MODELS / "machines" / "server-24.yaml", tmp_path / "my-machine.yaml")
    shutil.copy(paths.MODELS / "kernels" / "linux-6.18.yaml", tmp_path / "my-kernel.yaml")
    (tmp_path / "scenarios").mkdir()
    shutil.copy(paths.SCENARIOS / "mylocks.py", tmp_path / "scenarios")
    whole = next(body for name, body in SCENARIOS if name.startswith("scenarios.md"))
    path = tmp_path / "scenario.yaml"
    with path.open("w", encoding="utf-8") as out:
        base = parsed(whole)
        if "kind" in fragment.get("workload", {}):
            del base["variants"]  # they say what differs of another load
        YAML(typ="safe").dump(base | fragment, out)
    for point in expand(load(path)):
        to_run_spec(point, 0)


def test_the_lock_of_the_documentation_is_the_shipped_one() -> None:
    shown = [body for _, body in blocks(ROOT / "docs" / "extending.md", "python")]
    assert (ROOT / "scenarios" / "mylocks.py").read_text("utf-8") in shown


def arguments(line: str) -> list[str]:
    words = shlex.split(line, comments=True)
    return words[1 : words.index(">")] if ">" in words else words[1:]


@pytest.mark.parametrize("line", parametrized(COMMANDS))
def test_a_command_parses(line: str) -> None:
    name, *rest = arguments(line)
    command = OWN[name].load(name)
    options = command.make_context(name, list(rest)).params
    if name == "run" and options["scenario"] in paths.names(paths.SCENARIOS):
        load(options["scenario"], options["settings"] or [])


RUN = [
    (place, line)
    for place, line in COMMANDS
    if line.startswith("simfs trace")
    or ("--quick" in line and not line.startswith("simfs observe compile-24"))
]
"""What takes seconds. `test_the_example_of_the_help_runs` has a shorter observe, list, schema, doctor and locks."""


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
@pytest.mark.parametrize("line", parametrized(RUN))
def test_a_cheap_command_runs(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = RUNNER.invoke(app, shorter(arguments(line)))
    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout


def test_the_deadlock_of_the_documentation_is_found() -> None:
    answer = RUNNER.invoke(app, ["run", "lock-order"])
    assert answer.exit_code == 3
    assert "deadlock" in answer.stdout


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_tests_that_are_named_exist() -> None:
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "engine" / "tests").rglob("*.rs")]
    known = {name for file in files for name in re.findall(r"(?:def|fn) (\w+)\(", text(file))}
    behaviours = (
        text(ROOT / "docs" / "machine" / "locks.md").partition("| behaviour | test |")[2].partition("\n\n")[0]
    )
    named = re.findall(r"`(\w+)`", behaviours)
    assert len(named) >= 10
    assert [name for name in named if name not in known] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(FENCE.sub("", text(page))):
        if re.match(r"[a-z]+:", link) or set(MADE) & set(Path(link).parts):
            continue
        name, _, section = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link} does not exist"
        if section:
            headings = re.findall(r"^#+ (.*)$", text(target), re.MULTILINE)
            assert section in map(anchor, headings), f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path) -> None:
    named = [name for name in FILE.findall(text(page)) if not EXAMPLE.search(name)]
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_scenario_language_accepts_every_lock_of_the_engine() -> None:
    assert vocabulary().lock_kinds
    for name in vocabulary().lock_kinds:
        assert load("lock-cycle", [f"locks.lock={name}"]).locks == {"lock": name}


def test_every_lock_is_documented() -> None:
    kinds = text(ROOT / "docs" / "scenarios.md").partition("\nKinds: ")[2].partition("\n")[0]
    assert set(vocabulary().lock_kinds) <= set(re.findall(r"`(?:= )?([\w.-]+)`", kinds))


def test_the_record_of_predictions_has_rows_of_every_data_set() -> None:
    with (ROOT / "docs/predictions.csv").open() as record:
        recorded = {row["dataset"] for row in csv.DictReader(record)}
    assert recorded == {path.stem for path in (ROOT / "scenarios/measured").glob("*.yaml")}


def test_no_change_is_told_twice() -> None:
    """Merges left the older wording of a change beside the newer, one with a blank to be filled in."""
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    heads = [line[:110] for line in lines if line.startswith("* ")]
    assert sorted(heads) == sorted(set(heads))
