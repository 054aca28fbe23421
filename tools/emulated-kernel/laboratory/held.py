"""What a trace says of the AGI and of wake-ups, as metrics of a data set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from laboratory.trace import IDLE, Holder, Reader, Report, percentile

KINDS = {"load": "load", "worker, bound": "bound"}
"""Kinds of tasks in a trace that data sets have, with their names in metrics."""
OF_KINDS = ("running", "granted_behind")
OF_ALL = ("granted_idle", "preempted", "blocked")
"""States of holders: what is rare is given for all kinds together."""
PERCENTS = (50, 90, 99)

Measure = tuple[str, str, str]
"""Metric, unit and value."""


def of_trace(path: Path) -> Iterator[Measure]:
    """Yield what the trace of a guest with one row says."""
    report = Reader().read(path.read_text(errors="replace").splitlines())
    yield from held(report)
    for kind, name in KINDS.items():
        acquired = report.acquired[kind]
        share = 100 * report.found_held[kind] / acquired if acquired else 0
        yield f"xfs_agi_by_{name}_found_held_percent", '"%"', f"{share:.4g}"
    yield from _percentiles("xfs_agi_by_{kind}_p{percent}_grant_to_run_us", report.grant_to_run)
    yield from _percentiles("{kind}_p{percent}_wake_to_run_us", report.wake_to_run)


def held(report: Report) -> Iterator[Measure]:
    """Yield the share of time for which the AGI is held: in all, and by kind and state of its holder."""
    shares: dict[tuple[str, str], float] = defaultdict(float)
    for holder, us in report.held.items():
        shares[holder.kind, state_of(holder)] += 100 * us / report.span
    yield "xfs_agi_held_percent", '"%"', f"{sum(shares.values()):.4g}"
    for kind, name in KINDS.items():
        for state in OF_KINDS:
            yield f"xfs_agi_by_{name}_held_{state}_percent", '"%"', f"{shares[kind, state]:.4g}"
    for state in OF_ALL:
        share = sum(share for (_, of), share in shares.items() if of == state)
        yield f"xfs_agi_held_{state}_percent", '"%"', f"{share:.4g}"


def state_of(holder: Holder) -> str:
    """Return what metrics call the state of a holder."""
    if holder.does in ("runs", "sleeps"):
        return "running" if holder.does == "runs" else "blocked"
    if not holder.granted:
        return "preempted"
    return "granted_idle" if holder.does == IDLE else "granted_behind"


def _percentiles(metric: str, times: Mapping[str, list[float]]) -> Iterator[Measure]:
    for kind, name in KINDS.items():
        for percent in PERCENTS if times.get(kind) else ():
            value = percentile(times[kind], percent)
            yield metric.format(kind=name, percent=percent), "us", f"{value:.4g}"
