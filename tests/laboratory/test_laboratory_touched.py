"""The laboratory's count of the lines that calls touch, and which calls have them in common."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
import test_laboratory_loops as made
from laboratory import touched
from laboratory.blocks import KERNEL
from laboratory.lines import LINE
from test_laboratory_lines import OBJECTS

DENTRY = 0xFFFF_8880_0000_8000
"""A page of a slab, in the memory of `test_laboratory_lines`."""


def lines(first: int, count: int) -> set[touched.Touch]:
    return {("code", line) for line in range(first, first + count)}


def call(code: Iterable[int], data: dict[int, int] | None = None) -> touched.Call:
    return touched.Call("stat", frozenset(code), data or {})


def test_a_body_has_the_lines_of_just_its_calls() -> None:
    found = touched.bodies({"create": lines(0, 100), "unlink": lines(60, 80)})
    assert found == {("create",): 60, ("create", "unlink"): 40, ("unlink",): 40}


def test_a_small_body_is_added_to_the_largest_of_those_most_like_it() -> None:
    found = touched.bodies({"create": lines(0, 60), "unlink": lines(50, 80), "stat": lines(125, 40)})
    assert found == {("create",): 50, ("unlink",): 65 + 10 + 5, ("stat",): 35}


def test_pages_count_with_all_objects_in_them_and_go_to_the_bodies_of_lines() -> None:
    """Lines 0 and 1 are of page 0, 64 of page 1; only one call of three has page 2."""
    calls = [call((), {0: KERNEL, 64: KERNEL}), call((), {1: KERNEL, 64: KERNEL}), call((), {128: KERNEL})]
    assert touched.usual_pages(calls) == {0, 1}
    pages = touched.by_calls({"create": {0, 1, 2}, "unlink": {1, 2}, "stat": {2}})
    large = {("create",): 50, ("create", "unlink"): 40}
    assert touched.joined(pages, large) == {("create",): 1, ("create", "unlink"): 2}


def test_lines_of_half_of_the_calls_count() -> None:
    calls = [call({1, 2}), call({1}), call({1, 3}), call({1, 2})]
    assert touched.usual(calls, OBJECTS, set()) == {("code", 1), ("code", 2)}


@pytest.mark.parametrize(("apart", "count"), [("xfs_inode", 1), ("dentry", 0)])
def test_objects_that_are_told_apart_do_not_count(
    monkeypatch: pytest.MonkeyPatch, apart: str, count: int
) -> None:
    monkeypatch.setattr(touched, "APART", {apart})
    assert len(touched.usual([call((), {7: DENTRY})], OBJECTS, set())) == count


def test_a_call_touches_the_lines_of_its_blocks_and_the_data_of_the_kernel() -> None:
    (row,) = made.rows("stat", ("entry_SYSCALL_64", 0, 5), ("__x64_sys_newfstatat", 1, 40), ("", 0, 4))
    blocks = np.zeros(len(row.log.pc), dtype=[("cpu", "<u4")])
    blocks["cpu"] = 100 << 16  # bytes of each block
    accesses = np.array(
        [(KERNEL + 8, 6 * LINE, 0, 0), (KERNEL + 8, 4 * LINE, 2, 0), (64, 5 * LINE, 2, 1)],
        dtype=touched.ACCESS,
    )
    (found,) = touched.Touches(row.log, blocks, accesses).calls()
    assert found.site == "stat"
    assert len(found.code) == 3 * 2
    assert found.data == {4: KERNEL + 8}
