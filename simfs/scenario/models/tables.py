"""Models that are tables of sourced numbers: costs of a filesystem, counted instructions, parameters of a workload."""

from typing import Annotated, Literal

from pydantic import Field, StrictFloat

from simfs.scenario.sections.quantity import Evidence, Quantity
from simfs.scenario.sections.section import Section

Class = Literal["atomic", "unlock", "indirect", "user", "mask", "return", "fetch", "overlap"]
"""Instructions that cost a machine more than others do: locked ones, releases of spinlocks, jumps through a register,
accesses to the user's memory, masks of interrupts; and what others cost besides: `return`, returns by a thunk, `fetch`,
lines of code that the core's L1 does not have, `overlap`, bytes that a string move copies less than a line away."""


class Filesystem(Section):
    """A filesystem's costs, named ``<group>.<step>`` after the traces they are from (`models/traces`).

    The value is the processor time since the previous step of the group: the work that ends at this step.
    """

    name: str
    title: str
    constants: dict[str, Quantity] = Field(default_factory=dict)
    costs: dict[str, Quantity]

    def spec(self) -> dict[str, float]:
        """Return `filesystem.costs` of a RunSpec: ns, or the plain count of a constant."""
        return {name: quantity.plain for name, quantity in (self.constants | self.costs).items()}


ClassCounts = dict[Class | Literal["instructions"], Annotated[StrictFloat, Field(ge=0)]]
"""Of a step; `instructions` are all that it had where its classes were counted."""


class Classes(Section):
    """How many instructions of each class steps have, by step; `spread` is the range of all, relative to the number."""

    source: Annotated[str, Field(min_length=8)]
    evidence: Evidence
    spread: Annotated[StrictFloat, Field(ge=0, le=1)]
    steps: dict[str, ClassCounts]


class Counted(Section):
    """How many instructions steps of a filesystem are, by the names of their costs and constants."""

    name: str
    title: str
    steps: dict[str, Quantity]
    classes: Classes | None = None

    @property
    def of_classes(self) -> dict[str, ClassCounts]:
        """How many instructions of each class a step has, none where they were not classed."""
        return self.classes.steps if self.classes else {}


class Workload(Section):
    """A workload's parameters."""

    name: str
    title: str
    params: dict[str, Quantity]

    def spec(self) -> dict[str, float]:
        """Return `workload.params` of a RunSpec: times in ns, all else in its own unit."""
        return {name: quantity.plain for name, quantity in self.params.items()}
