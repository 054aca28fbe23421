"""What a user types wrong is refused in a line that says what is wrong, with exit code 2, before anything runs."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simfs.cli import COMMANDS, app

RUNNER = CliRunner()
CYCLE = """
simfs: 1
name: base
title: A lock
machine: {profile: server-24, cpus: 4}
kernel: linux-6.12
workload: {kind: lock_cycle, lock: mutex, tasks: 4, think: 5 us, hold: 1 us}
measure: {warmup: 0 ms, duration: 1 ms, replications: 2}
"""
FILES = CYCLE.replace(
    "workload: {kind: lock_cycle, lock: mutex, tasks: 4, think: 5 us, hold: 1 us}",
    "filesystem: {kind: tmpfs, size: 1 GiB}\nworkload: {kind: create_unlink, tasks: 4}",
)
VARY = "sweep base.yaml -o out --vary workload.tasks=1,2"
WRONG = {
    "run base.yaml --columns ''": "--columns: names no column",
    "run base.yaml --columns ,": "--columns: names no column",
    "run base.yaml --set variants.0.name=a": "--set variants.0.name=a: the scenario has no variants",
    "run base.yaml --set variants.mutex.workload.tasks=3": "the scenario has no variants",
    "run base.yaml --set groups.a.workload.tasks=3": "the scenario has no groups",
    f"run base.yaml --seed {2**64}": f"--seed {2**64}: at most",
    "run base.yaml --set 'measure.duration=0 ms'": "a duration must be above 0",
    "validate xfs-rangelock-userspace-2019 --store base.yaml": "base.yaml is a file, not a directory",
    "sweep base.yaml -o base.yaml --vary workload.tasks=1,2": "base.yaml is a file, not a directory",
    f"{VARY} --between a,b": "--between a,b: goes with --refine crossover",
    f"{VARY} --refine knee --between a,b": "--between a,b: goes with --refine crossover",
    f"{VARY} --points 3": "--points 3: is for ranges",
    f"{VARY} --points 3 --design zip": "--points 3: is for ranges",
    "sweep base.yaml -o out --points 3": "--points 3: say what varies with --vary",
    "sweep base.yaml -o out --list rows.csv --points 3": "--points 3: is not for --list",
    "merge base.yaml": "base.yaml: is a file, not the directory of a sweep",
    "merge nowhere --out base.yaml": "base.yaml is a file, not a directory",
    "advise base.yaml --cpus 4": "--cpus: goes with --xfs-info; a scenario says it itself: --set machine.cpus=",
    "advise base.yaml --workload create": "--workload: goes with --xfs-info",
    "new ''": "is no name of a scenario",
    "new .": "is no name of a scenario",
    "new /": "is no name of a scenario",
    "new ..": "is no name of a scenario",
    "doctor --machine base.yaml": "is a scenario, no profile of a machine",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.yaml").write_text(CYCLE)
    (tmp_path / "files.yaml").write_text(FILES)
    (tmp_path / "rows.csv").write_text("workload.tasks\n1\n")
    return tmp_path


@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_is_said(line: str, here: Path) -> None:
    before = sorted(here.iterdir())
    answer = RUNNER.invoke(app, shlex.split(line))
    assert answer.exit_code == 2, (answer.stdout, answer.stderr)
    assert WRONG[line] in answer.stderr
    assert answer.stdout == ""
    assert sorted(here.iterdir()) == before


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_a_filesystem_that_nothing_uses_is_told() -> None:
    answer = RUNNER.invoke(app, ["run", "base.yaml", "--set", "filesystem={kind: xfs}"])
    assert answer.exit_code == 0
    assert "filesystem has no effect: workload lock_cycle uses none" in answer.stderr
    assert "no effect" not in RUNNER.invoke(app, ["run", "base.yaml"]).stderr


@pytest.mark.slow
def test_a_result_without_a_point_is_no_report(here: Path) -> None:
    assert RUNNER.invoke(app, ["run", "base.yaml", "--out", "result"]).exit_code == 0
    path = here / "result" / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"points": []}))
    answer = RUNNER.invoke(app, ["report", "result", "--no-timeline"])
    assert answer.exit_code == 2
    assert "result: no point was run, so there is nothing to report" in answer.stderr


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "letter", "json"])
@pytest.mark.usefixtures("here")
def test_loads_that_do_different_things_are_not_compared(form: str) -> None:
    """Switches per lock cycle stood beside switches per create, and were called worse."""
    answer = RUNNER.invoke(app, ["compare", "base.yaml", "files.yaml", "--format", form])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "operations 'lock cycle' and 'create-unlink' cannot be compared" in answer.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_what_an_option_takes(command: str) -> None:
    """Not its type in Python: `--scale <list[float]>`, `[[SCENARIO]]`, `FOLDER......`."""
    said = RUNNER.invoke(app, [command, "--help"]).stdout
    options = said.partition("Options:")[2]
    assert not re.search(r"<(str|path|list|int|float)", options), options
    assert "[[" not in said
    assert "......" not in said
