"""`simfs locks`: all built-in locks and how they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simfs.commands.common import Format, Rows, Wide, print_rows
from simfs.commands.errors import plain_errors

if TYPE_CHECKING:
    from simfs.reports.layout import Sheet

HEADINGS = {
    "kernel": "Linux",
    "conflict": "excludes",
    "admission": "may pass the queue",
    "spin": "who spins, on what, until when",
    "queue": "next is",
    "wakes": "a release wakes",
    "grant": "wake-up is",
    "handoff": "no stealing",
    "release": "released by",
    "context": "waiters and holders",
}

"""What the axes are called in the tables."""

TABLES = {
    "What they are, and who spins": ("kernel", "conflict", "context", "spin"),
    "Who is next": ("queue", "admission", "wakes", "grant", "handoff", "release"),
}


def locks(
    output: Rows = Format.TEXT,
    wide: Wide = False,
) -> None:
    """List all locks and their policies: which tasks pass the queue, spin, come next or are woken.

    A wake-up is a grant or a hint. Grant: the releaser gives the lock to the woken task, and nobody can use it until
    that task runs. Hint: the lock stays free until then and may be stolen. The OSQ is the queue of spinners in a mutex
    or rwsem; only its head looks at the owner.
    """
    with plain_errors():
        rows = listed()
        if output is Format.TEXT:
            _print(rows, wide=wide)
        else:
            print_rows(rows, output)


def _print(rows: list[dict[str, str]], *, wide: bool) -> None:
    from simfs.reports.layout import report_console

    report_console(wide=wide).print(*tables(rows), sep="\n")


def tables(rows: list[dict[str, str]]) -> list[Sheet]:
    """The locks, a row each, in tables that hold at every width."""
    from simfs.reports.layout import Sheet

    made = []
    for title, axes in TABLES.items():
        table = Sheet(title)
        table.add_column("lock")
        for axis in axes:
            table.add_column(HEADINGS[axis])
        for row in rows:
            name = f"{row['lock']} (= {row['alias']})" if row["alias"] else row["lock"]
            table.add_row(name, *(row[axis] for axis in axes))
        made.append(table)
    return made


def listed() -> list[dict[str, str]]:
    """Every lock with its place on each axis."""
    from simfs.machine.locks.policy import ALIASES, AXES, POLICIES

    short = {kind: alias for alias, kind in ALIASES.items()}
    return [
        {"lock": kind, "alias": short.get(kind, ""), **{axis: getattr(policy, axis) for axis in AXES}}
        for kind, policy in POLICIES.items()
    ]
