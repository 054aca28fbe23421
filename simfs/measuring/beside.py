"""A measured machine beside the nearest shipped one, number by number."""

from __future__ import annotations

from pydantic import Field

from simfs.measuring.figures import Figure
from simfs.measuring.profile import nearest_profile
from simfs.results.run_result import Strict
from simfs.scenario.models import Machine, load_machine
from simfs.scenario.sections.quantity import Quantity


class Beside(Strict):
    """One number of both."""

    what: str
    unit: str
    here: float
    nearest: float
    ratio: float | None = Field(description="here over nearest; None where that is 0")
    measured: bool = Field(description="whether the number here was measured or derived from what was")


class MachineBeside(Strict):
    """The answer of `simfs doctor --machine`."""

    machine: str
    nearest: str
    lines: tuple[Beside, ...]


def beside(machine: Machine) -> MachineBeside:
    """Compare a machine with the nearest shipped one, by what was measured."""
    own = {n: Figure.like(q, q.source) for n, q in quantities(machine).items() if _measured(q)}
    near = nearest_profile({n.partition(".")[2]: f for n, f in own.items()})
    theirs = quantities(load_machine(near))
    lines = []
    for name, q in quantities(machine).items():
        if name in theirs and theirs[name].plain_unit == q.plain_unit:
            a, b = q.plain, theirs[name].plain
            ratio = a / b if b else None
            lines.append(
                Beside(what=name, unit=q.plain_unit, here=a, nearest=b, ratio=ratio, measured=_measured(q))
            )
    return MachineBeside(machine=machine.name, nearest=near, lines=tuple(lines))


def quantities(machine: Machine) -> dict[str, Quantity]:
    """All numbers of a machine by name; idle states by their depth, since their names differ."""
    sections = {"topology": machine.topology, "costs": machine.costs, "caches": machine.caches}
    found = {
        f"{section}.{name}": q
        for section, numbers in sections.items()
        if numbers is not None
        for name, q in numbers
        if isinstance(q, Quantity)
    }
    for depth, state in enumerate(machine.idle_states, start=1):
        found |= {f"idle_{depth}.exit": state.exit, f"idle_{depth}.residency": state.residency}
    return found | ({"memory": machine.memory} if machine.memory else {})


def _measured(q: Quantity) -> bool:
    return not q.source.startswith("not measured")
