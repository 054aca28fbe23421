"""Which lines of code the blocks of a log fetch, as a core's first-level cache of instructions does not have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from laboratory.blocks import Log
from laboratory.lines import LINE

SETS, WAYS = 64, 8
"""32 KiB: of Intel's cores since Core, of AMD's since Zen 2. What was used last stays."""


def fetches(log: Log) -> NDArray[np.int64]:
    """Return how many lines each block fetches, on a CPU that has run no tracer's code."""
    block, line = _lines(log)
    of = log.cpu[block] * SETS + line % SETS
    order = np.argsort(of, kind="stable")
    block, line, of = block[order], line[order], of[order]
    again = np.concatenate([[False], (line[1:] == line[:-1]) & (of[1:] == of[:-1])])
    block, line, of = block[~again], line[~again], of[~again]
    return np.bincount(block[_missing(of, line)], minlength=len(log.pc))


def _lines(log: Log) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lines of all blocks in order, and the number of each one's block."""
    kept = np.flatnonzero(~log.left_out)
    first = (log.pc[kept] // LINE).astype(np.int64)
    last = ((log.pc[kept] + np.maximum(log.bytes[kept], 1).astype(np.uint64) - 1) // LINE).astype(np.int64)
    many = last - first + 1
    start = np.repeat(np.cumsum(many) - many, many)
    return np.repeat(kept, many), np.repeat(first, many) + np.arange(many.sum()) - start


def _missing(of: NDArray[np.int64], lines: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which lines are not among the `WAYS` different ones that their set was asked for last."""
    held: dict[int, list[int]] = {}
    missing = np.zeros(len(lines), dtype=bool)
    for at, (number, line) in enumerate(zip(of.tolist(), lines.tolist(), strict=True)):
        ways = held.setdefault(number, [])
        if line in ways:
            ways.remove(line)
        else:
            missing[at] = True
            if len(ways) == WAYS:
                del ways[0]
        ways.append(line)
    return missing
