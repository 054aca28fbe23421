"""The entries of a directory of one block of ext4 are gone through one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import read_answer, written_spec

SCENARIO = """\
simfs: 1
name: names
title: A task renames one of the files of a directory, or makes and removes another
machine: emulated
kernel: linux-6.12
filesystem: {kind: ext4, size: 8 GiB}
device: loop-tmpfs
workload: {kind: mix, tasks: 1, files: 1, file_size: null, operations: [{op: rename}]}
measure: {warmup: 1 ms, duration: 20 ms, replications: 1}
"""
SEARCH, ROOM, DELETE = 111, 230, 119
"""Instructions for an entry, each of a nanosecond."""


def operation_ns(tmp_path: Path, *options: str) -> float:
    result = read_answer(written_spec(tmp_path / "names.yaml", SCENARIO, *options))
    return 20e6 / float(result["operations"])


def test_a_rename_searches_all_names_twice_and_half_of_them_for_each_of_its_three_places(
    tmp_path: Path,
) -> None:
    """Lookup and `ext4_rename` miss the new name; the old name, a hole and the entry to delete are anywhere."""
    few, many = (operation_ns(tmp_path, f"workload.files={files}") for files in (1, 101))
    assert many - few == pytest.approx(100 * (2.5 * SEARCH + 0.5 * ROOM + 0.5 * DELETE), rel=0.05)


def test_a_file_that_comes_misses_all_others_and_one_that_goes_is_among_them(tmp_path: Path) -> None:
    """Any of the files is unlinked, so the hole that the next one takes is anywhere, too."""
    turn = "workload.operations=[{op: create}, {op: unlink, on: made}]"
    few, many = (2 * operation_ns(tmp_path, turn, f"workload.files={files}") for files in (1, 101))
    assert many - few == pytest.approx(100 * (SEARCH + 0.5 * (SEARCH + ROOM + DELETE)), rel=0.1)


def test_the_leaves_of_an_htree_take_the_same_however_many_there_are(tmp_path: Path) -> None:
    few, many = (operation_ns(tmp_path, f"workload.files={files}") for files in (200, 2000))
    assert many == pytest.approx(few, rel=0.02)


def test_who_creates_in_an_htree_goes_through_no_entries(tmp_path: Path) -> None:
    turn = "workload.operations=[{op: create}, {op: unlink, on: made}]"
    few, many = (operation_ns(tmp_path, turn, f"workload.files={files}") for files in (200, 300))
    assert many == pytest.approx(few, rel=0.02)
