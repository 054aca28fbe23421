"""What the VFS takes around a filesystem's steps, by where the directory's i_rwsem is taken and released."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from laboratory.blocks import KERNEL, Log
from laboratory.steps import Step

if TYPE_CHECKING:
    from laboratory.counted import Row, Values

_REMOVED = {"xfs": "remove", "ext4": "ext4_unlink_enter", "btrfs": "read_lock_fs_l0"}
"""The first step of a filesystem in an unlink."""
_DROPPED = {"xfs": "inode_set_need_inactive", "ext4": "ext4_drop_inode", "btrfs": "inode_evict"}
"""The first step after the directory's lock is released."""
_EVENT = 10


def vfs(rows: Sequence[Row], filesystem: str) -> Values:
    """Return the VFS's part of create and unlink of a filesystem with a trace."""
    row = next(row for row in rows if row.key == ("create_unlink", 0, "y") and row.trace)
    locks, unlocks = row.log.entries("down_write"), row.log.entries("up_write")
    found: Values = {}

    def note(name: str, instructions: int) -> None:
        found.setdefault(name, []).append(max(0, instructions - _EVENT))

    ops = row.operations()
    for op, following in pairwise(ops):
        for call, begin, first, last, end in _parts(op, filesystem):
            taken = _within(locks, begin, first)[-1 if call == "openat" else 0]
            released = _within(unlocks, last, end)[-1]  # those before are of the filesystem's own locks
            log = row.log.executed(row.log.task(begin.position))
            head = f"{filesystem}.{call}"
            note(f"{head}.before_i_rwsem", int(log[taken]) - begin.executed)
            note(f"{head}.under_i_rwsem", first.executed - int(log[taken]))
            note(f"{head}.i_rwsem_tail", int(log[released]) - last.executed)
            note(f"{head}.after_i_rwsem", end.executed - int(log[released]))
        if filesystem == "xfs":
            note("user.loop", following[0].executed - op[-1].executed)
    return found


def _parts(op: list[Step], filesystem: str) -> Iterator[tuple[str, Step, Step, Step, Step]]:
    """Yield both calls: their begin, the filesystem's first step, its last under the lock, and the end of the gap."""
    names = [step.name for step in op]
    opened, removed = names.index("exit_openat"), names.index("enter_unlinkat")
    yield "openat", op[0], op[1], op[opened - 1], op[opened]
    first = names.index(_REMOVED[filesystem], removed)
    dropped = names.index(_DROPPED[filesystem], removed)
    yield "unlinkat", op[removed], op[first], op[dropped - 1], op[dropped]


def _within(positions: np.ndarray, begin: Step, end: Step) -> list[int]:
    low, high = np.searchsorted(positions, [begin.position, end.position])
    return [int(position) for position in positions[low:high]]


def tmpfs(rows: Sequence[Row]) -> Values:
    """Return the steps of tmpfs, which has no events: by calls, locks and the eviction of the inode."""
    found: Values = {}
    for kind, group in (("create", "create"), ("create_unlink", "cu"), ("tmpfile", "tmp")):
        row = next(row for row in rows if row.key[0] == kind)
        for steps in _tmpfs_operations(row.log):
            for name, instructions in steps.items():
                if name in _TMPFS[group]:
                    found.setdefault(f"{group}.{name}", []).append(instructions)
        if "softirq" in _TMPFS[group]:
            found[f"{group}.softirq"] = [round(_callbacks(row.log) / row.what["operations"])]
    return found


def tmpfs_loop(rows: Sequence[Row]) -> Values:
    """Return the user code of a create and unlink: of tmpfs, whose steps are whole calls."""
    log = next(row.log for row in rows if row.key[0] == "create_unlink")
    user = np.concatenate([[0], np.cumsum(np.where(log.pc < KERNEL, log.instructions, 0))])
    opened = [begin for name, begin, _, _ in _calls(log) if name == "openat"]
    return {"tmpfs.user.loop": [int(n) for n in np.diff(user[opened[1:-1]])]}


_TMPFS = {
    "create": ("openat_under_i_rwsem",),
    "cu": (
        "openat_before_i_rwsem", "openat_under_i_rwsem", "openat_after_i_rwsem", "close", "unlinkat_before_i_rwsem",
        "unlinkat_under_i_rwsem", "evict", "unlinkat_after_i_rwsem", "softirq",
    ),
    "tmp": ("write", "evict", "softirq"),
}  # fmt: skip
_CALLS = {
    "__x64_sys_openat": "openat",
    "__x64_sys_close": "close",
    "__x64_sys_write": "write",
    "__x64_sys_unlink": "unlinkat",
}


def _tmpfs_operations(log: Log) -> Iterator[dict[str, int]]:
    steps: dict[str, int] = {}
    for call, begin, end, task in _calls(log):
        here = _tmpfs_call(log, call, begin, end, task)
        if call == "openat":
            if steps:
                yield steps
            steps = {}
        steps |= here


def _tmpfs_call(log: Log, call: str, begin: int, end: int, task: int) -> dict[str, int]:
    executed = log.executed(task)

    def took(first: int, last: int) -> int:
        return int(executed[last] - executed[first])

    if call in ("close", "write"):
        return {call: took(begin, end)}
    locks = [int(p) for p in log.entries("down_write") if begin < p < end]
    unlocks = [int(p) for p in log.entries("up_write") if begin < p < end]
    if not locks:  # the directory is opened, to write it back
        return {}
    taken = locks[-1] if call == "openat" else locks[0]
    if call == "openat":
        released = next(p for p in unlocks if p > taken)
        after = {"openat_after_i_rwsem": took(released, end)}
    else:
        evict = max(int(p) for p in log.entries("iput") if begin < p < end)
        released = max(p for p in unlocks if p < evict)
        gone = log.returns(evict)
        after = {"evict": took(released, gone), "unlinkat_after_i_rwsem": took(gone, end)}
    return {
        f"{call}_before_i_rwsem": took(begin, taken),
        f"{call}_under_i_rwsem": took(taken, released),
        **after,
    }


def _calls(log: Log) -> Iterator[tuple[str, int, int, int]]:
    """Yield the calls of the load, from the entry into the kernel to the first user code, and whose they are."""
    entries, user = log.entries("entry_SYSCALL_64"), np.flatnonzero(log.pc < KERNEL)
    for function, name in _calls_in_order(log):
        begin = entries[np.searchsorted(entries, function) - 1]
        end = np.searchsorted(user, function)
        if end < len(user):
            yield name, int(begin), int(user[end]), log.task(function)


def _calls_in_order(log: Log) -> list[tuple[int, str]]:
    return sorted((int(p), name) for function, name in _CALLS.items() for p in log.entries(function))


def _callbacks(log: Log) -> int:
    """Return the instructions of RCU's callbacks."""
    return sum(
        int(log.instructions[at : log.returns(at)].sum()) for at in log.entries("rcu_do_batch").tolist()
    )
