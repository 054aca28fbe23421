"""The scenario language as JSON Schema, for editors and for reference."""

from __future__ import annotations

from typing import Any

from simfs.scenario.schema import VERSION, Scenario


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a scenario file, with descriptions and units."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"simfs scenario, version {VERSION}",
        **{key: value for key, value in Scenario.model_json_schema().items() if key != "title"},
    }
