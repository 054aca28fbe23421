"""Experiments side by side: what one of them cannot use of the CPUs while it fits, the others do."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import BoundedSemaphore, Event
from typing import TypeVar

from simfs.results.run import Engine

T = TypeVar("T")


class Gate:
    """Lets so many runs be under way at the same time, whichever experiments they belong to."""

    def __init__(self, slots: int) -> None:
        """Open, for `slots` runs."""
        self.slots = slots
        self._free = BoundedSemaphore(slots)
        self._closed = Event()

    def before(self, engine: Engine) -> Engine:
        """The engine behind this gate; raises KeyboardInterrupt for a run that comes after the gate is closed."""

        def run(spec: str) -> str:
            with self._free:
                if self._closed.is_set():
                    raise KeyboardInterrupt
                return engine(spec)

        return run

    def close(self) -> None:
        """Begin no more runs: somebody has interrupted the experiments."""
        self._closed.set()


def side_by_side(gate: Gate, experiments: Sequence[Callable[[], T]]) -> list[T]:
    """The results in the order of the experiments, of which as many go on at once as the gate has slots.

    What one of them raises, and an interrupt, ends all, when the runs under way have ended.
    """
    # Each thread restores the filters that it found (`warnings.catch_warnings`): what they do to each other ends here.
    with (
        warnings.catch_warnings(action="ignore", category=RuntimeWarning),
        ThreadPoolExecutor(gate.slots, thread_name_prefix="experiment") as pool,
    ):
        begun = [pool.submit(each) for each in experiments]
        try:
            for ended in as_completed(begun):
                ended.result()
        except BaseException:
            gate.close()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [each.result() for each in begun]
