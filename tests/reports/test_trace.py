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
    reference = RUNNER.invoke(app, [*options, "--engine", "simpy"])
    assert reference.exit_code == 0
    assert RUNNER.invoke(app, options).stdout == reference.stdout
    native = RUNNER.invoke(app, [*options, "--engine", "native"])
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


def test_a_window_in_which_nothing_happens_says_so() -> None:
    options = [
        "--set",
        "workload.tasks=1",
        "--set",
        "workload.think=10 ms",
        "--start",
        "100 us",
        "--length",
        "1 us",
    ]
    answer = RUNNER.invoke(app, ["trace", "lock-cycle", *options])
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert "nothing happens from 100 us to 101 us" in answer.stderr


def test_chromes_format_knows_what_ran_and_was_held_when_it_begins() -> None:
    options = ["--variant", "semaphore", "--set", "workload.tasks=6", "--set", "machine.cpus=2"]
    options += ["--start", "1 ms", "--length", "5 us", "--format", "chrome"]
    events = json.loads(RUNNER.invoke(app, ["trace", "lock-cycle", *options]).stdout)["traceEvents"]
    names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {"CPU 0", "CPU 1", *(f"task {task}" for task in range(6))} <= names
    spans = [event for event in events if event["ph"] == "X"]
    assert {event["tid"] for event in spans if event["pid"] == 1 and event["ts"] == 1000} == {0, 1}
    assert all(1000 <= event["ts"] <= event["ts"] + event["dur"] <= 1005.001 for event in spans)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--variant", "mutexx"], "did you mean 'mutex'?"),
        (["--start", "soon"], "--start"),
        (["--start", "500 s"], "--start 500 s: the run of semaphore"),
        (["--length", "3 parsecs"], "--length"),
        (["--length", "0 ms"], "--length: must be more than nothing"),
    ],
)
def test_bad_input_is_named(options: list[str], said: str) -> None:
    answer = RUNNER.invoke(app, ["trace", "lock-cycle", *options])
    assert answer.exit_code == 2
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_trace_takes_quick_as_other_commands_do() -> None:
    """The window is a fifth as long; the events before its end are the same."""
    options = ["trace", "lock-cycle", "--set", "workload.tasks=4", "--length", "20 us"]
    quick = RUNNER.invoke(app, [*options, "--quick"])
    assert quick.exit_code == 0, quick.stderr
    assert quick.stdout == RUNNER.invoke(app, options).stdout != ""
