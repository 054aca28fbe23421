"""Kernel stacks of processes that have ended (`kernel/fork.c` of 6.12).

Each CPU keeps two for new processes; others are freed by a worker of the CPU, after a grace period.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simfs.machine.callbacks import Batch
from simfs.machine.cpus.cpu import Cpu
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.machine import Machine
    from simfs.machine.task import Task

KEPT = 2
"""Stacks that a CPU keeps (`NR_CACHED_STACKS`)."""


@dataclass
class OfCpu:
    """Those of a CPU."""

    worker: Task
    """Who frees them."""
    kept: int = 0
    waiting: int = 0
    """To be freed by the worker."""


class Stacks:
    """Those of all CPUs; a callback for one that is not kept takes so long."""

    def __init__(self, machine: Machine, workers: Sequence[Task], callback: Time) -> None:
        self._machine, self._callback = machine, callback
        self._cpus = [OfCpu(worker) for worker in workers]

    def take(self, cpu: Cpu) -> None:
        """A process that runs there starts another (`alloc_thread_stack_node`)."""
        of = self._cpus[cpu.number]
        of.kept = max(of.kept - 1, 0)

    def leave(self, cpu: Cpu) -> None:
        """A process has ended there, and the CPU has switched to another (`free_thread_stack`)."""
        if self._keeps(cpu):
            return
        rcu = self._machine.scheduler.softirqs.rcu
        if self._machine.kernel.stack_free != "callback":
            self._free(cpu, 1)
        elif rcu is not None:
            rcu.queue(cpu, Batch(1, self._callback, 1))

    def _keeps(self, cpu: Cpu) -> bool:
        of = self._cpus[cpu.number]
        room = of.kept < KEPT
        of.kept += room
        return room

    def invoked(self, cpu: Cpu, count: int) -> None:
        """So many callbacks of stacks are invoked there (`thread_stack_free_rcu`)."""
        self._free(cpu, sum(not self._keeps(cpu) for _ in range(count)))

    def _free(self, cpu: Cpu, count: int) -> None:
        """Have the worker free some; it is woken for the first of those that wait for it (`vfree_atomic`)."""
        if not count:
            return
        of = self._cpus[cpu.number]
        first = of.waiting == 0
        of.waiting += count
        if first:
            of.worker.kick(None)

    def to_free(self, cpu: Cpu) -> int:
        """Return how many the CPU's worker is to free: all that wait."""
        of = self._cpus[cpu.number]
        count, of.waiting = of.waiting, 0
        return count
