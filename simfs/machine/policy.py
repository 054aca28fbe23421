"""The scheduler's question, which of a CPU's tasks runs, and who answers it: EEVDF, or CFS before Linux 6.6."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from simfs.machine.cpu import Cpu
from simfs.machine.task import Task


class Entering(Enum):
    """How a task comes into a run queue."""

    NEW = "new"
    WOKEN = "woken"
    MOVED = "moved"
    """From another CPU's queue."""


class Policy(Protocol):
    """Decides which of a CPU's tasks runs."""

    def update_current(self, cpu: Cpu) -> None:
        """Bring the current task's virtual run time up to date."""

    def enter(self, task: Task, cpu: Cpu, entering: Entering) -> None:
        """Place a task that is about to enter a queue; `task.cpu` is still where it was."""

    def leave(self, task: Task, cpu: Cpu) -> None:
        """Note that a task has just left the queue."""

    def sleep(self, task: Task, cpu: Cpu) -> None:
        """Note that a task, which has just left its CPU, sleeps."""

    def requeue(self, task: Task, cpu: Cpu) -> None:
        """A task that slept and had not left the queue is awake again."""

    def pick(self, cpu: Cpu) -> Task | None:
        """The task that a CPU without a current one should run."""

    def preempts(self, woken: Task, cpu: Cpu) -> bool:
        """Whether a task that has just been queued should run at once."""

    def slice_ends(self, cpu: Cpu) -> bool:
        """Whether the tick finds that another task should run."""


def members(cpu: Cpu) -> list[Task]:
    """The current task and those in the queue."""
    return [*([cpu.current] if cpu.current else []), *cpu.queue]
