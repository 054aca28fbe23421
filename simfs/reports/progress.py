"""How far long work has come: a bar where somebody looks, in a terminal or a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from simfs.results.run import Progress


@contextmanager
def bar(console: Console) -> Iterator[Progress]:
    """A bar: runs done, runs known to be needed, what is running, time left. Nothing where nobody looks."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    seen = console.is_terminal or console.is_jupyter
    with Progress(*columns, console=console, transient=True, disable=not seen) as shown:
        task = shown.add_task("running", total=None)
        yield lambda done, total, label: shown.update(task, completed=done, total=total, description=label)


def told(progress: Progress | bool) -> AbstractContextManager[Progress | None]:
    """Whom to tell: a function of one's own, a bar on standard error or in the notebook, or nobody."""
    if progress is True:
        return bar(Console(stderr=True, highlight=False, markup=False, emoji=False))
    return nullcontext(None if progress is False else progress)
