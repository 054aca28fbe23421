"""A machine profile as YAML, in the form of `models/machines`, written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from simfs.scenario.models import Machine, load_machine
from simfs.scenario.sections.quantity import Quantity
from simfs.scenario.sections.section import Section


def as_yaml(machine: Machine, remarks: Sequence[str]) -> str:
    """The text of a profile; remarks stand above it."""
    return "\n".join([*(f"# {remark}" for remark in remarks), *_lines(machine), ""])


def write_profile(machine: Machine, remarks: Sequence[str], path: Path) -> None:
    """Write a profile that has been loaded once; raise `ScenarioError` for one that does not load, and OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".yaml")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(as_yaml(machine, remarks))
        os.chmod(draft, 0o644)
        load_machine(draft)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


def _lines(machine: Machine) -> Iterator[str]:
    yield f"name: {_text(machine.name)}"
    yield f"title: {_text(machine.title)}"
    for name in ("topology", "costs", "caches"):
        section = getattr(machine, name)
        if section is not None:
            yield from _section(name, section)
    if machine.memory is not None:
        yield f"memory: {_quantity(machine.memory)}"
    if machine.micro:
        yield "micro:"
        yield from (f"  {_text(key)}: {_quantity(q)}" for key, q in machine.micro.items())
    yield "idle_states:"
    for state in machine.idle_states:
        yield f"  - name: {_text(state.name)}"
        yield from (f"    {key}: {_quantity(q)}" for key, q in state if isinstance(q, Quantity))
    yield f"watts_active: {_quantity(machine.watts_active)}"
    yield f"watts_spin: {_quantity(machine.watts_spin)}"


def _section(name: str, section: Section) -> Iterator[str]:
    yield f"{name}:"
    yield from (f"  {key}: {_quantity(q)}" for key, q in section if isinstance(q, Quantity))


def _quantity(q: Quantity) -> str:
    low, high = (_number(x) for x in q.range)
    return (
        f"{{value: {_number(q.value)}, unit: {q.unit}, range: [{low}, {high}], "
        f"evidence: {q.evidence}, source: {json.dumps(q.source, ensure_ascii=False)}}}"
    )


def _number(x: float) -> str:
    return f"{int(x)}" if x == int(x) else f"{x!r}"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
