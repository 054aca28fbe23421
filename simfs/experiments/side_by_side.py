"""Experiments side by side: what one of them cannot use of the CPUs while it fits, the others do."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from threading import BoundedSemaphore, Event, Lock
from typing import TypeVar

from simfs._engine import stop
from simfs.results.run import Engine

T = TypeVar("T")

MANY = 100_000
"""Files that are there before a run begins, from which it takes long to lay them out (a fifth of a second)."""


class Gate:
    """Lets so many runs be under way at the same time, whichever experiments they belong to.

    Of runs that lay out the same files the first goes alone: the engine keeps what it has laid out, and others
    would wait for that where they keep runs of other experiments from a CPU.
    """

    def __init__(self, slots: int) -> None:
        """Open, for `slots` runs."""
        self.slots = slots
        self._free = BoundedSemaphore(slots)
        self._closed = Event()
        self._turns = _Turns()

    def before(self, engine: Engine) -> Engine:
        """The engine behind this gate; raises KeyboardInterrupt for a run that comes after the gate is closed."""

        def run(spec: str) -> str:
            with self._turns.of(_laid_out(spec)), self._free:
                if self._closed.is_set():
                    raise KeyboardInterrupt
                return engine(spec)

        return run

    def close(self) -> None:
        """Begin no more runs: somebody has interrupted the experiments."""
        self._closed.set()


class _Turns:
    """Who waits for the first run of its kind to end."""

    def __init__(self) -> None:
        self._locks: dict[str, Lock] = {}
        self._done: set[str] = set()
        self._lock = Lock()

    @contextmanager
    def of(self, kind: str | None) -> Iterator[None]:
        """Wait while the first run of a kind is under way; be the first if there was none."""
        if kind is not None and kind not in self._done:
            with self._lock:
                turn = self._locks.setdefault(kind, Lock())
            with turn:
                if kind not in self._done:
                    try:
                        yield
                    finally:
                        self._done.add(kind)
                    return
        yield


def _laid_out(spec: str) -> str | None:
    """What tells the files that a run on btrfs lays out from others, if they are many."""
    files = re.search(r'"initial_files": ?(\d+)', spec)
    if files is None or int(files[1]) < MANY:  # to read a spec takes as long as a hundredth of a run
        return None
    read = json.loads(spec)
    return json.dumps(read["workload"]) if read["filesystem"]["kind"] == "btrfs" else None


def side_by_side(gate: Gate, experiments: Sequence[Callable[[], T]]) -> list[T]:
    """The results in the order of the experiments, of which as many go on at once as the gate has slots.

    What one of them raises, and an interrupt, ends all, also the runs under way.
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
            stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [each.result() for each in begun]
