"""Open files that several tasks use: the count of references that threads and `dup` change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import assert_same
from operations import spec

from engine import Spec, rate, simulate, window
from simfs.scenario.models import load_kernel


def shared(
    path: Path,
    op: str,
    tasks: int,
    *,
    ref: str = "exchanged",
    line: str = "apart",
    **more: Any,  # noqa: ANN401
) -> Spec:
    rules = {"vfs.file_ref": ref, "vfs.file_line": line}
    given: dict[str, Any] = {"files": 1, "file_set": "shared", "shared_open": True} | more
    return spec(path, op, tasks, rules=rules, **given)


def test_threads_meet_in_an_open_file_that_they_share_and_processes_do_not(tmp_path: Path) -> None:
    """`fdget` counts only where the table has several users."""
    alone, threads, processes = (
        rate(simulate(shared(tmp_path, "fstat", tasks, threads=threads)))
        for tasks, threads in ((1, True), (16, True), (16, False))
    )
    assert threads < 6 * alone
    assert processes > 15 * alone


def test_a_dup_takes_its_time_though_nobody_shares_the_file(tmp_path: Path) -> None:
    alone, shared_too = (
        simulate(shared(tmp_path, "dup", 1, shared_open=open_)).latency["dup"].mean_ns
        for open_ in (False, True)
    )
    assert shared_too / 2 < alone < shared_too


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


@pytest.mark.parametrize(
    ("version", "line"),
    [("6.4", "with-operations"), ("6.11", "apart"), ("6.12", "with-operations"), ("6.15", "apart")],
)
def test_the_count_is_beside_the_operations_where_struct_file_is_laid_out_so(version: str, line: str) -> None:
    """`fs: pack struct file` came with 6.12, before the count became `f_ref`."""
    assert load_kernel(f"linux-{version}").rules["vfs.file_line"] == line


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("op", ["fstat", "dup"])
def test_both_machines_agree_on_shared_open_files(tmp_path: Path, op: str, threads: bool) -> None:
    assert_same(shared(tmp_path, op, 5, threads=threads) | window(3e4))
