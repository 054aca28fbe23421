"""Count transfers of cache lines between CPUs: which line of which object moves how often in an operation, and why.

    python -m laboratory.lines RESULTS/lines-ext4-shorten-own-6.12.log ...

The emulator writes what the guest's last window moves (PTIME_LINES) and the memory at its end (PTIME_MEMORY). Caches
are infinite: a load by a CPU without a copy moves a line, and so does a store by a CPU that is not alone with it.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from laboratory.blocks import Symbols
from laboratory.results import read_console

TRANSFER = np.dtype(
    [("pc", "<u8"), ("address", "<u8"), ("physical", "<u8"), ("store", "<u4"), ("cpu", "<u4")]
)
LINE = 64
PAGE = 4096
DIRECT_MAP = 0xFFFF_8880_0000_0000
VMALLOC = 0xFFFF_C900_0000_0000
PAGES = 0xFFFF_EA00_0000_0000
"""Where the kernel has all memory, stacks, and `struct page` (64 bytes each), without KASLR."""
IMAGE = 0xFFFF_FFFF_8000_0000
SLAB_TYPE, SLAB_FLAG = 0xF5, 1 << 9
"""PGTY_slab of 6.12, with `slab_cache` at 8; PG_slab of 6.1, with it at 24 (include/linux/page-flags.h, mm/slab.h)."""
CACHE_SIZE, CACHE_NAME = 24, 96
"""`size` and `name` of struct kmem_cache by the BTF of 6.1 and 6.12."""


def merged(transfers: NDArray[np.void]) -> NDArray[np.void]:
    """Return transfers with the load and the store of one instruction as one store: a lock takes a line once."""
    first, second = transfers[:-1], transfers[1:]
    same = (first["cpu"] == second["cpu"]) & (first["pc"] == second["pc"])
    same &= first["physical"] // LINE == second["physical"] // LINE
    same &= (first["store"] == 0) & (second["store"] == 1)
    kept: NDArray[np.void] = transfers[~np.append(same, False)]
    return kept


class Memory:
    """What the guest's memory held at the end of the window, by the kernel's addresses."""

    def __init__(self, physical: NDArray[np.uint8], symbols: dict[str, int]) -> None:
        self.physical = physical
        self.symbols = symbols

    def word(self, address: int) -> int:
        """Return eight bytes."""
        at = self.translate(address)
        return int.from_bytes(self.physical[at : at + 8].tobytes(), "little")

    def text(self, address: int) -> str:
        """Return a string."""
        at = self.translate(address)
        return self.physical[at : at + 64].tobytes().partition(b"\0")[0].decode(errors="replace")

    def translate(self, address: int) -> int:
        """Return the physical address: four levels of page tables."""
        if DIRECT_MAP <= address < VMALLOC:
            return address - DIRECT_MAP
        return self._walk(address // PAGE) + address % PAGE

    @lru_cache(maxsize=1 << 16)  # noqa: B019 - one memory is read at a time
    def _walk(self, page: int) -> int:
        entry = self.symbols["init_top_pgt"] - IMAGE
        for shift in (27, 18, 9, 0):
            at = (entry & 0xF_FFFF_FFFF_F000) + 8 * (page >> shift & 511)
            entry = int.from_bytes(self.physical[at : at + 8].tobytes(), "little")
            if not entry & 1:
                raise ValueError(f"{page * PAGE:#x} is not mapped")
            if shift and entry & 0x80:
                rest = page & (1 << shift) - 1
                return (entry & 0xF_FFFF_FFFF_F000 & ~((PAGE << shift) - 1)) + rest * PAGE
        return entry & 0xF_FFFF_FFFF_F000


class Objects:
    """Which object an address belongs to."""

    def __init__(self, memory: Memory, data: Symbols, cpus: int, flagged: bool) -> None:
        self.memory = memory
        self.data = data
        self.cpus = cpus
        self.flagged = flagged
        """A slab's page has a flag, and not a type."""

    @cached_property
    def _offsets(self) -> list[int]:
        base = self.memory.symbols["__per_cpu_offset"]
        return [self.memory.word(base + 8 * cpu) for cpu in range(self.cpus)]

    def at(self, address: int) -> tuple[str, int]:
        """Return an object's name and the offset in it."""
        if address < DIRECT_MAP:
            return "user", address % LINE
        for offset in self._offsets:
            if 0 <= address - offset < self.memory.symbols["__per_cpu_end"]:
                name, at = self._static(address - offset)
                return f"percpu {name}", at
        if address < VMALLOC:
            return self._page(address)
        if PAGES <= address < PAGES + (1 << 40):
            return "struct page", address % LINE
        if address < IMAGE:
            return "stack or vmalloc", address % LINE
        return self._static(address)

    def _static(self, address: int) -> tuple[str, int]:
        (number,) = self.data.of(np.array([address], dtype=np.uint64)).tolist()
        return self.data.names[number], address - int(self.data.addresses[number])

    def _page(self, address: int) -> tuple[str, int]:
        page = PAGES + (address - DIRECT_MAP) // PAGE * LINE
        linked = self.memory.word(page + 8)
        head = linked - 1 if linked & 1 else page
        cache = self._cache(head)
        if cache < DIRECT_MAP:
            return "page", address % LINE
        size = self.memory.word(cache + CACHE_SIZE) & 0xFFFF_FFFF
        first = DIRECT_MAP + (head - PAGES) // LINE * PAGE
        return self.memory.text(self.memory.word(cache + CACHE_NAME)), (address - first) % max(size, 1)

    def _cache(self, head: int) -> int:
        """Return the `kmem_cache` of a slab, or 0."""
        if self.flagged:
            return self.memory.word(head + 24) if self.memory.word(head) & SLAB_FLAG else 0
        return self.memory.word(head + 8) if self.memory.word(head + 48) >> 24 & 0xFF == SLAB_TYPE else 0


@dataclass
class Line:
    """One line of all objects of a kind: how often it moves, and in which functions."""

    name: str
    offset: int
    loads: int = 0
    stores: int = 0
    places: set[int] = field(default_factory=set)
    functions: Counter[str] = field(default_factory=Counter)
    fields: Counter[int] = field(default_factory=Counter)


def count(transfers: NDArray[np.void], functions: Symbols, objects: Objects) -> list[Line]:
    """Return the lines that move, the most frequent first; equal accesses are looked up once."""
    found: dict[tuple[str, int], Line] = defaultdict(lambda: Line("", 0))
    kinds, number = np.unique(transfers[["pc", "address", "physical", "store"]], return_counts=True)
    for at, times in zip(kinds, number.tolist(), strict=True):
        name, offset = objects.at(int(at["address"]))
        line = found[name, offset // LINE]
        line.name, line.offset = name, offset // LINE * LINE
        line.places.add(int(at["physical"]) // LINE)
        (function,) = functions.of(np.array([at["pc"]], dtype=np.uint64)).tolist()
        line.functions[functions.names[function] if at["pc"] >= DIRECT_MAP else "user"] += times
        line.fields[offset] += times
        if at["store"]:
            line.stores += times
        else:
            line.loads += times
    return sorted(found.values(), key=lambda line: line.loads + line.stores, reverse=True)


def rows(lines: list[Line], operations: float, least: float) -> Iterator[str]:
    """Yield a table's rows: lines that move at least so often in an operation."""
    for line in lines:
        each = (line.loads + line.stores) / operations
        if each < least:
            return
        where = ", ".join(f"{name} {n / operations:.2f}" for name, n in line.functions.most_common(6))
        fields = " ".join(f"{at}" for at, _ in line.fields.most_common(4))
        yield (
            f"| {each:.2f} | {line.stores / operations:.2f} | {line.name} | {line.offset} | {fields} "
            f"| {len(line.places)} | {where} |"
        )


def read(console: Path) -> tuple[list[Line], float]:
    """Return the lines of a guest's last window and its operations."""
    guest = read_console(console)
    (row,) = guest.results
    text = console.with_suffix(".trace").read_text().partition("=== symbols\n")[2]
    functions, data = Symbols.parse(text), Symbols.parse(text, "dDbBrRA")
    memory = Memory(
        np.memmap(console.with_suffix(".memory"), dtype=np.uint8, mode="r"),
        dict(zip(data.names, data.addresses.tolist(), strict=True)),
    )
    transfers = merged(np.fromfile(console.with_suffix(".lines"), dtype=TRANSFER))
    objects = Objects(memory, data, int(guest.info["cpus"]), flagged=guest.info["kernel"].startswith("6.1."))
    return count(transfers, functions, objects), row["operations"]


def main() -> None:
    """Print a table for each console of the command line."""
    for name in sys.argv[1:]:
        lines, operations = read(Path(name))
        total = sum(line.loads + line.stores for line in lines) / operations
        print(f"\n{Path(name).stem}: {operations:.0f} operations, {total:.1f} transfers each")
        print("\n".join(rows(lines, operations, 0.05)))


if __name__ == "__main__":
    main()
