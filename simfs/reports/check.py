"""What `simfs check` prints: verdicts, and the shortest schedule that shows a fault beside the lines of code."""

from __future__ import annotations

from typing import Any

from simfs.reports.numbers import counted
from simfs.teach.explore import Found
from simfs.teach.play import Event
from simfs.teach.verdicts import Judgement, Status, coverage

MARKS = {Status.PASS: "ok  ", Status.FAIL: "FAIL", Status.INFO: "    "}
WIDTH = 44
"""Of a task's column."""


def text(judgement: Judgement) -> str:
    """The judgement to read."""
    wide = max(len(verdict.question) for verdict in judgement.verdicts)
    lines = [f"{MARKS[v.status]} {v.question:{wide}}  {v.says}" for v in judgement.verdicts]
    if judgement.found:
        lines += ["", *timeline(judgement.found, judgement.source)]
    if judgement.explored:
        lines += ["", "Tried:", *(f"  {line}" for line in coverage(judgement.explored))]
    return "\n".join([judgement.lock, *lines, ""])


def timeline(found: Found, source: list[str]) -> list[str]:
    """A schedule: a column for each task, a row for each line it comes by; time goes down."""
    tasks = found.case.tasks
    title = f"The shortest schedule found, {counted(found.disturbances, 'disturbance')}"
    head = "      " + "".join(f"task {number:<{WIDTH - 5}}" for number in range(1, tasks + 1)).rstrip()
    rows = [
        f"{row:4}  {' ' * WIDTH * (event.task - 1)}{_cell(event, source, last=event.task == tasks)}".rstrip()
        for row, event in enumerate(found.events, 1)
    ]
    return [f"{title}: {found.fault.says}", "", head, *rows]


def _cell(event: Event, source: list[str], *, last: bool) -> str:
    words = f"  {', '.join(event.words)}" if event.words else ""
    says = f"  ({event.says})" if event.says and event.line else event.says
    code = f"{event.line}: {_code(event, source)}" if event.line else ""
    room = WIDTH - 2 - len(words) - len(says)
    if not last and len(code) > room > 8:
        code = f"{code[: room - 3]}..."
    return f"{code}{says}{words}"


def _code(event: Event, source: list[str]) -> str:
    return source[event.line - 1].strip() if event.line and event.line <= len(source) else ""


def document(judgement: Judgement) -> dict[str, Any]:
    """The judgement for graders."""
    found, explored = judgement.found, judgement.explored
    return {
        "lock": judgement.lock,
        "ok": judgement.ok,
        "verdicts": [
            {"question": v.question, "status": v.status.value, "says": v.says} for v in judgement.verdicts
        ],
        "fault": found
        and {
            "kind": found.fault.kind,
            "says": found.fault.says,
            "where": found.fault.where,
            "tasks": found.case.tasks,
            "disturbances": found.disturbances,
            "schedule": [
                {
                    "task": event.task,
                    "line": event.line,
                    "code": _code(event, judgement.source) or None,
                    "says": event.says or None,
                    "words": event.words,
                }
                for event in found.events
            ],
        },
        "schedules": explored.schedules if explored else 0,
        "tried": coverage(explored) if explored else [],
    }
