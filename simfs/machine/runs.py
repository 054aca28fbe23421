"""Runs of the reference machine: `run`, `trace` and `watch` as the native engine has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from simfs._engine import populate
from simfs.machine.machine import Machine
from simfs.machine.own import errors_of_own_locks, is_own
from simfs.machine.recorder import Event, LongWait, Trace
from simfs.machine.report import report
from simfs.machine.waist import Waist


def run(spec: str, *program: Callable[..., Any]) -> str:
    """Run one RunSpec (JSON text) and return its RunResult (JSON text). Raises ValueError for a wrong spec.

    A python workload needs its `program` and, if it has one, its `setup`.
    """
    return _traced(spec, None, *program)


def trace(spec: str, *program: Callable[..., Any], start: int = 0) -> tuple[str, list[Event]]:
    """Run one RunSpec and return its RunResult and everything that happened, in order, from `start` (ps) on."""
    recorded = Trace(start)
    return _traced(spec, recorded, *program), recorded.events


def watch(
    spec: str, *program: Callable[..., Any], start: int = 0
) -> tuple[str, list[Event], list[Event], list[LongWait]]:
    """The same with what was in force at `start` and the longest waits: (result, in force, events, longest waits)."""
    recorded = Trace(start)
    result = _traced(spec, recorded, *program)
    return result, recorded.in_force(), recorded.events, recorded.longest_waits()


def _traced(spec: str, recorded: Trace | None, *program: Callable[..., Any]) -> str:
    data = json.loads(spec)
    if data.get("whatif"):
        raise ValueError("whatif: only the native machine answers counterfactuals")
    own = [kind for kind in data["kernel"]["locks"].values() if is_own(kind)]
    with errors_of_own_locks(own[0] if own else None):
        machine = Machine(data)
        machine.trace = recorded
        with recorded.preparing() if recorded is not None else nullcontext():
            populate(spec, Waist(machine), *program)
        operations, stall = machine.run()
        return json.dumps(report(machine, operations, stall))
