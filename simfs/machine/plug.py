"""A task's plug (`struct blk_plug`): what it has submitted and holds back.

It does so until it ends the plug, holds too much or sleeps (`sched_submit_work`, before 5.16
`blk_schedule_flush_plug`; `io_schedule_prepare`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simfs.machine.task import Task

MOST = 32
"""How many requests a plug holds at most (`BLK_MAX_REQUEST_COUNT` of 5.16 to 6.18)."""


class Plug:
    """That of a task."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._held: list[Callable[[], None] | Task] = []
        self.flushed = 0
        """How often it was flushed."""

    def hold(self, held: Callable[[], None] | Task) -> None:
        """Hold back the submission of a request, or the wake-up of who serves requests."""
        if len(self._held) >= MOST:
            self.flush()
        self._held.append(held)

    def flush(self) -> None:
        """Let go of what it holds; the task runs."""
        self._let_go(lambda worker: worker.kick(self._task))

    def flush_asleep(self) -> None:
        """Let go of what it holds, as its task is about to sleep. Its CPU pays for wake-ups, before it switches."""
        if self._held:
            self._let_go(self._kick)

    def _kick(self, worker: Task) -> None:
        if worker.parked:
            self._task.cpu.before_switch += self._task.machine.costs.wakeup
        worker.kick(None)

    def _let_go(self, wake: Callable[[Task], None]) -> None:
        self.flushed += 1
        held, self._held = self._held, []
        for one in held:
            if callable(one):
                one()
            else:
                wake(one)
