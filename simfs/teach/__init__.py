"""Locks in ten lines: a class with `acquire` and `release`, in plain Python.

`Lock` is the base class, `Word` a word of memory with atomic operations, `Task` what a lock sees of a task. A file with
such a class is used as `FILE.py:CLASS`: in a scenario's `locks:` and by `simfs check`, which judges it.
"""

import simfs.machine  # noqa: F401 - first, for the machine knows locks of this package
from simfs.teach.lock import Lock, Task
from simfs.teach.word import Word

__all__ = ["Lock", "Task", "Word"]
