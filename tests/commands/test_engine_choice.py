"""`simfs run --engine`: both machines give the same files, but for wall times and the machine's name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simfs.cli import app

RUNNER = CliRunner()

SMALL = {
    "lock-cycle": ["sweep.workload.tasks=[3, 6]", "measure.duration=1 ms"],
    "compile-24": [
        "workload.tasks=3",
        "workload.user_cpu=100 us",
        "measure.duration=5 ms",
        "measure.warmup=1 ms",
        "measure.replications=2",
    ],
}


def files(name: str, engine: str, out: Path) -> dict[str, bytes]:
    settings = [option for setting in SMALL[name] for option in ("--set", setting)]
    answer = RUNNER.invoke(app, ["run", name, "--quick", *settings, "--engine", engine, "--out", str(out)])
    assert answer.exit_code == 0, answer.stderr
    return {
        str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()
    }


def manifest(found: dict[str, bytes]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(found.pop("manifest.json"))
    del read["wall"], read["command"]
    return read


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
@pytest.mark.parametrize("name", SMALL)
def test_both_machines_give_the_same_results_to_the_byte(name: str, tmp_path: Path) -> None:
    native, simpy = files(name, "native", tmp_path / "native"), files(name, "simpy", tmp_path / "simpy")
    ours, theirs = manifest(native), manifest(simpy)
    assert (ours.pop("engine")["name"], theirs.pop("engine")["name"]) == ("native", "simpy")
    assert ours == theirs
    assert native == simpy
    assert sum(point["events"] for point in json.loads(native["result.json"])["points"]) > 1000
