"""Words of memory with atomic operations, each on a cache line of its own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from simfs.machine.caches.line import Access, Line

if TYPE_CHECKING:
    from simfs.teach.lock import Task


class World(Protocol):
    """Where a lock runs: the simulated machine, or the judge that tries all schedules."""

    def access(self, word: Word, access: Access, before: Any) -> None:  # noqa: ANN401
        """The running task accesses a word, which had the value `before`, and has the new one already."""

    def wake(self, task: Task) -> None:
        """The running task wakes another one."""


class _Present(threading.local):
    """The world in which code of a lock runs just now, if any; replications run in threads."""

    world: World | None = None


present = _Present()


class Word:
    """A word of memory. Each operation is atomic, and an access to the word's cache line.

    A value is whatever is compared with `==`: a number, a task, None.
    """

    def __init__(self, value: Any = 0) -> None:  # noqa: ANN401
        """Make a word with a first value."""
        self._value = value
        self.line = Line()
        self.pollers: list[Any] = []
        """Tasks of the machine that spin on it."""

    def load(self) -> Any:  # noqa: ANN401
        """Return the value."""
        self._accessed(Access.READ, self._value)
        return self._value

    def store(self, value: Any) -> None:  # noqa: ANN401
        """Set the value."""
        before, self._value = self._value, value
        self._accessed(Access.STORE, before)

    def exchange(self, value: Any) -> Any:  # noqa: ANN401
        """Set the value and return the one before, in one step."""
        before, self._value = self._value, value
        self._accessed(Access.ATOMIC, before)
        return before

    def compare_and_swap(self, expected: Any, value: Any) -> bool:  # noqa: ANN401
        """Set the value if it is `expected`, in one step. Return whether it was."""
        before = self._value
        same = bool(before == expected)
        if same:
            self._value = value
        self._accessed(Access.ATOMIC, before)
        return same

    def fetch_add(self, amount: int = 1) -> Any:  # noqa: ANN401
        """Add to the value and return the one before, in one step."""
        before = self._value
        self._value = before + amount
        self._accessed(Access.ATOMIC, before)
        return before

    def peek(self) -> Any:  # noqa: ANN401
        """The value, for who watches: no task reads it."""
        return self._value

    def undo(self, before: Any) -> None:  # noqa: ANN401
        """Give it the value that it had."""
        self._value = before

    def __repr__(self) -> str:
        return f"Word({self._value!r})"

    def _accessed(self, access: Access, before: Any) -> None:  # noqa: ANN401
        if present.world is not None:
            present.world.access(self, access, before)

    def _misused(self, *_: object) -> NoReturn:
        raise TypeError(
            "a Word is read with .load() and written with .store(value); whether there is one: `is None`"
        )

    __bool__ = __int__ = __index__ = __lt__ = __le__ = __gt__ = __ge__ = _misused
    __add__ = __radd__ = __iadd__ = __sub__ = __isub__ = _misused
    __eq__ = __ne__ = _misused
    __hash__ = object.__hash__
