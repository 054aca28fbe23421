"""Idle states as wake-ups show them: where a longer idle time makes the wake-up longer, a deeper state begins."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from simfs.measuring.figures import Figure
from simfs.measuring.probes import IDLE_NS
from simfs.measuring.topology import DeclaredIdle
from simfs.scenario.models import Machine
from simfs.scenario.sections.quantity import Quantity

DEEPER = 1.25
"""How many times as long a wake-up takes, at least, where a deeper state begins."""

OUTLIERS = 500.0
"""ns that a wake-up takes longer, at least, where a deeper state begins."""


@dataclass(frozen=True)
class Idle:
    """An idle state."""

    name: str
    exit: Figure
    residency: Figure
    watts: Quantity


def idle_states(
    seen: Mapping[str, Figure],
    costs: dict[str, Figure],
    declared: Sequence[DeclaredIdle],
    default: Machine,
    near: str,
) -> list[Idle]:
    """The states that the driver declares or wake-ups show; those of `default` where no other CPU could be woken.

    The exit of the shallowest is the declared one and is taken out of `ipi_deliver`; deeper ones add what wake-ups take
    longer.
    """
    if "ipi_deliver" not in costs:
        return [
            Idle(s.name, _like(s.exit, near), _like(s.residency, near), s.watts) for s in default.idle_states
        ]
    first = declared[0] if declared else DeclaredIdle("idle", 0.0, 0.0)
    told = (
        "as the idle driver declares it" if declared else "no idle driver tells: its exit is in ipi_deliver"
    )
    exit_ = Figure.exactly(min(first.exit, costs["ipi_deliver"].value), told)
    delivered = costs["ipi_deliver"] - exit_
    costs["ipi_deliver"] = delivered.said(
        costs["ipi_deliver"].source.replace("is still in it and is taken out below", "is out of it")
    )
    states = [Idle(first.name, exit_, Figure.exactly(first.residency, told), _watts(default, 0, near))]
    for at, before, longer in _steps(seen):
        reached = [s.name for s in declared if s.residency <= at]
        name = reached[-1] if reached and reached[-1] != states[-1].name else f"idle-{at / 1e3:g}us"
        exit_ = (exit_ + longer).said(
            f"wake_{at}_run less wake_{before}_run (in micro), and the exit of the state above"
        )
        begins = Figure(
            math.sqrt(at * before),
            before,
            at,
            f"between {before / 1e3:g} and {at / 1e3:g} us of idle time the wake-up becomes longer",
        )
        states.append(Idle(name, exit_, begins, _watts(default, len(states), near)))
    return states


def _steps(seen: Mapping[str, Figure]) -> Iterator[tuple[int, int, Figure]]:
    """Idle times at which a wake-up takes longer than at all shorter ones, the one before, and how much longer."""
    level = seen[f"wake_{IDLE_NS[0]}_run"]
    for before, at in pairwise(IDLE_NS):
        here = seen[f"wake_{at}_run"]
        if here.value > DEEPER * level.value and here.value > level.value + OUTLIERS:
            yield at, before, here - level
            level = here


def _watts(default: Machine, depth: int, near: str) -> Quantity:
    watts = default.idle_states[min(depth, len(default.idle_states) - 1)].watts
    return watts.model_copy(update={"source": f"not measured: as on {near}: {watts.source}"})


def _like(q: Quantity, near: str) -> Figure:
    return Figure.like(q, f"not measured: as on {near}: {q.source}")
