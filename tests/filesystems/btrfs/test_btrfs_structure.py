"""The executable btrfs tree against tables read from real filesystems.

What one task decides is equal, number for number: levels, items and their sizes, the order of hashes, the leaves of
inodes and of entries by hash. The leaves of ``DIR_INDEX`` items hang on the moments at which the kernel's worker
takes delayed items; there, and where nodes above mix them with others, the totals lie within 2 % (and one leaf).
``test_btrfs_mkfs_oracle.py`` keeps that worker out and compares block for block.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from places import DATA
from ruamel.yaml import YAML

from simfs import _engine

Table = dict[str, Any]

TABLES: Table = YAML(typ="safe").load(DATA / "btrfs-structure.yaml")
CASES: list[Table] = TABLES["btrfs_growth"]
INODES = "INODE_ITEM+INODE_REF"


def report(**request: object) -> Table:
    answer: Table = json.loads(_engine.structure_report(json.dumps(request)))
    return answer


@cache
def all_trees(dirs: int, files: int) -> Table:
    return report(report="btrfs_growth", dirs=dirs, files=files)


@cache
def grown(dirs: int, files: int) -> Table:
    tree: Table = all_trees(dirs, files)["fs_tree"]
    for key in ("nodes_by_level", "node_items"):
        tree[key] = {int(level): value for level, value in tree[key].items()}
    tree["item_sizes"] = {
        kind: {int(size): count for size, count in sizes.items()}
        for kind, sizes in tree["item_sizes"].items()
    }
    return tree


def name(case: Table) -> str:
    return f"dirs={case['dirs']}-files={case['files']}"


def case_of(dirs: int, files: int) -> Table:
    tree: Table = next(case for case in CASES if (case["dirs"], case["files"]) == (dirs, files))["fs_tree"]
    return tree


EACH = [
    pytest.param(case, id=name(case), marks=[pytest.mark.slow] if case["files"] > 100_000 else [])
    for case in CASES
]


@pytest.mark.parametrize("case", EACH)
@pytest.mark.parametrize("what", ["root_level", "items", "item_sizes", "first_items"])
def test_levels_and_items_are_those_of_the_kernel(case: Table, what: str) -> None:
    assert grown(case["dirs"], case["files"])[what] == case["fs_tree"][what]


def test_a_tree_that_the_worker_does_not_reach_is_equal_in_all() -> None:
    tree, table = grown(1, 1000), case_of(1, 1000)
    assert {key: tree[key] for key in table} == table


def test_leaves_of_hash_ordered_entries_and_of_inodes_are_equal() -> None:
    tree, table = grown(1, 10_000)["leaf_by_kind"], case_of(1, 10_000)["leaf_by_kind"]
    assert tree["DIR_ITEM"] == table["DIR_ITEM"]
    assert tree[INODES] == table[INODES]


@pytest.mark.parametrize("case", EACH)
def test_inodes_fill_their_leaves_as_on_the_kernel(case: Table) -> None:
    """Made in ascending order: 71 files a leaf, also half a million of them."""
    trees = (grown(case["dirs"], case["files"]), case["fs_tree"])
    tree, table = (tree["leaf_by_kind"][INODES] for tree in trees)
    assert tree["leaves"] == pytest.approx(table["leaves"], abs=1)
    assert (tree["items_p50"], tree["fill_p50"]) == (142, 0.9942) == (table["items_p50"], table["fill_p50"])


@pytest.mark.parametrize("case", EACH)
def test_number_of_leaves_and_nodes_is_near_the_kernels(case: Table) -> None:
    tree, table = grown(case["dirs"], case["files"]), case["fs_tree"]
    assert tree["leaves"] == pytest.approx(table["leaves"], rel=0.02, abs=1)
    assert tree["nodes_by_level"].keys() == table["nodes_by_level"].keys()
    for level, nodes in table["nodes_by_level"].items():
        assert tree["nodes_by_level"][level] == pytest.approx(nodes, abs=3)


def blocks(tree: Table) -> int:
    return int(tree["leaves"] + sum(tree["nodes_by_level"].values()))


def extent_trees(dirs: int, files: int) -> tuple[Table, Table]:
    case = next(case for case in CASES if (case["dirs"], case["files"]) == (dirs, files))
    return all_trees(dirs, files)["extent_tree"], case["extent_tree"]


def test_the_extent_tree_of_a_small_filesystem_is_that_of_the_kernel() -> None:
    tree, table = extent_trees(1, 1000)
    assert {key: tree[key] for key in table} == table


@pytest.mark.parametrize("files", [1000, pytest.param(500_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dirs", [1, 16])
def test_the_extent_tree_has_an_item_of_each_tree_block(dirs: int, files: int) -> None:
    """Besides the subvolume and itself: chunks, checksums, free space, and four trees that nothing changes."""
    tree, table = extent_trees(dirs, files)
    others = [
        extents["items"]["METADATA_ITEM"] - blocks(extents) - blocks(fs)
        for extents, fs in ((tree, grown(dirs, files)), (table, case_of(dirs, files)))
    ]
    assert others == [7, 7]
    assert tree["items"]["BLOCK_GROUP_ITEM"] == table["items"]["BLOCK_GROUP_ITEM"]


@pytest.mark.slow
@pytest.mark.parametrize("dirs", [1, 16])
def test_the_leaves_of_the_extent_tree_fill_one_after_the_other(dirs: int) -> None:
    """On the kernel several commits copied blocks meanwhile, so that a few of its leaves were split once more."""
    tree, table = extent_trees(dirs, 500_000)
    assert (tree["root_level"], tree["nodes_by_level"]) == (1, {"1": 1})
    assert (table["root_level"], table["nodes_by_level"]) == (1, {1: 1})
    assert tree["leaves"] == pytest.approx(table["leaves"], abs=1)
    assert tree["leaf_all"]["items_p50"] == pytest.approx(table["leaf_all"]["items_p50"], abs=1)
    assert tree["leaf_all"]["fill_p50"] == pytest.approx(table["leaf_all"]["fill_p50"], abs=0.005)


def test_deleting_everything_leaves_the_empty_subvolume() -> None:
    names = [f"f{i:07}" for i in range(3000)]
    steps: list[Table] = [{"op": "mkdir", "name": "d"}]
    steps += [{"op": "create", "dir": 0, "name": name} for name in names]
    steps += [{"op": "commit"}]
    steps += [{"op": "unlink", "dir": 0, "name": name} for name in names]
    tree = report(report="btrfs_script", steps=steps)
    assert (tree["root_level"], tree["leaves"]) == (0, 1)
    assert tree["items"] == {"INODE_ITEM": 2, "INODE_REF": 2, "DIR_ITEM": 1, "DIR_INDEX": 1}


def test_names_of_one_hash_share_an_item() -> None:
    """crc32c is linear: these differ in five bytes and have one hash (found by elimination over GF(2))."""
    first, second = colliding_names()
    assert report(report="btrfs_name_hash", name=first) == report(report="btrfs_name_hash", name=second)
    steps: list[Table] = [{"op": "mkdir", "name": "d"}]
    steps += [{"op": "create", "dir": 0, "name": name} for name in (first, second)]
    tree = report(report="btrfs_script", steps=steps)
    assert tree["items"]["DIR_ITEM"] == 2
    assert tree["item_sizes"]["DIR_ITEM"] == {"31": 1, str(60 + 2 * len(first)): 1}
    gone = report(report="btrfs_script", steps=[*steps, {"op": "unlink", "dir": 0, "name": first}])
    assert gone["item_sizes"]["DIR_ITEM"] == {"31": 1, str(30 + len(first)): 1}


def colliding_names() -> tuple[str, str]:
    """Two names over the letters a and c (one bit apart) with the same hash."""
    length = 40

    def hash_of(name: str) -> int:
        value: int = report(report="btrfs_name_hash", name=name)["hash"]
        return value

    zero = hash_of("a" * length)
    rows: dict[int, tuple[int, int]] = {}
    for i in range(length):
        effect, used = hash_of("a" * i + "c" + "a" * (length - i - 1)) ^ zero, 1 << i
        while effect:
            top = effect.bit_length()
            if top not in rows:
                rows[top] = (effect, used)
                break
            effect, used = effect ^ rows[top][0], used ^ rows[top][1]
        else:
            flipped = "".join("c" if used >> i & 1 else "a" for i in range(length))
            return "a" * length, flipped
    raise AssertionError("32 bits cannot be independent in 40 letters")


@pytest.mark.parametrize(
    "request_",
    [
        '{"report": "btrfs_growth", "dirs": 1}',
        '{"report": "btrfs_growth", "dirs": 0, "files": 1}',
        '{"report": "btrfs_nothing"}',
    ],
)
def test_a_wrong_request_is_an_error_with_a_reason(request_: str) -> None:
    with pytest.raises(ValueError, match=r"missing field|unknown variant|dirs"):
        _engine.structure_report(request_)
