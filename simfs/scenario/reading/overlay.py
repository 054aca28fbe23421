"""Laying settings over a scenario: variants, sweep values and `--set` options all go through here."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from simfs.scenario.problems import Problem, ScenarioError
from simfs.scenario.reading.document import Document, Path_, Place, parse_value
from simfs.scenario.schema import KINDS
from simfs.scenario.sections.draws import ARRIVALS, SHAPES
from simfs.scenario.sections.section import shorten
from simfs.scenario.suggest import nearest

_NAMES_WITH_DOTS = {("locks",), ("sweep",), ("workload", "params"), ("kernel", "rules")} | {
    (section, table) for section in ("kernel", "filesystem") for table in ("costs", "constants")
}
_WITH_SECTIONS = (("variants",), ("groups",), ("points",))
_WORDS = {"machine": "profile", "kernel": "profile", "device": "profile", "measured": "dataset"}


def split_key(key: str) -> Path_:
    """Split a dotted key; names of lock roles, costs and swept keys keep their own dots."""
    path: tuple[str, ...] = ()
    rest = key
    while "." in rest and _in_sections(path) not in _NAMES_WITH_DOTS:
        head, rest = rest.split(".", 1)
        path = (*path, head)
    return (*path, rest)


def _in_sections(path: tuple[str, ...]) -> tuple[str, ...]:
    """The path as from the sections, of which entries of some lists have their own: `variants.NAME.locks`."""
    return path[2:] if path[:1] in _WITH_SECTIONS else path


LISTS = ("variants", "groups", "points", "calibrate", "expect")
"""Keys of a scenario that hold a list; an option can change an entry, but not begin one."""


def set_option(document: Document, option: str) -> None:
    """Apply one `--set KEY=VALUE` to the scenario in `document`; raise `ScenarioError`."""
    where = f"--set {shorten(option)}"
    key, equals, text = option.partition("=")
    if not equals or not key or not text.strip():
        raise ScenarioError([Problem(where, "write it as KEY=VALUE, for example workload.tasks=24")])
    try:
        value, _ = parse_value(text, where)
    except ScenarioError as error:
        raise ScenarioError(Problem(where, p.message, p.suggestion) for p in error.problems) from None
    path = split_key(key.strip())
    if len(path) > 1 and path[0] in LISTS and document.data.get(str(path[0])) is None:
        raise ScenarioError([Problem(where, f"the scenario has no {path[0]}")])
    assign(document, path, value, Place(where, where))
    swept = document.data.get("sweep")
    if isinstance(swept, dict):
        # One fixed value is what was asked for, so the key is not swept any more.
        swept.pop(key.strip(), None)


def lay_over(document: Document, changes: dict[str, Any], origin: Path_) -> None:
    """Lay nested `changes`, which stand at `origin` in the same document, over its data."""
    for path, value in leaves(changes):
        assign(document, path, value, document.place_of((*origin, *path)))


def assign(document: Document, path: Path_, value: object, place: Place) -> None:
    """Set one value; a new `kind` of a section keeps only what both kinds know. Raise `ScenarioError`."""
    holder: Any = document.data
    steps: Path_ = ()  # with the numbers of entries for their names, as places have them
    for depth in range(len(path) - 1):
        steps = (*steps, _step(holder, path[depth], place))
        widen_word(document, holder, steps)
        holder = _enter(holder, path[: depth + 2], place)
    last = _step(holder, path[-1], place)
    if isinstance(holder, dict) and last == "kind" and len(path) == 2:
        _keep_common(holder, str(path[0]), value)
    if (
        last in (*SHAPES, *ARRIVALS)
        and path[0] == "workload"
        and isinstance(holder, dict)
        and last not in holder
    ):
        holder.clear()
    holder[last] = value
    resolved = (*steps, last)
    deep = len(resolved)
    for stale in [known for known in document.places if known[:deep] == resolved]:
        del document.places[stale]
    document.places[resolved] = place
    for depth in range(1, len(path)):
        document.places.setdefault(resolved[:depth], place)  # of sections that were not there before


def widen_word(document: Document, holder: object, path: Path_) -> None:
    """Write out `machine: NAME`, in `holder`, as `machine: {profile: NAME}`, so that keys can be laid over it."""
    name = str(path[-1])
    is_section = len(path) == 1 or (len(path) == 3 and path[0] in ("variants", "groups"))
    key = _WORDS.get(name) if is_section else None
    if key and isinstance(holder, dict) and isinstance(word := holder.get(name), str):
        holder[name] = {key: word}
        document.places[*path, key] = document.place_of(path)


def words(section: str, value: object) -> object:
    """Write out what a plain word stands for in a section: `NAME` as `{profile: NAME}`."""
    key = _WORDS.get(section)
    return {key: value} if key and isinstance(value, str) else value


def leaves(changes: dict[str, Any], path: tuple[str, ...] = ()) -> list[tuple[Path_, Any]]:
    """Return every value in nested `changes` with its path."""
    found: list[tuple[Path_, Any]] = []
    # The kind goes first: it decides which of the older keys stay; so does the shape of what is drawn, before its cv.
    for key in sorted(changes, key=lambda key: (key != "kind", key == "cv")):
        value, here = changes[key], (*path, key)
        found += leaves(value, here) if isinstance(value, dict) and value else [(here, value)]
    return found


def _keep_common(section: dict[str, Any], name: str, kind: object) -> None:
    new = KINDS.get(name, {}).get(kind) if isinstance(kind, str) else None
    if new is None or section.get("kind") == kind:
        return
    # Costs and parameters belong to the profile of the old kind.
    kept = set(new.model_fields) - {"costs", "params", "profile"}
    for key in set(section) - kept:
        if any(key in known.model_fields for known in KINDS[name].values()):
            del section[key]
    was = section.get("kind")
    old = KINDS[name].get(was) if isinstance(was, str) else None
    if old is None:
        return
    for key in set(section) & kept & set(old.model_fields) - {"kind"}:
        if _takes(old, key, section[key]) and not _takes(new, key, section[key]):
            del section[key]


def _takes(kind: type[BaseModel], key: str, value: object) -> bool:
    """Whether a key can have this value; that of another kind may not (`sync` of `fs_mark` and of `dbench`)."""
    try:
        _values_of(kind, key).validate_python(value)
    except ValidationError:
        return False
    return True


@cache
def _values_of(kind: type[BaseModel], key: str) -> TypeAdapter[Any]:
    field = kind.model_fields[key]
    taken: Any = Annotated[field.annotation, field]
    return TypeAdapter(taken)


def _enter(holder: Any, path: Path_, place: Place) -> object:  # noqa: ANN401 - any level of YAML data
    """Return what is at the last step of `path` but one; the last step is what is wanted of it."""
    *before, step, wanted = path
    at: Any = _step(holder, step, place)
    inner = holder[at] if isinstance(holder, list) else holder.get(at)
    is_time = path[0] == "workload" and wanted in SHAPES and isinstance(inner, (str, int))
    if inner is None and path[0] == "workload" and step in ARRIVALS:
        holder.clear()  # requests arrive in one way
    if inner is None or is_time:
        holder[at] = inner = {}
    if not isinstance(inner, (dict, list)):
        dotted = ".".join(map(str, (*before, step)))
        raise ScenarioError([Problem(place.key, f"{dotted} is a single value and has no keys")])
    return inner


def _step(holder: object, step: str | int, place: Place) -> str | int:
    return _index(holder, step, place) if isinstance(holder, list) else step


def _index(items: list[Any], step: str | int, place: Place) -> int:
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    if step in names:
        return names.index(step)
    if str(step).isdecimal() and int(step) < len(items):
        return int(step)
    known = [name for name in names if isinstance(name, str)]
    raise ScenarioError([Problem(place.key, f"there is no entry '{shorten(step)}'", nearest(step, known))])


def plain_value(value: object) -> bool | int | float | str:
    """Return a swept value as results show it: scalars as they are, null as 'null', anything else as text."""
    if value is None:
        return "null"
    return value if isinstance(value, (bool, int, float, str)) else str(value)
