"""The locks that one task takes in an operation, from a trace.

`+x` takes x, `~x` takes it shared, `-x` releases it, and between them `.` stands for time that goes by.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from simfs import _engine
from simfs.scenario import expand, load, to_run_spec

_scratch = TemporaryDirectory()

SIGNS = {"acquire": "+", "acquire shared": "~", "release": "-", "release shared": "-"}

SHORT = {
    "vfs.i_rwsem (directory)": "i_rwsem(dir)",
    "vfs.i_rwsem (file)": "i_rwsem",
    "xfs.ILOCK (directory)": "ILOCK(dir)",
    "xfs.ILOCK (file)": "ILOCK",
    "xfs.directory block": "dirblock",
    "btrfs.directory log_mutex": "log_mutex(dir)",
}
"""Shorter names of classes than those without their filesystem."""

MEANWHILE = (
    "wait_lock", "rename_lock.lock", "inode_hash_lock", "s_inode_list_lock", "stat_lock", "dentry", "private_lock",
)  # fmt: skip
"""What locks bring with them, and what caches of all filesystems take."""


def operations(
    filesystem: str, *names: str, kernel: str, warmup_ms: float = 20, run_ms: float = 10, file_size: str = ""
) -> dict[str, Counter[str]]:
    """How often each operation of one task took its locks in which way; the operations follow each other in turn.

    Reads write no access times, which would be locks of what was changed before.
    """
    device = "" if filesystem == "tmpfs" else "device: nvme\n"
    size = f"file_size: {file_size}, " if file_size else ""
    listed = ", ".join(f"{{op: {name}}}" for name in names)
    text = (
        f"simfs: 1\nname: a\ntitle: a\nmachine: {{profile: server-24, cpus: 2}}\n"
        f"kernel: {{profile: {kernel}, rules: {{vfs.atime: noatime}}}}\n{device}"
        f"filesystem: {{kind: {filesystem}}}\n"
        f"workload: {{kind: mix, tasks: 1, files: 400, {size}order: in-turn, operations: [{listed}]}}\n"
    )
    return traced(text, warmup_ms=warmup_ms, run_ms=run_ms)


def traced(text: str, *, warmup_ms: float, run_ms: float) -> dict[str, Counter[str]]:
    """The same of a scenario's only point."""
    path = Path(_scratch.name) / "a.yaml"
    path.write_text(text)
    (point,) = expand(load(path))
    spec = to_run_spec(point, 0) | {"warmup_ns": warmup_ms * 1e6, "duration_ns": run_ms * 1e6}
    _, events = _engine.trace(json.dumps(spec), start=round(warmup_ms * 1e9))
    found: dict[str, Counter[str]] = {}
    steps: dict[int, list[str]] = {}
    last: dict[int, int] = {}
    for time, task, _, what, about in events:
        if task is None:
            continue
        if what == "begin":
            steps[task] = []
        elif what == "end" and task in steps:
            found.setdefault(about, Counter())[" ".join(steps.pop(task))] += 1
        elif what in SIGNS and task in steps and (lock := short(about.rsplit("#", 1)[0])):
            if steps[task] and time > last[task]:
                steps[task].append(".")
            steps[task].append(SIGNS[what] + lock)
            last[task] = time
    return found


@cache
def short(lock: str) -> str:
    """A lock's class, where that says enough without its filesystem; nothing for what comes with other locks."""
    if any(name in lock for name in MEANWHILE):
        return ""
    return SHORT.get(lock, lock.split(".", 1)[1]).replace(" tree ", ".").replace(" ", "_")
