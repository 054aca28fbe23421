"""Files and folders that commands write to: missing folders are made, and what cannot be made is refused at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from simfs.cli import app

RUNNER = CliRunner()
SMALL = ["--set", "measure={duration: 1 ms, warmup: 0 ms, replications: 1}"]
TABLE = "tasks,ops_per_s\n1,100\n2,190\n"
WRITES = {
    "timeline": (["timeline", "lock-cycle", *SMALL, "-o"], "a.png"),
    "run --report": (["run", "lock-cycle", "--variant", "mutex", *SMALL, "--report"], "a.html"),
    "run": (["run", "lock-cycle", "--variant", "mutex", *SMALL, "--out"], "a"),
    "import": (["import", "own.csv", "-o"], "a.yaml"),
    "new": (["new"], "a.yaml"),
}


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
@pytest.mark.parametrize("command", WRITES)
def test_missing_folders_are_made(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.csv").write_text(TABLE)
    words, name = WRITES[command]
    answer = RUNNER.invoke(app, [*words, f"new/folder/{name}"])
    assert answer.exit_code == 0, answer.stderr
    assert (tmp_path / "new" / "folder" / name).exists()


BLOCKED = WRITES | {
    "calibrate": (["calibrate", "compile-24", "--out"], "fit.json"),
    "report": (["report", "nowhere", "-o"], "a.html"),
    "measure": (["measure", "-o"], "a.yaml"),
    "import": (["import", "no-such-file", "-o"], "a.yaml"),
}


@pytest.mark.parametrize("command", BLOCKED)
def test_a_file_in_the_place_of_a_folder_is_refused_before_anything_is_done(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("a file")
    words, name = BLOCKED[command]
    answer = RUNNER.invoke(app, [*words, f"file/folder/{name}"])
    assert answer.exit_code == 2, answer.output
    assert "file is a file, not a directory" in answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
