"""What the code of contended locks takes, beside the lines that it touches.

The fast paths are not in it: the steps of operations were traced with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simfs.machine.time import Time, from_ns


@dataclass(frozen=True)
class LockCode:
    """The times of a machine that takes `machine.costs.instruction` for each of the kernel's `code_*` instructions."""

    spin: Time
    """From the failed attempt to the queue of spinners."""
    attempt: Time
    """From a look at the lock, of a spinner or of who was woken, to the next attempt."""
    taken: Time
    """From having the lock after a wait to the program."""
    ask: Time
    """From having failed to asking for the wait lock."""
    queue: Time
    """Under the wait lock, to queue oneself."""
    take: Time
    """Under the wait lock, to take the lock and to leave the queue."""
    wake: Time
    """From the release to asking for the wait lock."""
    mark: Time
    """Under the wait lock, to find whom to wake."""
    grant: Time
    """The part of it before the first reader has the lock."""
    mark_reader: Time
    """The same for each reader."""
    futex: Time
    """From user space to the lock of a futex's hash bucket."""
    futex_return: Time
    """From a futex's system call back to user space."""
    pthread: Time
    """A call of `pthread_mutex_lock` or `pthread_mutex_unlock`, without its atomic operation and any waiting."""

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> LockCode:
        """Of the kernel and on the machine of a RunSpec."""
        constants, instruction = spec["kernel"]["constants"], spec["machine"]["costs"].get("instruction", 0.0)
        return cls(**{name: from_ns(constants[f"code_{name}"] * instruction) for name in cls.__annotations__})
