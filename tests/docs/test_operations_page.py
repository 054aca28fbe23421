"""The page of operations says of each operation on which filesystem it runs, and why it does not."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from places import ROOT

from simfs.scenario.checks.operations import REFUSED
from simfs.vocabulary import vocabulary

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        operations: Any = importlib.import_module("site_parts.operations")
        table = [
            line.strip("| ").split(" | ") for line in operations.page().splitlines() if line.startswith("| ")
        ]
    head = table[0][1:]
    return {row[0]: dict(zip(head, row[1:], strict=True)) for row in table[2:]}


def test_every_operation_has_a_row(rows: dict[str, dict[str, str]]) -> None:
    assert {f"`{name}`" for name in vocabulary().operations} <= set(rows)


@pytest.mark.parametrize("filesystem", ["xfs", "btrfs", "ext4", "tmpfs"])
def test_what_is_not_refused_is_there(rows: dict[str, dict[str, str]], filesystem: str) -> None:
    """That these run is in test_mixes, where all operations that a filesystem has are done together."""
    there = {name for name in vocabulary().operations if rows[f"`{name}`"][filesystem] == "yes"}
    assert there == {name for name in vocabulary().operations if (name, filesystem) not in REFUSED}
    several = rows["direct reads, several under way (fio)"][filesystem]
    assert several == ("tmpfs has no requests: nobody waits for any" if filesystem == "tmpfs" else "yes")
