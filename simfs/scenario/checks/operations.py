"""Operations of a mix that a filesystem does not have, and why: the page of all operations shows it."""

from __future__ import annotations

from collections.abc import Iterator

from simfs.scenario.models import load_kernel
from simfs.scenario.models.timeline import dotted
from simfs.scenario.problems import Problem
from simfs.scenario.reading.document import Document
from simfs.scenario.schema import Scenario
from simfs.scenario.sections.mix import Mix

REFUSED = {
    ("walk", "tmpfs"): "all inodes of tmpfs are in memory",
    ("fallocate", "btrfs"): "btrfs has no extents without data here",
    ("shorten", "btrfs"): "btrfs gives back the extents of a file only together here",
    ("reflink", "xfs"): "where written data lie on XFS is not known here, so that nothing can be shared",
    ("reflink", "ext4"): "ext4 has no reflinks (the call ends with EOPNOTSUPP)",
    ("reflink", "tmpfs"): "tmpfs has no reflinks (the call ends with EOPNOTSUPP)",
    ("bulkstat", "btrfs"): "bulkstat is an ioctl of XFS",
    ("bulkstat", "ext4"): "bulkstat is an ioctl of XFS",
    ("bulkstat", "tmpfs"): "bulkstat is an ioctl of XFS",
    ("fiemap", "tmpfs"): "tmpfs has no fiemap (the call ends with EOPNOTSUPP)",
}
"""Operations that a filesystem does not have, and why."""


BEFORE = {
    ("sync", None): (
        (4, 8),
        "a sync looks at all inodes in memory (wait_sb_inodes), how many is not known here",
    ),
    ("seek_hole", "btrfs"): ((6, 2), "btrfs looks for each extent of a file (find_desired_extent)"),
}
"""Operations that no kernel before a version has here, on a filesystem or on all, and why."""


def operation_problems(scenario: Scenario, document: Document) -> Iterator[Problem]:
    """Yield the operations of a mix that its filesystem does not have, and its files where they cannot be so."""
    load = scenario.workload
    if not isinstance(load, Mix):
        return
    if not load.cached and scenario.filesystem.kind == "tmpfs":
        yield Problem(document.place_of(("workload", "cached")).value, REFUSED["walk", "tmpfs"])
    for number, operation in enumerate(load.operations):
        at = document.place_of(("workload", "operations", number, "op")).value
        yield from (Problem(at, why) for why in _reasons(scenario, operation.op))


def _reasons(scenario: Scenario, operation: str) -> Iterator[str]:
    """Why a filesystem does not have an operation, or not as it is mounted, or not in this kernel."""
    use = scenario.filesystem
    if why := REFUSED.get((operation, use.kind)):
        yield why
    for since, why in (BEFORE[key] for key in ((operation, None), (operation, use.kind)) if key in BEFORE):
        if load_kernel(scenario.kernel.profile).version < since:
            yield f"before {dotted(since)} {why}"
    if operation == "sync" and not getattr(use, "journal", True):
        yield "without a journal ext4 has its metadata in the device's page cache, of which a sync knows nothing here"
    if operation == "reflink" and getattr(use, "nodatacow", False):
        yield "with nodatacow, writes to what is shared would have to take a new place"
    if operation == "move" and getattr(use, "subvolumes", False):
        yield "no file can be renamed into another subvolume (the call ends with EXDEV)"
