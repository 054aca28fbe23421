"""How tasks are numbered and called wherever a run is looked at: those of the load from 0 on, kernel threads apart.

A machine numbers its threads as they come, and those of the kernel come first: two hundred on 24 CPUs with XFS. In what
is shown task 0 is the first of the load, and a kernel thread has a number below 0: `kthread 3` is -3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from simfs.machine.recorder import Event, LongWait

Watched = tuple[str, list[Event], list[Event], list[LongWait]]
"""The result, what was in force, the events and the longest waits."""
Watch = Callable[..., Watched]
"""`watch` of a machine."""

Numbers = Callable[[int], int]
"""From the machine's number of a thread to the one that is shown."""

LOAD = "load"
"""The kind of the load's tasks; all others are the kernel's threads."""


def name_of(task: int) -> str:
    """What a task is called: `task 3`, `kthread 3`."""
    return f"task {task}" if task >= 0 else f"kthread {-task}"


def short_name_of(task: int) -> str:
    """The same where there is little room: `3`, `k3`."""
    return str(task) if task >= 0 else f"k{-task}"


def number_of(name: str) -> int | None:
    """The number of the task that is called so; None where that is no task."""
    what, _, number = name.partition(" ")
    sign = {"task": 1, "kthread": -1}.get(what, 0)
    return sign * int(number) if sign and number.isdecimal() else None


def kinds_of(events: Iterable[Event]) -> dict[int, str]:
    """The kind of each thread of which the start is among the events, by the machine's number."""
    return {event[1]: event[4] for event in events if event[3] == "start" and event[1] is not None}


def first_of_load(kinds: dict[int, str]) -> int | None:
    """The machine's number of the load's first task; None where that is not there, as it has ended."""
    first = next(number for number in count() if kinds.get(number, LOAD) == LOAD)
    return first if first in kinds else None


def at_begin(watch: Watch, spec: str, *program: Any) -> dict[int, str]:  # noqa: ANN401 as machines take it
    """The kinds of the threads when the clock of a run starts: who sets files up has ended by then."""
    short = json.dumps(json.loads(spec) | {"warmup_ns": 0.0, "duration_ns": 1.0})
    _, in_force, events, _ = watch(short, *program, start=0)
    return kinds_of([*in_force, *events])


def first_in(kinds: dict[int, str]) -> int:
    """The lowest number of a task of the load; 0 where there is none."""
    return min((thread for thread, kind in kinds.items() if kind == LOAD), default=0)


def numbers(kinds: dict[int, str], first: int) -> Numbers:
    """How the threads of a run are numbered, given the load's first task."""
    return lambda thread: thread - first if kinds.get(thread, LOAD) == LOAD else -1 - thread


def renumbered(events: Iterable[Event], number: Numbers) -> list[Event]:
    """Events with the numbers that are shown."""
    return [
        (time, None if task is None else number(task), cpu, what, about)
        for time, task, cpu, what, about in events
    ]


def waits_renumbered(waits: Iterable[LongWait], number: Numbers) -> list[LongWait]:
    """The same of long waits."""
    return [(lock, number(task), begin, end) for lock, task, begin, end in waits]


_WRONG = re.compile(r'"ok":\s*false|"stall":\s*\{')
_TASK = re.compile(r"\btask (\d+)\b")


def told_as_shown(result: str, kinds: Callable[[], dict[int, str]]) -> str:
    """A run's result, of which stall and broken laws name tasks as they are shown; only for these `kinds` is asked."""
    if not _WRONG.search(result):
        return result
    threads = kinds()
    number = numbers(threads, first_in(threads))

    def told(text: str) -> str:
        return _TASK.sub(lambda found: name_of(number(int(found[1]))), text)

    document = json.loads(result)
    if document.get("stall"):
        document["stall"]["cycle"] = [told(step) for step in document["stall"]["cycle"]]
    for law in document["laws"]:
        law["detail"] = law["detail"] if law["ok"] else told(law["detail"])
    return json.dumps(document)
