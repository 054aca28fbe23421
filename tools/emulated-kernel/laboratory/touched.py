"""Count the lines of code and data that calls touch, and which calls have them in common: `models/touched.yaml`.

    python -m laboratory.touched FOLDER

FOLDER has a console, the symbols, a log of blocks, one of accesses and the memory of each guest `touched-FILESYSTEM`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from laboratory.blocks import KERNEL, Log, Symbols, logs
from laboratory.lines import LINE, PAGE, Memory, Objects
from laboratory.loops import Loop

ACCESS = np.dtype([("address", "<u8"), ("physical", "<u8"), ("block", "<u4"), ("store", "<u4")])
MODELS = Path(__file__).parents[3] / "models"
FILESYSTEMS = ("xfs", "ext4", "btrfs", "tmpfs")
CALLS = {
    "openat": "create",
    "open": "create",
    "write": "write",
    "pwrite64": "write",
    "close": "close",
    "unlink": "unlink",
    "newfstatat": "stat",
    "newstat": "stat",
    "rename": "rename",
    "mkdir": "mkdir",
    "rmdir": "rmdir",
    "fsync": "fsync",
}
"""The site of a system call."""
INSIDE = {"xfs_inodegc_worker": "inodegc", "btrfs_evict_inode": "evict"}
"""Functions with a site of their own, which is no part of the call that they are in."""
EDGE = 3
"""Calls at both ends that are not taken: the loop settles, and the log cuts it."""
LEAST = 16
"""Calls have a body of lines in common if it has so many; smaller ones are added to the one that is most like them."""
APART = {
    "shmem_inode_cache",
    "xfs_inode",
    "xfs_ili",
    "ext4_inode_cache",
    "btrfs_inode",
    "xfs_buf",
    "buffer_head",
    "jbd2_journal_head",
    "btrfs_extent_buffer",
}
"""Slabs whose objects the engine looks at one by one (`blocks.rs`), as it does at the pages of blocks and of data."""

Touch = tuple[str, int]
"""A line of code by its address, or of data by its physical address."""


@dataclass(frozen=True)
class Call:
    """What one call touched: lines of code, and of data with an address in each."""

    site: str
    code: frozenset[int]
    data: dict[int, int]

    @property
    def pages(self) -> frozenset[int]:
        """The pages of its data."""
        return frozenset(line * LINE // PAGE for line in self.data)


class Touches:
    """The accesses of one log, by call."""

    def __init__(self, log: Log, blocks: NDArray[np.void], accesses: NDArray[np.void]) -> None:
        self.log = log
        self.bytes = (blocks["cpu"] >> 16).astype(np.int64)
        self.accesses = accesses
        self.block = accesses["block"].astype(np.int64)

    def calls(self) -> Iterator[Call]:
        """Yield the calls of all tasks; what has a site of its own is a call, too."""
        inside = [(self._site(at), at, self.log.returns(at)) for at in self.log.entries(*INSIDE).tolist()]
        for site, begin, end in [*inside, *self._system_calls()]:
            parts = [(b, e) for _, b, e in inside if begin < b < end]
            yield self._call(site, begin, end, parts)

    def _site(self, at: int) -> str:
        return INSIDE[self.log.symbols.names[self.log.function[at]].partition(".")[0]]

    def _system_calls(self) -> Iterator[tuple[str, int, int]]:
        for call in Loop(self.log).calls():
            if call.name in CALLS:
                yield CALLS[call.name], call.begin, call.end

    def _call(self, site: str, begin: int, end: int, apart: list[tuple[int, int]]) -> Call:
        log = self.log
        task = log.task(min(begin + 40, end - 1))
        kept = ~log.left_out[begin:end] & (log.pc[begin:end] >= KERNEL)
        kept &= log.stack[begin:end] // (1 << 14) == task
        for b, e in apart:
            kept[b - begin : e - begin] = False
        at = np.flatnonzero(kept) + begin
        first = log.pc[at].astype(np.uint64) // LINE
        last = (log.pc[at] + np.maximum(self.bytes[at], 1).astype(np.uint64) - 1) // LINE
        code = {line for f, n in zip(first.tolist(), last.tolist(), strict=True) for line in range(f, n + 1)}
        low, high = np.searchsorted(self.block, [begin, end])
        seen = self.accesses[low:high]
        seen = seen[kept[self.block[low:high] - begin] & (seen["address"] >= KERNEL)]
        data = dict(zip((seen["physical"] // LINE).tolist(), seen["address"].tolist(), strict=True))
        return Call(site, frozenset(code), data)


def usual(calls: list[Call], objects: Objects, frames: set[int]) -> set[Touch]:
    """Return the lines that at least half of the calls touch, but for objects that are told apart.

    `frames`: pages that are no slab's and count, as variables of CPUs.
    """
    times = Counter(("code", line) for call in calls for line in call.code)
    times.update(("data", line) for call in calls for line in call.data)
    address = {line: at for call in calls for line, at in call.data.items()}
    often = {touch for touch, n in times.items() if 2 * n >= len(calls)}

    def counts(touch: Touch) -> bool:
        kind, line = touch
        if kind == "code":
            return True
        name = objects.at(address[line])[0]
        return name not in APART and (name != "page" or line * LINE // PAGE in frames)

    return {touch for touch in often if counts(touch)}


def usual_pages(calls: list[Call]) -> set[int]:
    """Return the pages of data that at least half of the calls touch, those of all objects among them."""
    times = Counter(page for call in calls for page in call.pages)
    return {page for page, n in times.items() if 2 * n >= len(calls)}


T = TypeVar("T", bound=Hashable)


def by_calls(touched: dict[str, set[T]]) -> Counter[tuple[str, ...]]:
    """Return how many of something just these calls touch."""
    every = set().union(*touched.values())
    return Counter(tuple(site for site, those in touched.items() if each in those) for each in every)


def bodies(touched: dict[str, set[Touch]]) -> dict[tuple[str, ...], int]:
    """Return how many lines just these calls touch, the most first."""
    times = by_calls(touched)
    large = {calls: n for calls, n in times.items() if n >= LEAST}
    return dict(joined(times, large).most_common())


def joined(times: Counter[tuple[str, ...]], large: Mapping[tuple[str, ...], int]) -> Counter[tuple[str, ...]]:
    """Return what these bodies have, with what is no body's added to the one that is most like it."""
    found: Counter[tuple[str, ...]] = Counter()
    for calls, n in times.items():
        nearest = min(large, key=lambda body: (len(set(body) ^ set(calls)), -large[body], body))
        found[nearest] += n
    return found


@dataclass(frozen=True)
class Touched:
    """What the calls of a filesystem touch, by their sites."""

    lines: dict[str, set[Touch]]
    pages: dict[str, set[int]]


def read(folder: Path, filesystem: str) -> Touched:
    """Return the lines and the pages of data that each call of a guest's loops touches."""
    guest = folder / f"touched-{filesystem}"
    text = guest.with_suffix(".trace").read_text().partition("=== symbols\n")[2]
    functions, data = Symbols.parse(text), Symbols.parse(text, "dDbBrRA")
    names = dict(zip(data.names, data.addresses.tolist(), strict=True))
    memory = Memory(np.memmap(guest.with_suffix(".memory"), dtype=np.uint8, mode="r"), names)
    objects = Objects(memory, data, 1, flagged=False)
    accesses = np.memmap(guest.with_suffix(".accesses"), dtype=ACCESS, mode="r")
    found: dict[str, list[Call]] = {}
    first = 0
    for blocks in logs(guest.with_suffix(".blocks")):
        low, high = np.searchsorted(accesses["block"], [first, first + len(blocks)])
        own = np.array(accesses[low:high])
        own["block"] -= first
        first += len(blocks)
        by_site: dict[str, list[Call]] = {}
        for call in Touches(Log(blocks, functions), blocks, own).calls():
            by_site.setdefault(call.site, []).append(call)
        for site, calls in by_site.items():
            if len(calls) > 4 * EDGE and site not in found:
                found[site] = calls[EDGE:-EDGE]
    frames = {line * LINE // PAGE for call in found["stat"] for line in call.data}
    lines = {site: usual(calls, objects, frames) for site, calls in found.items()}
    return Touched(lines, {site: usual_pages(calls) for site, calls in found.items()})


HEAD = """\
# Lines of code and data that kinds of calls touch, by which of them touch them. docs/machine/warmth.md says what for.
# Written by tools/emulated-kernel/laboratory/touched.py; objects that are told apart are not among them.
counted: &counted >-
  one task's calls in the emulated kernel, Linux 6.12.117, every block of instructions and every access logged:
  lines that at least half of the calls touch, and pages of data. Range: another release or compiler, recalled
filesystems:
"""


def rows(touched: Touched) -> Iterator[str]:
    """Yield a filesystem's bodies as YAML."""
    found = bodies(touched.lines)
    pages = joined(by_calls(touched.pages), found)
    for calls, n in found.items():
        paged = f", pages: {quantity(pages[calls], 'pages')}" if pages[calls] else ""
        yield f"    - {{calls: [{', '.join(calls)}], lines: {quantity(n, 'lines')}{paged}}}"


def quantity(n: int, unit: str) -> str:
    """Return what was counted as YAML."""
    span = f"range: [{round(0.8 * n)}, {round(1.2 * n)}]"
    return f"{{value: {n}, unit: {unit}, {span}, evidence: measured, source: *counted}}"


def main(folder: Path) -> None:
    """Write the table of all filesystems."""
    lines = []
    for filesystem in FILESYSTEMS:
        touched = read(folder, filesystem)
        print(filesystem, {site: (len(of), len(touched.pages[site])) for site, of in touched.lines.items()})
        lines += [f"  {filesystem}:", *rows(touched)]
    (MODELS / "touched.yaml").write_text(HEAD + "\n".join([*lines, ""]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
