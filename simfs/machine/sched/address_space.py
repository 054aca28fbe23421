"""Address spaces: whose page tables a CPU uses.

A kernel thread has none of its own and borrows those that are loaded, as an idle CPU does (`context_switch`,
`enter_lazy_tlb`), so that the way back to the same process loads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simfs.machine.cpus.cpu import KERNEL_MM, Cpu
from simfs.machine.task import Task
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.machine import Machine

LAST = 0xFFFF
"""The last number; those of processes that have long ended are used again."""


class AddressSpaces:
    """Which tasks share one (`mm_struct`), and what it takes to load another (`switch_mm_irqs_off`)."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lazy = machine.kernel.lazy_tlb
        spec = machine.spec
        loads = [group["workload"] for group in spec.get("groups", [])] or [spec["workload"]]
        self._load_is_threads = all(map(_are_threads, loads))
        self._load = self._last = KERNEL_MM + 1

    def of_new(self, spawn_kind: str) -> int:
        """That of a new task: the kernel's, the load's if its tasks are threads of one process, or a new one."""
        if spawn_kind == "background":
            return KERNEL_MM
        if spawn_kind == "foreground" and self._load_is_threads:
            return self._load
        self._last = self._load + 1 if self._last == LAST else self._last + 1
        return self._last

    def switch(self, cpu: Cpu, task: Task | None) -> Time:
        """A CPU switches to a task or to idle, and has loaded the page tables that are wanted there.

        Returns how long that takes.
        """
        time = self.time_to_switch(cpu, task)
        cpu.active_mm = self._active_after(cpu, task)
        return time

    def time_to_switch(self, cpu: Cpu, task: Task | None) -> Time:
        """What a switch to a task or to idle would take now."""
        loads, costs = self._active_after(cpu, task) != cpu.active_mm, self._machine.costs
        return costs.context_switch + loads * costs.switch_mm

    def _active_after(self, cpu: Cpu, task: Task | None) -> int:
        wanted = task.mm if task else KERNEL_MM
        return cpu.active_mm if wanted == KERNEL_MM and self._lazy else wanted


def _are_threads(load: Mapping[str, Any]) -> bool:
    """Whether the tasks of a load are threads of one process."""
    if load["kind"] == "mix":
        return bool(load.get("params", {}).get("threads", 0) > 0)
    return load["kind"] in {"lock_cycle", "range_lock"}
