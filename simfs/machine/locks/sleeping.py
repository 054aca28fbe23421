"""What sleeping locks share: the raw spinlock inside them that guards their queue."""

from __future__ import annotations

from simfs.machine.lock import Lock
from simfs.machine.locks.spinlock import Spinlock


class SleepingLock(Lock):
    """A lock whose waiters may sleep."""

    @property
    def wait_lock(self) -> Spinlock:
        """The raw spinlock inside the lock."""
        assert isinstance(self._wait_lock, Spinlock), f"{type(self).__name__} has no wait lock"
        return self._wait_lock
