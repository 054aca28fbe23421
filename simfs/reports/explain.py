"""A scenario in words, and its locks with their order: as text, JSON and for Graphviz."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from simfs.experiments.lock_order import LockOrder, Taken
from simfs.machine.locks.policy import ALIASES, POLICIES
from simfs.reports.layout import Sheet, new_table, report_console
from simfs.reports.numbers import duration
from simfs.results.model import quantity
from simfs.scenario import Point, Scenario, to_run_spec
from simfs.scenario.models import load_device, load_machine
from simfs.scenario.points import group_loads
from simfs.scenario.sections.units import format_size
from simfs.scenario.sections.workload import Workload

FITTED = re.compile(r"(\d+\.\d+|\d{6,}) ns")
"""A time as a fit or a program left it, with more digits than it is known to."""


def words(asked: Scenario, point: Point) -> dict[str, str]:
    """What is simulated, a line for each part."""
    use, spec = point.scenario, to_run_spec(point, 0)
    told = {
        "asks": " ".join((asked.question or asked.title).split()),
        "machine": _machine(point, spec["machine"]),
        "kernel": _kernel(spec["kernel"]),
        "filesystem": _settings("filesystem", spec["filesystem"]),
        "device": load_device(use.device.profile).title if use.device else "",
        "load": _loads(point),
        "variants": "; ".join(variant.title or variant.name for variant in asked.variants),
        "swept": "; ".join(f"{key}: {', '.join(map(str, values))}" for key, values in asked.sweep.items()),
        "measured": _measure(asked),
        "fitted": ", ".join(each.parameter for each in asked.calibrate),
        "expected": "; ".join(asked.expect),
        "held against": asked.measured.dataset if asked.measured else "",
    }
    return {name: text for name, text in told.items() if text}


def _machine(point: Point, machine: dict[str, Any]) -> str:
    shape = [f"{machine['cpus']} CPUs"]
    parts = {"cpus_per_core": "a core", "cpus_per_llc": "a last-level cache", "cpus_per_socket": "a socket"}
    for size, name in parts.items():
        shape.append(f"{machine[size]} {name}")
    return f"{load_machine(point.scenario.machine.profile).title} ({', '.join(shape)})"


def _kernel(kernel: dict[str, Any]) -> str:
    rules = kernel["rules"]
    sessions = {"none": "no groups"}.get(rules["sched.groups"], rules["sched.groups"])
    return (
        f"{kernel['name']}: {rules['sched.class'].upper()}, a tick every {quantity(kernel['tick_ns'], 'ns')}, "
        f"preemption {kernel['preemption']}, {sessions}"
    )


def _settings(name: str, settings: dict[str, Any]) -> str:
    kind = settings["kind"]
    if kind == "none":
        return ""
    plain = {key: value for key, value in settings.items() if isinstance(value, int | str | float)}
    size = [f"size {format_size(settings['size_bytes'])}"] if settings.get("size_bytes") else []
    rest = size + [
        f"{key} {_plain(value)}"
        for key, value in plain.items()
        if key not in ("kind", "size_bytes") and value != ""
    ]
    return f"{kind} ({', '.join(rest)})" if rest else kind


def _loads(point: Point) -> str:
    """What the tasks do: all alike, or group by group."""
    groups = group_loads(point.scenario)
    named = [f"{name}: {_load(load, load.tasks)}" for name, load in groups.items()]
    return "; ".join(named) or _load(point.scenario.workload, point.scenario.tasks)


def _load(workload: Workload, tasks: int) -> str:
    given = workload.model_dump(mode="json", exclude_unset=True, exclude={"kind", "tasks"})
    rest = ", ".join(f"{key} {_plain(value)}" for key, value in given.items())
    return f"{tasks} {'task' if tasks == 1 else 'tasks'} of {workload.kind}" + (f": {rest}" if rest else "")


def _plain(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, dict):
        return " ".join(
            _plain(each) if key == "op" else f"{key} {_plain(each)}" for key, each in value.items()
        )
    if isinstance(value, str) and (fitted := FITTED.fullmatch(value)):
        return duration(float(fitted[1]))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _measure(asked: Scenario) -> str:
    measure = asked.measure
    warmup = "until it is steady" if measure.warmup == "auto" else quantity(float(measure.warmup), "ns")
    time = quantity(measure.duration, "ns")
    return f"{time} in each of {measure.replications} replications, after a warm-up ({warmup})"


def waits_by(lock: Taken) -> str:
    """How one waits for a lock of this kind, in words of `simfs locks`; nothing of a lock of the user's own."""
    policy = POLICIES.get(ALIASES.get(lock.kind, lock.kind))
    if policy is None:
        return "spins" if lock.type == "spinlock" else ""
    if policy.context == "preemption off":
        return "spins"
    return "sleeps" if policy.spin == "nobody" else "spins, then sleeps"


def print_explanation(
    asked: Scenario, point: Point, order: LockOrder, *, console: Console | None = None
) -> None:
    """Print the scenario in words, then its locks, outer ones first."""
    console = console or report_console()
    parts = Table.grid(padding=(0, 2, 0, 0))
    for name, text in words(asked, point).items():
        parts.add_row(Text(name), Text(text))
    console.print(
        Group(Padding(Text(f"{asked.name}, {point.id}: {asked.title}"), (0, 0, 1, 0)), parts, Text(""))
    )
    console.print(locks_sheet(point, order))


def locks_sheet(point: Point, order: LockOrder) -> Sheet:
    """The locks in their order: which stand directly above each, and who takes it."""
    table = new_table(f"Locks in the order in which they are taken, {point.id}")
    table.add_column("lock")
    table.add_column("role", leaves=4)
    table.add_column("kind", leaves=2)
    table.add_column("waits", leaves=1)
    table.add_column("taken inside")
    table.add_column("by", leaves=3)
    for lock in order.locks:
        outer = [each.outer for each in order.nested if each.inner == lock.lock]
        table.add_row(
            lock.lock,
            lock.role,
            lock.kind,
            waits_by(lock),
            ", ".join(outer) or "nothing",
            ", ".join(lock.sites),
        )
    return table


def to_json(asked: Scenario, point: Point, order: LockOrder) -> str:
    """The words, the locks and their order as one JSON document."""
    document = {"scenario": asked.name, "point": point.id, "words": words(asked, point), **asdict(order)}
    return f"{json.dumps(document, indent=2)}\n"


def to_dot(point: Point, order: LockOrder) -> str:
    """The order of locks for Graphviz: an arrow leads from a lock to one that is taken while it is held."""
    return "".join(f"{line}\n" for line in _dot(point, order))


def _dot(point: Point, order: LockOrder) -> Iterator[str]:
    def quoted(text: str) -> str:
        return json.dumps(text, ensure_ascii=False)

    yield "digraph locks {"
    yield f"  label={quoted('locks of ' + point.id + ': from outer to inner')}; node [shape=box, fontname=sans];"
    for lock in order.locks:
        shape = "ellipse" if waits_by(lock) == "spins" else "box"
        yield f"  {quoted(lock.lock)} [shape={shape}, label={quoted(lock.lock + chr(10) + lock.type)}];"
    for each in order.nested:
        yield f"  {quoted(each.outer)} -> {quoted(each.inner)};"
    yield "}"
