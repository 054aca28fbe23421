"""The program measured for the data set guest-operations: it builds here, and has the loops of the scenario."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from compiled import compiled, needs_compiler

from simfs.scenario import load


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("tools/file-operations/operations.c", tmp_path_factory.mktemp("operations"))


@needs_compiler
def test_each_variant_of_the_scenario_is_a_loop_of_the_program(program: Path) -> None:
    loops = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    assert {variant.name for variant in load("guest-operations").variants} <= set(loops)


@needs_compiler
def test_a_loop_prints_its_rate_in_each_window(program: Path, tmp_path: Path) -> None:
    command = [str(program), "rename", "2", "shared", str(tmp_path), "100", "3"]
    line = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    loop, tasks, directories, *rates = line.strip().split(",")
    assert (loop, tasks, directories) == ("rename", "2", "shared")
    assert len(rates) == 3
    assert max(map(float, rates)) > 0  # a window of a busy computer may have none
    assert len(list((tmp_path / "d000a").iterdir())) == 128
