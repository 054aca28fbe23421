"""The traced sequences of steps (`models/traces`), put together with the steps that programs read."""

from __future__ import annotations

from functools import cache
from typing import Literal

from pydantic import Field

from simfs.scenario.models import load_filesystem
from simfs.scenario.paths import MODELS
from simfs.scenario.reading.document import Document
from simfs.scenario.sections.quantity import Quantity
from simfs.scenario.sections.section import Section


class Group(Section):
    """One traced sequence of steps: what was done, how common it was, and what the tracer cost an event."""

    what: str
    context: Literal["task", "kworker"]
    share: Quantity | None = None
    tracer_per_event: Quantity | None = None
    order: tuple[str, ...]


class Trace(Section):
    """The sequences of a filesystem, and the steps in them that no program reads."""

    name: str
    title: str
    groups: dict[str, Group] = Field(default={})
    steps: dict[str, Quantity] = Field(default={})

    def group(self, name: str) -> dict[str, float]:
        """The steps of one sequence in order, in ns."""
        known = {**load_filesystem(self.name).costs, **self.steps}
        return {step: known[f"{name}.{step}"].ns for step in self.groups[name].order}


@cache
def load_trace(name: str) -> Trace:
    return Trace.model_validate(Document.read(MODELS / "traces" / f"{name}.yaml").data)
