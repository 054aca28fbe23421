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
class Vocabulary:
    """All words."""

    lock_kinds: tuple[str, ...]
    rules: Mapping[str, Rule]

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
        rules={rule.name: rule for rule in rules},
    )
