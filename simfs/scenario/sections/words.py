"""JSON schemas that are made from the engine's vocabulary when they are asked for, so that models load without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from simfs.scenario.sections.section import refusal, shorten
from simfs.scenario.suggest import nearest, some
from simfs.vocabulary import Vocabulary, vocabulary

Pick = Callable[[Vocabulary], Iterable[str]]


class OneOf:
    """Take only one of the words that `pick` finds in the vocabulary."""

    def __init__(self, pick: Pick) -> None:
        """Nothing is looked up before a word is checked."""
        self.pick = pick

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check after it is found to be a string."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """An enumeration."""
        return {"type": "string", "enum": list(self.pick(vocabulary()))}

    def _check(self, word: str) -> str:
        known = list(self.pick(vocabulary()))
        if word not in known:
            raise refusal(f"{shorten(word)} is not one of {some(word, known)}", nearest(word, known))
        return word


class Named:
    """Show the names that a mapping may have; `simfs.scenario.checks.names` refuses all others.

    With `others` it may have names that nobody can know before.
    """

    def __init__(self, pick: Pick, *, others: bool = False) -> None:
        """Nothing is looked up before a schema is made."""
        self.pick = pick
        self.others = others

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The mapping's schema, with its names."""
        names: dict[str, Any] = {"enum": sorted(self.pick(vocabulary()))}
        return {
            **handler(core),
            "propertyNames": {"anyOf": [names, {"type": "string"}]} if self.others else names,
        }


class Schema:
    """Show this schema."""

    def __init__(self, make: Callable[[Vocabulary], dict[str, Any]]) -> None:
        """Nothing is looked up before the schema is made."""
        self.make = make

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """It, whatever the type's own would be."""
        return self.make(vocabulary())
