"""Which calls and jumps of the kernel go through a register when it runs."""

from __future__ import annotations

import re
from collections.abc import Container

_MEMORY = re.compile(r"qword ptr \[rip ([+-] 0x[0-9a-f]+)\]")


def is_indirect(operands: str, thunks: Container[int]) -> bool:
    """Whether a call or a jump is one by a register, with retpolines by a thunk at one of these addresses.

    A call through memory is a paravirtual operation (`pv_ops`): at boot the kernel puts a direct call or the
    instructions themselves in its place (`apply_alternatives`, `alt_replace_call` of 6.12), and gcc makes no other
    (`-mindirect-branch-register`).
    """
    if operands.startswith("0x"):
        return int(operands, 16) in thunks
    return "[" not in operands


def word_behind(operands: str) -> int | None:
    """Return how far behind a call lies the word that says where it goes; none if it is no call through memory."""
    found = _MEMORY.fullmatch(operands)
    return int(found[1].replace(" ", ""), 16) if found else None
