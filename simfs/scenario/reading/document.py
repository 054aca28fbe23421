"""YAML as plain data that remembers where each key and value was written.

The data is built from the composed YAML nodes, not by a YAML constructor: that gives the place of everything,
finds all duplicate keys, and leaves nothing in the file that could run code or grow without bound.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.resolver import VersionedResolver

from simfs.scenario.problems import Problem, ScenarioError
from simfs.scenario.reading.files import FileError, is_stream, read
from simfs.scenario.sections.section import shorten

MAX_DEPTH = 20
MAX_NODES = 20_000
MAX_OPENINGS = 5_000
MAX_EXPLAINED = 1 << 16

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters, which could be orders to a terminal, and halves of surrogate pairs."""

PLAINER = {
    "found character '\\t' that cannot start any token": "a tab; YAML is indented with spaces",
    "mapping values are not allowed here": "a ': ' where none may be (a text with one needs quotes; or is the "
    "indentation wrong?)",
    "but found another document": "a second document begins here, with '---'; a file has one",
}
"""What the parser says of the commonest slips, in plain words."""

Path_ = tuple[str | int, ...]
"""Where something is in the data: keys and list indices from the top."""


@dataclass(frozen=True)
class Place:
    """Where a key and its value were written, each as `file:line:column` or as a `--set` option."""

    key: str
    value: str


@dataclass
class Document:
    """Nested dicts, lists and scalars, and the place of each."""

    name: str
    data: dict[str, Any]
    places: dict[Path_, Place] = field(default_factory=dict)
    text: str = ""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a YAML file; raise `ScenarioError` for whatever is wrong with it."""
        return cls.parse(_read_text(path), str(path))

    @classmethod
    def parse(cls, text: str, name: str) -> Self:
        """Parse YAML `text`; `name` stands for the file in messages."""
        data, places = parse_value(text, name)
        if not isinstance(data, dict):
            raise ScenarioError(
                [Problem(f"{name}:1:1", f"expected a mapping (key: value), got {shorten(data)}")]
            )
        return cls(name, data, places, text)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Take nested mappings and lists of Python; places are what one would write to get there."""
        try:
            text = json.dumps(data, indent=1, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ScenarioError([Problem("dict", f"is not plain data: {shorten(error)}")]) from None
        built = cls.parse(text, "dict")
        named = {path: "dict" + "".join(f"[{step!r}]" for step in path) for path in built.places}
        return cls("dict", built.data, {path: Place(name, name) for path, name in named.items()}, text)

    @property
    def folder(self) -> Path:
        """What the names of files in this one are relative to."""
        return Path() if is_stream(Path(self.name)) else Path(self.name).parent

    def copy(self, without: Collection[str] = ()) -> Document:
        """Return a copy that can be changed without changing this one, `without` some of its sections."""
        data = {key: _copied(value) for key, value in self.data.items() if key not in without}
        return Document(self.name, data, dict(self.places), self.text)

    @property
    def is_dataset(self) -> bool:
        """Whether it is meant as a data set, which is no scenario."""
        return "rows" in self.data and "simfs" not in self.data

    def place_of(self, path: Path_) -> Place:
        """Return the place of `path`, or of the nearest thing around it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path) or Place(f"{self.name}:1:1", f"{self.name}:1:1")

    def locate(self, location: Path_) -> Path_:
        """Return the longest existing path that follows `location`, skipping steps the data does not have."""
        path: Path_ = ()
        for step in location:
            if (*path, step) in self.places:
                path = (*path, step)
        return path


def _copied(value: Any) -> Any:  # noqa: ANN401
    """Nested dicts and lists once more, which `deepcopy` takes several times as long for."""
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    return [_copied(part) for part in value] if isinstance(value, list) else value


def parse_value(text: str, name: str) -> tuple[object, dict[Path_, Place]]:
    """Parse any YAML value; return it with the place of each part. Raise `ScenarioError`."""
    builder = _Builder(name)
    root = _compose(text, name)
    if root is None:
        raise ScenarioError([Problem(f"{name}:1:1", "is empty")])
    builder.places[()] = Place(builder.at(root), builder.at(root))
    data = builder.build(root, ())
    if builder.problems:
        raise ScenarioError(builder.problems)
    return data, builder.places


def _compose(text: str, name: str) -> Node | None:
    """Compose with libyaml, many times as fast as the parser in Python, which tells better what is wrong."""
    # libyaml's nodes are built by recursion without a limit: what could overflow the stack is not for it.
    if sum(map(text.count, ("[", "{", "?", "- "))) > MAX_OPENINGS:
        _refuse_endless(text, name)
    with suppress(Exception):
        parser = YAML(typ="safe")
        parser.Resolver = _Resolver
        node: Node | None = parser.compose(text)
        return node
    _refuse_endless(text, name)
    # The parser in Python takes a minute for a megabyte.
    return _explained(YAML(typ="safe", pure=len(text) <= MAX_EXPLAINED), text, name)


def _refuse_endless(text: str, name: str) -> None:
    """Refuse what is nested too deep or too long, by libyaml's events, which come one by one."""
    depth, mark = 0, None
    with suppress(Exception):  # what is not YAML is for others to tell
        for number, event in enumerate(YAML(typ="safe").parse(text)):
            depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
            if depth > MAX_DEPTH + 1 or number > 3 * MAX_NODES:
                mark = event.start_mark
                break
    if mark is not None:
        what = (
            f"is nested more than {MAX_DEPTH} deep"
            if depth > MAX_DEPTH
            else f"has more than {MAX_NODES} values"
        )
        raise ScenarioError([Problem(f"{name}:{mark.line + 1}:{mark.column + 1}", what)])


def _explained(parser: YAML, text: str, name: str) -> Node | None:
    try:
        with warnings.catch_warnings(action="ignore"):
            node: Node | None = parser.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else f"{name}:1:1"
        reason = error.problem or error.context or "cannot be read"
        raise ScenarioError(
            [Problem(at, f"not valid YAML: {PLAINER.get(reason) or shorten(reason)}")]
        ) from None
    except ReaderError as error:
        at = _position(text, error.position, name)
        raise ScenarioError([Problem(at, "has a control character, which YAML does not allow")]) from None
    # The parser fails in its own ways on some malformed input (a bad %YAML directive, a bad escape).
    except RecursionError:  # libyaml stopped before it came so deep, the parser in Python did not
        raise ScenarioError([Problem(f"{name}:1:1", f"is nested more than {MAX_DEPTH} deep")]) from None
    except (YAMLError, ValueError, TypeError, AttributeError, IndexError, KeyError, AssertionError) as error:
        raise ScenarioError([Problem(f"{name}:1:1", f"not valid YAML: {shorten(error)}")]) from None
    return node


class _Resolver(VersionedResolver):
    """Says once of each text what it stands for: models repeat their words. For libyaml, which knows one version."""

    def __init__(self, version: Any = None, loader: Any = None, loadumper: Any = None) -> None:  # noqa: ANN401
        super().__init__(version, loader, loadumper)
        self._rules = super().versioned_resolver
        self._told: dict[tuple[str, tuple[bool, bool]], Any] = {}

    @property
    def versioned_resolver(self) -> Any:  # noqa: ANN401
        return self._rules

    def resolve(self, kind: type[Node], value: str, implicit: tuple[bool, bool]) -> Any:  # noqa: ANN401
        if kind is not ScalarNode:
            return super().resolve(kind, value, implicit)
        if (value, implicit) not in self._told:
            self._told[value, implicit] = super().resolve(kind, value, implicit)
        return self._told[value, implicit]


class _Builder:
    """Turns YAML nodes into data, and notes places and problems on the way."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.places: dict[Path_, Place] = {}
        self.problems: list[Problem] = []
        self._nodes = 0

    def at(self, node: Node) -> str:
        return f"{self.name}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"

    def build(self, node: Node, path: Path_) -> object:
        self._nodes += 1
        # Aliases make a small file a huge or an endless tree; both ends are cut here.
        if self._nodes > MAX_NODES:
            raise ScenarioError([Problem(self.at(node), f"has more than {MAX_NODES} values")])
        if len(path) > MAX_DEPTH:
            raise ScenarioError([Problem(self.at(node), f"is nested more than {MAX_DEPTH} deep")])
        if isinstance(node, MappingNode):
            return dict(self._items(node, path))
        if isinstance(node, SequenceNode):
            places = [Place(self.at(item), self.at(item)) for item in node.value]
            return [self._child(item, (*path, i), places[i]) for i, item in enumerate(node.value)]
        return self._scalar(node)

    def _items(self, node: MappingNode, path: Path_) -> Iterator[tuple[str, object]]:
        seen: set[str] = set()
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode) or _UNPRINTABLE.search(key_node.value):
                self._refuse(key_node, "a key must be a plain word")
            elif key_node.value == "<<":
                self._refuse(key_node, "merge keys (<<) are not supported: use variants")
            elif key_node.value in seen:
                self._refuse(key_node, f"duplicate key '{shorten(key_node.value)}'")
            else:
                seen.add(key_node.value)
                key_at = self.at(key_node)
                # The parser puts a value that is not there where the next thing begins.
                empty = isinstance(value_node, ScalarNode) and not value_node.value and not value_node.style
                place = Place(key_at, key_at if empty else self.at(value_node))
                yield key_node.value, self._child(value_node, (*path, key_node.value), place)

    def _child(self, node: Node, path: Path_, place: Place) -> object:
        self.places[path] = place
        return self.build(node, path)

    def _scalar(self, node: Node) -> object:
        kind, text = str(node.tag).removeprefix("tag:yaml.org,2002:"), node.value
        if unprintable := _UNPRINTABLE.search(text):
            return self._refuse(node, f"has the character {unprintable[0]!a}, which cannot be printed")
        if kind in ("str", "timestamp"):
            return text
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() in ("true", "yes", "on", "y")
        if kind in ("int", "float"):
            return self._number(node, text)
        return self._refuse(node, f"the tag {shorten(node.tag)} is not supported")

    def _number(self, node: Node, text: str) -> object:
        try:
            number = _as_number(text.replace("_", ""))
        except ValueError:
            return text
        if isinstance(number, float) and not math.isfinite(number):
            return self._refuse(node, f"{text} is not a number that can be used here")
        if abs(number) >= 1e30:
            return self._refuse(node, "the number is too large")
        return number

    def _refuse(self, node: Node, message: str) -> object:
        self.problems.append(Problem(self.at(node), message))
        return None


def _as_number(text: str) -> int | float:
    if len(text) > 100:
        return 10**30
    for base in (10, 0):
        with suppress(ValueError):
            return int(text, base)
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


def _read_text(path: Path) -> str:
    name = str(path)
    try:
        content = read(path)
    except FileError as error:
        raise ScenarioError([Problem(shorten(name), str(error))]) from None
    if b"\0" in content:
        raise ScenarioError([Problem(name, "is a binary file, not YAML text")])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = _position(content[: error.start].decode("utf-8", "replace"), error.start, name)
        raise ScenarioError([Problem(at, "is not UTF-8 text")]) from None


def _position(text: str, offset: int, name: str) -> str:
    before = text[:offset]
    return f"{name}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
