"""Directories of XFS with blocks of 4 to 64 KiB (`mkfs.xfs -n size=`), beside those that a real kernel has made."""

from __future__ import annotations

import json
from typing import Any

import pytest
from places import DATA
from ruamel.yaml import YAML

from simfs import _engine
from simfs.scenario.sections.filesystem import DIRECTORY_BLOCKS

TABLE: dict[str, Any] = YAML(typ="safe").load(DATA / "xfs-dirblksize.yaml")
ROWS: list[dict[str, int]] = [dict(zip(TABLE["columns"], row, strict=True)) for row in TABLE["rows"]]


def made(dirblksize: int, names: int, keep: int) -> dict[str, int]:
    """Blocks of a directory in which so many names were made, and all but each `keep`-th removed."""
    steps: list[dict[str, Any]] = [{"op": "mkdir", "name": "d"}]
    steps += [{"op": "create", "dir": 0, "name": f"f{n:07}"} for n in range(names)]
    steps += [{"op": "unlink", "dir": 0, "name": f"f{n:07}"} for n in range(names) if keep and n % keep]
    request = {
        "report": "xfs_script",
        "size_bytes": 1 << 30,
        "agcount": 4,
        "dirblksize": dirblksize,
        "steps": steps,
    }
    (blocks,) = json.loads(_engine.structure_report(json.dumps(request)))["dir_blocks"]
    ours = {"format": "core.format", "size": "core.size", "blocks": "core.nblocks", "data": "data_blocks"}
    ours |= {"index": "leaf_or_node_blocks", "free": "freeindex_blocks"}
    return {name: blocks[field] for name, field in ours.items()}


def id_of(row: dict[str, int]) -> str:
    return f"{row['dirblksize'] >> 10}k-{row['names']}" + (f"-{row['keep']}" if row["keep"] else "")


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=id_of(row), marks=[pytest.mark.slow] * (row["names"] > 10_000)) for row in ROWS],
)
def test_blocks_are_those_of_the_kernel(row: dict[str, int]) -> None:
    asked = {name: row[name] for name in ("dirblksize", "names", "keep")}
    assert made(**asked) | asked == row


def test_each_size_was_measured() -> None:
    assert {row["dirblksize"] for row in ROWS} == set(DIRECTORY_BLOCKS)
