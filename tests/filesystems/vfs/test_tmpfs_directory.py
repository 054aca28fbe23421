"""What who makes and removes names in one directory of tmpfs writes besides the list of children, by era."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same
from operations import CREATE_UNLINK, holds, spec
from tiny_machine import Counting

from engine import rate, simulate, window


def accesses(path: Path, kernel: str, tasks: int = 1, **workload: Any) -> Counter[str]:  # noqa: ANN401
    """Accesses to lines in 100 operations, the superblock's left out."""
    rules = {"vfs.remove_count": "none"} | workload.pop("rules", {})
    machine = Counting(spec(path, "create", tasks, kernel=kernel, rules=rules, **workload))
    machine.run(2 * 10**9)
    operations = sum(machine.operations.values())
    return Counter({kind: round(50 * count / operations) * 2 for kind, count in machine.accesses.items()})


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "create"}], 1),
        ([{"op": "mkdir"}], 1),
        (CREATE_UNLINK["operations"], 2),  # one reserved, one given back by the eviction
    ],
)
def test_each_inode_that_comes_or_goes_takes_stat_lock(
    tmp_path: Path, operations: list[dict[str, str]], expected: int
) -> None:
    given: dict[str, Any] = {"operations": operations, "order": "in-turn"}
    if len(operations) == 2:
        given["files"] = 0
    result = simulate(spec(tmp_path, "create", 1, **given))
    assert holds(result, "tmpfs.stat_lock") == pytest.approx(expected, rel=0.02)


def test_names_have_offsets_since_6_6(tmp_path: Path) -> None:
    """An addition finds the tree's lock (an atomic) and a node; a removal too."""
    none, tree = (
        accesses(tmp_path, "linux-6.10", rules={"tmpfs.offsets": kind}, **CREATE_UNLINK)
        for kind in ("none", "xarray")
    )
    assert tree - none == {"line atomic": 200, "line write": 200}
    assert accesses(tmp_path, "linux-6.5")["line atomic"] < accesses(tmp_path, "linux-6.6")["line atomic"]


def test_nodes_above_the_leaves_of_a_maple_tree_are_written_too(tmp_path: Path) -> None:
    """They know the largest gap; a tree of eight names has none."""
    few, many = (
        [
            accesses(tmp_path, "linux-6.10", rules={"tmpfs.offsets": kind}, **names)["line write"]
            for kind in ("xarray", "maple-tree")
        ]
        for names in (CREATE_UNLINK, {"operations": [{"op": "create"}]})
    )
    assert few[0] == few[1]
    assert many[1] - many[0] == pytest.approx(100, abs=10)


@pytest.mark.parametrize(
    ("tree", "files", "cost", "times"),
    [
        ("maple-tree", 24, "deep", 2),  # a rename removes an offset and adds one
        ("maple-tree", 15, "deep", 0),  # they fill one node
        ("xarray", 24, "deep", 0),
        ("maple-tree", 15, "split", 1 / 11),  # when the last node has eight
        ("maple-tree", 15, "merge", 1 / 11),
        ("xarray", 15, "split", 0),
    ],
)
def test_changes_of_a_maple_tree_that_has_or_gets_several_nodes_take_longer(
    tmp_path: Path, tree: str, files: int, cost: str, times: float
) -> None:
    taken = []
    for more in (0, 10_000):
        made = spec(tmp_path, "rename", files=files, rules={"tmpfs.offsets": tree})
        made["machine"]["costs"]["step_cv"] = 0
        made["filesystem"]["costs"][f"offsets.{cost}"] += more
        taken.append(1 / rate(simulate(made)))
    assert (taken[1] - taken[0]) / 10_000 == pytest.approx(times, rel=0.2, abs=0.01)


def test_further_names_of_a_file_leave_the_tree_as_they_came(tmp_path: Path) -> None:
    """Twelve names at most fit into one node, however often ten of them come and go."""
    operations = [{"op": op, "on": "first", "repeat": 10} for op in ("link", "unlink")]
    taken = []
    for more in (0, 10_000):
        made = spec(
            tmp_path,
            files=2,
            operations=operations,
            order="in-turn",
            rules={"tmpfs.offsets": "maple-tree"},
        )
        made["machine"]["costs"]["step_cv"] = 0
        made["filesystem"]["costs"]["offsets.deep"] += more
        taken.append(1 / rate(simulate(made)))
    assert taken[0] == taken[1]


def test_each_change_of_a_directory_is_counted_since_6_1(tmp_path: Path) -> None:
    without, counted = (
        accesses(tmp_path, "linux-6.10", rules={"tmpfs.i_version": value}, **CREATE_UNLINK)
        for value in (False, True)
    )
    assert counted - without == {"line read": 200, "line atomic": 200}


@pytest.mark.parametrize(("kernel", "looks"), [("linux-4.6", 0), ("linux-4.7", 100)])
def test_who_looks_a_name_up_looks_whether_the_directory_changes_meanwhile(
    tmp_path: Path, kernel: str, looks: int
) -> None:
    """`i_dir_seq`, since lookups go beside each other; then it is changed; the name enters the table and leaves it."""
    counted = accesses(tmp_path, kernel)
    assert counted["line read"] == looks
    without = accesses(tmp_path, kernel, rules={"vfs.parallel_lookups": False})
    assert counted["line atomic"] - without["line atomic"] == pytest.approx(3 * looks, abs=3)


def test_two_in_one_directory_lose_more_the_farther_they_are(tmp_path: Path) -> None:
    """All lines of the directory are the other's."""
    times = {}
    for line in (50, 100):
        made = spec(tmp_path, "create", 2, directories="shared", **CREATE_UNLINK)
        made["machine"]["costs"] |= dict.fromkeys(("line_llc", "line_socket", "line_remote"), line)
        times[line] = 2e9 / rate(simulate(made))
    assert times[100] - times[50] > 20 * 50  # ns, of a create and an unlink


def test_both_machines_agree_on_a_directory_of_tmpfs(tmp_path: Path) -> None:
    run = spec(tmp_path, "create", 3, kernel="linux-6.8", directories="shared", **CREATE_UNLINK)
    assert assert_same(run | window(6e4)) > 100
