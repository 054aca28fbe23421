"""A CPU's run queues (`cfs_rq`): the root's and the group's.

The root's has the kernel's threads and, while it has tasks, the load's group; the group's has the tasks of the load on
this CPU. Without groups all tasks are in the root's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING

from simfs.machine.sched.entity import Entity
from simfs.machine.sched.load import Average, Wanted
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.cpus.cpu import Cpu
    from simfs.machine.task import Task


class Level(StrEnum):
    """One of a CPU's run queues."""

    ROOT = "root"
    GROUP = "group"


class RunQueue:
    """A run queue; its waiting tasks are among those in the CPU's queue, in the order of arrival."""

    def __init__(self, cpu: Cpu, level: Level) -> None:
        self.cpu = cpu
        self.level = level
        self.current: Entity | None = None
        """The member that runs, or whose task does."""
        self.members = 0
        """How many members, those included that sleep and have not left."""
        self.runnable = 0
        """Of the root's: how many tasks run or wait in it or in the group's (`h_nr_runnable`)."""
        self.weight = 0
        """The sum of their weights."""
        self.base = 0
        """The virtual time of an empty queue: EEVDF's last, CFS's least so far (`min_vruntime`)."""
        self.load = Average()
        """Its averages."""

    def waiting(self) -> Iterator[Entity]:
        """Who waits: tasks in the order of arrival, the group, sleepers that have not left."""
        group = self.cpu.group
        yield from self._here(self.cpu.queue)
        if self.level is Level.ROOT and group.queued and self.current is not group:
            yield group
        yield from self._here(self.cpu.delayed)

    def _here(self, tasks: Iterable[Task]) -> Iterator[Entity]:
        return (task.entity for task in tasks if task.level is self.level and task.entity.queued)

    def everybody(self) -> Iterator[Entity]:
        """All members, the current one first."""
        if self.current is not None:
            yield self.current
        yield from self.waiting()

    def average(self) -> tuple[int, int]:
        """The weighted average of the virtual run times, and the sum of the weights (`avg_vruntime`)."""
        total = weight = 0
        for entity in self.everybody():
            total += (entity.vruntime - self.base) * entity.share
            weight += entity.share
        return self.base + (total // weight if weight else 0), weight

    def update_load(self, now: Time) -> None:
        """Bring the averages up to date (`update_cfs_rq_load_avg`)."""
        wanted = Wanted(self.weight >> 10, self.runnable, running=self.current is not None)
        self.load.update(now, wanted, 1)
