"""The laboratory's count of transfers of cache lines, on a small memory made here."""

from __future__ import annotations

import numpy as np
import pytest
from laboratory import lines, plan
from laboratory.blocks import Symbols

FUNCTIONS = Symbols.parse("ffffffff81000000 T lockref_get\nffffffff81000100 T dput")
DATA = Symbols.parse(
    "ffffffff82000000 D rename_lock\n0000000000000040 A qnodes\n00000000000000c0 A last", "DA"
)
POINTERS, STRUCTS, SLAB, CACHE, NAME, OFFSETS = 0x2000, 0x6000, 0x8000, 0x9000, 0xA000, 0xB000
"""Where the memory has page tables (four), `struct page`s, a slab, its `kmem_cache`, its name, `__per_cpu_offset`."""
PERCPU = 0xFFFF_8881_0000_0000


def transfer(pc: int, address: int, store: bool = False, cpu: int = 0) -> tuple[int, int, int, bool, int]:
    return 0xFFFF_FFFF_8100_0000 + pc, address, address & 0xFFFF_FFFF, store, cpu


def recorded(*transfers: tuple[int, int, int, bool, int]) -> np.ndarray:
    return np.array(list(transfers), dtype=lines.TRANSFER)


def memory() -> lines.Memory:
    """A slab page of objects of 192 bytes, and the page tables of its `struct page`."""
    words = np.zeros(0x1800, dtype="<u8")

    def put(address: int, value: int) -> None:
        words[address // 8] = value

    page = (lines.PAGES + SLAB // lines.PAGE * lines.LINE) // lines.PAGE
    for level, shift in enumerate((27, 18, 9, 0)):
        target = POINTERS + (level + 1) * lines.PAGE if shift else STRUCTS
        put(POINTERS + level * lines.PAGE + 8 * (page >> shift & 511), target | 1)
    struct = STRUCTS + SLAB // lines.PAGE * lines.LINE
    put(struct + 8, lines.DIRECT_MAP + CACHE)
    put(struct + 48, lines.SLAB_TYPE << 24)
    put(CACHE + lines.CACHE_SIZE, 192)
    put(CACHE + lines.CACHE_NAME, lines.DIRECT_MAP + NAME)
    put(NAME, int.from_bytes(b"dentry", "little"))
    put(OFFSETS, PERCPU)
    symbols = {"init_top_pgt": lines.IMAGE + POINTERS, "__per_cpu_end": 0x100}
    return lines.Memory(words.view(np.uint8), symbols | {"__per_cpu_offset": lines.DIRECT_MAP + OFFSETS})


OBJECTS = lines.Objects(memory(), DATA, cpus=1, flagged=False)


@pytest.mark.parametrize(
    ("address", "found"),
    [
        (lines.DIRECT_MAP + SLAB + 192 + 136, ("dentry", 136)),
        (0xFFFF_FFFF_8200_0004, ("rename_lock", 4)),
        (PERCPU + 0x48, ("percpu qnodes", 8)),
        (lines.PAGES + 52, ("struct page", 52)),
        (0x7FFF_0000_0044, ("user", 4)),
    ],
)
def test_an_address_is_a_place_in_an_object(address: int, found: tuple[str, int]) -> None:
    assert OBJECTS.at(address) == found


def test_a_page_that_is_no_slab_is_a_page() -> None:
    assert OBJECTS.at(lines.DIRECT_MAP + CACHE + 70) == ("page", 6)


def test_an_instruction_that_loads_and_stores_takes_a_line_once() -> None:
    both = recorded(
        transfer(0, SLAB), transfer(0, SLAB, store=True), transfer(8, SLAB), transfer(16, SLAB, store=True)
    )
    assert [row["store"] for row in lines.merged(both)] == [1, 0, 1]


def test_lines_are_counted_by_object_function_and_kind() -> None:
    first, second = lines.DIRECT_MAP + SLAB + 128, lines.DIRECT_MAP + SLAB + 192 + 160
    seen = recorded(transfer(0, first), transfer(4, first, store=True), transfer(0x100, second, store=True))
    (line,) = lines.count(seen, FUNCTIONS, OBJECTS)
    assert (line.name, line.offset, line.loads, line.stores, len(line.places)) == ("dentry", 128, 1, 2, 2)
    assert line.functions == {"lockref_get": 2, "dput": 1}
    (row,) = lines.rows([line], operations=2, least=0.05)
    assert row.startswith("| 1.50 | 1.00 | dentry | 128 |")


def test_each_guest_of_the_load_has_one_row() -> None:
    for guest in plan.LOADS["lines"]:
        assert "LINES" in guest.logs
        assert sum(row.startswith("files") for row in guest.rows) == 1
