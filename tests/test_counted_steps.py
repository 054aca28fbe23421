"""Machines whose steps are counted: instructions by their price, and the entry of a system call as it was measured."""

from __future__ import annotations

from typing import Any

import pytest

from simfs.scenario import expand, load
from simfs.scenario.models import load_machine, load_vfs_instructions
from simfs.scenario.run_spec import to_run_spec


def costs(machine: str) -> dict[str, Any]:
    """The VFS's costs on XFS, in ns of this machine."""
    settings = ["sweep={}", f"machine={machine}", "filesystem.kind=xfs", "workload.tasks=1"]
    spec = to_run_spec(expand(load("guest-operations", settings))[0], 0)
    speed = spec["machine"]["costs"]["speed"]
    return {name: ns * speed for name, ns in spec["vfs"]["costs"].items()}


def test_an_emulated_step_takes_its_instructions() -> None:
    found = costs("emulated")
    for name, step in load_vfs_instructions("xfs").items():
        assert found[name] == pytest.approx(step.plain)


@pytest.mark.parametrize(
    ("step", "entries"),
    [
        ("call.fstat", 1),
        ("call.setattr_before_i_rwsem", 1),
        ("call.setattr_under_i_rwsem", 0),
        ("call.readdir", 5),
    ],
)
def test_a_step_with_entries_takes_what_a_system_call_was_measured_to_take(step: str, entries: int) -> None:
    machine = load_machine("guest-2cpu-emerald")
    price = machine.costs.instruction.plain
    bare = load_machine("emulated").micro["syscall"].plain
    rest = load_vfs_instructions("xfs")[step].plain - entries * bare
    expected = entries * machine.micro["syscall"].plain + rest * price
    assert costs("guest-2cpu-emerald")[step] == pytest.approx(expected)
