"""Who changes a list stores to neighbours that other CPUs have made: a superblock's inodes, a directory's children."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import assert_same
from operations import CREATE_UNLINK, spec
from tiny_machine import Counting

from engine import rate, simulate, window


def stores(path: Path, kernel: str, tasks: int = 1, **workload: Any) -> tuple[float, float]:  # noqa: ANN401
    """Stores to lines, and beside locks, in each operation."""
    machine = Counting(spec(path, "create", tasks, kernel=kernel, **workload))
    machine.run(2 * 10**9)
    operations = sum(machine.operations.values())
    return machine.accesses["line store"] / operations, machine.accesses["beside store"] / operations


@pytest.mark.parametrize(("kernel", "lines", "beside"), [("linux-6.10", 2, 0), ("linux-6.11", 1, 1)])
def test_a_create_stores_to_the_inode_and_the_dentry_that_were_first(
    tmp_path: Path, kernel: str, lines: int, beside: int
) -> None:
    """Since 6.11 a dentry's pointers are in the line of its count."""
    assert stores(tmp_path, kernel, directories="shared") == pytest.approx((lines, beside), abs=0.05)


def test_who_is_alone_on_the_lists_has_no_neighbours(tmp_path: Path) -> None:
    """But the directory's inode, which was made before: one store for the create, one for the unlink."""
    assert stores(tmp_path, "linux-6.10", **CREATE_UNLINK)[0] == pytest.approx(2, abs=0.05)


def test_an_unlink_stores_to_both_neighbours(tmp_path: Path) -> None:
    """Of two tasks in one directory, each of which has a file half of the time, more than of two in their own."""
    shared, own = (
        stores(tmp_path, "linux-6.10", 2, directories=which, **CREATE_UNLINK)[0]
        for which in ("shared", "per-task")
    )
    assert shared > own + 0.2
    assert own > 2.1  # inodes are on one list all the same


def test_files_that_come_and_go_in_one_directory_cost_the_more_the_farther_their_makers(
    tmp_path: Path,
) -> None:
    rates = {}
    for line in (40, 400):
        made = spec(tmp_path, "create", 8, kernel="linux-6.10", directories="shared", **CREATE_UNLINK)
        made["machine"]["costs"] |= dict.fromkeys(("line_llc", "line_socket", "line_remote"), line)
        rates[line] = rate(simulate(made))
    assert rates[400] < 0.55 * rates[40]


@pytest.mark.parametrize("kernel", ["linux-6.10", "linux-6.12"])
def test_both_machines_agree_on_neighbours(tmp_path: Path, kernel: str) -> None:
    run = spec(tmp_path, "create", 4, kernel=kernel, directories="shared", **CREATE_UNLINK)
    assert assert_same(run | window(6e4)) > 100
