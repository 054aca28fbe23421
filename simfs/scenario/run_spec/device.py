"""The `device` section of a RunSpec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simfs.scenario.models import load_device, load_device_classes, load_device_instructions, load_machine
from simfs.scenario.run_spec.counted import counted
from simfs.scenario.schema import Scenario
from simfs.scenario.sections.device import DeviceUse, ServiceUse


def device_at_speed(use: DeviceUse, scenario: Scenario, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `device` section with the times of instructions, where the machine's steps are counted."""
    if load_machine(scenario.machine.profile).steps != "counted":
        return device_spec(use)
    steps, classes = load_device_instructions(use.profile), load_device_classes(use.profile)
    return device_spec(use, counted(steps, classes, scenario.machine, machine))


def _make_array(spec: dict[str, Any], profile: str, members: int) -> None:
    """Make an md array of such devices. It says that it has a cache, whatever its members have."""
    if spec["served_by"] != "submitter":
        raise ValueError(f"device {profile}: raid0 is only for devices that the submitter serves")
    spec["raid0"] = members
    spec.pop("write_cache", None)


def device_spec(use: DeviceUse, times: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Return the `device` section: the profile, counted times and what the scenario says laid over it."""
    spec = load_device(use.profile).spec()
    for name, ns in (times or {}).items():
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
