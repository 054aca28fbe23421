"""A wait-for graph as text, DOT and JSON."""

from __future__ import annotations

import json

from simfs.experiments.waits_at import WaitGraph
from simfs.machine.labels import name_of
from simfs.reports.numbers import duration


def text(graph: WaitGraph) -> str:
    """A paragraph a lock: who has it and what that does, then who waits, the longest wait first."""
    if not graph.waits:
        return f"at {duration(graph.time / 1000)} nobody waits for a lock\n"
    waiting = len({wait.task for wait in graph.waits})
    tasks, verb = ("task", "waits") if waiting == 1 else ("tasks", "wait")
    locks = "a lock" if len(graph.holders) == 1 else f"{len(graph.holders)} locks"
    lines = [f"at {duration(graph.time / 1000)} {waiting} {tasks} {verb} for {locks}"]
    for lock, holders in sorted(graph.holders.items(), key=lambda each: -_count(graph, each[0])):
        lines += ["", f"{lock}: {_had_by(graph, holders)}"]
        for wait in graph.waits:
            if wait.lock == lock:
                lines.append(f"  {name_of(wait.task)} waits for {duration((graph.time - wait.since) / 1000)}")
    return "\n".join(lines) + "\n"


def _count(graph: WaitGraph, lock: str) -> int:
    return sum(wait.lock == lock for wait in graph.waits)


def _had_by(graph: WaitGraph, holders: tuple[int, ...]) -> str:
    if not holders:
        return "no task has it"
    return "; ".join(f"{name_of(holder)} has it, which {_does(graph, holder)}" for holder in holders)


def _does(graph: WaitGraph, task: int) -> str:
    lock = next((wait.lock for wait in reversed(graph.waits) if wait.task == task), None)
    return f"waits for {lock}" if lock else graph.does[task]


def dot(graph: WaitGraph) -> str:
    """The graph for Graphviz: boxes are locks, an arrow points to what is waited for or to who has it."""
    lines = ["digraph waits {", "  rankdir=LR;"]
    for task, does in graph.does.items():
        lines.append(f'  "{name_of(task)}" [label="{name_of(task)}\\n{does}"];')
    for lock, holders in graph.holders.items():
        lines.append(f'  "{lock}" [shape=box];')
        lines += [f'  "{lock}" -> "{name_of(holder)}" [style=dashed];' for holder in holders]
    for wait in graph.waits:
        waited = duration((graph.time - wait.since) / 1000)
        lines.append(f'  "{name_of(wait.task)}" -> "{wait.lock}" [label="{waited}"];')
    return "\n".join([*lines, "}"]) + "\n"


def to_json(graph: WaitGraph) -> str:
    """The graph as a JSON document; times in nanoseconds."""
    waits = [{"task": w.task, "lock": w.lock, "since_ns": w.since / 1000} for w in graph.waits]
    tasks = [{"task": task, "does": does} for task, does in graph.does.items()]
    document = {"at_ns": graph.time / 1000, "waits": waits, "holders": graph.holders, "tasks": tasks}
    return f"{json.dumps(document, indent=2)}\n"
