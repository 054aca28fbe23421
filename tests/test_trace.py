"""simfs trace: what happens at one point of a scenario, from either machine."""

from __future__ import annotations

import csv
import io
import json

import pytest
from typer.testing import CliRunner

from simfs.cli import app

RUNNER = CliRunner()


@pytest.mark.parametrize("scenario", ["lock-cycle", "python-lock-cycle"])
def test_both_machines_give_the_same_events(scenario: str) -> None:
    answer = RUNNER.invoke(app, ["trace", scenario, "--engine", "both", "--length", "50 us"])
    assert answer.exit_code == 0, answer.stderr
    assert "both machines give the same" in answer.stderr
    assert "task 0" in answer.stdout


def test_a_lock_of_ones_own_is_traced_on_the_reference_machine_only() -> None:
    options = ["trace", "own-lock", "--variant", "two-phase", "--length", "50 us"]
    assert RUNNER.invoke(app, [*options, "--engine", "simpy"]).exit_code == 0
    native = RUNNER.invoke(app, options)
    assert native.exit_code == 2
    assert "--engine simpy" in native.stderr


def test_the_formats_hold_the_same_events() -> None:
    options = ["trace", "lock-cycle", "--set", "workload.tasks=4", "--start", "5 us", "--length", "20 us"]
    options += ["--format"]
    document = json.loads(RUNNER.invoke(app, [*options, "json"]).stdout)
    table = list(csv.DictReader(io.StringIO(RUNNER.invoke(app, [*options, "csv"]).stdout)))
    lines = RUNNER.invoke(app, [*options, "text"]).stdout.splitlines()
    assert len(document) == len(table) == len(lines) > 0
    assert [event["time_ns"] for event in document] == [float(row["time_ns"]) for row in table]
    assert all(5_000 <= event["time_ns"] <= 25_001 for event in document)
    assert json.loads(RUNNER.invoke(app, [*options, "chrome"]).stdout)["traceEvents"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--variant", "mutexx"], "did you mean 'mutex'?"),
        (["--start", "soon"], "--start"),
        (["--length", "3 parsecs"], "--length"),
    ],
)
def test_bad_input_is_named(options: list[str], said: str) -> None:
    answer = RUNNER.invoke(app, ["trace", "lock-cycle", *options])
    assert answer.exit_code == 2
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr
