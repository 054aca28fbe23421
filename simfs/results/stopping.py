"""Who interrupts does not wait for the runs under way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module


@contextmanager
def stopped_by_interrupt() -> Iterator[None]:
    """End the runs of all threads at their next event where Ctrl-C comes, so that a pool within can be shut down."""
    try:
        yield
    except KeyboardInterrupt:
        import_module("simfs._engine").stop()
        raise
