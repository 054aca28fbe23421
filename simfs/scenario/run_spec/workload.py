"""The `workload` and `groups` sections of a RunSpec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simfs.scenario.models import load_workload
from simfs.scenario.points import group_loads
from simfs.scenario.program import digest
from simfs.scenario.schema import Scenario
from simfs.scenario.sections.draws import Arrivals, Distribution
from simfs.scenario.sections.fio import Fio
from simfs.scenario.sections.lock_tasks import LockCycle, LockTasks, RangeLock
from simfs.scenario.sections.mix import Mix, MixOperation
from simfs.scenario.sections.tasks import FileTasks, Naming, Serving
from simfs.scenario.sections.workload import (
    Compile,
    Create,
    Dbench,
    FsMark,
    PythonTasks,
    TmpFile,
    Workload,
    profile_of,
)


def workload_spec(use: Workload, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `workload` section of a load, without its number of tasks of this point."""
    spec: dict[str, Any] = {
        "kind": use.kind,
        "tasks": use.tasks,
        "pin_to_cpu": use.pin_to_cpu,
        "nice": use.nice,
        "binding": use.binding,
        "params": _params(use, machine),
    }
    if isinstance(use, PythonTasks):
        spec |= {"program": use.program, "program_sha256": digest(use.program)}
    elif not isinstance(use, LockTasks | Fio):
        spec["directories"] = use.directories
    return spec


def groups_spec(scenario: Scenario, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `groups` section, or nothing where all tasks have one load."""
    loads = group_loads(scenario)
    groups = [{"name": name, "workload": workload_spec(load, machine)} for name, load in loads.items()]
    return {"groups": groups} if groups else {}


def _params(use: Workload, machine: Mapping[str, Any]) -> dict[str, Any]:
    arrivals = _arrivals(use.arrivals) if isinstance(use, Serving) and use.arrivals else {}
    return _own_params(use, machine) | arrivals


def _arrivals(use: Arrivals) -> dict[str, Any]:
    if use.trace is not None:
        return {"arrivals_trace": list(use.trace)}
    if use.every is not None:
        return _drawn("arrivals", use.every)
    return {"arrivals_ns": use.gap, "arrivals_distribution": "exponential"}


def _own_params(use: Workload, machine: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(use, LockCycle):
        return _lock_cycle(use, machine)
    if isinstance(use, PythonTasks):
        return dict(use.params)
    params: dict[str, Any] = load_workload(profile_of(use)).spec() | use.params
    if isinstance(use, RangeLock):
        return params | _range_lock(use)
    if isinstance(use, Fio):
        return params | _fio(use)
    if isinstance(use, Compile):
        params["shell"] = float(use.shell)
        if use.user_cpu is not None:
            params["user_cpu_ns"] = use.user_cpu
    if isinstance(use, Dbench):
        params |= {"sync": 1.0} if use.sync else {}
        params |= {"sync_directories": 1.0} if use.sync_directories else {}
    if isinstance(use, TmpFile):
        params |= {"write_bytes": use.write, "fsync": float(use.fsync)}
    if isinstance(use, FsMark):
        params |= {"files": use.files, "file_bytes": use.size or 0, "write_bytes": use.write}
        params |= {"sync": use.sync, "keep": float(use.keep)}
        params |= {} if use.files_per_directory is None else {"files_per_directory": use.files_per_directory}
    if isinstance(use, Mix):
        params |= {"order": use.order, "file_set": use.file_set, "files": use.files}
        params |= {"threads": float(use.threads), "descriptors": float(use.descriptors)}
        params |= {"watched": float(use.watched), "unlinked": float(use.unlinked)}
        params |= {"ends": float(use.ends)} if use.ends else {}
        params |= {"shared_open": 1.0} if use.shared_open else {}
        params |= {} if use.cached else {"cold": 1.0}
        params |= _walked(use)
        params |= {} if use.names is None else {"names": use.names}
        params |= {} if use.begin is None else {"begin_ns": use.begin}
        params |= _chosen(use.random_distribution)
        params |= {"file_bytes": use.file_size or 0, "operations": [_operation(o) for o in use.operations]}
    if isinstance(use, Naming) and use.name_format is not None:
        params |= {"name_format": use.name_format}
    if isinstance(use, FileTasks) and use.synced:
        params |= {"synced": 1.0}
    if isinstance(use, FsMark | Mix):
        params |= {"subdirectories": use.subdirectories or 0}
    if isinstance(use, Create | FsMark | Mix):
        params |= {"initial_files": use.initial_files}
    return params


def _walked(use: Mix) -> dict[str, Any]:
    if use.walked is None:
        return {}
    return {"walks_apart": 1.0} if use.walked == "spread" else {"walked": use.walked}


def _lock_cycle(use: LockCycle, machine: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "think": use.thinks,
        "readers": use.readers,
        "blocking": use.blocking,
        "data_lines": use.data_lines,
        "locks": use.locks,
        "order": use.order,
        **({} if use.begin is None else {"begin_ns": use.begin}),
        **({} if use.device is None else _drawn("device", use.device)),
        **_drawn("think", use.think),
        **_held(use, machine),
    }


def _range_lock(use: RangeLock) -> dict[str, Any]:
    own = ("design", "index_lock", "ranges", "units", "length", "outstanding", "order", "readers")
    given = {key: getattr(use, key) for key in own}
    return given | _drawn("think", use.think) | _drawn("hold", use.hold)


def _fio(use: Fio) -> dict[str, Any]:
    plain = ("block_size", "size", "files", "extents", "iodepth", "fsync")
    given = {key: getattr(use, key) for key in plain} | {
        "places": "sequential" if use.sequential else use.places,
        "reads": use.reads,
        **_chosen(use.random_distribution),
        "direct": float(use.direct),
        "sync": float(use.sync),
        "cached": float(use.cached is not False),
        **({"read_before": 0.0} if use.cached == "written" else {}),
    }
    optional = {
        "readers": use.readers,
        "fdatasync": use.fdatasync or None,
        "written": use.written,
        "unwritten": float(use.unwritten) or None,
        "watched": float(use.watched) or None,
    }
    return given | {key: value for key, value in optional.items() if value is not None}


def _chosen(distribution: str) -> dict[str, Any]:
    kind, _, theta = distribution.partition(":")
    return {"random_distribution": kind, "zipf_theta": float(theta)} if theta else {}


def _operation(use: MixOperation) -> dict[str, Any]:
    size = use.size if use.size is not None else 0 if use.op == "create" else 4096
    repeat = {} if use.repeat == 1 else {"repeat": use.repeat}
    on = {} if use.on == "any" else {"on": use.on}
    places = {} if use.places == "in-turn" else {"places": use.places}
    more = repeat | on | places | ({"sync": True} if use.sync else {})
    return {"op": use.op, "weight": use.weight, "bytes": size, **more, **_drawn("think", use.think)}


def _held(use: LockCycle, machine: Mapping[str, Any]) -> dict[str, Any]:
    hold = _drawn("hold", use.hold)
    if use.pauses:
        hold["hold_ns"] += use.pauses * machine["costs"]["cpu_relax"]
    return hold


def _drawn(what: str, time: Distribution) -> dict[str, Any]:
    shape: dict[str, Any] = {} if time.cv is None else {f"{what}_cv": time.cv}
    if time.empirical is not None:
        shape |= {f"{what}_values": list(time.empirical)}
    if time.weights is not None:
        shape |= {f"{what}_weights": list(time.weights)}
    return {f"{what}_ns": time.mean, f"{what}_distribution": time.kind, **shape}
