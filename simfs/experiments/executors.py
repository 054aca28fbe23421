"""Where the runs of an experiment happen: threads of this process, or a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from simfs.results.run import Engine, suited_engine

THREADS = "threads"
DASK = "dask://"


class ExecutorError(ValueError):
    """An executor that cannot be used; the message begins with its name."""


@dataclass(frozen=True)
class Executor:
    """An engine, and how many of its runs there should be at the same time."""

    engine: Engine
    slots: int


@contextmanager
def executor(name: str, threads: int | None = None) -> Iterator[Executor]:
    """Open `threads` or `dask://HOST:PORT`; raise ExecutorError where that is not there."""
    if name == THREADS:
        yield Executor(suited_engine(), threads or os.cpu_count() or 1)
    elif name.startswith(DASK):
        from simfs.experiments.dask_cluster import cluster

        with cluster(name) as opened:
            yield opened
    else:
        raise ExecutorError(f"--executor {name}: is neither {THREADS} nor {DASK}HOST:PORT")
