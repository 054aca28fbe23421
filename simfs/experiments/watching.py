"""Watching a run: on the compiled machine so that Ctrl-C is heard, and with tasks numbered as they are shown."""

from __future__ import annotations

from threading import Thread
from typing import Any

from simfs.results.stopping import stopped_by_interrupt
from simfs.results.task_names import (
    Watch,
    Watched,
    at_begin,
    first_in,
    first_of_load,
    kinds_of,
    numbers,
    renumbered,
    waits_renumbered,
)


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


def as_shown(watch: Watch) -> Watch:
    """The same, with the load's tasks numbered from 0 on and kernel threads below 0."""

    def shown(spec: str, *program: Any, start: int) -> Watched:  # noqa: ANN401 as the engine takes it
        result, in_force, events, waits = watch(spec, *program, start=start)
        kinds = kinds_of([*in_force, *events])
        first = first_of_load(kinds)
        if first is None:
            first = first_in(at_begin(watch, spec, *program))
        if first == 0:
            return result, in_force, events, waits
        number = numbers(kinds, first)
        before, then = renumbered(in_force, number), renumbered(events, number)
        return result, before, then, waits_renumbered(waits, number)

    return shown
