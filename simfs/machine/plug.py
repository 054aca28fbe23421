"""A task's plug (`struct blk_plug`): what it has submitted and holds back.

It does so until it says so or sleeps (`sched_submit_work`, before 5.16 `blk_schedule_flush_plug`;
`io_schedule_prepare`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simfs.machine.device import Device, Request
    from simfs.machine.locks.pool import Work
    from simfs.machine.task import Task


class Plug:
    """That of a task."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._held: list[Callable[[Task | None], None]] = []
        self.requests: list[tuple[Device, Request]] = []
        """Those that it holds."""
        self.flushed = 0
        """How often it was flushed."""

    def hold_request(self, device: Device, request: Request) -> None:
        """Hold back a request."""
        self.requests.append((device, request))
        self._held.append(lambda _: device.send(request))

    def hold_wakeup(self, worker: Task) -> None:
        """Hold back the wake-up of who serves requests."""

        def wake(by: Task | None) -> None:
            if worker.parked:
                self._pay(by)
            worker.kick(by)

        self._held.append(wake)

    def hold_work(self, work: Work) -> None:
        """Hold back work for a pool of workers."""

        def queue(by: Task | None) -> None:
            if worker := work.insert():
                self._pay(by)
                self._task.machine.scheduler.wakeups.wake(worker, by)

        self._held.append(queue)

    def flush(self) -> None:
        """Let go of what it holds; the task runs."""
        self._let_go(self._task)

    def flush_asleep(self) -> None:
        """Let go of what it holds, as its task is about to sleep. Its CPU pays for wake-ups, before it switches."""
        if self._held:
            self._let_go(None)

    def _let_go(self, by: Task | None) -> None:
        self.flushed += 1
        held, self._held, self.requests = self._held, [], []
        for let_go in held:
            let_go(by)

    def _pay(self, by: Task | None) -> None:
        if by is None:
            self._task.cpu.before_switch += self._task.machine.costs.wakeup
