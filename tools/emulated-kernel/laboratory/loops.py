"""What loops of one task take, untraced: calls, cut where the directory's `i_rwsem` is taken and released, and parts.

`vfs` are the parts that all filesystems have under the same names; `tmpfs` and `ext4` are those of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from laboratory.blocks import Log

if TYPE_CHECKING:
    from laboratory.counted import Row, Values

WHERE = ", one task in the emulated kernel, Linux 6.12.117, every block of instructions logged: "
CUT = "from the entry into the kernel to where i_rwsem is taken, to where it is released, to user code"
SOURCES = {
    "call.stat": f"stat of a cached file{WHERE}the whole call",
    "call.rename": f"rename of a file and back in its directory{WHERE}{CUT}",
    "call.mkdir": f"mkdir of what rmdir removes{WHERE}{CUT}",
    "call.rmdir": f"rmdir of what mkdir has made{WHERE}{CUT}",
    "mkdir.": f"mkdir of what rmdir removes{WHERE}{CUT}",
    "rmdir.": f"rmdir of what mkdir has made{WHERE}with i_rwsem held, the eviction apart",
    "rmdir.softirq": f"mkdir and rmdir{WHERE}rcu_do_batch",
    "mballoc.": f"mkdir and rmdir{WHERE}what functions execute, cut where the group is locked and unlocked",
    "d_move": f"rename on tmpfs{WHERE}d_move",
}
_NAMED = {"rename": "rename", "mkdir": "mkdir", "rmdir": "rmdir", "newfstatat": "stat", "newstat": "stat"}
"""System calls that are costs in the loops of files.c."""
_ENTRY = "__x64_sys_"


@dataclass(frozen=True)
class Call:
    """A system call of a task, by positions: from the entry into the kernel to the next user code."""

    name: str
    begin: int
    end: int
    task: int


class Loop:
    """The log of a loop, with what its task executes."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def calls(self) -> Iterator[Call]:
        """Yield the system calls."""
        log, entered = self.log, self.log.entries("entry_SYSCALL_64")
        names = {name.partition(".")[0] for name in log.symbols.names if name.startswith(_ENTRY)}
        for at in log.entries(*names).tolist():
            end = np.searchsorted(log.user, at)
            if end < len(log.user):
                begin = int(entered[np.searchsorted(entered, at) - 1])
                name = log.symbols.names[log.function[at]].partition(".")[0].removeprefix(_ENTRY)
                yield Call(name, begin, int(log.user[end]), log.task(at))

    def took(self, task: int, begin: int, end: int) -> int:
        """Return what a task executes between two positions."""
        executed = self.log.executed(task)
        return int(executed[end] - executed[begin])

    def inside(self, begin: int, end: int, task: int, *names: str) -> list[int]:
        """Return where a task enters functions between two positions."""
        entries = self.log.entries(*names)
        low, high = np.searchsorted(entries, [begin, end])
        return [int(at) for at in entries[low:high] if self.log.task(int(at)) == task]

    def each(self, name: str) -> Iterator[tuple[int, int, int]]:
        """Yield where each call of a function begins and has returned, and whose it is."""
        for at in self.log.entries(name).tolist():
            yield at, self.log.returns(at), self.log.task(at)

    def inclusive(self, name: str) -> list[int]:
        """Return what each call of a function takes."""
        return [self.took(task, begin, end) for begin, end, task in self.each(name)]


def loops(rows: Sequence[Row]) -> dict[str, Loop]:
    """Return the logs of loops by their kind."""
    return {row.key[0].removeprefix("loop-"): Loop(row.log) for row in rows}


def vfs(rows: Sequence[Row], filesystem: str) -> Values:
    """Return `call.*` of a filesystem; what btrfs does in its trees is counted there."""
    found: Values = {}
    for loop in loops(rows).values():
        for call in (call for call in loop.calls() if call.name in _NAMED):
            for part, instructions in _parts(loop, call).items():
                name = f"call.{_NAMED[call.name]}{part}"
                if part != "_under_i_rwsem" or call.name == "rename":
                    found.setdefault(f"{filesystem}.{name}", []).append(instructions)
    return found


def _parts(loop: Loop, call: Call) -> dict[str, int]:
    parts = cut(loop, call)
    if len(parts) == 1:
        return {"": parts[0]}
    return dict(zip(("_before_i_rwsem", "_under_i_rwsem", "_after_i_rwsem"), parts, strict=True))


def cut(loop: Loop, call: Call) -> list[int]:
    """Return what a call takes before, under and after the first `i_rwsem`; all of it if it takes none."""
    locks = loop.inside(call.begin, call.end, call.task, "down_write")
    unlocks = loop.inside(call.begin, call.end, call.task, "up_write")
    if not locks:
        return [loop.took(call.task, call.begin, call.end)]
    taken, released = locks[0], unlocks[-1]
    return [
        loop.took(call.task, call.begin, taken),
        loop.took(call.task, taken, released) - _in_trees(loop, call),
        loop.took(call.task, released, call.end),
    ]


def _in_trees(loop: Loop, call: Call) -> int:
    """What a rename or a link does in btrfs's trees."""
    searches = _searches(loop, call) if call.name in ("rename", "link") else []
    return sum(loop.took(call.task, locked, unlocked) for locked, unlocked in searches)


def _searches(loop: Loop, call: Call) -> list[tuple[int, int]]:
    """Where the root of a tree of btrfs is locked by each search, and where it is unlocked, if it is the leaf, too."""
    found: list[tuple[int, int]] = []
    for root in loop.inside(
        call.begin, call.end, call.task, "btrfs_read_lock_root_node", "btrfs_lock_root_node"
    ):
        locked = loop.inside(root, call.end, call.task, "down_read", "down_write")[0]
        unlocked = loop.inside(locked, call.end, call.task, "up_read", "up_write")[0]
        if found and loop.inside(found[-1][1], locked, call.task, "btrfs_read_lock_root_node") == []:
            found[-1] = (found[-1][0], unlocked)  # the search goes on with the root's write lock
        else:
            found.append((locked, unlocked))
    return found


def renames(rows: Sequence[Row]) -> list[list[int]]:
    """Return how the rest of each rename on btrfs lies between its searches: before each, and after the last."""
    loop, found = loops(rows)["rename"], []
    for call in (call for call in loop.calls() if call.name == "rename"):
        locked = loop.inside(call.begin, call.end, call.task, "down_write")[0]
        unlocked = loop.inside(call.begin, call.end, call.task, "up_write")[-1]
        ends = [locked, *(end for _, end in _searches(loop, call))]
        begins = [*(begin for begin, _ in _searches(loop, call)), unlocked]
        found.append([loop.took(call.task, *gap) for gap in zip(ends, begins, strict=True)])
    return found


def counted(rows: Sequence[Row], filesystem: str) -> Values:
    """Return the steps of one filesystem."""
    own = {"tmpfs": tmpfs, "ext4": ext4}
    return own[filesystem](rows) if filesystem in own else {}


def tmpfs(rows: Sequence[Row]) -> Values:
    """Return the steps of tmpfs's mkdir and rmdir."""
    found: Values = {"mkdir.under_i_rwsem": [], "rmdir.under_i_rwsem": [], "rmdir.evict": []}
    loop = loops(rows)["mkdir_rmdir"]
    for call in (call for call in loop.calls() if call.name in ("mkdir", "rmdir")):
        under = _parts(loop, call)["_under_i_rwsem"]
        evictions = loop.inside(call.begin, call.end, call.task, "iput") if call.name == "rmdir" else []
        evicted = sum(loop.took(call.task, at, loop.log.returns(at)) for at in evictions[-1:])
        found[f"{call.name}.under_i_rwsem"].append(under - evicted)
        if evictions:
            found["rmdir.evict"].append(evicted)
    return found | {"rmdir.softirq": [callbacks(rows)]}


def callbacks(rows: Sequence[Row]) -> int:
    """Return the instructions of RCU's callbacks in a turn of mkdir and rmdir."""
    (row,) = (row for row in rows if row.key[0] == "loop-mkdir_rmdir")
    batches = (int(row.log.instructions[at:end].sum()) for at, end, _ in Loop(row.log).each("rcu_do_batch"))
    return round(sum(batches) / row.what["operations"])


def d_move(rows: Sequence[Row]) -> Values:
    """Return what a rename does under `rename_lock`, which is the same on all filesystems."""
    return {"d_move": loops(rows)["rename"].inclusive("d_move")}


def ext4(rows: Sequence[Row]) -> Values:
    """Return what ext4's allocator takes (`mballoc.*`)."""
    loop = loops(rows)["mkdir_rmdir"]
    found: Values = {"mballoc.load_buddy": [], "mballoc.mark_used": [], "mballoc.get_write_access": []}
    found |= {"mballoc.mark_diskspace": [], "mballoc.dirty_metadata": []}
    for begin, end, task in loop.each("ext4_mb_new_blocks"):
        _allocation(loop, begin, end, task, found)
    frees = list(loop.each("ext4_free_blocks"))
    freed = [loop.took(task, begin, end) for begin, end, task in frees]
    marks = [_under_group(loop, *call)[0] for call in frees]
    found["mballoc.free_blocks"] = [all_ - mark for all_, mark in zip(freed, marks, strict=True)]
    truncated = loop.inclusive("ext4_truncate")
    found["mballoc.remove_space"] = [t - free for t, free in zip(truncated, freed, strict=True)]
    found["mballoc.scan_piece"] = _outside(loop, "ext4_mb_complex_scan_group")
    return found | {"mballoc.scan_word": [_turn(loop, "_find_next_bit")]}


def _under_group(loop: Loop, begin: int, end: int, task: int) -> list[int]:
    """What is executed under the lock of a group, each time it is taken."""
    locks = loop.inside(begin, end, task, "_raw_spin_trylock")
    return [loop.took(task, at, _unlocked(loop, at, end, task)) for at in locks]


def _unlocked(loop: Loop, locked: int, end: int, task: int) -> int:
    return loop.inside(locked, end, task, "_raw_spin_unlock")[0]


def _allocation(loop: Loop, begin: int, end: int, task: int, found: Values) -> None:
    """Two locks of the group: what the search looks at in the first is counted apart."""
    search, mark = loop.inside(begin, end, task, "_raw_spin_trylock")[:2]
    (scan,) = loop.inside(begin, end, task, "ext4_mb_complex_scan_group")
    (best,) = loop.inside(begin, end, task, "ext4_mb_use_best_found")
    unlocked, marked = (_unlocked(loop, at, end, task) for at in (search, mark))
    for name, first, last in (
        ("load_buddy", begin, search),
        ("get_write_access", unlocked, mark),
        ("mark_diskspace", mark, marked),
        ("dirty_metadata", marked, end),
    ):
        found[f"mballoc.{name}"].append(loop.took(task, first, last))
    used = loop.took(task, search, scan) + loop.took(task, best, unlocked)
    found["mballoc.mark_used"].append(used)


def _outside(loop: Loop, scan: str) -> list[int]:
    """What a piece takes in a search, besides the bits that are looked at and what is done with the best."""
    found = []
    for begin, end, task in loop.each(scan):
        inner = loop.inside(
            begin, end, task, "_find_next_bit", "_find_next_zero_bit", "ext4_mb_use_best_found"
        )
        rest = loop.took(task, begin, end) - sum(loop.took(task, at, loop.log.returns(at)) for at in inner)
        found.append(round(rest / len(loop.inside(begin, end, task, "mb_find_extent"))))
    return found


def _turn(loop: Loop, function: str) -> int:
    """What a turn of a function's loop takes: how often it turns is how often its most frequent block is executed."""
    log = loop.log
    inside = np.array([name.partition(".")[0] == function for name in log.symbols.names])[log.function]
    _, times = np.unique(log.pc[inside], return_counts=True)
    return round(int(log.instructions[inside].sum()) / int(times.max()))
