"""Sweeps of some of a scenario's variants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from simfs.cli import app

RUNNER = CliRunner()


def sweep(*options: object) -> Any:  # noqa: ANN401
    return RUNNER.invoke(app, ["sweep", *map(str, options)])


def test_a_key_of_some_variants_is_varied_in_these_alone(tmp_path: Path) -> None:
    """No other variant of `compile-24` has allocation groups, so these could not be swept."""
    short = (
        "--set",
        "measure={duration: 1 ms, warmup: 0 ms, replications: 1}",
        "--set",
        "workload.user_cpu=1 ms",
    )
    vary = ("compile-24", *short, "--vary", "filesystem.agcount=4,8", "--set", "workload.tasks=1")
    everywhere = sweep(*vary, "--out", tmp_path / "all")
    assert (everywhere.exit_code, "unknown key 'agcount'" in everywhere.stderr) == (2, True)
    one = (*vary, "--variant", "xfs", "--out", tmp_path / "xfs", "--format", "json")
    points = json.loads(sweep(*one).stdout)["points"]
    assert [(p["variant"], p["values"]["filesystem.agcount"]) for p in points] == [("xfs", 4), ("xfs", 8)]
    again = sweep(*vary, "--variant", "xfs-49", "--out", tmp_path / "xfs")
    assert (again.exit_code, "its variants differ" in again.stderr) == (2, True)
    unknown = sweep(*vary, "--variant", "xsf", "--out", tmp_path / "no")
    assert (unknown.exit_code, "did you mean 'xfs'" in unknown.stderr) == (2, True)
