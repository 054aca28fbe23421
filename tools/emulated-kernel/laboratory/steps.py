"""The steps of operations in a guest's trace, named as in `models/traces`, and the instructions that each takes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from laboratory.blocks import Log

_LINE = re.compile(r"\s*(.+)-(\d+)\s+\[\d+\]\s+\S+\s+(\d+): (\w+)(: | -> |\()(.*)")
_INODE = re.compile(r"ino (0x[0-9a-f]+) flags (\S+)")
_BUFFER = re.compile(r"bufops (\w+)_buf_ops")
_TREE = re.compile(r"owner=(-?\d+)")
_BUFFERS = {
    "xfs_da3_node": "dir_da_node",
    "xfs_dir3_leafn": "dir_leafn",
    "xfs_dir3_leaf1": "dir_leaf1",
    "xfs_dir3_data": "dir_data",
    "xfs_dir3_data_reada": "dir_data",
    "xfs_dir3_free": "dir_freeindex",
    "xfs_dir3_block": "dir_block",
    "xfs_inode": "inode_cluster",
    "xfs_inode_ra": "inode_cluster",
}
_BUFFER_EVENTS = {"lock_done": "lock", "trylock": "trylock", "unlock": "unlock"}
_INODE_EVENTS = {"xfs_ilock": "lock", "xfs_ilock_nowait": "try", "xfs_iunlock": "unlock"}
_TREE_EVENTS = {
    "btrfs_tree_lock": "write_lock",
    "btrfs_tree_read_lock": "read_lock",
    "btrfs_try_tree_read_lock": "try_read_lock",
    "btrfs_tree_unlock": "write_unlock",
    "btrfs_tree_read_unlock": "read_unlock",
}
_TREES = {1: "root", 2: "extent", 3: "chunk", 4: "dev", 5: "fs", 7: "csum", 10: "free_space"}
_CALLS = {"unlink": "unlinkat", "open": "openat", "mkdir": "mkdirat", "rename": "renameat"}
_NAMES = {"jbd2_handle_stats": "jbd2_handle_stop"}
_SILENT = ("sched_switch", "contention_begin", "contention_end")


@dataclass(frozen=True)
class Step:
    """An event of a task that begins or ends a step; `executed` is the instructions of its task before it."""

    task: str
    pid: int
    name: str
    executed: int
    position: int


def steps(lines: Iterable[str], log: Log, directory: str) -> Iterator[Step]:
    """Yield the steps of a trace with the clock x86-tsc; `directory` is the number of the inode that names are in."""
    for line in lines:
        if (found := _LINE.match(line)) is None:
            continue
        task, pid, ns, event, arrow, rest = found.groups()
        name = _name(event, arrow, rest, directory)
        if name:
            position = log.position(int(ns))
            executed = log.executed(log.task(position))[position]
            yield Step(task, int(pid), name, int(executed), position)


def _name(event: str, arrow: str, rest: str, directory: str) -> str | None:
    if event.startswith("sys_"):
        call = event.removeprefix("sys_")
        return f"{'exit' if arrow == ' -> ' else 'enter'}_{_CALLS.get(call, call)}"
    if event in _INODE_EVENTS:
        return _inode_lock(event, rest, directory)
    if event.startswith("xfs_buf_"):
        return _buffer_lock(event, rest)
    if event in _TREE_EVENTS:
        owner = int(_TREE.search(rest)[1])  # type: ignore[index]
        return f"{_TREE_EVENTS[event]}_{_TREES.get(owner, 'fs' if owner >= 256 else 'log')}_l0"
    if event in _SILENT:
        return None
    return _NAMES.get(event, event.removeprefix("xfs_").removeprefix("btrfs_"))


def _inode_lock(event: str, rest: str, directory: str) -> str | None:
    if (found := _INODE.search(rest)) is None:
        return None
    flags = [flag for flag in found[2].split("|") if not flag.startswith("0x")]
    if not flags:
        return None
    which = "dir" if found[1] == directory else "file"
    return f"{_INODE_EVENTS[event]}_{which}_{'_'.join(flags).lower()}"


def _buffer_lock(event: str, rest: str) -> str | None:
    act = _BUFFER_EVENTS.get(event.removeprefix("xfs_buf_"))
    found = _BUFFER.search(rest)
    if act is None or found is None:
        return None
    return f"{act}_{_BUFFERS.get(found[1], found[1].removeprefix('xfs_'))}"


def operations(all_steps: Iterable[Step], first: str) -> Iterator[list[Step]]:
    """Yield the steps of each operation: of one task, from one `first` to before its next."""
    under_way: dict[int, list[Step]] = {}
    for step in all_steps:
        if step.name == first:
            if begun := under_way.get(step.pid):
                yield begun
            under_way[step.pid] = []
        if step.pid in under_way:
            under_way[step.pid].append(step)
    yield from under_way.values()


def numbered(names: Iterable[str]) -> tuple[str, ...]:
    """Return names with `_2` and so on after those that were there before."""
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        seen[name] += 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return tuple(result)


def count(op: Sequence[Step], order: Sequence[str], per_event: float) -> dict[str, int]:
    """Return the instructions of each step of a group after its first, as one operation took them.

    What the operation does besides belongs to the next step that both have; a step that it has not takes none. So the
    sum is right. `per_event` is what a tracepoint that is switched on takes besides the tracer.
    """
    plain = [_plain(name, order) for name in order]
    found = dict.fromkeys(order[1:], 0)
    last: int | None = None
    matcher = SequenceMatcher(a=[step.name for step in op], b=plain, autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        for i in range(size):
            if last is not None:
                gap = op[a + i].executed - op[last].executed - per_event * (a + i - last)
                found[order[b + i]] = max(0, round(gap))
            last = a + i
    return found


def likeness(op: Sequence[Step], order: Sequence[str]) -> float:
    """Return how much of an operation's steps and a group's are the same, 0 to 1."""
    plain = [_plain(name, order) for name in order]
    return SequenceMatcher(a=[step.name for step in op], b=plain, autojunk=False).ratio()


def _plain(name: str, order: Sequence[str]) -> str:
    plain = re.sub(r"_\d+$", "", name)
    return plain if plain in order else name
