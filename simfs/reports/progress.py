"""How far long work has come: a bar in a terminal or a notebook, else a line now and then.

A run tells nothing before it ends. Where one is long, a line says each half a minute for how long it has gone on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console

from simfs.reports.numbers import duration

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from simfs.results.run import Progress

SILENT = 10
"""Seconds without a word where there is no terminal."""

CHECKED = 1.0
"""Seconds after which it is looked again whether a word is due."""

LONG = 30
"""Seconds after which a word comes though no run has ended."""


@contextmanager
def bar(console: Console) -> Iterator[Progress]:
    """A bar: runs done, runs known to be needed, what is running, time left; without a terminal lines."""
    with bars(console) as another, another() as shown:
        yield shown


@contextmanager
def bars(console: Console) -> Iterator[Callable[[], AbstractContextManager[Progress]]]:
    """As many of them as there are things that go on at the same time; each is there for as long as its own.

    Where there is no terminal a line says now and then how far they are.
    """
    if not (console.is_terminal or console.is_jupyter):
        yield lambda: _reminding(console)
        return
    from rich import progress as rich

    columns = (
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=console, transient=True) as shown:

        @contextmanager
        def another() -> Iterator[Progress]:
            task = shown.add_task("running", total=None)
            yield lambda done, total, label: shown.update(
                task, completed=done, total=total, description=label
            )
            shown.remove_task(task)

        yield another


class Lines:
    """Progress as lines of a log: the first after `SILENT` seconds, then one in so many; short work says nothing."""

    def __init__(
        self, console: Console, now: Callable[[], float] = monotonic, waits_for: str = "no run is done"
    ) -> None:
        """Begin the log; `waits_for` says how far things are while nothing else is known."""
        self._console, self._now, self._far = console, now, waits_for
        self._begun = self._said = now()

    def tell(self, done: int, total: int, label: str) -> None:
        """A run has ended."""
        self._far = f"{label}: {done} of {total} runs are done"
        if self._now() - self._said >= SILENT:
            self._say(self._far)

    def remind(self) -> None:
        """Say that things go on, if nothing was said for long."""
        if self._now() - self._said >= LONG:
            self._say(f"{self._far} after {duration((self._now() - self._begun) * 1e9)}")

    def _say(self, text: str) -> None:
        self._said = self._now()
        self._console.print(text)


@contextmanager
def _reminding(console: Console, waits_for: str = "no run is done") -> Iterator[Progress]:
    log, over = Lines(console, waits_for=waits_for), Event()

    def remind() -> None:
        while not over.wait(CHECKED):
            log.remind()

    Thread(target=remind, daemon=True).start()
    try:
        yield log.tell
    finally:
        over.set()


@contextmanager
def patience(console: Console, what: str) -> Iterator[None]:
    """While one long thing goes on that tells nothing: what moves in a terminal, else a line each half a minute."""
    if console.is_terminal or console.is_jupyter:
        with console.status(what):
            yield
    else:
        with _reminding(console, f"{what}: not done"):
            yield


def told(progress: Progress | bool) -> AbstractContextManager[Progress | None]:
    """Whom to tell: a function of one's own, a bar on standard error or in the notebook, or nobody."""
    if progress is True:
        return bar(Console(stderr=True, highlight=False, markup=False, emoji=False))
    return nullcontext(None if progress is False else progress)
