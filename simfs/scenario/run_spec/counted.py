"""What counted steps take on a machine: their instructions, by class, at the prices that it has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from simfs.scenario.models import ClassCounts, load_machine
from simfs.scenario.sections.machine import MachineUse
from simfs.scenario.sections.quantity import Quantity


def counted(
    steps: Mapping[str, Quantity],
    classes: Mapping[str, ClassCounts],
    use: MachineUse,
    machine: Mapping[str, Any],
) -> dict[str, float]:
    """Times of steps on this machine by their instructions; the engine multiplies all by `speed`.

    A machine with prices of classes runs a kernel booted as guests are: it takes the instructions counted with classes.
    """
    longer = _longer(use.profile, machine["costs"]["instruction"])
    prices = _prices(use.profile, longer)
    plain = prices["plain"]
    dearer = {name: price if name in _BESIDES else price - plain for name, price in prices.items()}
    entry = _entry(use.profile, longer, plain) - dearer.get("mask", 0)
    known = classes if load_machine(use.profile).classes else {}

    def time(name: str, step: Quantity) -> float:
        counts = known.get(name, {})
        more = sum(dearer.get(each, 0) * number for each, number in counts.items())
        return counts.get("instructions", step.plain) * plain + more + _entries(name) * entry

    speed = machine["costs"]["speed"]
    return {name: time(name, step) / speed for name, step in steps.items()}


_BESIDES = ("return", "fetch", "overlap")
"""Classes that are no instructions, but what these cost besides."""


def _longer(profile: str | Path, instruction: float) -> float:
    """Return how many times as long as measured a core takes, as an instruction of locks says (clocks, settings)."""
    usual = load_machine(profile).costs.instruction.plain
    return instruction / usual if usual else 1


def _prices(profile: str | Path, longer: float) -> dict[str, float]:
    """Return what instructions of counted steps take, by class."""
    machine = load_machine(profile)
    prices = {"plain": machine.costs.instruction.plain} | {
        name: q.plain for name, q in machine.classes.items()
    }
    return {name: longer * price for name, price in prices.items()}


def _entry(profile: str | Path, longer: float, instruction: float) -> float:
    """Return what the way into the kernel and back takes beyond its instructions (stacks, mitigations): measured.

    It contains one mask of interrupts (`exit_to_user_mode_prepare`), which is among those of the steps, too.
    """
    micro = load_machine(profile).micro
    if "syscall" not in micro:
        return 0
    return longer * micro["syscall"].plain - load_machine("emulated").micro["syscall"].plain * instruction


_ENTERED = re.compile(
    r"before_i_rwsem$|\.enter_(close|write)$|^cu\.close$|^tmp\.write$|"
    r"call\.(open_walk|stat|stat_missing|fstat|statfs|lock_range|unlock_range|read|overwrite)$"
)
"""Steps with the entry of a system call, of tables of filesystems and of the VFS."""
_LISTING = 5
"""System calls of a listing: `openat`, `newfstatat`, `getdents64` until there is nothing, `close`."""


@cache
def _entries(step: str) -> int:
    """Return how many system calls begin in a step that was counted."""
    return _LISTING if step.endswith("call.readdir") else int(bool(_ENTERED.search(step)))
