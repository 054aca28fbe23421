"""Names in a block of an XFS directory take more than names in its inode, as counted in the laboratory."""

from __future__ import annotations

import pytest

import simfs

FEW, MANY = 2, 64
"""Files of a directory whose names are in its inode, and of one whose names are in a block."""


SCAN = 1.1 * (66 * 17 + 30 * 35)
"""A rename goes through the block for its largest free runs, as often as in the laboratory."""


def instructions(variant: str, files: int, debug: bool = False) -> float:
    """What one turn takes on the emulated machine."""
    settings = (
        "sweep={}", "filesystem.kind=xfs", "workload.tasks=1", f"workload.files={files}", "measure.warmup=5 ms",
        "measure.duration=5 ms", f"kernel.rules.xfs.debug={str(debug).lower()}",
    )  # fmt: skip
    answer = simfs.load("emulated-operations", *settings).run(variants=[variant], threads=1, progress=False)
    (point,) = answer.table("points").to_dict("records")
    return 1e9 / float(point["throughput_per_s"])


def test_a_rename_in_a_block_looks_up_enters_removes_and_logs_more() -> None:
    more = instructions("rename", MANY) - instructions("rename", FEW)
    assert more == pytest.approx(1598 + 2416 + 3195 + 2883 + SCAN, rel=0.15)


def test_so_do_a_link_and_its_unlink_with_a_commit_each() -> None:
    more = instructions("link_unlink", MANY) - instructions("link_unlink", FEW)
    assert more == pytest.approx(2 * 1598 + 2416 + 3195 + 2 * 2883, rel=0.25)


def test_a_debug_kernel_checks_each_name_of_the_block_four_times_a_rename() -> None:
    more = instructions("rename", MANY, debug=True) - instructions("rename", MANY)
    lookup, rename = (
        45_095 - 2_270,
        150_518 - 17_488,
    )  # of the laboratory, where xfs is built so, less where it is not
    assert more == pytest.approx(lookup + rename, rel=0.2)
