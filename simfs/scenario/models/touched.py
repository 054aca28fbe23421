"""The lines of code and data that calls touch, by `models/touched.yaml`."""

from __future__ import annotations

from functools import cache
from typing import Any

from simfs.scenario.paths import MODELS
from simfs.scenario.reading.document import Document
from simfs.scenario.sections.quantity import Lines, Pages
from simfs.scenario.sections.section import Section, Text

FILE = MODELS / "touched.yaml"


class Body(Section):
    """Lines that just these kinds of calls touch, by their sites, and pages of data."""

    calls: tuple[Text, ...]
    lines: Lines
    pages: Pages | None = None


class Touched(Section):
    """The bodies of all calls that were counted, by filesystem; all have one source."""

    counted: Text
    filesystems: dict[str, tuple[Body, ...]]


@cache
def load_touched() -> Touched:
    """Load the file."""
    return Touched.model_validate(Document.read(FILE).data)


def touched(kind: str) -> list[dict[str, Any]]:
    """Return `machine.caches.bodies` of a RunSpec with a filesystem of this kind."""
    found = load_touched().filesystems.get(kind, ())
    return [
        {
            "calls": list(body.calls),
            "lines": body.lines.value,
            "pages": body.pages.value if body.pages else 0.0,
        }
        for body in found
    ]
