"""Read a log of blocks of instructions: how many instructions one task executes between two points, tracer left out.

The emulator writes it where the environment has PTIME_LOG and the guest switched it on (guest/steps.c): an entry for
every block of instructions that was executed, in order. With one CPU the clock of a trace (x86-tsc) is that of the log.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RECORD = np.dtype([("pc", "<u8"), ("stack", "<u8"), ("ns", "<u8"), ("instructions", "<u4"), ("cpu", "<u4")])
KERNEL = 0xFFFF_8000_0000_0000
"""The lowest address of kernel code."""
PAUSE_NS = 100_000_000
"""The log is off for longer than this between two rows, on for less than this without a block."""
STACK = 16384
"""Size of a task's kernel stack, and its alignment (THREAD_SIZE)."""
TRACER = re.compile(
    r"trace_event_raw_event_|__traceiter_|perf_trace_|ftrace_syscall_(enter|exit)|"
    r"syscall_(trace_enter|exit_work)(\.|$)|trace_(graph|function)"
)
INTERRUPT = re.compile(r"asm_(sysvec_|common_interrupt|spurious_interrupt|exc_nmi)")


@dataclass
class Symbols:
    """Functions of a kernel with modules, by address."""

    addresses: NDArray[np.uint64]
    names: list[str]

    @classmethod
    def parse(cls, text: str, kinds: str = "tTwW") -> Symbols:
        """Return what `/proc/kallsyms` says of functions, or of symbols of other kinds."""
        found: dict[int, str] = {}
        for line in text.splitlines():
            words = line.split()
            if len(words) >= 3 and words[1] in kinds:
                found.setdefault(int(words[0], 16), words[2])
        addresses = sorted(found)
        return cls(np.array(addresses, dtype=np.uint64), [found[a] for a in addresses])

    @cached_property
    def foreign(self) -> NDArray[np.bool_]:
        """Which belong to the tracer or begin an interrupt."""
        return np.array([bool(TRACER.match(n) or INTERRUPT.match(n)) for n in self.names])

    def of(self, pc: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the numbers of the functions in which addresses lie."""
        return np.searchsorted(self.addresses, pc, side="right") - 1


def logs(path: Path) -> Iterator[NDArray[np.void]]:
    """Yield what a file has from one switching on of the log to the next."""
    yield from split(np.memmap(path, dtype=RECORD, mode="r"))


def split(whole: NDArray[np.void]) -> Iterator[NDArray[np.void]]:
    """Yield the parts of a log between pauses."""
    gaps = np.diff(whole["ns"].astype(np.int64))
    cuts = [0, *(np.flatnonzero(gaps > PAUSE_NS) + 1).tolist(), len(whole)]
    for begin, end in pairwise(cuts):
        yield whole[begin:end]


class Log:
    """One log with its functions; positions are numbers of blocks."""

    def __init__(self, blocks: NDArray[np.void], symbols: Symbols) -> None:
        self.symbols = symbols
        self.pc = blocks["pc"].astype(np.uint64)
        self.stack = blocks["stack"].astype(np.uint64)
        self.ns = blocks["ns"].astype(np.int64)
        self.instructions = blocks["instructions"].astype(np.int64)
        """What is counted of each block: all, or some more than others (`weigh`)."""
        self.executes = self.instructions
        self._packed = blocks["cpu"]
        self.function = symbols.of(self.pc)
        self._executed: dict[int, NDArray[np.int64]] = {}
        self._entries: dict[tuple[str, ...], NDArray[np.int64]] = {}
        self.enters = self.pc == symbols.addresses[np.maximum(self.function, 0)]

    @property
    def cpu(self) -> NDArray[np.int64]:
        """The CPU of each block."""
        return (self._packed & 0xFFFF).astype(np.int64)

    @property
    def bytes(self) -> NDArray[np.int64]:
        """How long the code of each block is."""
        return (self._packed >> 16).astype(np.int64)

    def weigh(self, more: NDArray[np.int64] | int) -> None:
        """Count so much more of each block than its instructions."""
        self.instructions = self.executes + more
        self._executed.clear()

    def executed(self, task: int) -> NDArray[np.int64]:
        """Instructions that the task with a kernel stack executed before each block and, last, in all; user code too.

        Tracer and interrupts are left out.
        """
        if task not in self._executed:
            own = (self.stack // STACK == task) | (self.pc < KERNEL)
            kept = np.where(self.left_out | ~own, 0, self.instructions)
            self._executed[task] = np.concatenate([[0], np.cumsum(kept)])
        return self._executed[task]

    @cached_property
    def left_out(self) -> NDArray[np.bool_]:
        """Whether each block is the tracer's or an interrupt's."""
        out = np.zeros(len(self.pc), dtype=bool)
        end = 0
        for at in np.flatnonzero(self.enters & self.symbols.foreign[self.function]).tolist():
            if at >= end:
                end = self._resumes(at)
                out[at:end] = True
        return out

    def _resumes(self, at: int) -> int:
        """Return where what the tracer or an interrupt has interrupted goes on; in user mode the stack is another."""
        if at == 0 or self.pc[at - 1] >= KERNEL:
            return self.returns(at)
        later = np.searchsorted(self.user, at)
        return int(self.user[later]) if later < len(self.user) else len(self.pc)

    @cached_property
    def user(self) -> NDArray[np.int64]:
        """The positions of blocks of user code."""
        return np.flatnonzero(self.pc < KERNEL)

    def returns(self, at: int) -> int:
        """Return the position at which the function that is entered at `at` has returned."""
        stack = int(self.stack[at])
        base = stack // STACK
        for position in range(at + 1, len(self.pc)):
            now = int(self.stack[position])
            if now > stack and (now // STACK == base or self.pc[position] < KERNEL):
                return position
        return len(self.pc)

    def entries(self, *names: str) -> NDArray[np.int64]:
        """Return the positions at which functions of these names are entered; `.part.0` and the like count."""
        if names not in self._entries:
            wanted = np.array([n.partition(".")[0] in names for n in self.symbols.names])
            self._entries[names] = np.flatnonzero(self.enters & wanted[self.function])
        return self._entries[names]

    def task(self, position: int) -> int:
        """Return whose kernel stack it is, as a number."""
        return int(self.stack[position]) // STACK

    def position(self, ns: int) -> int:
        """Return the position of the block that was executed at a time."""
        return bisect_right(self.ns, ns) - 1
