"""What a fault is, and where the parts of the engine are."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """A fault, by what it does wrong."""

    name: str
    file: str
    old: str
    new: str


E = "engine/src/"
M, X, B = E + "machine/", E + "filesystems/xfs/", E + "filesystems/btrfs/"
