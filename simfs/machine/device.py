"""Devices: requests wait for one of a device's slots, take their service time, and complete by an interrupt.

The interrupt comes to the CPU that submitted the request and steals its time and that of a wake-up from whatever runs
there. It may release a lock that a task took long ago: a buffer that hardware was writing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simfs.machine.clock import What
from simfs.machine.cpu import Cpu
from simfs.machine.disk import Disk
from simfs.machine.locks.completion import Completion
from simfs.machine.locks.semaphore import Semaphore
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.machine import Machine


@dataclass(eq=False)
class Request:
    """One request and what its completion interrupt does: complete a completion, or release a semaphore."""

    number: int
    cpu: Cpu
    service: Time
    then: Completion | Semaphore
    place: int | None
    """Where on a disk; none for what needs no arm."""


class Device:
    """A device that serves `parallelism` requests at once and interrupts for `interrupt`, besides the wake-up."""

    def __init__(
        self, machine: Machine, number: int, parallelism: int, interrupt: Time, disk: Disk | None
    ) -> None:
        self.machine = machine
        self.number = number
        self.interrupt = interrupt
        self._free_slots = max(parallelism, 1)
        self._waiting: deque[Request] = deque()
        self.disk = disk
        """What it is like if it is a disk."""
        self._head = 0

    def __str__(self) -> str:
        return f"device#{self.number}"

    def submit(self, cpu: Cpu, service: Time, then: Completion | Semaphore, place: int | None = None) -> None:
        """Submit a request; a semaphore is held by the device until the request is done."""
        self.machine.note_cpu("submit", cpu, self)
        if isinstance(then, Semaphore):
            then.hand_to_device()
        self._waiting.append(Request(self.machine.requests.take(), cpu, service, then, place))
        self._serve()

    def _serve(self) -> None:
        if self._free_slots and self._waiting:
            request, reached = self._next()
            self._waiting.remove(request)
            self._free_slots -= 1
            end = self.machine.now + reached + request.service
            self.machine.clock.at(end, What.DEVICE_DONE, request.number, lambda: self._done(request))

    def _next(self) -> tuple[Request, Time]:
        """Which of the waiting requests is served next, and how long the arm of a disk needs to be there."""
        if self.disk is None:
            return self._waiting[0], 0
        queued = list(self._waiting)[: self.disk.depth]
        request = min(queued, key=self._reached)
        reached = self._reached(request)
        self._head = self._head if request.place is None else request.place
        return request, reached

    def _reached(self, request: Request) -> Time:
        if self.disk is None or request.place is None:
            return 0
        return self.disk.reaches(self._head, request.place, self.machine.now)

    def _done(self, request: Request) -> None:
        self.machine.requests.give_back(request.number)
        self.machine.note_cpu("device done", request.cpu, self)
        self._free_slots += 1
        self._serve()
        self.machine.scheduler.interrupt(request.cpu, self.interrupt)
        request.then.done_by_interrupt()


class Numbers:
    """Numbers for things that come and go: the last one given back is given out first."""

    def __init__(self) -> None:
        self._unused: list[int] = []
        self._next = 0

    def take(self) -> int:
        """A number that nothing has."""
        if self._unused:
            return self._unused.pop()
        self._next += 1
        return self._next - 1

    def give_back(self, number: int) -> None:
        """The number is free again."""
        self._unused.append(number)
