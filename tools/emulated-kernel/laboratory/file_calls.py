"""What calls of the loops of tools/file-operations take, by one task: the VFS's `call.*`, and XFS's blocks of names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean, median
from typing import TYPE_CHECKING

from laboratory.loops import CUT, WHERE, Call, Loop, cut, loops
from laboratory.plan import LISTED

if TYPE_CHECKING:
    from laboratory.counted import Row, Values

PLAIN = {
    "stat_missing": "newfstatat",
    "fstat": "newfstatat",
    "statfs": "statfs",
}
"""Loops that are one call."""
LARGE = 16
"""Pages of a large read or write (guest/files.c)."""
SOURCES = {
    "call.open_": f"open of a file that is there{WHERE}from the entry into the kernel to vfs_open, to user code",
    "call.stat_missing": f"stat of a name that is not there, asked for before{WHERE}the whole call",
    "call.fstat": f"fstat{WHERE}the whole call",
    "call.statfs": f"statfs{WHERE}the whole call",
    "call.lookup": f"a fourth of a stat of a file three directories down less an fstat{WHERE}whole calls",
    "call.lock_range": f"fcntl F_SETLK of a byte, write lock{WHERE}the whole call",
    "call.unlock_range": f"fcntl F_SETLK, the unlock{WHERE}the whole call",
    "call.readdir": f"opendir, getdents, closedir of a directory of 2 names less the names{WHERE}whole calls",
    "call.readdir_name": f"a name more in it, from 2 to 64{WHERE}whole calls",
    "call.read": f"a read of 4 KiB that are cached, less one page{WHERE}the whole call",
    "call.read_page": f"a page more of a read, from 4 to 64 KiB{WHERE}whole calls",
    "call.overwrite": f"a write over 4 KiB that are cached, less one page{WHERE}the whole call",
    "call.overwrite_page": f"a page more of a write over cached pages, from 4 to 64 KiB{WHERE}whole calls",
    "call.append_page": f"a page more of a write at the end, from 4 to 64 KiB{WHERE}whole calls",
    "call.read_folio": f"a page more of a read, a folio of its own, from 4 to 64 KiB{WHERE}whole calls",
    "call.overwrite_folio": f"the same of a write over cached pages{WHERE}whole calls",
    "call.append_folio": f"the same of a write at the end{WHERE}whole calls",
    "call.drop_folio": f"a folio more in an ftruncate to nothing, by two sizes{WHERE}truncate_inode_pages_range",
    "call.chown": f"chown less chmod, medians{WHERE}whole calls",
    "call.setattr": f"utimensat{WHERE}{CUT}",
    "call.link": f"link{WHERE}{CUT}",
}


def counted(rows: Sequence[Row], directories: Sequence[Row], filesystem: str) -> Values:
    """Return `call.*` of a filesystem, of the loops and of those on directories of few names."""
    logs = _named(rows)
    found = {f"call.{name}": took(logs[name], call) for name, call in PLAIN.items()}
    found |= opens(logs["open"])
    fstat, stat = mean(found["call.fstat"]), took(logs["stat"], "newfstatat")
    found["call.lookup"] = [round((whole - fstat) / 4) for whole in stat]
    locks = took(logs["lock"], "fcntl")
    found |= {"call.lock_range": locks[::2], "call.unlock_range": locks[1::2]}
    small, large, linked = (Loop(row.log) for row in directories)
    found |= listing(small, large) | pages(logs)
    found |= folios(logs) if filesystem == "ext4" else {}
    found["call.drop_folio"] = [drop_folio(logs, filesystem)[0]]
    found["call.chown"] = [round(median(took(logs["chown"], "chown")) - median(took(logs["chmod"], "chmod")))]
    for parts in (cut(logs["utimes"], call) for call in logs["utimes"].calls() if call.name == "utimensat"):
        found.setdefault("call.setattr_before_i_rwsem", []).append(parts[0])
        found.setdefault("call.setattr_under_i_rwsem", []).append(sum(parts[1:]))
    for parts in (cut(linked, call) for call in linked.calls() if call.name == "link"):
        for where, instructions in zip(("before", "under", "after"), parts, strict=True):
            found.setdefault(f"call.link_{where}_i_rwsem", []).append(instructions)
    return {f"{filesystem}.{name}": taken for name, taken in found.items()}


def opens(loop: Loop) -> Values:
    """Return the walk of an `open` and its rest; the last one is of the loop's end."""
    found: Values = {"call.open_walk": [], "call.open_rest": []}
    for call in [call for call in loop.calls() if call.name == "openat"][:-1]:
        for at in loop.inside(call.begin, call.end, call.task, "vfs_open")[:1]:
            found["call.open_walk"].append(loop.took(call.task, call.begin, at))
            found["call.open_rest"].append(loop.took(call.task, at, call.end))
    return found


def _named(rows: Sequence[Row]) -> dict[str, Loop]:
    """Return the logs by loop, whether it is in an own directory or not."""
    return {kind.removeprefix("own:"): loop for kind, loop in loops(rows).items()}


BLOCK_PARTS = {
    "look": "xfs_dir_lookup_args",
    "add": "xfs_dir_createname_args",
    "remove": "xfs_dir_removename_args",
    "commit": "__xfs_trans_commit",
}
_BLOCK = f"link and unlink in a directory of 64 names, in a block, less the same in an empty one{WHERE}"
BLOCK_SOURCES = {f"dir_block.{name}": f"{_BLOCK}{function}" for name, function in BLOCK_PARTS.items()}


def block_directory(rows: Sequence[Row], directories: Sequence[Row]) -> Values:
    """Return what XFS's parts of a link and an unlink take more where the directory has a block."""
    block, short = loops(rows)["own:link_unlink"], Loop(directories[-1].log)
    found: Values = {}
    for name, function in BLOCK_PARTS.items():
        few, many = (median(loop.inclusive(function)) for loop in (short, block))
        found[f"dir_block.{name}"] = [round(many - few)]
    return found


_TRUNCATED = "an ftruncate to nothing of 4 pages, each by a write, less those"
TRUNCATE_SOURCES = {"truncate.pages": f"{_TRUNCATED}{WHERE}truncate_inode_pages_range"}
SMALL = 4
"""Writes of a page before the truncation of `append_truncate`."""


def truncations(rows: Sequence[Row], filesystem: str) -> Values:
    """Return what a truncation takes once to drop pages."""
    logs = _named(rows)
    return {"truncate.pages": [drop_folio(logs, filesystem)[1]]}


def drop_folio(logs: dict[str, Loop], filesystem: str) -> tuple[int, int]:
    """Return what a truncation takes for each folio and once; a large write makes one folio on XFS."""
    few, many = logs["append_truncate"], logs["truncate_large"]
    if filesystem == "tmpfs":
        small, large = (median(took(loop, "ftruncate")) for loop in (few, many))
    else:
        small, large = (median(loop.inclusive("truncate_inode_pages_range")) for loop in (few, many))
    each = round((large - small) / ((1 if filesystem == "xfs" else LARGE) - SMALL))
    return each, round(small - SMALL * each)


NEW_TIMES_SOURCES = {
    "wfsync.dirty_inode": f"overwrite of 4 KiB that gives its file new times less one that does not{WHERE}whole calls"
}


def new_times(rows: Sequence[Row]) -> Values:
    """Return what an overwrite on ext4 takes to have new times written, with the handle."""
    loop = _named(rows)["overwrite"]
    plain: list[int] = []
    timed: list[int] = []
    for call in (call for call in loop.calls() if call.name == "pwrite64"):
        dirties = loop.inside(call.begin, call.end, call.task, "ext4_dirty_inode")
        (timed if dirties else plain).append(loop.took(call.task, call.begin, call.end))
    return {"wfsync.dirty_inode": [taken - round(mean(plain)) for taken in timed]}


def took(loop: Loop, name: str) -> list[int]:
    """Return what each call of this name takes."""
    return [loop.took(call.task, call.begin, call.end) for call in loop.calls() if call.name == name]


def listing(small: Loop, large: Loop) -> Values:
    """Return what each name of a listing takes, and the rest of it."""
    few, many = (
        [sum(loop.took(call.task, call.begin, call.end) for call in calls) for calls in _listings(loop)]
        for loop in (small, large)
    )
    name = (mean(many) - mean(few)) / (LISTED[1] - LISTED[0])
    return {
        "call.readdir": [taken - round(LISTED[0] * name) for taken in few],
        "call.readdir_name": [round(name)],
    }


def _listings(loop: Loop) -> Iterator[list[Call]]:
    """Yield the calls from one `opendir` to its `closedir`."""
    calls: list[Call] = []
    for call in sorted(loop.calls(), key=lambda call: call.begin):
        calls.append(call)
        if call.name == "close":
            if any(each.name == "getdents64" for each in calls):
                yield calls
            calls = []


def small_folios(rows: Sequence[Row]) -> Values:
    """Return the same of XFS from a kernel in which it gets no large folios."""
    return {f"xfs.{name}": taken for name, taken in folios(_named(rows)).items()}


def folios(logs: dict[str, Loop]) -> Values:
    """Return what a page more takes where each page is a folio of its own."""
    return {
        name.replace("page", "folio"): taken for name, taken in pages(logs).items() if name.endswith("_page")
    }


def pages(logs: dict[str, Loop]) -> Values:
    """Return what a page more takes, and reads and writes without pages; inodes' times change only now and then."""
    found: Values = {}
    for name, call in (("read", "pread64"), ("overwrite", "pwrite64")):
        small, large = (min(took(logs[loop], call)) for loop in (name, f"{name}_large"))
        page = round((large - small) / (LARGE - 1))
        found |= {f"call.{name}": [small - page], f"call.{name}_page": [page]}
    first, all_pages = min(took(logs["append_fsync"], "pwrite64")), mean(took(logs["append_large"], "write"))
    return found | {"call.append_page": [round((all_pages - first) / (LARGE - 1))]}
