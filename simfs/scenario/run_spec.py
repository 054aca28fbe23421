"""From a point to the RunSpec of docs/seams.md: profiles with the scenario's settings laid over them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from simfs.scenario.clock import active_cores, clocked, slowed
from simfs.scenario.device import DeviceUse, ServiceUse
from simfs.scenario.draws import Arrivals, Distribution
from simfs.scenario.filesystem import Btrfs, Ext4, NoFilesystem, Tmpfs, Xfs
from simfs.scenario.kernel import KernelUse
from simfs.scenario.machine import MachineUse
from simfs.scenario.models import (
    ClassCounts,
    load_classes,
    load_device,
    load_device_classes,
    load_device_instructions,
    load_filesystem,
    load_instructions,
    load_kernel,
    load_machine,
    load_vfs,
    load_vfs_instructions,
    load_workload,
)
from simfs.scenario.points import Point, group_loads
from simfs.scenario.program import digest
from simfs.scenario.quantity import Quantity
from simfs.scenario.schema import Scenario
from simfs.scenario.tasks import FileTasks, Naming, Serving
from simfs.scenario.touched import touched
from simfs.scenario.workload import (
    Compile,
    Create,
    Fio,
    FsMark,
    LockCycle,
    LockTasks,
    Mix,
    MixOperation,
    PythonTasks,
    RangeLock,
    TmpFile,
    Workload,
    profile_of,
)
from simfs.vocabulary import vocabulary

AUTO_WARMUP = 0.25
"""Warm-up before `warmup: auto` has been resolved, relative to the duration."""

_CACHES = {
    "core": "core_bytes",
    "llc": "llc_bytes",
    "llc_latency": "llc_ns",
    "memory_latency": "memory_ns",
    "memory_bandwidth": "memory_bandwidth",
    "code_lines": "code_lines",
    "front_end": "front_end_bytes",
    "front_end_latency": "front_end_ns",
    "front_end_stall": "front_end_stall_ns",
    "tlb": "tlb_bytes",
    "tlb_walk": "tlb_walk_ns",
}

_SHARES = ("cpus_per_core", "cpus_per_llc", "cpus_per_socket")


def to_run_spec(point: Point, replication: int) -> dict[str, Any]:
    """Return the RunSpec of one replication; raise `ValueError` for a profile that is missing or invalid.

    The replications of a point differ in `replication` alone.
    """
    scenario = point.scenario
    measure = scenario.measure
    machine = _at_its_clock(machine_spec(scenario.machine, scenario.tasks), scenario)
    if not isinstance(scenario.filesystem, NoFilesystem):
        machine["costs"].pop("line_atomic", None)  # steps have what an atomic operation takes more than a hit
        if "atomic" in load_machine(scenario.machine.profile).classes:
            machine["costs"]["line_hit"] = 0  # and here all of it
    if machine["caches"] is not None:
        machine["caches"]["bodies"] = touched(scenario.filesystem.kind)
    warmup = AUTO_WARMUP * measure.duration if isinstance(measure.warmup, str) else measure.warmup
    return {
        "seed": measure.seed,
        "replication": replication,
        "warmup_ns": warmup,
        "duration_ns": measure.duration,
        "batches": measure.batches,
        "machine": machine,
        "kernel": kernel_spec(scenario, machine["cpus"]),
        **_filesystem_spec(scenario, machine),
        "device": None if scenario.storage is None else _device_at_speed(scenario.storage, scenario, machine),
        "workload": _workload_spec(scenario.workload, machine) | {"tasks": scenario.tasks},
        **_groups_spec(scenario, machine),
    }


def machine_spec(use: MachineUse, tasks: int) -> dict[str, Any]:
    """Return the `machine` section: the profile, its CPUs and costs replaced where the scenario says so."""
    cpus = tasks if use.cpus == "tasks" else use.cpus
    spec = load_machine(use.profile).spec(cpus)
    shares = {key: value for key in _SHARES if (value := getattr(use, key)) is not None}
    spec |= {key: min(tasks, value) for key, value in shares.items()} if use.cpus == "tasks" else shares
    spec["costs"] |= {name: value for name, value in use.costs if value is not None}
    if use.speed is not None:
        spec["costs"]["speed"] = use.speed
    if use.memory is not None:
        spec["memory_bytes"] = use.memory
    if spec["caches"] is not None:
        spec["caches"] |= {_CACHES[name]: value for name, value in use.caches if value is not None}
    return spec


def _at_its_clock(machine: dict[str, Any], scenario: Scenario) -> dict[str, Any]:
    """Return a `machine` section as fast as it is with the scenario's tasks on its cores."""
    factor = slowed(
        load_machine(scenario.machine.profile),
        active_cores(machine, scenario.tasks, scenario.workload.binding),
    )
    factor /= scenario.machine.clock or 1
    return machine if factor == 1 else clocked(machine, factor)


def kernel_spec(scenario: Scenario, cpus: int) -> dict[str, Any]:
    """Return the `kernel` section for a machine with `cpus` CPUs."""
    use: KernelUse = scenario.kernel
    here = {name: rule.is_ for name, rule in load_machine(scenario.machine.profile).rules.items()}
    spec = load_kernel(use.profile).ruled({**here, **use.rules}).spec(cpus)
    given = {"tick_ns": use.tick, "base_slice_ns": use.base_slice, "preemption": use.preemption}
    spec |= {key: value for key, value in given.items() if value is not None}
    if use.kernel_threads:
        whose = "" if use.kernel_threads is True else f"-{use.kernel_threads}"
        spec["kernel_threads"] = load_workload(f"kernel_threads{whose}").spec()
    spec["constants"] |= use.constants
    spec["locks"] |= scenario.lock_roles
    if isinstance(scenario.workload, LockTasks):
        own = scenario.own_locks
        roles = {role: own.get(use, use) for role, use in scenario.workload.roles.items()}
        spec["locks"] = roles | scenario.lock_roles
    elif isinstance(scenario.filesystem, Xfs):
        spec["locks"] |= scenario.filesystem.roles | scenario.lock_roles
    return spec


def _device_at_speed(use: DeviceUse, scenario: Scenario, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `device` section with the times of instructions, where the machine's steps are counted."""
    if load_machine(scenario.machine.profile).steps != "counted":
        return device_spec(use)
    steps, classes = load_device_instructions(use.profile), load_device_classes(use.profile)
    return device_spec(use, _counted(steps, classes, scenario.machine, machine))


def _make_array(spec: dict[str, Any], profile: str, members: int) -> None:
    """Make an md array of such devices. It says that it has a cache, whatever its members have."""
    if spec["served_by"] != "submitter":
        raise ValueError(f"device {profile}: raid0 is only for devices that the submitter serves")
    spec["raid0"] = members
    spec.pop("write_cache", None)


def device_spec(use: DeviceUse, counted: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Return the `device` section: the profile, counted times and what the scenario says laid over it."""
    spec = load_device(use.profile).spec()
    for name, ns in (counted or {}).items():
        request, _, part = name.rpartition(".")
        (spec[request] if request else spec)[f"{part}_ns"] = ns
    spec |= _given(
        parallelism=use.parallelism, depth=use.depth, submit_ns=use.submit, interrupt_ns=use.interrupt
    )
    for request in ("read", "write", "flush"):
        time: ServiceUse = getattr(use, request)
        given = _given(time_ns=time.time, cv=time.cv, per_kib_ns=time.per_kib)
        spec[request] |= given
        if request == "flush" and given:
            spec.pop("write_cache", None)  # what is flushed is a cache
    if use.raid0 is not None:
        _make_array(spec, use.profile, use.raid0)
    if use.write_cache is not None:
        spec["write_cache"] = use.write_cache == "volatile"
    if use.queues is not None:
        spec["queue_per_cpu"] = use.queues == "per-cpu"
    if use.rotational is not None:
        spec["rotational"] = use.rotational
    laid = {
        "disk": _given(
            revolution_ns=use.disk.revolution,
            seek_track_ns=use.disk.seek_track,
            seek_full_ns=use.disk.seek_full,
            capacity_bytes=use.disk.capacity,
            cache_bytes=use.disk.cache,
        ),
        "bandwidth": _given(read=use.bandwidth.read, write=use.bandwidth.write),
        "small_writes": _given(rate=use.small_writes.rate, burst=use.small_writes.burst),
    }
    if laid["disk"] and "disk" not in spec:
        raise ValueError(f"device {use.profile} is no disk: it has no arm")
    for limit in ("bandwidth", "small_writes"):
        if limit not in spec and len(laid[limit]) == 1:
            raise ValueError(f"device {use.profile} has no {limit}: give both of its numbers")
    return spec | {part: spec.get(part, {}) | limits for part, limits in laid.items() if limits}


def _given(**settings: float | None) -> dict[str, float]:
    return {key: value for key, value in settings.items() if value is not None}


def _filesystem_spec(scenario: Scenario, machine: Mapping[str, Any]) -> dict[str, Any]:
    use = scenario.filesystem
    if isinstance(use, NoFilesystem):
        return {"filesystem": {"kind": "none"}}
    vfs = dict(_vfs_costs(use.kind))
    costs = filesystem_costs(use)
    if load_machine(scenario.machine.profile).steps == "counted":
        kind = use.profile or use.kind
        classes = load_classes(kind)
        vfs["vfs_hash.new_index"] = vfs["vfs_dentry.index"]  # traced steps have it
        costs |= _counted(load_instructions(kind), classes, scenario.machine, machine)
        vfs |= _counted(load_vfs_instructions(use.kind), classes, scenario.machine, machine)
    costs |= use.costs
    if not isinstance(use, Tmpfs) and use.cached_inodes is not None:
        costs["cached_inodes"] = use.cached_inodes
    spec: dict[str, Any] = {"kind": use.kind, "size_bytes": use.size, "costs": costs}
    if isinstance(use, Xfs):
        spec |= {key: getattr(use, key) for key in ("agcount", "iolock", "buffered_io")}
        if use.log_size is not None:
            spec["log_bytes"] = use.log_size
        if "logbsize" in use.model_fields_set:
            spec["logbsize"] = use.logbsize
        if use.log_su is not None:
            spec["log_su"] = use.log_su
    if isinstance(use, Ext4):
        spec |= {key: getattr(use, key) for key in ("journal", "inode_ratio", "orphan_file")}
        if use.hash_seed is not None:
            spec["hash_seed"] = use.hash_seed_words
        if use.below is not None:
            spec["below"] = use.below
    if isinstance(use, Btrfs):
        spec |= {key: getattr(use, key) for key in ("nodatacow", "new_directories", "subvolumes")}
    return {"filesystem": spec, "vfs": {"costs": vfs}}


def _counted(
    steps: Mapping[str, Quantity],
    classes: Mapping[str, ClassCounts],
    use: MachineUse,
    machine: Mapping[str, Any],
) -> dict[str, float]:
    """Times of steps on this machine by their instructions; the engine multiplies all by `speed`.

    A machine with prices of classes runs a kernel booted as guests are: it takes the instructions counted with classes.
    """
    longer = _longer(use.profile, machine["costs"]["instruction"])
    prices = _prices(use.profile, longer)
    plain = prices["plain"]
    dearer = {name: price if name in _BESIDES else price - plain for name, price in prices.items()}
    entry = _entry(use.profile, longer, plain) - dearer.get("mask", 0)
    known = classes if load_machine(use.profile).classes else {}

    def time(name: str, step: Quantity) -> float:
        counts = known.get(name, {})
        more = sum(dearer.get(each, 0) * number for each, number in counts.items())
        return counts.get("instructions", step.plain) * plain + more + _entries(name) * entry

    speed = machine["costs"]["speed"]
    return {name: time(name, step) / speed for name, step in steps.items()}


_BESIDES = ("return", "fetch", "overlap")
"""Classes that are no instructions, but what these cost besides."""


def _longer(profile: str | Path, instruction: float) -> float:
    """Return how many times as long as measured a core takes, as an instruction of locks says (clocks, settings)."""
    usual = load_machine(profile).costs.instruction.plain
    return instruction / usual if usual else 1


def _prices(profile: str | Path, longer: float) -> dict[str, float]:
    """Return what instructions of counted steps take, by class."""
    machine = load_machine(profile)
    prices = {"plain": machine.costs.instruction.plain} | {
        name: q.plain for name, q in machine.classes.items()
    }
    return {name: longer * price for name, price in prices.items()}


def _entry(profile: str | Path, longer: float, instruction: float) -> float:
    """Return what the way into the kernel and back takes beyond its instructions (stacks, mitigations): measured.

    It contains one mask of interrupts (`exit_to_user_mode_prepare`), which is among those of the steps, too.
    """
    micro = load_machine(profile).micro
    if "syscall" not in micro:
        return 0
    return longer * micro["syscall"].plain - load_machine("emulated").micro["syscall"].plain * instruction


_ENTERED = re.compile(
    r"before_i_rwsem$|\.enter_(close|write)$|^cu\.close$|^tmp\.write$|"
    r"call\.(open_walk|stat|stat_missing|fstat|statfs|lock_range|unlock_range|read|overwrite)$"
)
"""Steps with the entry of a system call, of tables of filesystems and of the VFS."""
_LISTING = 5
"""System calls of a listing: `openat`, `newfstatat`, `getdents64` until there is nothing, `close`."""


def _entries(step: str) -> int:
    """Return how many system calls begin in a step that was counted."""
    return _LISTING if step.endswith("call.readdir") else int(bool(_ENTERED.search(step)))


def filesystem_costs(use: Xfs | Btrfs | Ext4 | Tmpfs) -> dict[str, float]:
    """Return the costs of a filesystem by name; XFS may have a range lock, whose costs are those of `range_lock`."""
    costs = dict(_costs(use.profile or use.kind))
    if isinstance(use, Xfs):
        work = load_workload("range_lock").spec()
        costs |= {f"range_lock.{name}": ns for name, ns in work.items() if name.endswith("_work_ns")}
    return costs


# A profile has hundreds of costs and a sweep thousands of points: turning the one into numbers is done once.
@cache
def _costs(profile: str) -> Mapping[str, float]:
    return load_filesystem(profile).spec()


@cache
def _vfs_costs(kind: str) -> Mapping[str, float]:
    read = vocabulary().costs[kind]  # the footprints of the VFS are those of all filesystems
    return {name: value for name, value in load_vfs(kind).spec().items() if name in read}


def _workload_spec(use: Workload, machine: Mapping[str, Any]) -> dict[str, Any]:
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


def _groups_spec(scenario: Scenario, machine: Mapping[str, Any]) -> dict[str, Any]:
    loads = group_loads(scenario)
    groups = [{"name": name, "workload": _workload_spec(load, machine)} for name, load in loads.items()]
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
    if isinstance(use, TmpFile):
        params |= {"write_bytes": use.write, "fsync": float(use.fsync)}
    if isinstance(use, FsMark):
        params |= {"files": use.files, "file_bytes": use.size or 0, "write_bytes": use.write}
        params |= {"sync": use.sync, "keep": float(use.keep)}
        params |= {"files_per_directory": use.files_per_directory}
    if isinstance(use, Mix):
        params |= {"order": use.order, "file_set": use.file_set, "files": use.files}
        params |= {"threads": float(use.threads), "descriptors": float(use.descriptors)}
        params |= {"watched": float(use.watched), "unlinked": float(use.unlinked)}
        params |= {"shared_open": 1.0} if use.shared_open else {}
        params |= {} if use.names is None else {"names": use.names}
        params |= {} if use.begin is None else {"begin_ns": use.begin}
        params |= _chosen(use.random_distribution)
        params |= {"file_bytes": use.file_size or 0, "operations": [_operation(o) for o in use.operations]}
    if isinstance(use, Naming) and use.name_format is not None:
        params |= {"name_format": use.name_format}
    if isinstance(use, FileTasks) and use.synced:
        params |= {"synced": 1.0}
    if isinstance(use, FsMark | Mix):
        params |= {"subdirectories": use.subdirectories}
    if isinstance(use, Create | FsMark | Mix):
        params |= {"initial_files": use.initial_files}
    return params


def _lock_cycle(use: LockCycle, machine: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "think": use.thinks,
        "readers": use.readers,
        "blocking": use.blocking,
        "data_lines": use.data_lines,
        "locks": use.locks,
        "order": use.order,
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
        "cached": float(use.cached),
    }
    optional = {"readers": use.readers, "written": use.written, "unwritten": float(use.unwritten) or None}
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
