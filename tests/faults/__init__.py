"""The faults that `tools/mutants.py` puts into one engine: where, what stands there, what stands there instead.

`FAULT` in the new text is true when the fault is switched on. Each old text stands in its file once.
"""

from __future__ import annotations

from pathlib import Path

from faults.btrfs import BTRFS
from faults.fault import Fault
from faults.machine import MACHINE
from faults.others import OTHERS
from faults.statistics import STATISTICS
from faults.xfs import XFS

__all__ = ["FAULTS", "TESTS", "Fault", "files_of", "part_of"]

PARTS = {"machine": MACHINE, "statistics": STATISTICS, "filesystems": [*XFS, *BTRFS, *OTHERS]}


def part_of(fault: Fault) -> str:
    """The part of simfs whose tests should notice a fault."""
    return next(part for part, faults in PARTS.items() if fault in faults)


FAULTS = [fault for faults in PARTS.values() for fault in faults]

TESTS = {
    "machine": (
        "golden_traces",
        "lock_moments",
        "locks",
        "locks_spin",
        "debug_spinlock",
        "mutex",
        "rwsem_eras",
        "eevdf",
        "rcu",
        "processes",
        "resched",
        "seek_cpu",
        "smt",
        "numa",
        "warmth",
        "timers",
        "qspinlock_hand_over",
        "two_machines",
    ),
    "statistics": ("columns", "lock_moments", "statistics", "results", "chains", "two_machines"),
    "filesystems": (
        "audit",
        "lock_tables",
        "mixes",
        "btrfs_log",
        "btrfs_space_cache",
        "btrfs_btree_inode",
        "fsync_directory",
        "btrfs_programs",
        "fsync",
        "left_behind",
        "xfs_log_space",
        "logged_items",
        "lru",
        "btrfs_full_sync",
        "open_creat",
        "links",
        "listing",
        "btrfs_delalloc",
        "xfs_syncs",
        "threads",
        "ram_disks",
        "file_locks",
        "page_fault_turns",
        "ext4_extents",
        "btrfs_io",
        "btrfs_initial_files",
        "nearly_full",
        "ext4_journal",
        "part_of_a_block",
        "missing_names",
        "negative_dentries",
        "ext4_walk",
        "xfs_parents",
        "xfs_dirblksize",
    ),
}
"""Tests by part, those that take least time first."""


def files_of(part: str) -> list[str]:
    """The files of a part's tests, from the project's root; StopIteration where one is not there."""
    tests = Path(__file__).parents[1]
    return [str(next(tests.rglob(f"test_{name}.py")).relative_to(tests.parent)) for name in TESTS[part]]
