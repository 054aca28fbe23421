"""The scenario language as JSON Schema, for editors and for reference."""

from __future__ import annotations

from typing import Any

from simfs.scenario.models import load_workload
from simfs.scenario.schema import VERSION, Scenario
from simfs.vocabulary import vocabulary


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a scenario file, with descriptions and units."""
    schema = Scenario.model_json_schema()
    for section in schema["$defs"].values():
        _name_parameters(section.get("properties", {}))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"simfs scenario, version {VERSION}",
        **{key: value for key, value in schema.items() if key != "title"},
    }


def _name_parameters(properties: dict[str, Any]) -> None:
    """Say which `params` a kind of workload has: those of its profile."""
    kind = properties.get("kind", {}).get("const")
    if "params" in properties and kind in vocabulary().params:
        properties["params"]["propertyNames"] = {"enum": sorted(load_workload(kind).params)}
