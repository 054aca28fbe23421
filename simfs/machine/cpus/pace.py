"""Pace: the same kernel code takes a little longer or shorter each time it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simfs.machine.cpus.cpu import Account
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs._engine import Stream
    from simfs.machine.machine import Machine
    from simfs.machine.task import Task


class Paces:
    """How fast each task goes through the stretch of kernel code that it is in."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._cv: float = machine.spec["machine"]["costs"]["step_cv"]
        self._streams: dict[int, Stream] = {}
        self._factors: dict[int, float] = {}

    def change(self, task: Task) -> None:
        """Let a task enter another stretch of code."""
        if self._cv > 0:
            number = task.number
            if number not in self._streams:
                self._streams[number] = self._machine.stream(f"pace {number}")
            self._factors[number] = self._streams[number].factor(self._cv)

    def taken(self, task: Task, account: Account, time: Time) -> Time:
        """Return how long `time` of code takes; user code has a distribution of its own, where it varies."""
        if account is Account.SYSTEM and task.number in self._factors:
            return int(time * self._factors[task.number])
        return time
