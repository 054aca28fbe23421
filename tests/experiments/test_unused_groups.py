"""More allocation groups that are never used: `run`, `compare` and `advise` say why they change nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simfs.cli import app
from simfs.experiments.unused_groups import ONE_DIRECTORY, ONE_GROUP

RUNNER = CliRunner()
ASKED = """\
simfs: 1
name: groups
title: More groups
machine: server-24
kernel: linux-6.12
filesystem: {kind: xfs, size: 8 GiB}
workload: {kind: create_unlink, tasks: 4, directories: shared}
variants:
  - {name: four}
  - {name: sixteen, filesystem: {agcount: 16}}
  - {name: own, filesystem: {agcount: 16}, workload: {directories: per-task}}
measure: {warmup: 1 ms, duration: 4 ms, replications: 3}
"""


@pytest.fixture
def asked(tmp_path: Path) -> str:
    file = tmp_path / "groups.yaml"
    file.write_text(ASKED)
    return str(file)


def said(*command: str) -> str:
    found = RUNNER.invoke(app, list(command))
    assert found.exit_code == 0, found.stderr
    return " ".join(found.stdout.split())


def test_a_run_says_why_more_groups_do_exactly_the_same(asked: str) -> None:
    whole = said("run", asked)
    assert f"sixteen does exactly the same as four: {ONE_DIRECTORY}" in whole
    two = said("run", asked, "--variant", "four", "--variant", "sixteen")
    assert f"all variants do exactly the same: {ONE_DIRECTORY}" in two


def test_one_task_in_its_own_directory_is_not_told_to_have_one(asked: str) -> None:
    sides = [f"variants.{name}.workload.directories=per-task" for name in ("four", "sixteen")]
    options = [word for side in (*sides, "workload.tasks=1") for word in ("--set", side)]
    two = said("run", asked, "--variant", "four", "--variant", "sixteen", *options)
    assert f"all variants do exactly the same: {ONE_GROUP}" in two


@pytest.mark.parametrize("output", ["text", "letter"])
def test_a_comparison_says_why(asked: str, output: str) -> None:
    found = said("compare", f"{asked}:four", f"{asked}:sixteen", "--format", output)
    assert f"a and b do exactly the same: {ONE_DIRECTORY}" in found
    assert ONE_DIRECTORY not in said("compare", f"{asked}:four", f"{asked}:own", "--format", output)


def test_a_comparison_of_other_settings_says_only_that_they_have_no_effect(asked: str) -> None:
    found = said("compare", f"{asked}:four", f"{asked}:four")
    assert "a and b do exactly the same: what they differ in has no effect here" in found
    pairs = json.loads(said("compare", f"{asked}:four", f"{asked}:own", "--format", "json"))["pairs"]
    assert pairs[0]["alike"] is None


def test_advice_says_why_groups_do_not_matter(asked: str) -> None:
    found = said("advise", asked, "--variant", "four")
    assert "with one shared directory allocation groups do not matter" in found
    assert f"): {ONE_DIRECTORY.split(';', maxsplit=1)[0]}" in found
