"""The XFS structures against the real thing.

Geometry and fresh filesystems against ``mkfs.xfs`` and ``xfs_db``, for sizes and counts from Hypothesis;
and, if asked, creates and unlinks against the running kernel.
"""

from __future__ import annotations

import fcntl
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
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from simfs import _engine, interchange
from simfs.scenario.sections.filesystem import DIRECTORY_BLOCKS, LOG_STRIPES

MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40


def xfsprogs_version() -> str:
    if not shutil.which("mkfs.xfs") or not shutil.which("xfs_db"):
        return ""
    run = subprocess.run(["mkfs.xfs", "-V"], capture_output=True, text=True, check=True)
    return run.stdout.split()[-1]


VERSION = xfsprogs_version()
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not VERSION, reason="needs mkfs.xfs and xfs_db (Debian: apt-get install xfsprogs)"),
    pytest.mark.skipif(
        bool(VERSION) and not VERSION.startswith("6.1."),
        reason=f"the geometry is that of xfsprogs 6.1 (Debian 12), and this is {VERSION}",
    ),
]

# Sparse files: most filesystems allow 16 TiB, some less; a size that is refused is not tried.
SIZES = st.one_of(
    st.integers(300 * MIB, 2 * GIB),
    st.integers(300 * MIB, 64 * GIB).map(lambda size: size // 4096 * 4096),
    st.integers(64, 8192).map(lambda size: size * GIB),
    st.integers(290 * MIB, 310 * MIB),
)
AGCOUNTS = st.one_of(st.none(), st.integers(1, 64), st.integers(1, 2000))
FIXTURES = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "xfs.img"
    yield path
    path.unlink(missing_ok=True)


def make(image: Path, size: int, agcount: int | None, *options: str) -> subprocess.CompletedProcess[str]:
    with image.open("wb") as file:
        file.truncate(size)
    groups = [] if agcount is None else ["-d", f"agcount={agcount}"]
    command = ["mkfs.xfs", "-f", *options, *groups, str(image)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def ours(report: str, size: int, agcount: int | None) -> dict[str, Any]:
    request = {"report": report, "size_bytes": size, "agcount": agcount}
    answer: dict[str, Any] = json.loads(_engine.structure_report(json.dumps(request)))
    return answer


def number(text: str, pattern: str) -> int:
    match = re.search(pattern, text)
    assert match, f"no {pattern!r} in {text}"
    return int(match[1])


def db(image: Path, *commands: str) -> str:
    arguments = [argument for command in commands for argument in ("-c", command)]
    run = subprocess.run(["xfs_db", "-r", *arguments, str(image)], capture_output=True, text=True, check=True)
    return run.stdout


@pytest.mark.slow
@FIXTURES
@given(size=SIZES, agcount=AGCOUNTS)
@example(size=8 * GIB, agcount=49)
@example(size=4 * TIB, agcount=None)
@example(size=4 * TIB - 4096, agcount=None)
@example(size=15 * TIB, agcount=None)
@example(size=GIB, agcount=15)
@example(size=GIB, agcount=16)
def test_geometry_is_that_of_mkfs(image: Path, size: int, agcount: int | None) -> None:
    try:
        run = make(image, size, agcount, "-N")
    except OSError:
        return  # the filesystem under the test cannot hold a sparse file of this size
    if run.returncode != 0:
        with pytest.raises(ValueError, match=r"\w"):
            ours("xfs_geometry", size, agcount)
        return
    found = ours("xfs_geometry", size, agcount)
    assert found["agcount"] == number(run.stdout, r"agcount=(\d+)")
    assert found["agsize_blocks"] == number(run.stdout, r"agsize=(\d+) blks")
    assert found["blocks"] == number(run.stdout, r"data .* blocks=(\d+)")
    assert found["log_blocks"] == number(run.stdout, r"internal log .* blocks=(\d+)")


@pytest.mark.parametrize(
    ("options", "unit"),
    [
        ("", None),
        ("-d su=64k,sw=4", 64 << 10),
        ("-d su=256k,sw=4", 256 << 10),
        ("-d su=512k,sw=4", 32 << 10),
        ("-s size=4096", 4 << 10),
        ("-s size=4096 -d su=512k,sw=4", 4 << 10),
    ],
)
def test_the_stripe_unit_of_a_log_is_that_of_the_device_unless_its_sectors_are_large(
    image: Path, options: str, unit: int | None
) -> None:
    made = make(image, GIB, None, "-N", *options.split())
    assert interchange.read(made.stdout).facts.get("log_su") == (f"{unit} B" if unit else None)


@pytest.mark.parametrize("unit", LOG_STRIPES)
def test_mkfs_makes_a_log_with_each_stripe_unit(image: Path, unit: int) -> None:
    made = make(image, GIB, None, "-N", "-l", f"su={unit}")
    assert interchange.read(made.stdout).facts["log_su"] == f"{unit} B"


@pytest.mark.parametrize("size", [2048, *DIRECTORY_BLOCKS, 128 << 10])
def test_mkfs_makes_directories_with_blocks_of_these_sizes_and_of_no_others(image: Path, size: int) -> None:
    assert (make(image, GIB, None, "-N", "-n", f"size={size}").returncode == 0) == (size in DIRECTORY_BLOCKS)


@pytest.mark.slow
@settings(FIXTURES, max_examples=12)
@given(size=st.integers(300 * MIB, 4 * GIB), agcount=st.one_of(st.none(), st.integers(2, 20)))
def test_fresh_filesystem_is_that_of_mkfs(image: Path, size: int, agcount: int | None) -> None:
    run = make(image, size, agcount, "-q")
    if run.returncode != 0:
        return
    geometry, fresh = ours("xfs_geometry", size, agcount), ours("xfs_fresh", size, agcount)
    superblock = db(image, "sb 0", "print rootino agblklog inoalignmt logstart agcount")
    assert geometry["root_ino"] == number(superblock, r"rootino = (\d+)")
    assert geometry["agblklog"] == number(superblock, r"agblklog = (\d+)")
    assert geometry["inoalignmt_blocks"] == number(superblock, r"inoalignmt = (\d+)")
    log = geometry["log_start_agno"] << geometry["agblklog"] | geometry["log_start_agbno"]
    assert log == number(superblock, r"logstart = (\d+)")
    for agno, group in enumerate(fresh["groups"]):
        records = db(image, f"agf {agno}", "addr bnoroot", "print recs")
        extents = [[int(a), int(b)] for a, b in re.findall(r"\d+:\[(\d+),(\d+)\]", records)]
        assert group["free_extents"] == extents
        assert len(group["agfl_agbnos"]) == number(db(image, f"agf {agno}", "print flcount"), r"= (\d+)")
        free_list = db(image, f"agfl {agno}", "print").split("bno[")[1]
        assert group["agfl_agbnos"] == [int(block) for block in re.findall(r"\d+:(\d+)\b", free_list)]
    chunks = db(image, "agi 0", "addr root", "print recs")
    (chunk,) = fresh["groups"][0]["chunks"]
    assert chunk["holemask"] == 0
    expected = f"1:[{chunk['startino']},0,{chunk['count']},{chunk['freecount']},{chunk['free']}]"
    assert expected in chunks


@pytest.mark.parametrize(
    ("size", "agcount", "reason"),
    [
        (299 * MIB, None, "300 MiB"),
        (8 * GIB, 0, "agcount 0"),
        (8 * GIB, 1, "at least two"),
        (8 * GIB, 600, "smaller than 16 MiB"),
        (8 * GIB, 200, "smallest log"),
        (8 * TIB, 4, "below 1 TiB"),
    ],
)
def test_what_mkfs_refuses_is_refused(image: Path, size: int, agcount: int | None, reason: str) -> None:
    assert make(image, size, agcount, "-N").returncode != 0
    with pytest.raises(ValueError, match=reason):
        ours("xfs_geometry", size, agcount)


# The same random creates and unlinks on a mounted filesystem. Asks for root and for the word of the user.

FIFREEZE, FITHAW = 0xC0045877, 0xC0045878
MOUNT = os.environ.get("SIMFS_MOUNT_XFS", "")
NO_MOUNT = f"SIMFS_MOUNT_XFS={MOUNT}" if MOUNT else "needs a loop mount: set SIMFS_MOUNT_XFS=1, as root"


def settle(root: Path) -> None:
    """Freezing makes the kernel free all unlinked inodes and forget about busy extents."""
    handle = os.open(root, os.O_RDONLY)
    try:
        fcntl.ioctl(handle, FIFREEZE, 0)
        fcntl.ioctl(handle, FITHAW, 0)
    finally:
        os.close(handle)


def on_the_kernel(root: Path, steps: list[dict[str, Any]]) -> list[int]:
    """Does the steps; the inode number of each."""
    inos = []
    for step in steps:
        path = root / step["name"] if step["op"] == "mkdir" else root / f"d{step['dir']}" / step["name"]
        if step["op"] == "mkdir":
            path.mkdir()
        elif step["op"] == "create":
            path.touch(exist_ok=False)
        inos.append(path.stat().st_ino)
        if step["op"] == "unlink":
            path.unlink()
            settle(root)
    return inos


@pytest.mark.skipif(MOUNT != "1", reason=NO_MOUNT)
@pytest.mark.parametrize(("seed", "count", "names"), [(1, 60, 40), (2, 600, 500), (3, 4000, 9000)])
@pytest.mark.parametrize("dirblksize", DIRECTORY_BLOCKS)
def test_creates_and_unlinks_are_those_of_the_kernel(
    image: Path, dirblksize: int, seed: int, count: int, names: int
) -> None:
    steps = random_steps(seed, count, names, lambda i: 0.7 if 5 * i // count % 2 else 0.2)
    assert make(image, GIB, 4, "-q", "-n", f"size={dirblksize}").returncode == 0
    root = image.parent / "mounted"
    root.mkdir()
    subprocess.run(["mount", "-o", "loop", str(image), str(root)], check=True)
    try:
        inos = on_the_kernel(root, steps)
    finally:
        subprocess.run(["umount", str(root)], check=True)
    request = {
        "report": "xfs_script",
        "size_bytes": GIB,
        "agcount": 4,
        "dirblksize": dirblksize,
        "steps": steps,
    }
    found = json.loads(_engine.structure_report(json.dumps(request)))
    assert found["inos"] == inos
    for ino, blocks, extents in zip(inos[:2], found["dir_blocks"], found["dir_maps"], strict=True):
        fields = ("core.format", "core.size", "core.nblocks", "core.nextents")
        inode = db(image, f"inode {ino}", f"print {' '.join(fields)}", "bmap")
        assert {field: blocks[field] for field in fields} == {
            field: number(inode, rf"{re.escape(field)} = (\d+)") for field in fields
        }
        mapped = re.findall(r"data offset (\d+) startblock (\d+) \(\d+/\d+\) count (\d+)", inode)
        assert extents == [[int(field) for field in extent] for extent in mapped]
    for agno, extents in enumerate(found["free_extents"]):
        records = db(image, f"agf {agno}", "addr bnoroot", "print recs")
        assert extents == [[int(a), int(b)] for a, b in re.findall(r"\d+:\[(\d+),(\d+)\]", records)]
