"""What a row of measured data can measure: the names of metrics, and the unit each is given in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, get_args

from simfs.scenario.sections.units import BYTES_PER_UNIT, NS_PER_UNIT
from simfs.scenario.suggest import nearest

ByRun = Literal[
    "counter", "group", "wakes", "wake_to_run", "grant_to_run", "acquisitions", "wait", "held", "delay",
]  # fmt: skip
"""Quantities that `results.by_run` finds in each run."""

Quantity = Literal[
    "throughput",
    "fairness",
    "bytes",
    "share",
    "kernel",
    "online_idle",
    "latency",
    "switches",
    "switches_per_operation",
    "joules",
    "system",
    "real",
    ByRun,
]
"""The simulated quantity a metric is compared with."""

Statistic = Literal["mean", "p50", "p90", "p99", "max"]

TOTALS = ("system", "real")
"""Quantities of a whole run, which need the number of operations of that run."""

STATES = ("user", "system", "spin", "switch", "irq", "idle")
"""States of a CPU; `idle_percent` is a metric."""


@dataclass(frozen=True)
class Metric:
    """What a metric's name says; `scale` turns bytes, nanoseconds and all else into `unit`."""

    quantity: Quantity
    unit: str
    scale: float = 1.0
    state: str = ""
    operation: str = ""
    statistic: Statistic = "mean"
    part: str = ""
    """Which of several quantities of one sort."""
    lock: str = ""
    """The lock class, in small letters and underscores."""
    by: str = ""
    """Kind of task, or a place in the programs in small letters and underscores; all if empty."""
    over_ns: float | None = None
    """Of a time not a statistic but the share that is longer than this, in percent."""

    @property
    def by_run(self) -> bool:
        """Whether it is taken from each run, because results over all runs do not have it."""
        return self.quantity in get_args(ByRun)


_PLAIN = {
    **{f"{state}_percent": Metric("share", "%", state=state) for state in STATES},
    "kernel_percent": Metric("kernel", "%"),
    "online_idle_percent": Metric("online_idle", "%"),
    "context_switches_per_s": Metric("switches", "1/s"),
    "context_switches_per_operation": Metric("switches_per_operation", "1"),
    "joules_per_operation": Metric("joules", "J"),
    "fairness": Metric("fairness", "1"),
    "throughput": Metric("throughput", "1/s"),
    "sys_s": Metric("system", "s", 1e-9),
    "real_s": Metric("real", "s"),
}
_STATISTICS: dict[str, Statistic] = {"avg": "mean", "p50": "p50", "p90": "p90", "p99": "p99", "max": "max"}
_LATENCY = re.compile(
    r"(?:(?P<operation>\w+)_)?(?P<statistic>avg|p50|p90|p99|max)_latency_(?P<unit>ns|us|ms|s)"
)
_TIME = (
    r"(?:(?P<statistic>avg|p50|p90|p99|max)_{0}_(?P<unit>ns|us|ms|s)"
    r"|{0}_over_(?P<limit>\d+)(?P<limit_unit>ns|us|ms|s)_percent)"
)
_KIND = r"(?:(?P<by>load|bound|kernel)_)?"
_LOCK = r"(?P<lock>\w+?)_(?:by_(?P<by>\w+?)_)?"
_HELD = "running|granted_behind|granted_idle|preempted|blocked|device|shared"
_PATTERNS: dict[Quantity, re.Pattern[str]] = {
    "wake_to_run": re.compile(_KIND + r"(?:(?P<part>idle|busy)_cpu_)?" + _TIME.format("wake_to_run")),
    "grant_to_run": re.compile(_LOCK + _TIME.format("grant_to_run")),
    "delay": re.compile(r"(?P<operation>\w+?)_" + _TIME.format("delay")),
    "wakes": re.compile(
        _KIND + r"(?P<part>stacked_wakeups|wakeups_(?:on_(?:previous|waker)|beside_idle)_cpu)_percent"
    ),
    "counter": re.compile(r"(?P<part>involuntary_switches|wakeups|migrations|pulls)_per_operation"),
    "group": re.compile(
        r"group_(?P<operation>\w+?)_(?P<part>per_s|fairness|share_percent)|(?:groups_(?P<by>fairness))"
    ),
    "acquisitions": re.compile(
        _LOCK + r"(?P<part>contended_percent|found_held_percent|waits_per_operation|acquired_per_operation)"
    ),
    "wait": re.compile(_LOCK + r"(?P<statistic>avg|p50|p90|p99|max)_wait_(?P<unit>ns|us|ms|s)"),
    "held": re.compile(_LOCK + rf"(?P<part>held|busiest_held|held_(?:{_HELD}))_percent"),
}
"""Names of the metrics that are taken from each run; the first that fits is meant."""

_BYTES = {unit.lower(): unit for unit in BYTES_PER_UNIT if unit != "B"}
_BYTE_RATE = re.compile(rf"(?:\w+_)?(?P<unit>{'|'.join(_BYTES)})(?:_per)?_s", re.IGNORECASE)

EXAMPLES = (
    *_PLAIN, "operations_per_s", "io_per_s", "files_per_s", "throughput_mb_per_s", "mib_per_s", "avg_latency_us",
    "p99_latency_ms", "max_latency_ms", "create_max_latency_ms", "bound_p90_wake_to_run_us",
    "bound_busy_cpu_p99_wake_to_run_us", "load_wake_to_run_over_1ms_percent", "load_wakeups_on_previous_cpu_percent",
    "wakeups_on_waker_cpu_percent", "stacked_wakeups_percent", "migrations_per_operation", "pulls_per_operation",
    "wakeups_per_operation", "involuntary_switches_per_operation", "xfs_agi_contended_percent",
    "xfs_agi_by_inodegc_found_held_percent", "xfs_agi_waits_per_operation", "xfs_agi_acquired_per_operation",
    "xfs_agi_p50_wait_us", "xfs_agi_held_percent", "xfs_agi_busiest_held_percent",
    "xfs_agi_by_bound_held_granted_behind_percent",
    "xfs_agi_by_bound_p99_grant_to_run_us", "inodegc_p50_delay_ms", "group_readers_per_s",
    "group_readers_share_percent", "group_readers_fairness", "groups_fairness",
)  # fmt: skip


@cache
def metric(name: str) -> Metric:
    """Return what the metric `name` means; raise ValueError for a name that means nothing.

    Besides CPU shares and counts by name there are the latency of an operation, `create_p99_latency_ms` (or
    of all, `p99_latency_ms`), rates of bytes, `..._mib_per_s`, what is known of wake-ups by kind of task and of
    locks by class and kind of task or place (`docs/scenarios.md` lists them), and any other rate, `..._per_s`,
    which is the throughput.
    """
    if name in _PLAIN:
        return _PLAIN[name]
    for quantity, pattern in _PATTERNS.items():
        if found := pattern.fullmatch(name):
            return _of_run(quantity, found.groupdict())
    if found := _LATENCY.fullmatch(name):
        unit, statistic = found["unit"], _STATISTICS[found["statistic"]]
        return Metric(
            "latency",
            unit,
            1 / NS_PER_UNIT[unit],
            operation=found["operation"] or "",
            statistic=statistic,
        )
    if found := _BYTE_RATE.fullmatch(name):
        unit = _BYTES[found["unit"].lower()]
        return Metric("bytes", f"{unit}/s", 1 / BYTES_PER_UNIT[unit])
    if name.endswith("_per_s"):
        return Metric("throughput", "1/s")
    near = nearest(name, EXAMPLES)
    hint = f"; did you mean '{near}'?" if near else f"; metrics are such as {', '.join(EXAMPLES)}"
    raise ValueError(f"'{name}' is no metric that is simulated{hint}")


def _of_run(quantity: Quantity, found: Mapping[str, str | None]) -> Metric:
    """The metric that a pattern's groups say."""
    part, lock, by, operation = (found.get(key) or "" for key in ("part", "lock", "by", "operation"))
    if quantity == "group":
        of_group = {"per_s": "1/s", "share_percent": "%"}.get(part, "1")
        return Metric(quantity, of_group, part=part, operation=operation)
    is_count = quantity == "counter" or "_per_" in part
    known = Metric(quantity, "1" if is_count else "%", part=part, lock=lock, by=by, operation=operation)
    if unit := found.get("unit"):
        statistic = _STATISTICS[found["statistic"] or ""]
        return replace(known, unit=unit, scale=1 / NS_PER_UNIT[unit], statistic=statistic)
    if unit := found.get("limit_unit"):
        return replace(known, over_ns=float(found["limit"] or "") * NS_PER_UNIT[unit])
    return known
