"""Why a variant with other allocation groups does exactly the same: its result says that only one of them is used."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from simfs.results.model import PointResult

AGCOUNT = "filesystem.agcount"
AGI = "xfs.AGI"
"""The lock of a group's inodes: who makes or frees one holds it."""

ONE_DIRECTORY = (
    "all files are in one directory and so in one allocation group, others are not used;"
    " workload.directories: per-task is the change to try"
)
ONE_GROUP = "all inodes are in one allocation group, others are not used"


def why_alike(points: Iterable[PointResult], settings: Sequence[Mapping[str, Any]]) -> str:
    """Why these points, which are the same to the last event, are so; empty where their results do not tell.

    `settings` are theirs by dotted key, each value as `repr` writes it.
    """
    first, *others = settings
    differ = {
        key for other in others for key in first.keys() | other.keys() if first.get(key) != other.get(key)
    }
    if differ != {AGCOUNT} or not all(map(in_one_group, points)):
        return ""
    return ONE_DIRECTORY if first.get("workload.directories") == repr("shared") else ONE_GROUP


def in_one_group(point: PointResult) -> bool:
    """Whether the AGI that is held longest is held for all the time that any is, so that no other is used."""
    return any(
        lock.name == AGI
        and lock.hold_total_ns > 0
        and math.isclose(lock.busiest_held_ns, lock.hold_total_ns, rel_tol=1e-9)
        for lock in point.locks
    )
