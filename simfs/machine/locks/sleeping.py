"""What sleeping locks share: the raw spinlock inside them that guards their queue."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy

from simfs.machine.lock import Lock
from simfs.machine.lock_code import LockCode
from simfs.machine.locks.spinlock import Spinlock
from simfs.machine.task import Steps, Task
from simfs.machine.time import Time

Spinning = Generator[simpy.Event, Any, bool]
"""What a spin is: at its end it says whether it got what it spun for."""


def guard_of(lock: Lock) -> Spinlock:
    """The raw spinlock inside a lock."""
    guard = lock.inner
    assert isinstance(guard, Spinlock), f"{type(lock).__name__} has no wait lock"
    return guard


class SleepingLock(Lock):
    """A lock whose waiters may sleep."""

    @property
    def code(self) -> LockCode:
        """What its code takes where it is contended."""
        return self.machine.lock_code

    @property
    def wait_lock(self) -> Spinlock:
        """The raw spinlock inside the lock."""
        return guard_of(self)

    def lock_to_wait(self, task: Task, code: Time) -> Steps:
        """Take the wait lock to queue oneself or to look again, and run the code under it.

        What the task owes is paid first, so that nobody sees it in the queue, or gives it the lock, before it has come.
        """
        yield from self.wait_lock.lock_raw(task)
        task.segment.debt += code
        yield from task.pay()
