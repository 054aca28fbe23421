"""What locks of beginners are made of: the base class, the task as a lock sees it, and what may take time."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import isgenerator
from typing import Any, ClassVar, NoReturn

from simfs.teach.word import Word, present


@dataclass(frozen=True)
class Spin:
    """A task wants to spin until a condition holds, for `at_most` nanoseconds if that is given."""

    condition: Callable[[], Any]
    at_most: float | None


@dataclass(frozen=True)
class Sleep:
    """A task wants to sleep until it is woken."""


Request = Spin | Sleep
Code = Generator[int | Request, bool | None, Any]
"""`acquire` or `release` as it runs. It yields requests, and before each line 0, or 1 where others may come between; 2
before an operation."""

NO_WORD = "spin_until's condition reads no Word: nobody would see it change"
NO_SLEEP = "a lock with `preemption = False` must not sleep"
_DIRECTLY = "works only in a line of acquire or release itself, not inside a lambda or comprehension"


class Task:
    """A task, as a lock sees it. A lock may keep things in it: `task.node = ...`."""

    def __init__(self, number: int) -> None:
        """Give the task its number."""
        self.number = number

    def spin_until(self, condition: Callable[[], Any], at_most: float | None = None) -> bool:
        """Stay on the CPU and look until `condition()` is true; gives way if the CPU is wanted by another task.

        The condition reads words: `lambda: self.taken.load() == 0`. `at_most` (ns) ends the wait. Returns whether the
        condition is true.
        """
        raise TypeError(f"spin_until {_DIRECTLY}")

    def sleep(self) -> None:
        """Leave the CPU until woken. A wake-up that came since the task began to acquire ends it at once.

        A task may also wake for no reason: look again after a sleep.
        """
        raise TypeError(f"sleep {_DIRECTLY}")

    def __repr__(self) -> str:
        return f"task {self.number}"

    def __hash__(self) -> int:
        return self.number  # sets of tasks have the same order in each run

    def __setattr__(self, name: str, value: Any) -> None:  # noqa: ANN401
        super().__setattr__(name, value)  # tells type checkers that a lock may keep anything here

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        raise AttributeError(_unknown("a task", name, [*vars(self), "spin_until", "sleep"]))


class Lock:
    """A lock: define `acquire(self, task)` and `release(self, task)`. A lock with memory has an `__init__(self)`.

    Nobody else comes between within a line; between two lines or two operations on words, anything may happen.
    """

    fifo: ClassVar[bool] = False
    """The promise that whoever waits is served before those who come later; `simfs check` holds you to it."""
    preemption: ClassVar[bool] = True
    """Whether a task may lose its CPU while it waits for the lock or holds it. Who may not must not sleep."""

    def acquire(self, task: Task) -> Any:  # noqa: ANN401
        """Return when the task has the lock."""
        raise NotImplementedError

    def release(self, task: Task) -> Any:  # noqa: ANN401
        """Give the lock back."""
        raise NotImplementedError

    def wake(self, task: Task) -> None:
        """Wake a task that sleeps, or is about to; the waker pays."""
        if not isinstance(task, Task):
            raise TypeError(f"wake needs a task, not {task!r}")
        if present.world is not None:
            present.world.wake(task)

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(vars(self).get(name), Word) and not isinstance(value, Word):
            raise TypeError(f"self.{name} is a Word: write self.{name}.store({value!r})")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(_unknown("the lock", name, [*vars(self), "wake"]))


def _unknown(what: str, name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"{what} has no '{name}'" + (f"; did you mean '{near[0]}'?" if near else "")


def _spin_request(condition: Callable[[], Any], at_most: float | None = None) -> Spin:
    if not callable(condition):
        raise TypeError("spin_until needs a function to call again and again: spin_until(lambda: ...)")
    if at_most is not None and not (isinstance(at_most, int | float) and 0 <= at_most < math.inf):
        raise TypeError(f"spin_until: at_most is a number of ns, not {at_most!r}")
    return Spin(condition, at_most)


REQUESTS: dict[object, Callable[..., Request]] = {Task.spin_until: _spin_request, Task.sleep: Sleep}
"""What takes time."""
POINTS = {Word.load, Word.store, Word.exchange, Word.compare_and_swap, Word.fetch_add, Lock.wake}
"""Before these others may come between."""


def call(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Code:  # noqa: ANN401
    """Call a function from the code of a lock (`rewrite` puts this in place of each call)."""
    kind = getattr(function, "__func__", None)
    if kind in REQUESTS:
        return (yield REQUESTS[kind](*arguments, **named))
    if kind in POINTS:
        yield 2
        return function(*arguments, **named)
    result = function(*arguments, **named)
    if isgenerator(result) and isinstance(getattr(function, "__self__", None), Lock):
        return (yield from result)
    return result
