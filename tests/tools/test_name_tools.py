"""The programs measured for guest-dirblksize and guest-parents: they build here, and have the scenarios' loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from compiled import compiled, needs_compiler
from places import ROOT

from simfs.scenario import load


def numbers(command: list[str]) -> list[float]:
    line = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [float(number) for number in line.strip().strip(",").split(",")]


@needs_compiler
def test_a_directory_is_filled_and_turned(tmp_path: Path) -> None:
    program = str(compiled("tools/large-directories/names.c", tmp_path))
    filled = numbers([program, "fill", "100", str(tmp_path)])
    assert len(list((tmp_path / "d").iterdir())) == 100
    turned = numbers([program, "turn", "100", str(tmp_path)])
    assert [len(filled), len(turned)] == [2, 4]
    assert all(
        0 < low <= middle
        for low, middle in zip(filled[::2] + turned[::2], filled[1::2] + turned[1::2], strict=True)
    )
    assert [variant.name for variant in load("guest-dirblksize").variants] == ["fill", "turn"]


@needs_compiler
@pytest.mark.parametrize(("loop", "calls"), [("create", 2), ("link", 2), ("rename", 1), ("mkdir", 2)])
def test_a_loop_of_names_prints_its_calls(tmp_path: Path, loop: str, calls: int) -> None:
    program = str(compiled("tools/parent-pointers/calls.c", tmp_path))
    assert len(numbers([program, loop, "20", str(tmp_path)])) == 2 * calls
    assert len(list((tmp_path / "d000a").iterdir())) == 64
    assert loop in [variant.name for variant in load("guest-parents").variants]


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for bit in (byte >> place & 1 for byte in data for place in range(8)):
        crc = crc >> 1 ^ (0x82F63B78 if (crc ^ bit) & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_all_superblocks_get_the_bit_and_a_checksum(tmp_path: Path) -> None:
    assert crc32c(b"123456789") == 0xE3069283
    image = tmp_path / "image"
    head = bytearray(512)
    head[4:8], head[84:92], head[102:104] = (
        bytes([0, 0, 16, 0]),
        bytes([0, 0, 0, 2, 0, 0, 0, 2]),
        bytes([2, 0]),
    )
    image.write_bytes(bytes(head).ljust(8192, b"\0") + bytes(head))
    subprocess.run([sys.executable, str(ROOT / "tools/parent-pointers/parents.py"), str(image)], check=True)
    head[219] = 0x80
    head[224:228] = crc32c(bytes(head)).to_bytes(4, "little")
    changed = image.read_bytes()
    assert changed[:512] == changed[8192:] == bytes(head)
