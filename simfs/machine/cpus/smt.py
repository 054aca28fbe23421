"""Hyper-threads: the CPUs of a core share its execution units; a program runs slower while its sibling executes too.

A CPU executes while a program runs on it or it switches between tasks. It does not while it idles, leaves idle, or
waits in a loop of `cpu_relax`, which is there to leave the units to the sibling. Only program time is stretched: a
cache line takes as long as ever to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simfs.machine.cpus.cpu import Cpu, Phase
from simfs.machine.cpus.topology import Topology

if TYPE_CHECKING:
    from simfs.machine.sched.scheduler import Scheduler
    from simfs.machine.task import Task


class Siblings:
    """What the CPUs of a core have to do with each other."""

    def __init__(self, scheduler: Scheduler, topology: Topology) -> None:
        self._scheduler = scheduler
        self._topology = topology

    def set_executing(self, cpu: Cpu, executing: bool) -> None:
        """Let `cpu` begin or end to execute; what its siblings run goes on at another speed."""
        if cpu.executing == executing or not self._topology.has_siblings:
            return
        cpu.executing = executing
        for sibling in self._others(cpu):
            self._retime(sibling)

    def _retime(self, cpu: Cpu) -> None:
        task = cpu.current
        if task is None or cpu.phase is not Phase.RUNNING or not task.in_segment:
            return
        if task.beside != self._beside(cpu):
            self._scheduler.segments.book(task)
            self._scheduler.segments.run(task)

    def stretch(self, task: Task) -> None:
        """Make what is left of the program's time as long as it takes beside the siblings of now."""
        beside = self._beside(task.cpu) if self._topology.has_siblings else 0
        if task.beside != beside:
            factor = self._topology.speed_beside(task.beside) / self._topology.speed_beside(beside)
            task.segment.own = int(task.segment.own * factor)
            task.beside = beside
            if task.turns is not None:
                task.turns.stretch(factor)

    def _beside(self, cpu: Cpu) -> int:
        """How many other CPUs of the core execute."""
        return sum(other.executing for other in self._others(cpu))

    def _others(self, cpu: Cpu) -> Sequence[Cpu]:
        numbers = self._topology.core(cpu.number)
        return [self._scheduler.cpus[number] for number in numbers if number != cpu.number]
