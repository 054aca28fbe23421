"""The btrfs tree against the real thing.

Keys and sizes of items against ``mkfs.btrfs --rootdir``; and, if asked, creates and unlinks against the running
kernel: the same blocks with the same items in the same places.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from directory_steps import random_steps

from simfs import _engine

SIZE = 16 << 30
"""Sparse. On a small filesystem the kernel flushes delayed items early, for want of room."""

Block = dict[str, Any]

HAS_TOOLS = bool(shutil.which("mkfs.btrfs") and shutil.which("btrfs"))
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(
        not HAS_TOOLS, reason="needs mkfs.btrfs and btrfs (Debian: apt-get install btrfs-progs)"
    ),
]
MOUNT = os.environ.get("SIMFS_MOUNT_BTRFS", "")
NO_MOUNT = f"SIMFS_MOUNT_BTRFS={MOUNT}" if MOUNT else "needs a loop mount: set SIMFS_MOUNT_BTRFS=1, as root"


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "btrfs.img"
    with path.open("wb") as file:
        file.truncate(SIZE)
    yield path
    path.unlink(missing_ok=True)


def run(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def ours(request: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(_engine.structure_report(json.dumps(request)))
    return answer


def dump(image: Path) -> list[Block]:
    """The blocks of the subvolume in depth-first order, as the engine's report writes them."""
    blocks: list[Block] = []
    text = run("btrfs", "inspect-internal", "dump-tree", "--noscan", "-t", "5", image)
    for line in text.splitlines():
        if leaf := re.match(r"leaf \d+ items \d+ free space (\d+)", line):
            blocks.append({"level": 0, "items": [], "free": int(leaf[1])})
        elif node := re.match(r"node \d+ level (\d+) items (\d+)", line):
            blocks.append({"level": int(node[1]), "items": int(node[2])})
        elif item := re.match(r"\titem \d+ key \((\S+) (\S+) (\S+)\) itemoff \d+ itemsize (\d+)", line):
            blocks[-1]["items"].append([int(item[1]), item[2], int(item[3]), int(item[4])])
    return blocks


def items(blocks: list[Block]) -> list[Any]:
    return [item for block in blocks if block["level"] == 0 for item in block["items"]]


def test_items_of_files_are_those_of_mkfs(image: Path, tmp_path: Path) -> None:
    names = ["a", "some-file.c", "x" * 255, "cc0a1b2c.s"]
    source = tmp_path / "source"
    (source / "d").mkdir(parents=True)
    for name in names:
        (source / "d" / name).touch()
    run("mkfs.btrfs", "-q", "--rootdir", source, image)
    steps = [{"op": "mkdir", "name": "d"}] + [{"op": "create", "dir": 0, "name": name} for name in names]
    found = ours({"report": "btrfs_script", "steps": steps})

    # mkfs numbers inodes and entries in an order of its own: compare kinds, sizes, and hashes of names.
    def plain(items: list[Any]) -> list[tuple[str, int, int]]:
        return sorted((kind, offset if kind == "DIR_ITEM" else 0, size) for _, kind, offset, size in items)

    assert plain(items(found["blocks"])) == plain(items(dump(image)))


def test_a_new_subvolume_is_that_of_mkfs(image: Path) -> None:
    run("mkfs.btrfs", "-q", image)
    assert ours({"report": "btrfs_script", "steps": []})["blocks"] == dump(image)


def on_the_kernel(root: Path, steps: list[dict[str, Any]]) -> list[int]:
    """Does the steps; the inode number of each that makes one."""
    inos = []
    for step in steps:
        match step:
            case {"op": "mkdir", "name": name}:
                (root / name).mkdir()
                inos.append((root / name).stat().st_ino)
            case {"op": "create", "dir": directory, "name": name}:
                path = root / f"d{directory}" / name
                path.touch(exist_ok=False)
                inos.append(path.stat().st_ino)
            case {"op": "unlink", "dir": directory, "name": name}:
                path = root / f"d{directory}" / name
                inos.append(path.stat().st_ino)
                path.unlink()
            case _:
                run("sync", "-f", root)
    return inos


@pytest.mark.skipif(MOUNT != "1", reason=NO_MOUNT)
@pytest.mark.parametrize(
    ("seed", "count", "names", "commit_every"),
    [(1, 60, 40, 7), (2, 900, 900, 30), (3, 6000, 40_000, 40), (4, 30_000, 400_000, 60)],
)
def test_creates_and_unlinks_are_those_of_the_kernel(
    image: Path, seed: int, count: int, names: int, commit_every: int
) -> None:
    # It grows, shrinks and grows again. Commits keep the kernel's delayed-item worker out: when that runs is chance.
    steps = random_steps(seed, count, names, lambda i: 0.85 if 3 * i // count == 1 else 0.1, commit_every)
    run("mkfs.btrfs", "-q", image)
    root = image.parent / "mounted"
    root.mkdir()
    run("mount", "-o", "loop,commit=3000", image, root)  # no commit but ours
    try:
        inos = on_the_kernel(root, steps)
    finally:
        run("umount", root)
    found = ours({"report": "btrfs_script", "steps": steps})
    assert found["inos"] == inos
    real = dump(image)
    assert items(found["blocks"]) == items(real)
    assert found["blocks"] == real
