"""What tasks are called: those of the load are counted from 0 on, threads of the kernel from -1 down (`kthread 1`).

Their numbers among all threads say little. The kernel's come first, two hundred on 24 CPUs with XFS, and a thread whose
program ends leaves its number to another.
"""

from __future__ import annotations

from itertools import count


class Labels:
    """The labels of the threads of a machine."""

    def __init__(self) -> None:
        self._load, self._kernel = count(), count(-1, -1)
        self._unused: list[int] = []
        """Those of threads of the load that have ended."""

    def give(self, spawn_kind: str) -> int:
        """That of a new thread. Who sets the run up is none of the load's and has ended when these begin."""
        if spawn_kind == "setup":
            return 0
        if spawn_kind == "background":
            return next(self._kernel)
        return self._unused.pop() if self._unused else next(self._load)

    def give_back(self, label: int) -> None:
        """A thread that did not set the run up has ended."""
        if label >= 0:
            self._unused.append(label)


def name_of(label: int) -> str:
    """What a task is called: `task 3`, `kthread 3`."""
    return f"task {label}" if label >= 0 else f"kthread {-label}"


def short_name_of(label: int) -> str:
    """The same where there is little room: `3`, `k3`."""
    return str(label) if label >= 0 else f"k{-label}"


def number_of(name: str) -> int | None:
    """The label of the task of this name; None where that is no task."""
    what, _, number = name.partition(" ")
    sign = {"task": 1, "kthread": -1}.get(what, 0)
    return sign * int(number) if sign and number.isdecimal() else None
