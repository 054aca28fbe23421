"""What `simfs why` prints: the sentence, the chains, the locks on the critical path, owners, and what holders did."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, Group
from rich.padding import Padding
from rich.text import Text

from simfs.reports.layout import Sheet, new_table, report_console
from simfs.reports.numbers import duration, percent
from simfs.results.chains import CHAIN_COLUMNS, Why, chain_row, does, side_name
from simfs.results.run_result import HolderTime, WaitChain

TOP = 12
"""Chains and owners that are shown."""

LEAST = 1.0
"""Percent of a lock's waits from which a lock is shown among those on the path."""


def print_why(found: Why, *, owners: bool = False, console: Console | None = None) -> None:
    """Print the answer first, then the tables; `owners` shows who makes others wait instead of who waits."""
    console = console or report_console()
    first = owners_sheet(found) if owners else chains_sheet(found)
    tables = [first, path_sheet(found), *_holders(found), holds_sheet(found)] if found.waits else []
    if found.lines:
        tables.append(lines_sheet(found))
    if found.sleeps:
        tables.append(sleeps_sheet(found))
    console.print(Group(Padding(Text(f"-> {found.sentence}"), (0, 0, 1, 0)), *tables))


def chains_sheet(found: Why) -> Sheet:
    """Who waits for what, chain by chain, the longest first."""
    table = new_table(f"Chains of waiting, {found.point}: {_all(found)}")
    table.add_column("share %", justify="right")
    table.add_column("wait", leaves=1, justify="right")
    table.add_column("who waits for what, and what its holder does")
    for chain in found.waits[:TOP]:
        table.add_row(percent(found.percent(chain)), duration(chain.wait_ns), said(chain))
    if rest := found.waits[TOP:]:
        time = sum(chain.wait_ns for chain in rest)
        table.add_row(percent(100 * time / found.wait_ns), duration(time), f"{len(rest)} more chains")
    return table


def said(chain: WaitChain) -> str:
    """A chain in a line: `unlink > xfs.AGI > inodegc was given the lock and has not run yet`."""
    parts = [chain.waiter or "task"]
    for link in chain.links[:-1]:
        parts += [side_name(link.lock, link.side), link.holder or "its holder"]
    last = chain.links[-1]
    return " > ".join(
        [*parts, side_name(last.lock, last.side), does(last.holder, chain.reason, chain.function)]
    )


def owners_sheet(found: Why) -> Sheet:
    """Whose holds others wait for, and what keeps those from giving the lock back."""
    owners = found.owners()
    table = new_table(f"Who makes others wait, {found.point}: {_all(found)}")
    table.add_column("share %", justify="right")
    table.add_column("wait", leaves=1, justify="right")
    table.add_column("lock")
    table.add_column("its holder")
    for owner in owners[:TOP]:
        table.add_row(
            percent(owner.percent),
            duration(owner.wait_ns),
            owner.lock,
            does(owner.holder, owner.reason, owner.function),
        )
    return table


def _all(found: Why) -> str:
    share = f"{100 * found.wait_ns / found.task_time_ns:.0f} % of the tasks' time"
    return f"{duration(found.wait_ns)} waited, {share}"


def path_sheet(found: Why) -> Sheet:
    """How much of all waiting passes each lock."""
    table = new_table("Locks on the critical path")
    table.add_column("lock")
    table.add_column("waiting that passes it %", justify="right")
    table.add_column("that ends at it %", justify="right")
    for path in found.on_path():
        if path.passes_percent >= LEAST:
            table.add_row(path.lock, percent(path.passes_percent), percent(path.ends_percent))
    return table


def _holders(found: Why) -> list[Sheet]:
    table = new_table("What holders do while somebody waits")
    table.add_column("lock")
    table.add_column("share %", justify="right")
    table.add_column("its holder")
    for lock in [path.lock for path in found.on_path() if path.passes_percent >= LEAST][:TOP]:
        for had, share in found.holder_times(lock):
            if share >= LEAST:
                table.add_row(lock, percent(share), _doing(had))
    return [table]


def lines_sheet(found: Why) -> Sheet:
    """Which cache lines tasks wait for because others use them."""
    table = new_table("Cache lines that tasks waited for")
    table.add_column("tasks' time %", justify="right")
    table.add_column("waited", leaves=2, justify="right")
    table.add_column("transfers", leaves=1, justify="right")
    table.add_column("a transfer", leaves=3, justify="right")
    table.add_column("line")
    for line in found.lines[:TOP]:
        share = percent(100 * line.waited_ns / found.task_time_ns)
        each = duration(line.waited_ns / line.transfers)
        table.add_row(share, duration(line.waited_ns), f"{line.transfers:,}", each, line.name)
    return table


def sleeps_sheet(found: Why) -> Sheet:
    """What tasks sleep for other than a lock: log space, devices, workers, timers."""
    table = new_table("Sleeps for which no lock is the cause")
    table.add_column("tasks' time %", justify="right")
    table.add_column("slept", leaves=1, justify="right")
    table.add_column("who sleeps for what")
    for slept in found.sleeps[:TOP]:
        share = percent(100 * slept.time_ns / found.task_time_ns)
        what = does(slept.sleeper or "task", slept.reason, slept.function)
        table.add_row(share, duration(slept.time_ns), what)
    return table


def holds_sheet(found: Why) -> Sheet:
    """How long holds lasted, and how much of the time the longest 1 % made."""
    table = new_table("How long exclusive holds lasted")
    table.add_column("lock")
    table.add_column("holds", leaves=3, justify="right")
    table.add_column("p50", leaves=2, justify="right")
    table.add_column("p99", leaves=1, justify="right")
    table.add_column("longest", justify="right")
    table.add_column("time of the longest 1 %", justify="right")
    shown = {path.lock for path in found.on_path() if path.passes_percent >= LEAST}
    for of in found.lasted():
        if of.lock in shown:
            times = (duration(time) for time in (of.p50_ns, of.p99_ns, of.max_ns))
            table.add_row(of.lock, f"{of.holds:,}", *times, f"{percent(of.longest_percent)} %")
    return table


def _doing(had: HolderTime) -> str:
    if had.waits_for:
        return f"{had.holder} waits for {had.waits_for}"
    return does(had.holder, had.reason, had.function)


def to_json(found: Why) -> str:
    """Everything as a JSON document: chains, owners, the critical path, holders."""
    document: dict[str, Any] = {"answer": found.sentence, "wait_ns": found.wait_ns}
    document |= found.model_dump(mode="json")
    document["on_path"] = [path._asdict() for path in found.on_path()]
    document["owners"] = [owner._asdict() for owner in found.owners()]
    document["lasted"] = [of._asdict() for of in found.lasted()]
    return f"{json.dumps(document, indent=2)}\n"


OWNER_COLUMNS = ("percent", "wait_ns", "lock", "holder", "reason", "function")


def to_csv(found: Why, *, owners: bool = False) -> str:
    """A row a chain, or an owner. In `chain` the locks and their holders stand from the waiter on."""
    if owners:
        return _csv(OWNER_COLUMNS, (owner._asdict() for owner in found.owners()))
    rows = ({"percent": found.percent(chain), **chain_row(chain)} for chain in found.waits)
    return _csv(("percent", *CHAIN_COLUMNS), rows)


def _csv(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
