"""How far long work has come: a bar in a terminal or a notebook, else a line now and then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from simfs.results.run import Progress

SILENT = 10
"""Seconds without a word where there is no terminal."""


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
        yield lambda: nullcontext(lines(console))
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


def lines(console: Console, now: Callable[[], float] = monotonic) -> Progress:
    """Progress as lines of a log: the first after `SILENT` seconds, then one in so many; short work says nothing."""
    said = now()

    def tell(done: int, total: int, label: str) -> None:
        nonlocal said
        if now() - said >= SILENT:
            said = now()
            console.print(f"{label}: {done} of {total} runs are done")

    return tell


def told(progress: Progress | bool) -> AbstractContextManager[Progress | None]:
    """Whom to tell: a function of one's own, a bar on standard error or in the notebook, or nobody."""
    if progress is True:
        return bar(Console(stderr=True, highlight=False, markup=False, emoji=False))
    return nullcontext(None if progress is False else progress)
