"""Tasks of a load are numbered from 0 on wherever a run is looked at, and kernel threads are called that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simfs.cli import app
from simfs.experiments.watching import as_shown, native_watch
from simfs.results.task_names import first_of_load, name_of, number_of, numbers, told_as_shown

RUNNER = CliRunner()
LOAD = """
simfs: 1
name: synced
title: Files that are synced
machine: {profile: server-24, cpus: 4}
kernel: linux-6.12
filesystem: {kind: xfs, size: 1 GiB}
device: nvme
workload: {kind: fs_mark, tasks: 3, sync: 1}
measure: {warmup: 0 ms, duration: 20 ms, replications: 1}
"""


@pytest.fixture
def synced(tmp_path: Path) -> str:
    path = tmp_path / "synced.yaml"
    path.write_text(LOAD)
    return str(path)


def test_names_and_numbers() -> None:
    assert [name_of(task) for task in (0, 7, -1, -12)] == ["task 0", "task 7", "kthread 1", "kthread 12"]
    assert [number_of(name_of(task)) for task in (0, 7, -1, -12)] == [0, 7, -1, -12]
    assert [number_of(name) for name in ("", "timer", "device#0", "task x")] == [None] * 4


def test_tasks_of_the_load_begin_with_0_and_the_threads_of_the_kernel_with_1() -> None:
    kinds = {0: "bound", 1: "kernel", 2: "load", 3: "load", 4: "kernel", 5: "load"}
    first = first_of_load(kinds)
    assert first == 2
    shown = numbers(kinds, first)
    assert [shown(number) for number in range(6)] == [-1, -2, 0, 1, -5, 3]
    assert first_of_load({0: "bound", 2: "load"}) is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "json", "text"])
def test_a_trace_has_tasks_from_0_on(synced: str, kind: str) -> None:
    ran = RUNNER.invoke(app, ["trace", synced, "--start", "2 ms", "--length", "1 ms", "--format", kind])
    assert ran.exit_code == 0, ran.stderr
    if kind == "text":
        lines = [line.partition("CPU ")[2].split() for line in ran.stdout.splitlines()]
        names = {
            " ".join(words[1:3]) for words in lines if len(words) > 3 and words[1] in ("task", "kthread")
        }
        tasks = {name for name in names if name.startswith("task")}
        assert tasks <= {"task 0", "task 1", "task 2"}
        assert tasks
        assert any(name.startswith("kthread") for name in names)
        return
    if kind == "json":
        found = {event["task"] for event in json.loads(ran.stdout)}
    else:
        found = {line.split(",")[1] for line in ran.stdout.splitlines()[1:]}
        found = {int(number) if number else None for number in found}
    assert {number for number in found if number is not None and number >= 0} <= {0, 1, 2}
    assert any(number is not None and number < 0 for number in found)


@pytest.mark.slow
def test_the_picture_of_a_time_line_names_the_same_tasks(synced: str, tmp_path: Path) -> None:
    ran = RUNNER.invoke(app, ["timeline", synced, "-o", str(tmp_path / "a.html"), "--format", "json"])
    assert ran.exit_code == 0, ran.stderr
    (scene,) = json.loads(ran.stdout)["scenes"]
    task = scene["longest_wait_task"]
    assert task in range(-100, 3)
    assert name_of(task) in scene["sentence"]
    page = (tmp_path / "a.html").read_text()
    assert '"name":"task 0"' in page.replace(": ", ":")
    assert '"name":"task 3"' not in page.replace(": ", ":")


@pytest.mark.slow
def test_where_files_were_set_up_by_a_task_the_load_begins_with_0_too() -> None:
    """Who makes initial files comes after the threads of the kernel, and ends before the clock starts."""
    from simfs.experiments.points import the_point
    from simfs.scenario import load, to_run_spec

    point = the_point(load("commits", ["workload.tasks=3"]), "recycled-ext4")
    spec = dict(to_run_spec(point, 0)) | {"warmup_ns": 0.0, "duration_ns": 1e6}
    _, in_force, events, _ = as_shown(native_watch)(json.dumps(spec), start=10**8)
    tasks = {event[1] for event in [*in_force, *events] if event[1] is not None and event[1] >= 0}
    assert tasks == {0, 1, 2}


def test_what_is_wrong_names_tasks_as_they_are_shown() -> None:
    cycle = ["task 3 waits for a#1 held by task 2", "task 0 waits for b#2 held by task 3"]
    law = {"law": "mutual exclusion", "ok": False, "detail": "task 2 takes a at 5 ps while task 3 holds it"}
    result = json.dumps({"stall": {"kind": "deadlock", "at_ns": 0, "cycle": cycle}, "laws": [law]})
    told = json.loads(told_as_shown(result, lambda: {0: "bound", 1: "kernel", 2: "load", 3: "load"}))
    assert told["stall"]["cycle"] == [
        "task 1 waits for a#1 held by task 0",
        "kthread 1 waits for b#2 held by task 1",
    ]
    assert told["laws"][0]["detail"] == "task 0 takes a at 5 ps while task 1 holds it"


def test_nothing_is_asked_where_nothing_is_wrong() -> None:
    result = json.dumps({"stall": None, "laws": [{"law": "a", "ok": True, "detail": "task 7"}]})
    assert told_as_shown(result, lambda: pytest.fail("asked")) is result
