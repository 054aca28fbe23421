"""What btrfs's trees take: parts of steps that programs charge by what they find there (`constants` of the model)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from laboratory.blocks import Log

if TYPE_CHECKING:
    from laboratory.counted import Row, Values
    from laboratory.loops import Loop

_WHERE = (
    "create in a directory of 2000 names, one task in the emulated kernel, Linux 6.12.117,"
    " every block of instructions logged"
)
SOURCES = {
    "leaf_search": f"{_WHERE}: btrfs_bin_search, in nodes and leaves",
    "root_read": f"{_WHERE}: from down_read of the root to its up_read, where it is to be written",
    "root_trade": f"{_WHERE}: from that up_read to down_write",
    "shift_item": f"{_WHERE}: setup_items_for_insert by the items behind, less what it takes without any",
    "delayed_update_inode": f"{_WHERE}: btrfs_delayed_update_inode",
}
_SYNCED = (
    "overwrite of 4 KiB and fsync of 64 files in turn, one task in the emulated kernel, Linux 6.12.117,"
    " every block of instructions logged"
)
OVERLAP = {"shift_item": 38.0}
"""Bytes that memmove moves for an item, less than 64 bytes away and forwards: by `rep movsb` where the CPU has ERMS
(arch/x86/lib/memmove_64.S). Half of all shifts are removals, which move its header of 25 bytes so; half are insertions,
which move its data, 68 bytes (inode, reference, two names of 14 characters), if what comes is no inode."""
SYNCED_SOURCES = {
    "check_item": f"{_SYNCED}: btrfs_check_leaf, by the keys that it compares",
    "wfsync.write_block": f"{_SYNCED}: btrfs_write_marked_extents of one block, less btrfs_check_leaf and submit_bio",
    "wfsync.exit": f"{_SYNCED}: from where schedule returns the last time to user code",
    "commit_block": f"{_SYNCED}: as wfsync.write_block, a commit writes its blocks by the same function",
}
_MANY = 20
"""Items behind an insertion from which on what it takes without any is little."""


def counted(rows: Sequence[Row]) -> Values:
    """Return what parts of an insertion take, as often as they were met."""
    (log,) = (row.log for row in rows)
    task = log.task(int(log.entries("__x64_sys_openat")[0]))
    return {
        "leaf_search": list(_calls(log, task, "btrfs_bin_search")),
        **_trades(log, task),
        "shift_item": _shifts(log, task),
        "delayed_update_inode": list(_calls(log, task, "btrfs_delayed_update_inode")),
    }


def synced(loop: Loop) -> Values:
    """Return what it takes to write a tree block in `overwrite_fsync`, and to check an item of a leaf before."""
    checks, blocks = [], []
    for begin, end, task in loop.each("btrfs_write_marked_extents"):
        each = {name: _inside(loop, (begin, end), task, name) for name in ("btrfs_check_leaf", "submit_bio")}
        keys = len(loop.inside(begin, end, task, "btrfs_comp_cpu_keys"))
        if len(each["btrfs_check_leaf"]) == 1:
            blocks.append(
                loop.took(task, begin, end) - sum(each["btrfs_check_leaf"]) - sum(each["submit_bio"])
            )
            if keys >= _MANY:
                checks.append(round(each["btrfs_check_leaf"][0] / keys))
    return {
        "check_item": checks,
        "wfsync.write_block": blocks,
        "commit_block": blocks,
        "wfsync.exit": list(_exits(loop)),
    }


def _exits(loop: Loop) -> Iterator[int]:
    """What each fsync executes after its last wait."""
    for call in loop.calls():
        waits = loop.inside(call.begin, call.end, call.task, "schedule") if call.name == "fsync" else []
        if waits:
            yield loop.took(call.task, loop.log.returns(waits[-1]), call.end)


def _inside(loop: Loop, span: tuple[int, int], task: int, name: str) -> list[int]:
    """What each call of a function between two positions takes."""
    return [loop.took(task, at, loop.log.returns(at)) for at in loop.inside(*span, task, name)]


def _entries(log: Log, task: int, name: str) -> list[int]:
    return [int(at) for at in log.entries(name) if log.task(int(at)) == task]


def _calls(log: Log, task: int, name: str) -> Iterator[int]:
    executed = log.executed(task)
    for at, end in _whole(log, task, name):
        yield int(executed[end] - executed[at])


def _whole(log: Log, task: int, name: str) -> Iterator[tuple[int, int]]:
    """Calls outside what is left out."""
    executed = log.executed(task)
    calls = ((at, log.returns(at)) for at in _entries(log, task, name))
    return ((at, end) for at, end in calls if executed[end] > executed[at])


def _trades(log: Log, task: int) -> Values:
    """The root is locked for reading, and as it is to be written, unlocked and at once locked again."""
    executed = log.executed(task)
    order = ("btrfs_read_lock_root_node", "down_read", "up_read", "btrfs_lock_root_node", "down_write")
    met = sorted((at, name) for name in order for at in _entries(log, task, name))
    found: Values = {"root_read": [], "root_trade": []}
    for first in range(len(met) - len(order) + 1):
        positions, names = zip(*met[first : first + len(order)], strict=True)
        if names == order and executed[positions[-1]] > executed[positions[0]]:
            down, up, again = (executed[positions[nth]] for nth in (1, 2, 4))
            found["root_read"].append(int(up - down))
            found["root_trade"].append(int(again - up))
    return found


def _shifts(log: Log, task: int) -> list[int]:
    executed, reads = log.executed(task), _entries(log, task, "btrfs_get_token_32")
    items, took = [], []
    for at, end in _whole(log, task, "setup_items_for_insert"):
        items.append(int(np.searchsorted(reads, end) - np.searchsorted(reads, at)))
        took.append(int(executed[end] - executed[at]))
    fixed = np.polyfit(items, took, 1)[1]
    return [round((t - fixed) / n) for n, t in zip(items, took, strict=True) if n >= _MANY]
