"""Tasks of a load are numbered from 0 on wherever a run is looked at, and kernel threads are called that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from python_programs import Program
from typer.testing import CliRunner

from engine import lock_cycle
from simfs import _engine, machine
from simfs._engine import Lock, Machine, Task
from simfs.cli import app
from simfs.experiments.points import the_point
from simfs.machine.labels import name_of, number_of
from simfs.scenario import expand, load, to_run_spec

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
    point = the_point(load("commits", ["workload.tasks=3"]), "recycled-ext4")
    spec = dict(to_run_spec(point, 0)) | {"warmup_ns": 0.0, "duration_ns": 1e6}
    _, in_force, events, _ = _engine.watch(json.dumps(spec), start=10**8)
    tasks = {event[1] for event in [*in_force, *events] if event[1] is not None and event[1] >= 0}
    assert tasks == {0, 1, 2}


@pytest.fixture
def unready(tmp_path: Path) -> str:
    """Initial files that find no inodes."""
    path = tmp_path / "unready.yaml"
    small = LOAD.replace("{kind: xfs, size: 1 GiB}", "{kind: ext4, size: 300 MiB, inode_ratio: 4 MiB}")
    path.write_text(small.replace("sync: 1", "initial_files: 100000"))
    return str(path)


BOTH = pytest.mark.parametrize("engine", [_engine, machine], ids=["native", "reference"])


@BOTH
def test_who_sets_files_up_is_task_0_too(engine: Any, unready: str) -> None:  # noqa: ANN401
    """The tasks of the load come when it has ended."""
    (point,) = expand(load(unready))
    result, in_force, _, _ = engine.watch(json.dumps(to_run_spec(point, 0)))
    assert json.loads(result)["stall"]["cycle"] == ["task 0: no space left for the initial files"]
    assert {label for _, label, _, _, kind in in_force if kind in ("bound", "kernel")} == set(range(-12, 0))


def circle(task: Task) -> Program:
    """Two of three tasks end; the first starts another and a thread of the kernel, and gets into a circle with that."""
    first, second = task.shared
    if task.number > 0:
        return
    yield task.sleep(1e5)
    yield task.lock(first)
    for child in (bystander, other):
        yield task.spawn(child, background=child is other)
    yield task.sleep(1e5)
    yield task.lock(second)


def bystander(task: Task) -> Program:
    yield task.lock(task.shared[0])


def other(task: Task) -> Program:
    yield task.lock(task.shared[1])
    yield task.lock(task.shared[0])


@BOTH
def test_a_circle_of_waits_names_kernel_threads_and_those_that_came_later(engine: Any) -> None:  # noqa: ANN401
    """The last task that has ended leaves its number to the next one; the kernel's have their own."""
    spec = lock_cycle("mutex", 3, 2) | {"workload": {"kind": "python", "tasks": 3}}
    result, _, events, _ = engine.watch(json.dumps(spec), circle, two_locks)
    stall = json.loads(result)["stall"]
    assert stall["cycle"] == [
        "task 0 waits for lock#3 held by kthread 1",
        "kthread 1 waits for lock#1 held by task 0",
    ]
    assert [label for _, label, _, what, _ in events if what == "exit"] == [2, 1]
    assert [label for _, label, _, what, _ in events if what == "start"] == [1, -1]


def two_locks(made: Machine) -> tuple[Lock, Lock]:
    return made.new_lock("lock"), made.new_lock("lock")
