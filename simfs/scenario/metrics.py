"""What a row of measured data can measure: the names of metrics, and the unit each is given in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from simfs.scenario.suggest import nearest
from simfs.scenario.units import BYTES_PER_UNIT, NS_PER_UNIT

Quantity = Literal[
    "throughput",
    "bytes",
    "share",
    "online_idle",
    "latency",
    "switches",
    "switches_per_operation",
    "joules",
    "system",
    "real",
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


_PLAIN = {
    **{f"{state}_percent": Metric("share", "%", state=state) for state in STATES},
    "online_idle_percent": Metric("online_idle", "%"),
    "context_switches_per_s": Metric("switches", "1/s"),
    "context_switches_per_operation": Metric("switches_per_operation", "1"),
    "joules_per_operation": Metric("joules", "J"),
    "sys_s": Metric("system", "s", 1e-9),
    "real_s": Metric("real", "s"),
}
_STATISTICS: dict[str, Statistic] = {"avg": "mean", "p50": "p50", "p90": "p90", "p99": "p99", "max": "max"}
_LATENCY = re.compile(
    r"(?:(?P<operation>\w+)_)?(?P<statistic>avg|p50|p90|p99|max)_latency_(?P<unit>ns|us|ms|s)"
)
_BYTES = {unit.lower(): unit for unit in BYTES_PER_UNIT if unit != "B"}
_BYTE_RATE = re.compile(rf"(?:\w+_)?(?P<unit>{'|'.join(_BYTES)})(?:_per)?_s", re.IGNORECASE)

EXAMPLES = (
    *_PLAIN, "operations_per_s", "throughput_mb_per_s", "mib_per_s", "avg_latency_us", "p99_latency_ms",
    "max_latency_ms", "create_max_latency_ms",
)  # fmt: skip


def metric(name: str) -> Metric:
    """Return what the metric `name` means; raise ValueError for a name that means nothing.

    Besides CPU shares and counts by name there are the latency of an operation, `create_p99_latency_ms` (or
    of all, `p99_latency_ms`), rates of bytes, `..._mib_per_s`, and any other rate, `..._per_s`, which is the
    throughput.
    """
    if name in _PLAIN:
        return _PLAIN[name]
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
    hint = f"; did you mean '{near}'?" if near else ""
    raise ValueError(f"'{name}' is no metric that is simulated{hint}")
