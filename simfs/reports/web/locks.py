"""Locks of one point seen from four sides: who waits, who holds, which kind of task, which place in the program."""

from __future__ import annotations

from collections.abc import Mapping

from simfs.reports.layout import Sheet
from simfs.reports.lock_sheets import holder_split
from simfs.reports.numbers import NOTHING, duration, percent, plain
from simfs.reports.text import KINDS
from simfs.reports.web.tables import Draw, split_bar, table
from simfs.results.model import PointResult
from simfs.results.summaries import LockSummary

MOST = 40
"""Locks shown."""


def views(point: PointResult) -> dict[str, str]:
    """Tables of HTML by the name of the view; those that would be empty are left out."""
    locks = [lock for lock in point.locks if lock.acquired][:MOST]
    drawn = {"holder: run/queue/sleep/device %": split_bar}
    found: dict[str, tuple[Sheet, Mapping[str, Draw]]] = {
        "Waiters": (waiters(locks, point), {}),
        "Holders": (holders(locks, point), drawn),
        "Kinds of tasks": (kinds(locks), {}),
        "Callers": (callers(locks), {}),
    }
    return {name: table(sheet, draw) for name, (sheet, draw) in found.items() if len(sheet)}


def _sheet(title: str, words: tuple[str, ...], numbers: tuple[str, ...]) -> Sheet:
    sheet = Sheet(title)
    for name in words:
        sheet.add_column(name)
    for name in numbers:
        sheet.add_column(name, justify="right")
    return sheet


def waiters(locks: list[LockSummary], point: PointResult) -> Sheet:
    """How long was waited for each lock class that was waited for."""
    sheet = _sheet(
        "Who waits: times of waiters, sum of all replications",
        ("lock", "type"),
        (
            "tasks waiting",
            "total wait",
            "contended",
            "of all %",
            "mean wait",
            "p99",
            "longest",
            "spun",
            "slept",
        ),
    )
    for lock in (lock for lock in locks if lock.contended or lock.still_waiting):
        waiting = lock.wait_total_ns / (point.window_ns * point.replications)
        times = (lock.wait_mean_ns, lock.wait_p99_ns, max(lock.wait_max_ns, lock.still_waiting_max_ns))
        sheet.add_row(
            lock.name, lock.type, f"{waiting:.2f}", duration(lock.wait_total_ns), f"{lock.contended:,}",
            percent(min(100.0, 100 * lock.contended / lock.acquired)), *map(duration, times),
            f"{lock.resolved_spinning:,}", f"{lock.slept:,}",
        )  # fmt: skip
    return sheet


def holders(locks: list[LockSummary], point: PointResult) -> Sheet:
    """For how long each lock class was held, and what its holders did while others waited."""
    sheet = _sheet(
        "Who holds: what holders do while others wait",
        ("lock", "holder: run/queue/sleep/device %"),
        (
            "acquired",
            "mean hold",
            "longest hold",
            "busiest held %",
            "granted, not run",
            "hand-offs",
            "steals",
        ),
    )
    for lock in locks:
        held = 100 * lock.busiest_held_ns / (point.window_ns * point.replications)
        granted = duration(lock.grant_to_run_ns)
        sheet.add_row(
            lock.name, holder_split(lock), f"{lock.acquired:,}", duration(lock.hold_mean_ns),
            duration(lock.hold_max_ns), percent(held), granted, f"{lock.handoffs:,}", f"{lock.steals:,}",
        )  # fmt: skip
    return sheet


def kinds(locks: list[LockSummary]) -> Sheet:
    """Which kinds of tasks hold and wait, where there are several."""
    sheet = _sheet(
        "Which tasks: the load itself and the kernel's threads; exclusive holds by state",
        ("lock", "tasks"),
        (
            "acquired",
            "total wait",
            "held",
            "running %",
            "granted, not run %",
            "preempted %",
            "asleep %",
            "device %",
        ),
    )
    for lock in locks:
        for kind in lock.kinds if len(lock.kinds) > 1 else ():
            granted = kind.granted_behind_ns + kind.granted_idle_ns
            parts = (kind.running_ns, granted, kind.preempted_ns, kind.blocked_ns, kind.device_ns)
            shares = [percent(100 * part / kind.held_ns) if kind.held_ns else NOTHING for part in parts]
            times = duration(kind.wait_total_ns), duration(kind.held_ns)
            sheet.add_row(lock.name, KINDS[kind.kind], f"{kind.acquired:,}", *times, *shares)
    return sheet


def callers(locks: list[LockSummary]) -> Sheet:
    """Which places in the program take and wait."""
    sheet = _sheet(
        "Which place in the program", ("lock", "caller"), ("acquired", "contended", "total wait", "mean wait")
    )
    for lock in locks:
        for site in lock.sites:
            mean = duration(site.wait_total_ns / site.contended) if site.contended else plain(0)
            total = duration(site.wait_total_ns)
            sheet.add_row(lock.name, site.site, f"{site.acquired:,}", f"{site.contended:,}", total, mean)
    return sheet
