"""The reference machine on SimPy: readable, exact, slow. `run`, `trace` and `watch` are those of the native engine.

`machine` is the whole, `scheduler` and `eevdf` give CPUs to tasks, `task` has the primitives that locks are written in,
`lock` says how to write one, `locks/` has one file a family, `line` and `device` are what else can be waited for, and
`waist` lets the engine's built-in programs run here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simfs.machine.machine import Machine
    from simfs.machine.recorder import Event, LongWait
    from simfs.machine.runs import run, trace, watch

__all__ = ["Event", "LongWait", "Machine", "run", "trace", "watch"]

_HOMES = {"machine": ("Machine",), "recorder": ("Event", "LongWait"), "runs": ("run", "trace", "watch")}


def __getattr__(name: str) -> object:
    """Load a part when it is asked for: who only asks what kinds of locks there are needs neither it nor SimPy."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
