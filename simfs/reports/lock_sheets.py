"""Sheets of locks, in the columns of `perf lock contention`."""

from __future__ import annotations

from simfs.reports.layout import Sheet, new_table
from simfs.reports.numbers import NOTHING, counted, duration, percent
from simfs.results.focus import focus, focus_tasks
from simfs.results.model import PointResult, ScenarioResult
from simfs.results.run_result import LockSite
from simfs.results.summaries import LockSummary

TOP_LOCKS = 5
"""Locks shown of each variant."""

HOLDER = "holder %:\nrun/queue\n/sleep/dev"
"""How holders spent their time."""

TOP_LINES = 4
"""Cache lines shown of each variant."""

LEAST = 0.01
"""Part of the tasks' time from which on waiting for a line is shown."""

FIRST_LOCKS = 2
"""Locks shown of each variant where variants are compared."""


def kept(table: Sheet, result: ScenarioResult) -> list[Sheet]:
    """A table with rows; without points all tables are kept, as only their columns are of interest then."""
    return [table] if len(table) or not result.points else []


def locks(result: ScenarioResult) -> list[Sheet]:
    """Of each variant that waited the locks waited for longest, at the task count of most interest."""
    sheets = [_locks(point, result) for point in focus(result) if waited(point)]
    return sheets or kept(_locks_head(""), result)


def _locks_head(title: str) -> Sheet:
    table = new_table(title)
    for name, leaves in (
        ("contended", 1),
        ("total wait", 0),
        ("max wait", 9),
        ("avg wait", 3),
        ("avg hold", 5),
    ):
        table.add_column(name, leaves=leaves, justify="right")
    table.add_column("type", leaves=4, no_wrap=True)
    table.add_column("lock (caller)")
    for name, leaves in (
        ("spun", 6),
        ("slept", 6),
        ("hand-\noffs", 8),
        (HOLDER, 2),
    ):
        table.add_column(name, leaves=leaves, justify="right")
    return table


def _locks(point: PointResult, result: ScenarioResult) -> Sheet:
    table = _locks_head(f"{result.title(point.variant)}: locks by total wait, {where(point)}")
    for lock in waited(point)[:TOP_LOCKS]:
        table.add_row(*_lock_row(lock))
        sites = [site for site in lock.sites if site.contended]
        for site in sorted(sites, key=lambda s: -s.wait_total_ns) if len(sites) > 1 else ():
            table.add_row(*_site_row(site), style="dim")
        if lock.still_waiting:
            table.add_row(*_still_row(lock), style="dim")
    return table


def locks_of_all(result: ScenarioResult) -> list[Sheet]:
    """The locks that each variant waited for longest, in one sheet."""
    table = new_table(f"Locks by total wait, {counted(focus_tasks(result), 'task')}")
    table.add_column("variant")
    table.add_column("lock", names_rows=True)
    for name, leaves in (("contended", 1), ("total wait", 0), ("avg wait", 3), ("avg hold", 4)):
        table.add_column(name, leaves=leaves, justify="right")
    table.add_column("type", leaves=2, no_wrap=True)
    table.add_column(HOLDER, leaves=1, justify="right")
    found = [point for point in focus(result) if waited(point)]
    for point in found:
        name = result.title(point.variant)
        for lock in waited(point)[:FIRST_LOCKS]:
            times = map(duration, (lock.wait_total_ns, lock.wait_mean_ns))
            table.add_row(
                name, lock.name, f"{lock.contended:,}", *times, _holds(lock), lock.type, holder_split(lock)
            )
            name = ""
    return kept(table, result)


def lines(result: ScenarioResult) -> list[Sheet]:
    """Of each variant the cache lines that tasks waited for longest, if they did for some part of their time."""
    table = new_table(f"Cache lines by total wait, {counted(focus_tasks(result), 'task')}")
    table.add_column("variant")
    table.add_column("line", names_rows=True)
    table.add_column("tasks' time %", justify="right")
    for name, leaves in (("total wait", 2), ("transfers", 1), ("a transfer", 3)):
        table.add_column(name, leaves=leaves, justify="right")
    told = ""
    for point in focus(result):
        time = point.window_ns * point.replications * point.tasks
        for line in [line for line in point.lines if line.waited_ns >= LEAST * time][:TOP_LINES]:
            name = result.title(point.variant) if point.variant != told else ""
            told = point.variant
            each, share = line.waited_ns / line.transfers, percent(100 * line.waited_ns / time)
            table.add_row(
                name, line.name, share, duration(line.waited_ns), f"{line.transfers:,}", duration(each)
            )
    return kept(table, result)


def waited(point: PointResult) -> list[LockSummary]:
    """The locks that somebody waited for."""
    return [lock for lock in point.locks if lock.contended or lock.still_waiting]


def _lock_row(lock: LockSummary) -> list[str]:
    alone = sum(1 for site in lock.sites if site.contended) == 1
    caller = f" ({lock.caller})" if alone and lock.caller else ""
    return [
        f"{lock.contended:,}",
        duration(lock.wait_total_ns),
        duration(lock.wait_max_ns),
        duration(lock.wait_mean_ns),
        _holds(lock),
        lock.type,
        lock.name + caller,
        f"{lock.resolved_spinning:,}",
        f"{lock.slept:,}",
        f"{lock.handoffs:,}",
        holder_split(lock),
    ]


def _holds(lock: LockSummary) -> str:
    """Mean hold of one who has the lock alone; under it, that of one who shares it."""
    alone = duration(lock.hold_mean_ns) if lock.acquired > lock.acquired_shared else NOTHING
    return f"{alone}\nshared\n{duration(lock.hold_shared_mean_ns)}" if lock.acquired_shared else alone


def _site_row(site: LockSite) -> list[str]:
    mean = site.wait_total_ns / site.contended if site.contended else 0.0
    count, total = f"{site.contended:,}", duration(site.wait_total_ns)
    return [
        count,
        total,
        "",
        duration(mean),
        "",
        "",
        f"  by {site.site or 'task, outside calls'}",
        "",
        "",
        "",
        "",
    ]


def _still_row(lock: LockSummary) -> list[str]:
    """How many waits the window's end cut, and the longest of them so far."""
    longest = duration(lock.still_waiting_max_ns)
    return [f"{lock.still_waiting:,}", "", longest, "", "", "", "  still waiting", "", "", "", ""]


def holder_split(lock: LockSummary) -> str:
    """Percent of the holders' time spent running / runnable / sleeping / waiting for a device."""
    parts = lock.holder_parts
    whole = sum(parts)
    return "/".join(f"{100 * part / whole:.0f}" for part in parts) if whole else NOTHING


def where(point: PointResult) -> str:
    """What a sheet of one point is about."""
    replications = f"{point.replications} x {duration(point.window_ns)}"
    setting = f", {point.setting}" if point.setting else ""
    return f"{counted(point.tasks, 'task')} on {point.cpus} CPUs, sum of {replications}{setting}"
