"""The words that the engine reads: schema, completion and refusals are made from them, and none is written twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

Value = bool | str
"""What a rule of a kernel can be."""


@dataclass(frozen=True)
class Rule:
    """A rule of kernels: what it is about, its values, those of older kernels first, and the engine's default."""

    name: str
    about: str
    values: tuple[Value, ...]
    default: Value


@dataclass(frozen=True)
class Param:
    """A parameter of a workload: a number unless it has `words`."""

    name: str
    required: bool = False
    default: float | str | None = None
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Vocabulary:
    """All words."""

    lock_kinds: tuple[str, ...]
    roles: Mapping[str, str]
    """Role of a lock -> what it guards."""
    rules: Mapping[str, Rule]
    constants: frozenset[str]
    """Of lock code and scheduler."""
    operations: tuple[str, ...]
    """Of a mix."""
    costs: Mapping[str, frozenset[str]]
    """Kind of filesystem -> the costs that it reads."""
    params: Mapping[str, Mapping[str, Param]]
    """Kind of workload -> its parameters."""

    @property
    def defaults(self) -> dict[str, Value]:
        """The value of each rule where a spec does not say."""
        return {name: rule.default for name, rule in self.rules.items()}


@cache
def vocabulary() -> Vocabulary:
    """Return the engine's words; raise `ImportError` where it is not built."""
    words: dict[str, Any] = json.loads(import_module("simfs._engine").vocabulary())
    rules = [Rule(r["name"], r["about"], tuple(r["values"]), r["default"]) for r in words["rules"]]
    return Vocabulary(
        lock_kinds=tuple(kind["name"] for kind in words["lock_kinds"]),
        roles={role["name"]: role["about"] for role in words["roles"]},
        rules={rule.name: rule for rule in rules},
        constants=frozenset(words["constants"]),
        operations=tuple(words["operations"]),
        costs={kind: frozenset(names) for kind, names in words["costs"].items()},
        params={kind: {p["name"]: Param(**p) for p in params} for kind, params in words["params"].items()},
    )
