"""The executable XFS structures against tables read from real filesystems: equal, number for number.

Every table of ``data/xfs-structure.yaml`` is matched exactly: geometry, fresh free space, placement of
directories and files, reuse after unlink, and the growth of all B-trees and directories up to 500,000 files,
block map trees and the spill of a full group into the next one included. Only ``create_seconds`` (a time) is
not a structure.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from places import DATA
from ruamel.yaml import YAML

from simfs import _engine

Table = dict[str, Any]

TABLES: Table = YAML(typ="safe").load(DATA / "xfs-structure.yaml")
FILESYSTEMS: list[Table] = TABLES["xfs_geometry_and_placement"]
GROWTH: list[Table] = TABLES["xfs_growth"]["cases"]
PLACEMENT = [
    "root_dirs_100",
    "files_in_dir",
    "files_in_root_100",
    "nested_chain_10",
    "siblings_in_deepest_10",
    "reuse_after_unlink_10_create_12",
    "after_remount_4_dirs_ags",
    "ag_of_dir_d000_chunks",
]
GIB = 1 << 30


def report(kind: str, table: Table, **more: int) -> Table:
    request: Table = {"report": kind, "size_bytes": int(table["size"].removesuffix("g")) * GIB}
    request |= {"agcount": table["agcount"]} | more
    answer: Table = json.loads(_engine.structure_report(json.dumps(request)))
    return answer


def like(found: object, table: object) -> object:
    """`found` without the keys that the table does not have."""
    if isinstance(found, dict) and isinstance(table, dict):
        return {key: like(found[key], value) for key, value in table.items()}
    if isinstance(found, list) and isinstance(table, list) and len(found) == len(table):
        return [like(a, b) for a, b in zip(found, table, strict=True)]
    return found


def name(table: Table) -> str:
    parts = [table["size"], f"agcount={table['agcount']}"]
    parts += [f"{key}={table[key]}" for key in ("dirs", "files") if key in table]
    return "-".join(parts)


@pytest.fixture(scope="module")
def placements() -> dict[str, Table]:
    return {}


@pytest.mark.parametrize("table", FILESYSTEMS, ids=name)
def test_geometry(table: Table) -> None:
    found = report("xfs_geometry", table)
    assert found == {key: table[key] for key in found}


@pytest.mark.parametrize("table", FILESYSTEMS, ids=name)
def test_headers(table: Table) -> None:
    expected = {key: value for key, value in table["ag_header_layout_ag1"].items() if "agbno" in key}
    fresh = report("xfs_fresh", table)
    assert {**fresh["roots"], "agfl_agbnos": fresh["groups"][1]["agfl_agbnos"]} == expected


@pytest.mark.parametrize("table", FILESYSTEMS, ids=name)
@pytest.mark.parametrize("group", ["ag0", "ag1", "ag_with_log"])
def test_fresh_free_extents(table: Table, group: str) -> None:
    agno = {"ag0": 0, "ag1": 1, "ag_with_log": table["log_start_agno"]}[group]
    assert report("xfs_fresh", table)["groups"][agno]["free_extents"] == table["fresh_free_extents"][group]


@pytest.mark.parametrize("table", FILESYSTEMS, ids=name)
def test_fresh_inode_chunks(table: Table) -> None:
    expected = table["fresh_inobt_ag0"]
    assert like(report("xfs_fresh", table)["groups"][0]["chunks"], expected) == expected


@pytest.mark.parametrize("table", FILESYSTEMS, ids=name)
@pytest.mark.parametrize("what", PLACEMENT)
def test_placement(table: Table, what: str, placements: dict[str, Table]) -> None:
    if name(table) not in placements:
        placements[name(table)] = report("xfs_placement", table)
    assert like(placements[name(table)][what], table[what]) == table[what]


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(table, id=name(table), marks=[pytest.mark.slow] if table["files"] > 100_000 else [])
        for table in GROWTH
    ],
)
def test_growth(table: Table) -> None:
    found = report("xfs_growth", table, dirs=table["dirs"], files=table["files"])
    by_agno = {group["agno"]: group for group in found["ags"]}
    assert found["dir_ags"] == table["dir_ags"]
    assert found["icount_sb"] == table["icount_sb"]
    assert [by_agno[group["agno"]] for group in table["ags"]] == table["ags"]
    assert found["root_dir"] == table["root_dir"]
    assert found["dir0_blocks"] == table["dir0_blocks"]


def test_every_table_is_tested() -> None:
    tested = {"size", "ag_header_layout_ag1", "fresh_free_extents", "fresh_inobt_ag0", *PLACEMENT}
    for table in FILESYSTEMS:
        assert set(table) == tested | set(report("xfs_geometry", table))
