"""What it takes to mask the CPU's interrupts and to allow them again, in ns: BPF programs that the kernel times itself.

masks.py [CPU]; needs root and Linux 6.14 (`bpf_local_irq_save`). A pair takes what a program of 200 takes
more than one of as many calls that only count (`bpf_preempt_disable`, `bpf_preempt_enable`). Prints percentiles of
both programs, of 200 runs of 20 turns.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path

SYS_BPF, PROG_LOAD, PROG_TEST_RUN, SCHED_CLS, FUNCTION = 321, 5, 10, 3, 12
ATTRIBUTES = 160
PAIRS, RUNS, TURNS = 200, 200, 20
PERCENTILES = (5, 10, 50, 90)
MEMBERS = {1: 4, 3: 12, 14: 4, 17: 4}
"""Bytes behind the head of a type of BTF; of each of its members in `EACH`."""
EACH = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}
PROGRAMS = {
    "masks": ("bpf_local_irq_save", "bpf_local_irq_restore"),
    "counts": ("bpf_preempt_disable", "bpf_preempt_enable"),
}

_libc = ctypes.CDLL(None, use_errno=True)


def bpf(command: int, attributes: bytes) -> tuple[int, bytes]:
    """Call bpf(2); return its result and the attributes as it leaves them."""
    given = ctypes.create_string_buffer(attributes.ljust(ATTRIBUTES, b"\0"), ATTRIBUTES)
    result = _libc.syscall(SYS_BPF, command, given, ATTRIBUTES)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result, given.raw


def functions(btf: bytes) -> dict[str, int]:
    """Return the numbers of the kernel's functions."""
    _, _, _, head, types, size, strings, _ = struct.unpack_from("<HBBIIIII", btf)
    names, at, number, found = head + strings, head + types, 1, {}
    end = at + size
    while at < end:
        name, info, _ = struct.unpack_from("<III", btf, at)
        kind, members = info >> 24 & 31, info & 0xFFFF
        if kind == FUNCTION:
            found[btf[names + name : btf.index(b"\0", names + name)].decode()] = number
        at += 12 + MEMBERS.get(kind, 0) + EACH.get(kind, 0) * members
        number += 1
    return found


def instruction(code: int, to: int = 0, source: int = 0, value: int = 0) -> bytes:
    """Return an instruction of BPF."""
    return struct.pack("<BBhi", code, source << 4 | to, 0, value)


def call(function: int) -> bytes:
    """Return a call of a kernel's function with the address of a word on the stack."""
    return instruction(0xBF, 1, 10) + instruction(0x07, 1, value=-8) + instruction(0x85, 0, 2, function)


def load(body: bytes) -> int:
    """Return a program as a file."""
    code = ctypes.create_string_buffer(body + instruction(0xB7) + instruction(0x95))
    size, licence = (len(code) - 1) // 8, ctypes.create_string_buffer(b"GPL")
    return bpf(PROG_LOAD, struct.pack("<IIQQ", SCHED_CLS, size, *map(ctypes.addressof, (code, licence))))[0]


def turn(program: int) -> float:
    """Return what a pair of a program's calls takes."""
    packet = ctypes.create_string_buffer(64)
    told = struct.pack("<IIIIQQII", program, 0, 64, 0, ctypes.addressof(packet), 0, TURNS, 0)
    (ns,) = struct.unpack_from("<I", bpf(PROG_TEST_RUN, told)[1], 36)
    return float(ns) / PAIRS


def main(cpu: int) -> None:
    """Run both programs in turn."""
    os.sched_setaffinity(0, {cpu})
    known = functions(Path("/sys/kernel/btf/vmlinux").read_bytes())
    loaded = {
        name: load(b"".join(call(known[each]) for each in pair) * PAIRS) for name, pair in PROGRAMS.items()
    }
    taken: dict[str, list[float]] = {name: [] for name in loaded}
    for _ in range(RUNS):
        for name, program in loaded.items():
            taken[name].append(turn(program))
    for name, times in taken.items():
        print(f"{name:8}", *(f"{sorted(times)[RUNS * at // 100]:8.3f}" for at in PERCENTILES))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
