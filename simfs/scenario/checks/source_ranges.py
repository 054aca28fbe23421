"""The range that the source of a parameter spans: outside it a fitted value is not believed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from simfs.scenario.models import load_device, load_filesystem, load_machine, load_workload
from simfs.scenario.points import expand
from simfs.scenario.reading.overlay import split_key
from simfs.scenario.schema import Scenario
from simfs.scenario.sections.lock_tasks import LockCycle
from simfs.scenario.sections.quantity import Quantity
from simfs.scenario.sections.workload import PythonTasks, profile_of

SLACK = 1e-9
"""Of the bound: a fit that ends at its bound is inside."""


def outside_sources(scenario: Scenario, values: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """The fitted `values` (times in ns) that lie outside the range of their source, by key, with that range.

    A parameter that no model gives, such as what a benchmark's loop does between two locks, has no range.
    """
    ranges = {key: source_range(scenario, key) for key in values}
    return {key: span for key, span in ranges.items() if span and not _inside(values[key], span)}


def source_range(scenario: Scenario, key: str) -> tuple[float, float] | None:
    """The range of the sourced number at a scenario's dotted key, times in ns; None where no model gives one."""
    path = tuple(map(str, split_key(key)))
    only = variant_of(key)
    if only is not None:
        path = path[2:]
    point = next(p for p in expand(scenario) if only in (None, p.variant))
    found = _model_value(point.scenario, path)
    return found.plain_range if isinstance(found, Quantity) else None


def variant_of(key: str) -> str | None:
    """The variant that a key such as `variants.xfs.machine.speed` changes; None for all."""
    path = split_key(key)
    return str(path[1]) if path[0] == "variants" else None


def _inside(value: float, span: tuple[float, float]) -> bool:
    low, high = span
    return low * (1 - SLACK) <= value <= high * (1 + SLACK)


def _model_value(use: Scenario, path: tuple[str, ...]) -> object:
    """What a model has at a path of a scenario without variants."""
    section, *names = path
    name = ".".join(names)
    if section == "machine":
        machine = load_machine(use.machine.profile)
        return dict(machine.costs).get(name.removeprefix("costs.")) or _at(machine, names)
    if section == "device" and use.device is not None:
        return _at(load_device(use.device.profile), names)
    if section == "filesystem" and use.filesystem.kind != "none":
        model = load_filesystem(use.filesystem.profile or use.filesystem.kind)
        return model.costs.get(name.removeprefix("costs."))
    if section == "workload" and not isinstance(use.workload, LockCycle | PythonTasks):
        params, name = load_workload(profile_of(use.workload)).params, name.removeprefix("params.")
        return params.get(name) or params.get(f"{name}_ns")
    return None


def _at(model: object, names: list[str]) -> object:
    return reduce(lambda found, name: getattr(found, name, None), names, model)
