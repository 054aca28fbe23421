"""The JSON Schema agrees with what is loaded."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from simfs.scenario import paths
from simfs.scenario.json_schema import json_schema
from simfs.scenario.reading.document import Document

SHIPPED = sorted(paths.SCENARIOS.glob("*.yaml"))


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenarios_fit_the_schema(path: Path, validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(Document.read(path).data)


@pytest.mark.parametrize("name", ["compile-24", "lock-cycle"])
def test_the_schema_refuses_unknown_keys_and_bare_numbers(
    name: str, validator: jsonschema.Draft202012Validator
) -> None:
    data = Document.read(paths.SCENARIOS / f"{name}.yaml").data
    assert not validator.is_valid({**data, "titel": "x"})
    assert not validator.is_valid({**data, "measure": {"duration": 3}})


def test_every_key_has_a_description() -> None:
    schema = json_schema()
    for name, section in schema["$defs"].items():
        assert section.get("description"), name
        for key, value in section.get("properties", {}).items():
            if (
                "const" not in value
                and "$ref" not in value
                and key not in ("series", "metric", "x", "title", "name")
            ):
                assert value.get("description"), f"{name}.{key}"
