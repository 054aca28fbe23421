"""Watching a run: on the compiled machine so that Ctrl-C is heard."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

from simfs.machine.recorder import Event, LongWait
from simfs.results.stopping import stopped_by_interrupt

Watched = tuple[str, list[Event], list[Event], list[LongWait]]
"""The result, what was in force, the events and the longest waits."""
Watch = Callable[..., Watched]
"""`watch` of a machine."""


def native_watch(spec: str, *program: Any, start: int) -> Any:  # noqa: ANN401 as the engine returns it
    """`watch` of the engine; raise ValueError for what it refuses.

    The engine does not look for signals, and Python hears them in the main thread only: so the run goes aside. Not
    one of a program in Python, which hears them by itself and would still need the interpreter when that ends.
    """
    from simfs import _engine

    if program:
        return _engine.watch(spec, *program, start=start)
    seen: list[Any] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            seen.append(_engine.watch(spec, start=start))
        except BaseException as error:
            failed.append(error)

    aside = Thread(target=work, daemon=True)
    aside.start()
    with stopped_by_interrupt():
        aside.join()
    if failed:
        raise failed[0]
    return seen[0]
