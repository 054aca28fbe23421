"""From a point to the RunSpec of docs/seams.md: profiles with the scenario's settings laid over them."""

from __future__ import annotations

from typing import Any

from simfs.scenario.models import load_kernel, load_machine, load_workload
from simfs.scenario.models.machine import IN_RUN_SPEC
from simfs.scenario.models.touched import touched
from simfs.scenario.points import Point
from simfs.scenario.run_spec.device import device_at_speed, device_spec
from simfs.scenario.run_spec.filesystem import filesystem_costs, filesystem_spec
from simfs.scenario.run_spec.workload import groups_spec, workload_spec
from simfs.scenario.schema import Scenario
from simfs.scenario.sections.clock import active_cores, clocked, slowed
from simfs.scenario.sections.filesystem import NoFilesystem, Xfs
from simfs.scenario.sections.kernel import KernelUse
from simfs.scenario.sections.lock_tasks import LockTasks
from simfs.scenario.sections.machine import MachineUse

__all__ = ["AUTO_WARMUP", "device_spec", "filesystem_costs", "kernel_spec", "machine_spec", "to_run_spec"]

AUTO_WARMUP = 0.25
"""Warm-up before `warmup: auto` has been resolved, relative to the duration."""

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
        **filesystem_spec(scenario, machine),
        "device": None if scenario.storage is None else device_at_speed(scenario.storage, scenario, machine),
        "workload": workload_spec(scenario.workload, machine) | {"tasks": scenario.tasks},
        **groups_spec(scenario, machine),
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
        spec["caches"] |= {IN_RUN_SPEC[name]: value for name, value in use.caches if value is not None}
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
    kernel = load_kernel(use.profile).ruled({**here, **use.rules})
    spec = kernel.spec(cpus)
    given = {"tick_ns": use.tick, "base_slice_ns": use.base_slice, "preemption": use.preemption}
    spec |= {key: value for key, value in given.items() if value is not None}
    if use.kernel_threads:
        whose = "" if use.kernel_threads is True else f"-{use.kernel_threads}"
        spec["kernel_threads"] = load_workload(f"kernel_threads{whose}").spec()
    spec["constants"] |= use.constants
    spec["locks"] = kernel.with_locks(scenario.lock_roles)
    if isinstance(scenario.workload, LockTasks):
        own = scenario.own_locks
        roles = {role: own.get(use, use) for role, use in scenario.workload.roles.items()}
        spec["locks"] = roles | scenario.lock_roles
    elif isinstance(scenario.filesystem, Xfs):
        spec["locks"] = kernel.with_locks(scenario.filesystem.roles | scenario.lock_roles)
    return spec
