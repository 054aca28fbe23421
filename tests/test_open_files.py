"""Open files that several tasks use: the count of references that threads and `dup` change."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import assert_same
from test_threads import spec

from engine import Spec, rate, simulate


def shared(
    path: Path, op: str, tasks: int, *, ref: str = "exchanged", line: str = "apart", **more: object
) -> Spec:
    rules = {"vfs.file_ref": ref, "vfs.file_line": line}
    given = {"files": 1, "file_set": "shared", "shared_open": True} | more
    return spec(path, op, tasks, rules=rules, **given)


def test_threads_meet_in_an_open_file_that_they_share_and_processes_do_not(tmp_path: Path) -> None:
    """`fdget` counts only where the table has several users."""
    alone, threads, processes = (
        rate(simulate(shared(tmp_path, "fstat", tasks, threads=threads)))
        for tasks, threads in ((1, True), (16, True), (16, False))
    )
    assert threads < 6 * alone
    assert processes > 15 * alone


def test_a_dup_counts_in_processes_too(tmp_path: Path) -> None:
    alone, many = (rate(simulate(shared(tmp_path, "dup", tasks))) for tasks in (1, 16))
    assert many < 6 * alone


@pytest.mark.parametrize("op", ["fstat", "dup"])
def test_a_reference_is_one_transfer_if_it_is_added_and_fetches_what_is_beside(
    tmp_path: Path, op: str
) -> None:
    beside, exchanged, added = (
        rate(simulate(shared(tmp_path, op, 16, ref=ref, line=line, threads=op == "fstat")))
        for ref, line in (("exchanged", "with-operations"), ("exchanged", "apart"), ("added", "apart"))
    )
    assert beside < 0.9 * exchanged < 0.9 * 0.9 * added


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("op", ["fstat", "dup"])
def test_both_machines_agree_on_shared_open_files(tmp_path: Path, op: str, threads: bool) -> None:
    assert_same(shared(tmp_path, op, 5, threads=threads) | {"warmup_ns": 0, "duration_ns": 3e4})
