"""The program measured for the data set guest-fills: it builds here, and has the loads of the scenario."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from compiled import compiled, needs_compiler

from simfs.scenario import load

LOADS = ("write", "round", "sync", "create")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("tools/file-latencies/latencies.c", tmp_path_factory.mktemp("latencies"))


def test_the_scenario_has_each_load_on_both_devices() -> None:
    names = [variant.name for variant in load("guest-fills").variants]
    assert names == [name + device for device in ("", "-zram") for name in LOADS]


@needs_compiler
@pytest.mark.parametrize("name", ["sync", "create"])
def test_a_load_prints_its_rate_and_latencies(program: Path, tmp_path: Path, name: str) -> None:
    command = [str(program), name, "2", str(tmp_path), "10", "300"]
    line = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    said, tasks, *numbers = line.strip().split(",")
    rate, p50, p99, longest, idle, others = map(float, numbers)
    assert (said, tasks) == (name, "2")
    assert rate > 0
    assert 0 < p50 <= p99 <= longest
    assert idle >= 0 <= others
    assert {path.name for path in tmp_path.iterdir()} == {"d000", "d001"}


@needs_compiler
def test_an_unknown_load_is_refused(program: Path, tmp_path: Path) -> None:
    ran = subprocess.run([program, "walk", "1", tmp_path, "1", "1"], capture_output=True, check=False)
    assert ran.returncode == 2
