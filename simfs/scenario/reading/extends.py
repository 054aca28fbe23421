"""`extends:` in a scenario: what another one says, with this one laid over it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from simfs.scenario import paths
from simfs.scenario.problems import Problem, ScenarioError
from simfs.scenario.reading.document import Document, Path_
from simfs.scenario.reading.overlay import assign, leaves, widen_word, words
from simfs.scenario.schema import SECTIONS
from simfs.scenario.sections.section import shorten
from simfs.scenario.suggest import nearest

MOST = 10
"""Scenarios in a row that extend each other."""


def extended(
    document: Document, prepare: Callable[[Document], None], below: tuple[Path, ...] = ()
) -> Document:
    """Return `document` laid over the scenario that it extends, and so on down; places stay those of each file.

    `prepare` is called with each scenario that is extended. Raises `ScenarioError`, also where one extends itself.
    """
    if "extends" not in document.data:
        return document
    chain = (*below, Path(document.name).resolve())
    path = _base(document, chain)
    base = Document.read(path)
    prepare(base)
    base = extended(base, prepare, chain)
    merged = Document(document.name, base.data, base.places, document.text)
    for key in document.data:
        _lay(merged, document, key)
    merged.data.pop("extends", None)
    return merged


def _base(document: Document, chain: tuple[Path, ...]) -> Path:
    name, at = document.data["extends"], document.place_of(("extends",)).value
    if not isinstance(name, str):
        raise ScenarioError(
            [Problem(at, f"extends: expected a scenario's name or file, got {shorten(name)}")]
        )
    found = None if "\0" in name else _found(name, document.folder)
    if found is None:
        known = paths.names(paths.SCENARIOS)
        what = f"there is no scenario '{shorten(name)}' to extend"
        raise ScenarioError([Problem(at, what, nearest(Path(name).stem, known))])
    if (again := found.resolve()) in chain:
        ring = " -> ".join(each.name for each in (*chain[chain.index(again) :], again))
        raise ScenarioError([Problem(at, f"a scenario cannot extend itself: {ring}")])
    if len(chain) > MOST:
        raise ScenarioError([Problem(at, f"more than {MOST} scenarios in a row extend each other")])
    return found


def _found(name: str, folder: Path) -> Path | None:
    if paths.is_name(name):
        return paths.find(name, paths.SCENARIOS)
    path = folder / name
    return path if paths.exists(path) and path.is_file() else None


def _lay(merged: Document, over: Document, key: str) -> None:
    value, own = over.data[key], merged.data.get(key)
    if value is None:
        merged.data.pop(key, None)
    elif key in (*SECTIONS, "measure"):
        widen_word(merged, merged.data, (key,))
        for path, leaf in leaves({key: words(key, value)}):
            _graft(merged, path, leaf, over, path)
    elif key == "variants" and isinstance(value, list) and isinstance(own, list):
        for number, variant in enumerate(value):
            _lay_variant(merged, over, number, variant)
    elif key == "sweep" and isinstance(value, dict) and isinstance(own, dict):
        for swept, values in value.items():
            _graft(merged, (key, swept), values, over, (key, swept))
        merged.data[key] = {swept: values for swept, values in merged.data[key].items() if values is not None}
    else:
        _graft(merged, (key,), value, over, (key,))


def _lay_variant(merged: Document, over: Document, number: int, variant: Any) -> None:  # noqa: ANN401
    there = [each.get("name") if isinstance(each, dict) else None for each in merged.data["variants"]]
    name = variant.get("name") if isinstance(variant, dict) else None
    if name is None or name not in there:
        merged.data["variants"].append(None)
        _graft(merged, ("variants", len(there)), variant, over, ("variants", number))
        return
    index = there.index(name)
    changes: dict[str, Any] = {key: words(key, value) for key, value in dict(variant).items()}
    for path, leaf in leaves(changes):
        _graft(merged, ("variants", index, *path), leaf, over, ("variants", number, *path))


def _graft(merged: Document, path: Path_, value: object, over: Document, origin: Path_) -> None:
    """Set one value of `over`, with the places of all that is in it."""
    assign(merged, path, deepcopy(value), over.place_of(origin))
    for known, place in over.places.items():
        if known[: len(origin)] == origin and len(known) > len(origin):
            merged.places[(*path, *known[len(origin) :])] = place
