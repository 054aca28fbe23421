"""The clock of a machine's cores, which falls with the number of those that are active (turbo)."""

from __future__ import annotations

from typing import Any

from simfs.scenario.models import Machine

_OF_CORES = (
    "speed",
    "instruction",
    "context_switch",
    "switch_mm",
    "wakeup",
    "wakeup_queued",
    "resched_serve",
    "cpu_relax",
    "line_hit",
    "line_atomic",
)
"""Costs of what a core does by itself. Lines and memory come with the clock of the rest of the chip, which stays."""


def active_cores(machine: dict[str, Any], tasks: int, binding: str) -> int:
    """Return how many cores of the fullest socket `tasks` can keep active, those of a `machine` section.

    Tasks that are bound nowhere spread over sockets, as `find_idlest_group` does it.
    """
    per_socket: int = max(1, machine["cpus_per_socket"] // machine["cpus_per_core"])
    sockets: int = max(1, machine["cpus"] // machine["cpus_per_socket"])
    return min(per_socket, tasks if binding == "compact" else -(-tasks // sockets))


def slowed(profile: Machine, active: int) -> float:
    """Return how much longer a core of this machine takes with so many active ones in its socket than with one."""
    if not profile.clocks:
        return 1.0
    clocks = [step.clock.plain for step in profile.clocks if step.cores.plain >= active]
    return profile.clocks[0].clock.plain / (clocks[0] if clocks else profile.clocks[-1].clock.plain)


def clocked(machine: dict[str, Any], factor: float) -> dict[str, Any]:
    """Return a `machine` section with all that its cores do taking `factor` times as long."""
    costs = machine["costs"]
    longer = {name: costs[name] * factor for name in _OF_CORES if costs.get(name) is not None}
    return machine | {"costs": costs | longer}
