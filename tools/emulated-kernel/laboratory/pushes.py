"""What XFS's workers take for each item of a checkpoint, by what their functions execute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from laboratory.blocks import Log

if TYPE_CHECKING:
    from laboratory.counted import Row, Values

SOURCES = {
    "checkpoint.": "XFS, 400 creates in a directory of 2000 names and a sync, one task in the emulated kernel, Linux"
    " 6.12.117, every block of instructions logged: what the functions execute for each item",
}


def counted(rows: Sequence[Row]) -> Values:
    """Return what an item takes in the largest push of the log of creates."""
    log = next(row.log for row in rows if row.key[:2] == ("create", 2000) and not row.trace)
    push = max(log.entries("xlog_cil_push_work").tolist(), key=lambda at: inclusive(log, at))
    end = log.returns(push)
    items = iterations(log, "xlog_cil_push_work", push, end)  # of xlog_cil_build_lv_chain, which is inlined
    task = log.task(push)
    order, write = (within(log, name, push, end, task) for name in ("list_sort", "xlog_write"))
    build = inclusive(log, push) - order - write
    done = max(log.entries("xlog_ioend_work").tolist(), key=lambda at: inclusive(log, at))
    parts = {"build": build, "order": order, "write": write, "committed": inclusive(log, done)}
    return {f"checkpoint.{name}": [round(whole / items)] for name, whole in parts.items()}


def inclusive(log: Log, at: int) -> int:
    """Return the instructions of the call of a function at a position, without other tasks."""
    executed = log.executed(log.task(at))
    return int(executed[log.returns(at)] - executed[at])


def within(log: Log, name: str, begin: int, end: int, task: int) -> int:
    """Return the instructions of all outermost calls of a function by a task between two positions."""
    total, past = 0, begin
    for at in log.entries(name).tolist():
        if past <= at < end and log.task(at) == task:
            total += inclusive(log, at)
            past = log.returns(at)
    return total


def iterations(log: Log, name: str, begin: int, end: int) -> int:
    """Return how often the most executed block of a function runs between two positions: the turns of its loop."""
    inside = np.array([n.partition(".")[0] == name for n in log.symbols.names])[log.function[begin:end]]
    _, times = np.unique(log.pc[begin:end][inside], return_counts=True)
    return int(times.max()) if len(times) else 0
