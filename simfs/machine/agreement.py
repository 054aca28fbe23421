"""Whether the two machines agree: the first event in which their traces of one spec differ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from simfs.machine.recorder import Event


def first_difference(native: Sequence[Event], reference: Sequence[Event]) -> int | None:
    """The number of the first event that differs, or that only one trace has; None if the traces are equal."""
    pairs = enumerate(zip_longest(native, reference))
    return next((at for at, (ours, theirs) in pairs if ours != theirs), None)
