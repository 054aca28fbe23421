"""fio's `--output-format=json` (also after its other output): rates, bytes and completion latencies by job."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simfs.interchange.reading import LARGEST, Figure, Reading, UnreadableError
from simfs.scenario.sections.fio import Fio
from simfs.scenario.sections.mix import Mix
from simfs.scenario.sections.workload import PythonTasks

if TYPE_CHECKING:
    from simfs.results.model import PointResult, ScenarioResult
    from simfs.scenario.sections.workload import Workload

DIRECTIONS = ("read", "write", "trim")
_OF_DIRECTION = {"read": "read", "write": "write", "overwrite": "write", "append": "write"}
"""Operations of simulations that fio knows."""
_PERCENTILES = {"50.000000": "p50", "90.000000": "p90", "99.000000": "p99"}


def is_mine(text: str) -> bool:
    """Whether there is an object with fio's version in it."""
    return '"fio version"' in text


def read(text: str) -> Reading:
    """Read the jobs that moved anything. Lines are those of the file: all of it is one document, or it is skipped.

    Raises UnreadableError for JSON that breaks off or is broken.
    """
    size = len([x for x in text.splitlines() if x.strip()])
    document = _document(text)
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list):
        return Reading("fio", 0, size)
    figures = tuple(f for job in jobs if isinstance(job, dict) for f in _of_job(job, document))
    version = str(document.get("fio version", ""))
    used = len(figures) and len(json.dumps(document, indent=2).splitlines())
    return Reading("fio", min(used, size), max(0, size - used), figures, facts={"version": version})


def _document(text: str) -> Any:  # noqa: ANN401
    start = text.find("{\n") if "{\n" in text else text.find("{")
    try:
        found, _ = json.JSONDecoder(parse_constant=lambda _: None).raw_decode(text, max(start, 0))
    except json.JSONDecodeError as error:
        line = text.count("\n", 0, error.pos) + 1
        raise UnreadableError(f"fio's JSON breaks off or is broken in line {line}: {error.msg}") from None
    except RecursionError:
        return None
    return found


def _of_job(job: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[Figure]:
    options = {**_mapping(document.get("global options")), **_mapping(job.get("job options"))}
    name = str(job.get("jobname", "job"))
    tasks = _tasks(options.get("numjobs", 1))
    sides = {d: _mapping(job.get(d)) for d in DIRECTIONS}
    busy = {d: side for d, side in sides.items() if _number(side.get("total_ios")) > 0}
    if not busy:
        return
    yield Figure(name, "io_per_s", sum(_number(s.get("iops")) for s in busy.values()), tasks)
    moved = sum(_number(s.get("bw_bytes")) for s in busy.values()) / (1 << 20)
    yield Figure(name, "throughput_mib_per_s", moved, tasks)
    for direction, side in busy.items():
        latency = _mapping(side.get("clat_ns"))
        yield Figure(name, f"{direction}_avg_latency_us", _number(latency.get("mean")) / 1e3, tasks)
        yield Figure(name, f"{direction}_max_latency_us", _number(latency.get("max")) / 1e3, tasks)
        shares = _mapping(latency.get("percentile"))
        for key, word in _PERCENTILES.items():
            if key in shares:
                yield Figure(name, f"{direction}_{word}_latency_us", _number(shares[key]) / 1e3, tasks)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float:
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < LARGEST
    return float(value) if usable and isinstance(value, (int, float)) and value == value else 0.0


def _tasks(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 7 else None


def refuse(workload: Workload) -> None:
    """Raise UnreadableError for a workload that neither reads nor writes."""
    asked = {use.op for use in workload.operations} if isinstance(workload, Mix) else set()
    if not (isinstance(workload, Fio | PythonTasks) or asked & _OF_DIRECTION.keys()):
        others = ", ".join(sorted(asked)) or workload.kind
        raise UnreadableError(f"fio prints reads and writes, and the workload has neither, but {others}")


def write(result: ScenarioResult, points: Sequence[PointResult]) -> str:
    """One job a point, with the keys that readers of fio's JSON take: rates, bandwidth, completion latencies.

    Raises UnreadableError for operations that fio does not know.
    """
    jobs = [_job(result, point) for point in points]
    document = {"fio version": "fio-3.33", "timestamp": 0, "timestamp_ms": 0, "time": "", "jobs": jobs}
    return json.dumps(document, indent=2) + "\n"


def _job(result: ScenarioResult, point: PointResult) -> dict[str, Any]:
    seconds = point.window_ns * point.replications / 1e9
    known = {name: point.latency[name] for name in point.latency}
    names = {d: next((n for n in known if _OF_DIRECTION.get(n) == d), None) for d in DIRECTIONS}
    if not any(names.values()):
        others = ", ".join(name for name in known if name != "operation") or result.operation
        raise UnreadableError(f"fio prints reads and writes, and this point has neither, but {others}")
    moved = point.bytes_per_s.mean if point.bytes_per_s else 0.0
    everything = sum(known[n].count for n in names.values() if n) or 1
    sides = {}
    for direction, name in names.items():
        latency = known[name] if name else None
        ios = latency.count if latency else 0
        rate = moved * ios / everything
        sides[direction] = {
            "io_bytes": round(rate * seconds),
            "io_kbytes": round(rate * seconds) >> 10,
            "bw_bytes": round(rate),
            "bw": round(rate) >> 10,
            "iops": ios / seconds,
            "runtime": round(seconds * 1e3),
            "total_ios": ios,
            "short_ios": 0,
            "drop_ios": 0,
            "slat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0},
            "clat_ns": _latency(latency),
            "lat_ns": _latency(latency, percentiles=False),
        }
    shares = point.shares
    return {
        "jobname": f"{result.name}:{point.variant}",
        "groupid": 0,
        "error": 0,
        "job options": {"name": point.variant, "numjobs": str(point.tasks)},
        **sides,
        "usr_cpu": shares.user.mean,
        "sys_cpu": shares.system.mean + shares.spin.mean + shares.switch.mean + shares.irq.mean,
        "ctx": round(point.context_switches.mean * seconds),
    }


def _latency(latency: Any, *, percentiles: bool = True) -> dict[str, Any]:  # noqa: ANN401
    if latency is None:
        return {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    found: dict[str, Any] = {
        "min": 0,
        "max": round(latency.max_ns),
        "mean": latency.mean_ns,
        "stddev": 0.0,
        "N": latency.count,
    }
    if percentiles:
        found["percentile"] = {
            "50.000000": round(latency.p50_ns),
            "90.000000": round(latency.p90_ns),
            "99.000000": round(latency.p99_ns),
        }
    return found
