"""Which instructions of a block cost a real machine much more than others do: by the kernel's code.

Code is read from the kernel's package as it was linked, so retpolines and returns are jumps to their thunks, masks of
interrupts are calls of `pv_ops` and every lock has its prefix, whatever the booted kernel has made of them. Needs
capstone, pyelftools and zstd.
"""

from __future__ import annotations

import lzma
import struct
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path

import capstone
import numpy as np
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Symbol
from numpy.typing import NDArray

from laboratory.jumps import is_indirect, word_behind

_ZSTD = b"\x28\xb5\x2f\xfd"
_STAC = b"\x0f\x01\xcb"
_ALTERNATIVE = struct.Struct("<iiIBB")
"""struct alt_instr of 6.12: offsets of the code and its replacement, flags, lengths."""
_LONGEST = 15
"""Bytes of an instruction."""
_PC_RELATIVE = (2, 4)
"""R_X86_64_PC32, R_X86_64_PLT32."""
_LOWER_HALF = 0x20
"""Returns in the upper half of a line need no thunk (`cpu_wants_rethunk_at`, 6.12.30: `its_return_thunk`)."""


_TABLE = 80
"""Words of `pv_ops`, at least."""


class Code:
    """The code of a kernel and its modules where a guest has loaded them, `kallsyms` with the names of modules."""

    def __init__(self, package: Path, kallsyms: str) -> None:
        words = [line.split() for line in kallsyms.splitlines() if len(line.split()) >= 3]
        self._address = {name: int(address, 16) for address, _, name, *_ in reversed(words)}
        self._sections: list[tuple[int, bytes]] = []
        self._stac: set[int] = set()
        self._masks: set[int] = set()
        self._load(ELFFile(BytesIO(_vmlinux(package))), None)
        for module in {w[3].strip("[]") for w in words if len(w) > 3}:
            own = {w[2]: int(w[0], 16) for w in words if w[3:] == [f"[{module}]"]}
            (file,) = (
                p for p in package.rglob("*.ko.xz") if p.name.partition(".")[0].replace("-", "_") == module
            )
            self._load(ELFFile(BytesIO(lzma.decompress(file.read_bytes()))), own)
        thunks = (
            address for name, address in self._address.items() if name.startswith("__x86_indirect_thunk_")
        )
        unlocks = (address for name, address in self._address.items() if name.startswith("_raw_spin_unlock"))
        self._thunks, self._unlocks = set(thunks), set(unlocks)
        self._return = self._address.get("__x86_return_thunk")
        self._decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)

    def count(
        self, kinds: Iterable[str], pc: NDArray[np.uint64], instructions: NDArray[np.int64]
    ) -> dict[str, NDArray[np.int8]]:
        """Return how many instructions of some classes each block has."""
        blocks = pc ^ instructions.astype(np.uint64) << np.uint64(52)
        _, first, of = np.unique(blocks, return_index=True, return_inverse=True)
        classes = [self._classes(int(pc[at]), int(instructions[at])) for at in first]
        return {kind: np.array([each.count(kind) for each in classes], dtype=np.int8)[of] for kind in kinds}

    @cache  # noqa: B019 - a guest's code is kept as long as its logs
    def _classes(self, pc: int, instructions: int) -> list[str]:
        """Return the classes of the instructions of a block that have one."""
        places = ((pc - at, data) for at, data in self._sections if at <= pc < at + len(data))
        begin, code = next(places, (0, b""))
        decoded = self._decoder.disasm_lite(code[begin : begin + _LONGEST * instructions], pc)
        found = ["unlock"] if pc in self._unlocks else []
        for _, (address, size, mnemonic, operands) in zip(range(instructions), decoded, strict=False):
            found += self._class(address, address + size, mnemonic, operands)
        return found

    def _class(self, address: int, behind: int, mnemonic: str, operands: str) -> Iterator[str]:
        if address in self._stac:
            yield "user"
        if mnemonic == "call" and (at := word_behind(operands)) is not None and behind + at in self._masks:
            yield "mask"
        if mnemonic == "jmp" and operands == hex(self._return or 0) and not address & _LOWER_HALF:
            yield "return"
        if mnemonic.startswith("lock ") or (mnemonic == "xchg" and "[" in operands):
            yield "atomic"
        elif mnemonic in ("call", "jmp") and is_indirect(operands, self._thunks):
            yield "indirect"

    def _load(self, elf: ELFFile, own: dict[str, int] | None) -> None:
        """Take the sections of the kernel, or of a module some of whose symbols lie there."""
        bases = _bases(elf, own) if own is not None else {}
        if own is None:
            self._masks = set(_pointers(elf, self._address["pv_ops"], self._address["pv_native_irq_disable"]))
        names = [section.name for section in elf.iter_sections()]
        for number, section in enumerate(elf.iter_sections()):
            base = section["sh_addr"] if own is None else bases.get(number)
            if base and section["sh_flags"] & 4 and section["sh_type"] == "SHT_PROGBITS":
                data = bytearray(section.data())
                if own is not None:
                    self._relocate(elf, section.name, base, data, bases)
                self._sections.append((base, bytes(data)))
        if ".altinstructions" in names:
            self._stac.update(_kernel_stacs(elf) if own is None else _module_stacs(elf, bases))

    def _relocate(self, elf: ELFFile, name: str, base: int, data: bytearray, bases: dict[int, int]) -> None:
        for at, kind, symbol, addend in _relocations(elf, name):
            target = (
                self._address.get(symbol.name) if symbol["st_shndx"] == "SHN_UNDEF" else _value(symbol, bases)
            )
            if kind in _PC_RELATIVE and target is not None:
                data[at : at + 4] = struct.pack("<I", (target + addend - base - at) & 0xFFFF_FFFF)


def _pointers(elf: ELFFile, table: int, function: int) -> Iterator[int]:
    """Yield where a table of the kernel's data names a function."""
    for section in elf.iter_sections():
        start, data = section["sh_addr"], section.data() if section["sh_type"] == "SHT_PROGBITS" else b""
        if start <= table < start + len(data):
            at = table - start
            words = struct.unpack_from(f"<{_TABLE}Q", data, at)
            yield from (table + 8 * n for n, word in enumerate(words) if word == function)


def _vmlinux(package: Path) -> bytes:
    """Return the kernel as ELF: the first part of its image that is compressed."""
    (image,) = package.glob("boot/vmlinuz-*")
    packed = image.read_bytes()
    packed = packed[packed.index(_ZSTD) :]
    return subprocess.run(["zstd", "-dcq"], input=packed, capture_output=True, check=False).stdout


def _bases(elf: ELFFile, own: dict[str, int]) -> dict[int, int]:
    """Return where sections of a module are, by their functions."""
    found: dict[int, int] = {}
    for symbol in elf.get_section_by_name(".symtab").iter_symbols():
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol.name in own:
            found.setdefault(symbol["st_shndx"], own[symbol.name] - symbol["st_value"])
    return found


def _value(symbol: Symbol, bases: dict[int, int]) -> int | None:
    base = bases.get(symbol["st_shndx"])
    return None if base is None else base + symbol["st_value"]


def _relocations(elf: ELFFile, name: str) -> Iterator[tuple[int, int, Symbol, int]]:
    section, symbols = elf.get_section_by_name(f".rela{name}"), elf.get_section_by_name(".symtab")
    for each in section.iter_relocations() if section else ():
        symbol = symbols.get_symbol(each["r_info_sym"])
        yield each["r_offset"], each["r_info_type"], symbol, each["r_addend"]


def _kernel_stacs(elf: ELFFile) -> Iterator[int]:
    table, code = (
        elf.get_section_by_name(".altinstructions"),
        elf.get_section_by_name(".altinstr_replacement"),
    )
    start, replacements, data = table["sh_addr"], code.data(), table.data()
    for at in range(0, len(data) - _ALTERNATIVE.size + 1, _ALTERNATIVE.size):
        where, replacement, _, _, length = _ALTERNATIVE.unpack_from(data, at)
        begin = start + at + 4 + replacement - code["sh_addr"]
        if length == len(_STAC) and replacements[begin : begin + length] == _STAC:
            yield start + at + where


def _module_stacs(elf: ELFFile, bases: dict[int, int]) -> Iterator[int]:
    code = elf.get_section_by_name(".altinstr_replacement").data()
    where: dict[int, int | None] = {}
    for at, _, symbol, addend in _relocations(elf, ".altinstructions"):
        if at % _ALTERNATIVE.size == 0:
            value = _value(symbol, bases)
            where[at] = None if value is None else value + addend
        elif code[addend : addend + len(_STAC)] == _STAC and (site := where.get(at - 4)) is not None:
            yield site
