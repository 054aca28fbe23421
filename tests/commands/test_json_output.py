"""What programs read: one JSON document on standard output, from every command that prints an answer."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simfs.cli import COMMANDS, app
from simfs.commands import common
from simfs.doctor import Finding
from simfs.scenario import load, paths

RUNNER = CliRunner()
pytestmark = pytest.mark.usefixtures("png_alone_in_file")
SMALL = ["--quick", "--set", "sweep.workload.tasks=[2]", "--set", "measure.duration=1 ms"]
NO_ANSWER = {"new", "schema", "lab", "import"}
"""They print a file, JSON anyway, or an address; `--format` of an import is that of the tool."""


def document(*words: str) -> Any:  # noqa: ANN401
    answer = RUNNER.invoke(app, [*words, "--format", "json"])
    assert answer.exit_code == 0, answer.stderr
    return json.loads(answer.stdout)


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - NO_ANSWER))
def test_every_command_that_prints_an_answer_prints_json(command: str) -> None:
    said = RUNNER.invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout
    assert re.search(r"--format +<[^>]*\bjson\b", said)


def test_list_gives_rows_of_kind_name_and_title() -> None:
    rows = document("list")
    assert {row["kind"] for row in rows} == {
        "scenarios",
        "measured data",
        "machines",
        "filesystems",
        "devices",
        "kernels",
    }
    assert {row["name"] for row in rows if row["kind"] == "scenarios"} == set(paths.names(paths.SCENARIOS))
    assert document("list", "CAS-loop") == [row for row in rows if "cas-loop" in f"{row}".lower()]


def test_list_gives_each_release_by_a_name_that_scenarios_take() -> None:
    names = [row["name"] for row in document("list", "kernels")]
    assert {"linux-3.0", "linux-3.2"} <= set(names)
    for name in (names[0], names[-1]):
        load("lock-cycle", [f"kernel={name}"])


def test_list_prints_csv() -> None:
    rows = list(
        csv.DictReader(io.StringIO(RUNNER.invoke(app, ["list", "machines", "--format", "csv"]).stdout))
    )
    assert rows == document("list", "machines")


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_word_that_nothing_has_is_refused_in_every_format(form: str) -> None:
    answer = RUNNER.invoke(app, ["list", "xyzzy", "--format", form])
    assert (answer.exit_code, answer.stdout) == (2, "")


@pytest.mark.slow
def test_doctor_says_what_it_has_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenarios are told like all else; that each loads is what the example of its help shows, in test_cli.py."""
    monkeypatch.setattr("simfs.doctor._scenario", lambda name: Finding(f"scenario {name}", True, "12 points"))
    found = document("doctor")
    assert found["healthy"] is True
    assert {"name", "ok", "seen", "advice", "required"} == set(found["findings"][0])


@pytest.mark.slow
def test_a_picture_and_a_page_are_told_of(tmp_path: Path) -> None:
    out, page, picture = (str(tmp_path / name) for name in ("out", "page.html", "picture.png"))
    told = document("timeline", "lock-cycle", *SMALL, "-o", picture)
    assert told["picture"] == picture
    assert told["scenes"][0]["lock"].startswith("lock#")
    document("run", "lock-cycle", *SMALL, "--out", out)
    written = document("report", out, "-o", page, "--no-timeline")
    assert (written["scenario"], written["page"]) == ("lock-cycle", page)


@pytest.mark.slow
def test_shards_that_are_merged_are_one_document(tmp_path: Path) -> None:
    folder = str(tmp_path / "whole")
    for shard in ("1/2", "2/2"):
        RUNNER.invoke(app, ["sweep", "lock-cycle", *SMALL, "--shard", shard, "--out", folder])
    assert document("merge", folder)["name"] == "lock-cycle"


@pytest.mark.parametrize("options", [["--as", "fio"], ["--columns", "tasks"]])
def test_options_for_other_outputs_are_refused_beside_json(options: list[str]) -> None:
    answer = RUNNER.invoke(app, ["run", "lock-cycle", *options, "--format", "json"])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert options[0] in answer.stderr


FOLDERS = [("run", "--out"), ("whatif", "--out"), ("sensitivity", "--out"), ("advise", "--out")]
FILES = [("run", "--report"), ("timeline", "--out"), ("calibrate", "--out"), ("measure", "--out")]
ENDINGS = {"--report": ".html", "timeline": ".png", "calibrate": ".json", "measure": ".yaml"}


@pytest.mark.parametrize(("command", "option"), [*FOLDERS, *FILES])
def test_where_nothing_may_be_written_is_told_before_anything_runs(
    command: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    ending = ENDINGS.get(option) or ENDINGS.get(command, "")
    scenario = [] if command == "measure" else ["compile-24"]
    answer = RUNNER.invoke(app, [command, *scenario, option, str(tmp_path / f"x{ending}")])
    assert answer.exit_code == 2
    assert f"nothing may be written to {tmp_path}" in answer.stderr


def test_a_full_disk_is_not_the_users_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(OSError, match="No space left"):
        common.refuse_out(tmp_path / "x")


def test_looking_whether_a_place_can_be_written_leaves_nothing(tmp_path: Path) -> None:
    common.refuse_out(tmp_path / "a" / "b")
    common.refuse_file(tmp_path / "x.json")
    assert list(tmp_path.iterdir()) == []


def test_both_sides_of_a_comparison_are_found_before_one_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simfs.experiments.compare._run_side", lambda *_: pytest.fail("was run"))
    answer = RUNNER.invoke(app, ["compare", "compile-24:xfs", "compil-24:xfs"])
    assert answer.exit_code == 2
    assert "did you mean 'compile-24'" in answer.stderr
