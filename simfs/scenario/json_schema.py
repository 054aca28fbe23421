"""The scenario language as JSON Schema, for editors and for reference."""

from __future__ import annotations

from typing import Any

from simfs.scenario.models import load_workload
from simfs.scenario.schema import SECTIONS, VERSION, Scenario
from simfs.vocabulary import vocabulary


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a scenario file, with descriptions and units."""
    schema = Scenario.model_json_schema()
    for section in schema["$defs"].values():
        _name_parameters(section.get("properties", {}))
    _let_extend(schema)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"simfs scenario, version {VERSION}",
        **{key: value for key, value in schema.items() if key != "title"},
    }


def _let_extend(schema: dict[str, Any]) -> None:
    """A scenario that extends another need not be whole: its sections say what differs, as those of variants do."""
    own, required = schema["properties"], schema.pop("required")
    differing = schema["$defs"]["Variant"]["properties"]
    whole = {"properties": {key: own[key] for key in SECTIONS}, "required": required}
    schema["properties"] = own | {
        key: {"description": differing[key].get("description", "")} for key in SECTIONS
    }
    part = {"properties": {key: {"anyOf": [differing[key], {"type": "null"}]} for key in SECTIONS}}
    schema |= {"if": {"required": ["extends"]}, "then": part | {"required": ["simfs"]}, "else": whole}


def _name_parameters(properties: dict[str, Any]) -> None:
    """Say which `params` a kind of workload has: those of its profile."""
    kind = properties.get("kind", {}).get("const")
    if "params" in properties and kind in vocabulary().params:
        properties["params"]["propertyNames"] = {"enum": sorted(load_workload(kind).params)}
