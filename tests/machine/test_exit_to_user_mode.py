"""A task that is wanted elsewhere gives way before its system call returns (`exit_to_user_mode_loop`)."""

from __future__ import annotations

import json

import pytest
from machines import assert_same

from engine import Spec, window
from simfs import _engine
from simfs.scenario import expand, load, to_run_spec

SLICE = 2.8e9
"""Picoseconds: a base slice, in which a task makes thousands of files."""


def creating(tasks: int) -> Spec:
    """Tasks on one CPU make files on tmpfs, with next to no user code between the calls."""
    settings = ["variants=[]", "calibrate=[]", "measured=null", "machine.cpus=1", "filesystem.kind=tmpfs"]
    settings += ["workload.operations=[{op: create}]", "workload.files=0", f"sweep.workload.tasks=[{tasks}]"]
    settings += ["kernel.preemption=none"]
    (point,) = expand(load("emulated-metadata", settings))
    return to_run_spec(point, 0) | window(6e7)


def calls(spec: Spec) -> tuple[list[int], int]:
    """How long each call took from its beginning to its end, in ps, and how often its task gave way within."""
    _, _, events, _ = _engine.watch(json.dumps(spec))
    began: dict[int, int] = {}
    took, gave_way = [], 0
    for time, who, _, what, _ in events:
        if who is None:
            continue
        if what == "begin":
            began[who] = time
        elif what == "end" and who in began:
            took.append(time - began.pop(who))
        elif what in {"yield", "preempt"} and who in began:
            gave_way += 1
    return took, gave_way


def test_a_call_that_is_preempted_takes_as_long_as_the_others_run() -> None:
    took, gave_way = calls(creating(2))
    assert gave_way > 5
    assert max(took) > SLICE
    assert len([time for time in took if time > SLICE / 2]) <= gave_way


def test_a_task_alone_gives_way_to_kernel_threads_at_most() -> None:
    took, _ = calls(creating(1))
    assert max(took) < SLICE / 10


@pytest.mark.slow
def test_both_machines_agree_on_the_end_of_calls() -> None:
    assert_same(creating(2), most=40_000)  # which has the first switches
