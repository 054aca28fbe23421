"""Runs that cannot go on: deadlocks (a cycle of waits) and stalls (nobody can go on)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simfs.machine.task import Task
from simfs.machine.task_state import Status
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.machine import Machine


NO_SPACE = "no space left"
"""What who finds no space gives up with (`ENOSPC`)."""


@dataclass(frozen=True)
class Stall:
    """A run that could not go on."""

    kind: str
    """`deadlock`, `no space left` or `stall`."""
    at: Time
    cycle: list[str]
    """Who waits for what."""


def nobody_can_go_on(machine: Machine) -> Stall | None:
    """What to say when nothing will ever happen again: nothing if only background tasks are left."""
    if machine.setting_up is None and all(task.background for task in machine.living()):
        return None
    waiting = [_describe(task) for task in machine.tasks if task.waits_for is not None]
    return waits_in_a_circle(machine) or Stall("stall", machine.now, waiting)


def waits_in_a_circle(machine: Machine) -> Stall | None:
    """A cycle in the graph "task waits for the lock held by task"."""
    for start in machine.tasks:
        at, cycle = start, list[str]()
        while (holder := _holder(at)) is not None and len(cycle) <= len(machine.tasks):
            cycle.append(_describe(at))
            at = holder
            if at is start:
                return Stall("deadlock", machine.now, cycle)
    return None


def _holder(task: Task) -> Task | None:
    """Who holds the lock that a stuck task waits for."""
    lock = task.waits_for
    stuck = task.status is Status.SLEEPING or task.spinning
    if lock is None or not stuck or lock.held_by_device or lock.holder is task:
        return None
    return lock.holder


def _describe(task: Task) -> str:
    lock = task.waits_for
    assert lock is not None
    if lock.holder is None and not lock.readers and lock.left:
        since, by = lock.left
        when = f"which {by} released at {lock.machine.on_the_clock(since):.3f} ns"
        return f"{task} waits for {lock}, {when} without waking anybody"
    return f"{task} waits for {lock} held by {lock.holder or 'readers or nobody'}"
