"""`simfs new`: what it writes loads, and nothing is written over."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from simfs.cli import app
from simfs.commands.new import STARTS
from simfs.scenario import expand, load, to_run_spec

RUNNER = CliRunner()


@pytest.mark.parametrize("about", sorted({*STARTS, "ext4", "btrfs", "tmpfs"}))
def test_what_is_written_is_a_scenario(about: str, tmp_path: Path) -> None:
    assert RUNNER.invoke(app, ["new", str(tmp_path / "my run"), "--about", about]).exit_code == 0
    asked = load(tmp_path / "my run.yaml")
    assert about not in ("xfs", "ext4", "btrfs", "tmpfs") or asked.filesystem.kind == about
    assert (asked.name, asked.expect) == ("my-run", ("throughput > 0",))
    assert all(to_run_spec(point, 0) for point in expand(asked))


def test_a_file_that_is_there_stays_and_an_unknown_start_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("mine")
    found = RUNNER.invoke(app, ["new", str(path)])
    assert (found.exit_code, path.read_text()) == (2, "mine")
    assert "is there already" in found.stderr
    found = RUNNER.invoke(app, ["new", str(tmp_path / "other"), "--about", "lok"])
    assert found.exit_code == 2
    assert "did you mean 'lock'" in found.stderr
    assert not (tmp_path / "other.yaml").exists()
