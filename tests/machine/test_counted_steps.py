"""Machines whose steps are counted: instructions by their price, and the entry of a system call as it was measured."""

from __future__ import annotations

from typing import Any

import pytest

from simfs.scenario import expand, load
from simfs.scenario.models import load_classes, load_machine, load_vfs_instructions
from simfs.scenario.run_spec import to_run_spec


def costs(machine: str, *more: str) -> dict[str, Any]:
    """The VFS's costs on XFS, in ns of this machine."""
    settings = ["sweep={}", f"machine={machine}", "filesystem.kind=xfs", "workload.tasks=1", *more]
    spec = to_run_spec(expand(load("guest-operations", settings))[0], 0)
    speed = spec["machine"]["costs"]["speed"]
    return {name: ns * speed for name, ns in spec["vfs"]["costs"].items()}


def test_an_emulated_step_takes_its_instructions() -> None:
    found = costs("emulated")
    for name, step in load_vfs_instructions("xfs").items():
        assert found[name] == pytest.approx(step.plain)


def expected(step: str, entries: int) -> float:
    """What a step of the VFS on XFS takes on the guest: entries, classes of instructions, all others, lines of code."""
    prices: dict[str, float] = {
        name: each.plain for name, each in load_machine("guest-2cpu-emerald").classes.items()
    }
    counts = {str(name): number for name, number in load_classes("xfs").get(step, {}).items()}
    besides = sum(prices[name] * counts.pop(name, 0) for name in ("fetch", "return"))
    whole = counts.pop("instructions", load_vfs_instructions("xfs")[step].plain)
    entered = load_machine("emulated").micro["syscall"].plain
    counts["mask"] = counts.get("mask", 0) - entries
    others = whole - entries * entered - sum(counts.values())
    classed = sum(prices[name] * number for name, number in counts.items())
    entry = load_machine("guest-2cpu-emerald").micro["syscall"].plain
    return entries * entry + classed + others * prices["plain"] + besides


@pytest.mark.parametrize(
    ("step", "entries"),
    [
        ("call.fstat", 1),
        ("call.setattr_before_i_rwsem", 1),
        ("call.setattr_under_i_rwsem", 0),
        ("call.readdir", 5),
    ],
)
def test_a_step_takes_its_entries_and_each_class_of_its_instructions(step: str, entries: int) -> None:
    assert costs("guest-2cpu-emerald")[step] == pytest.approx(expected(step, entries))


def test_instructions_of_all_classes_take_longer_where_those_of_locks_do() -> None:
    usual = load_machine("guest-2cpu-emerald").costs.instruction.plain
    slow = costs("guest-2cpu-emerald", f"machine.costs.instruction={2 * usual} ns")
    assert slow["call.setattr_under_i_rwsem"] == pytest.approx(2 * expected("call.setattr_under_i_rwsem", 0))


def test_a_name_of_a_listing_calls_back_and_stores_to_the_user() -> None:
    name = load_classes("tmpfs")["call.readdir_name"]
    assert name["user"] == pytest.approx(1, abs=0.1)
    assert name["indirect"] == pytest.approx(1, abs=0.01)


def test_a_short_call_has_its_code_in_the_l1_and_a_create_has_not() -> None:
    steps = load_classes("xfs")
    assert steps["call.fstat"].get("fetch", 0) < 5
    assert sum(of.get("fetch", 0) for name, of in steps.items() if name.startswith("cu_short.")) > 500


def line_hit(scenario: str, *settings: str) -> float:
    spec = to_run_spec(expand(load(scenario, ["machine=guest-2cpu-emerald", *settings]))[0], 0)
    return float(spec["machine"]["costs"]["line_hit"])


@pytest.mark.parametrize(("scenario", "has"), [("creat-unlink", False), ("lock-cycle", True)])
def test_what_an_atomic_operation_takes_more_than_a_hit_is_in_steps(scenario: str, has: bool) -> None:
    spec = to_run_spec(expand(load(scenario, ["machine=server-24"]))[0], 0)
    assert ("line_atomic" in spec["machine"]["costs"]) == has


def test_atomics_that_steps_have_are_not_paid_twice() -> None:
    assert line_hit("guest-operations") == 0
    assert line_hit("lock-cycle") == load_machine("guest-2cpu-emerald").costs.line_hit.plain


@pytest.mark.parametrize(("step", "entries"), [("call.fstat", 1), ("call.setattr_under_i_rwsem", 0)])
def test_all_that_a_core_does_takes_longer_by_its_clock(step: str, entries: int) -> None:
    slow = costs("guest-2cpu-emerald", "machine.clock=0.8")
    assert slow[step] == pytest.approx(expected(step, entries) / 0.8)
