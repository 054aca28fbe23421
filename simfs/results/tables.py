"""Tidy tables of a result: a row a thing, a column a quantity, units in column names and metadata."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from simfs.results.chains import CHAIN_COLUMNS, chain_row
from simfs.results.model import PointResult, ScenarioResult
from simfs.results.quantities import in_units
from simfs.results.run_result import Latency, LockCounts, LockKind, LockStats
from simfs.results.scaling import Ideal
from simfs.results.statistics import Estimate
from simfs.results.statistics_scaling import scalings
from simfs.results.summaries import CURVE, CpuShares

UNITS = {
    "_per_s": "1/s",
    "_percent": "%",
    "_ns": "ns",
    "_bytes": "B",
    "joules_per_operation": "J",
}
"""Unit of a column by how its name ends; what ends otherwise is a count, a ratio or a name."""

_ROW = ("dataset", "series", "metric", "role", "approx")

_OF_TIME = [f for f in Latency.model_fields if f != "hdr"]
_OF_LOCK = [f for f in LockStats.model_fields if f not in ("name", "sites", "kinds", "wait_hdr")]
_OF_KIND = list(dict.fromkeys(f for f in ("kind", *LockKind.model_fields) if f != "grant_to_run"))
_OF_WAKES = ["kind", "wakeups", "on_previous", "on_waker", "beside_idle", "stacked"]
"""Columns."""

_LAW = {"rate_per_s": "rate", "contention": "contention", "coherency": "coherency"}
"""Columns of the scalability law's coefficients."""

Row = dict[str, Any]


def tables(result: ScenarioResult) -> dict[str, pa.Table]:
    """Return the tables of a result by name (`MAKERS`); the order of columns is fixed."""
    swept = [key for key in result.sweep if not key.endswith(".tasks")]
    return {
        name: _table(_with_units(list(make(result)), swept), _empty(name, result))
        for name, make in MAKERS.items()
    }


def unit(column: str) -> str:
    """Unit of a column, or the empty string for a count, a ratio or a name."""
    return next((u for ending, u in UNITS.items() if column.endswith(ending)), "")


def _points(result: ScenarioResult) -> Iterable[Row]:
    ideal, asked = Ideal(result), _asked(result)
    twins = {(s.variant, s.setting): s.twin for s in scalings(result)}
    for p in result.points:
        row = _key(p, result) | {"cpus": p.cpus, "origin": p.origin, "replications": p.replications}
        row |= {"window_ns": p.window_ns, "operations": p.operations, "events": p.events}
        row |= {"throughput_per_s": p.throughput.mean, "ci_low_per_s": p.throughput.low}
        row |= {"ci_high_per_s": p.throughput.high, "ideal_per_s": ideal.per_s(p)}
        twin = twins.get((p.variant, p.setting))
        row |= {"twin_per_s": twin and twin.per_s(p.tasks), "bound_per_s": twin and twin.bound_per_s(p.tasks)}
        for state in CpuShares.model_fields:
            row |= _interval(f"{state}_percent", getattr(p.shares, state))
        row |= {"marks": ", ".join(p.marks), "groups": p.groups and str(p.groups)}
        row |= _interval("context_switches_per_s", p.context_switches)
        row |= _interval("context_switches_per_operation", p.context_switches_per_operation)
        row |= _interval("joules_per_operation", p.joules_per_operation)
        row |= _interval("fairness", p.fairness)
        row |= _interval("max_min", p.max_min)
        for name in asked:
            row |= _interval(name, p.metrics.get(name))
        yield row | {"transient_batches": p.transient_batches, "settled_per_s": p.settled_per_s}


def _asked(result: ScenarioResult) -> list[str]:
    """The metrics that any point has because somebody asked for them."""
    return list(dict.fromkeys(name for p in result.points for name in p.metrics))


def _locks(result: ScenarioResult) -> Iterable[Row]:
    for p in result.points:
        for lock in p.locks:
            row = _key(p, result) | {"lock": lock.name} | {f: getattr(lock, f) for f in _OF_LOCK}
            yield row | {"wait_mean_ns": lock.wait_mean_ns, "caller": lock.caller}


def _lock_sites(result: ScenarioResult) -> Iterable[Row]:
    for p in result.points:
        for lock in p.locks:
            for site in lock.sites:
                yield (
                    _key(p, result)
                    | {"lock": lock.name, "site": site.site}
                    | site.model_dump(include=set(LockCounts.model_fields))
                )


def _lock_kinds(result: ScenarioResult) -> Iterable[Row]:
    for p in result.points:
        for lock in p.locks:
            for kind in lock.kinds:
                row = _key(p, result) | {"lock": lock.name} | {f: getattr(kind, f) for f in _OF_KIND}
                yield row | _took("grant_to_run", kind.grant_to_run)


def _lines(result: ScenarioResult) -> Iterable[Row]:
    for p in result.points:
        for line in p.lines:
            yield _key(p, result) | {"line": line.name} | line.model_dump(exclude={"name"})


def _chains(result: ScenarioResult) -> Iterable[Row]:
    for p in result.points:
        for chain in p.chains.waits if p.chains else ():
            yield _key(p, result) | chain_row(chain)


def _wakes(result: ScenarioResult) -> Iterable[Row]:
    for p in result.points:
        for wakes in p.wakes:
            row = _key(p, result) | {f: getattr(wakes, f) for f in _OF_WAKES}
            for name in ("to_run", "to_run_idle", "to_run_busy"):
                row |= _took(name, getattr(wakes, name))
            yield row | {"over_1ms_percent": wakes.over_1ms_percent}


def _delays(result: ScenarioResult) -> Iterable[Row]:
    for p in result.points:
        for name, took in p.delays.items():
            yield _key(p, result) | {"what": name} | took.model_dump()


def _requests(result: ScenarioResult) -> Iterable[Row]:
    for p in result.points:
        for op, took in p.requests.items():
            yield (
                _key(p, result) | {"request": op, "requests_per_s": p.requests_per_s[op]} | took.model_dump()
            )


def _took(name: str, took: Latency | None) -> Row:
    """A time's statistics in columns that begin with its name."""
    return {f"{name}_{field}": took and getattr(took, field) for field in _OF_TIME}


def _latency(result: ScenarioResult) -> Iterable[Row]:
    for p in result.points:
        for operation, latency in p.latency.items():
            yield _key(p, result) | {"operation": operation} | latency.model_dump()


def _latency_curves(result: ScenarioResult) -> Iterable[Row]:
    for p in result.points:
        for operation, latency in p.latency.items():
            ends = (
                zip((*CURVE, 100.0), (*latency.curve, latency.max_ns), strict=True) if latency.curve else ()
            )
            for percent, ns in ends:
                yield _key(p, result) | {"operation": operation, "percent": percent, "below_ns": ns}


def _measured(result: ScenarioResult) -> Iterable[Row]:
    for p in result.points:
        for c in p.measured:
            row = _key(p, result) | {name: getattr(c.row, name) for name in _ROW}
            row |= {"measured": c.row.value, "simulated": c.simulated.mean, "ci_low": c.simulated.low}
            yield row | {"ci_high": c.simulated.high, "error": c.error, "error_percent": c.error_percent}


def _scaling(result: ScenarioResult) -> Iterable[Row]:
    """Law and twin of each curve; the twin at the largest task count that has a CPU each."""
    for s in scalings(result):
        row: Row = {"variant": s.variant, "setting": s.setting}
        for name, coefficient in _LAW.items():
            row |= _interval(name, getattr(s.law, coefficient) if s.law else None)
        row |= {"peak_tasks": s.law.peak if s.law and math.isfinite(s.law.peak) else None}
        t = s.twin
        row |= {"lock": t and t.lock, "hold_ns": t and t.hold_ns, "think_ns": t and t.think_ns}
        yield row | {"knee_tasks": t and t.knee}


def _key(point: PointResult, result: ScenarioResult) -> Row:
    """The columns every table begins with: which point a row belongs to."""
    swept = {key: point.values.get(key) for key in result.sweep if not key.endswith(".tasks")}
    return {"point": point.id, "variant": point.variant, **swept, "tasks": point.tasks}


def _with_units(rows: Sequence[Row], swept: Sequence[str]) -> list[Row]:
    """The rows with swept quantities as numbers, in columns that name the unit."""
    if not rows or not set(swept) <= set(rows[0]):
        return list(rows)
    columns = {key: found for key in swept if (found := in_units([row[key] for row in rows]))}

    def numeric(i: int, row: Row) -> Row:
        return {
            (key + columns[key][0] if key in columns else key): (
                columns[key][1][i] if key in columns else value
            )
            for key, value in row.items()
        }

    return [numeric(i, row) for i, row in enumerate(rows)]


def _interval(name: str, estimate: Estimate | None) -> Row:
    if estimate is None:
        return {name: None, f"ci_low_{name}": None, f"ci_high_{name}": None}
    return {name: estimate.mean, f"ci_low_{name}": estimate.low, f"ci_high_{name}": estimate.high}


def _empty(name: str, result: ScenarioResult) -> Sequence[str]:
    """Columns of a table without rows, so that readers need no special case."""
    if name == "scaling":
        law = [column for name in _LAW for column in _interval(name, None)]
        return ["variant", "setting", *law, "peak_tasks", "lock", "hold_ns", "think_ns", "knee_tasks"]
    key = ["point", "variant", *(k for k in result.sweep if not k.endswith(".tasks")), "tasks"]
    return (
        key
        + {
            "points": ["throughput_per_s"],
            "locks": ["lock", *_OF_LOCK, "wait_mean_ns", "caller"],
            "lock_sites": ["lock", "site", *LockCounts.model_fields],
            "lock_kinds": ["lock", *_OF_KIND, *_took("grant_to_run", None)],
            "lines": ["line", "transfers", "waited_ns"],
            "chains": list(CHAIN_COLUMNS),
            "wakes": [*_OF_WAKES, *_took("to_run", None), "over_1ms_percent"],
            "delays": ["what", *_OF_TIME],
            "requests": ["request", "requests_per_s", *_OF_TIME],
            "latency": ["operation", *_OF_TIME],
            "latency_curves": ["operation", "percent", "below_ns"],
            "measured": [*_ROW, "measured", "simulated", "ci_low", "ci_high", "error", "error_percent"],
        }[name]
    )


MAKERS: Mapping[str, Callable[[ScenarioResult], Iterable[Row]]] = {
    "points": _points,
    "locks": _locks,
    "lock_sites": _lock_sites,
    "lock_kinds": _lock_kinds,
    "lines": _lines,
    "chains": _chains,
    "wakes": _wakes,
    "delays": _delays,
    "requests": _requests,
    "latency": _latency,
    "latency_curves": _latency_curves,
    "measured": _measured,
    "scaling": _scaling,
}
"""The tables and how each is made."""


def _table(rows: Sequence[Row], columns_if_empty: Sequence[str]) -> pa.Table:
    names = list(rows[0]) if rows else list(columns_if_empty)
    arrays = [_array([row[name] for row in rows]) for name in names]
    fields = [
        pa.field(name, a.type, metadata={"unit": unit(name)} if unit(name) else None)
        for name, a in zip(names, arrays, strict=True)
    ]
    return pa.table(arrays, schema=pa.schema(fields))


def _array(values: Sequence[Any]) -> pa.Array:
    """A typed column; integers and floats mixed become floats, anything else mixed becomes text."""
    kinds = {type(v) for v in values if v is not None}
    if kinds == {int, float}:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    if len(kinds) > 1:
        return pa.array([None if v is None else str(v) for v in values], pa.string())
    return pa.array(values)
