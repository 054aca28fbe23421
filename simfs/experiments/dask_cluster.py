"""Runs on a Dask cluster whose workers have the same simfs installed.

Only RunSpecs and results travel, as text: the same bytes that a run on this computer takes and gives. A run whose
worker dies is given to another by the scheduler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from simfs.experiments.executors import DASK, Executor, ExecutorError
from simfs.results.run import native_engine
from simfs.results.store import engine_version

PATIENCE_S = 4.0
"""How long to wait for the scheduler, and then for its first worker."""

QUEUED = 2
"""Runs given to the cluster for each of its threads: one runs, one is on its way."""

MAX_SLOTS = 1024


@contextmanager
def cluster(name: str) -> Iterator[Executor]:
    """Connect to `dask://HOST:PORT`; raise ExecutorError where no scheduler or no worker answers."""
    where = f"--executor {name}"
    address = name.removeprefix(DASK)
    if not re.fullmatch(r"[^\s/:]+:\d+|\[[^\s/]+\]:\d+", address):
        raise ExecutorError(
            f"{where}: write the scheduler as {DASK}HOST:PORT, for example {DASK}localhost:8786"
        )
    client = _client(address, where)
    try:
        try:
            client.wait_for_workers(1, timeout=PATIENCE_S)
        except TimeoutError:
            raise ExecutorError(
                f"{where}: the scheduler has no workers; start some with `dask worker {address}`"
            ) from None
        slots = QUEUED * sum(client.nthreads().values())
        yield Executor(lambda spec: _remote(client, spec, where), min(slots, MAX_SLOTS))
    finally:
        with suppress(OSError):  # a scheduler that went away answers no farewell
            client.close(timeout=1)


def _client(address: str, where: str) -> Any:  # noqa: ANN401 - distributed has no types
    try:
        from distributed import Client
    except ImportError:
        raise ExecutorError(f"{where}: needs Dask: pip install 'simfs[dask]'") from None
    try:
        connect: Any = Client
        return connect(f"tcp://{address}", timeout=PATIENCE_S, set_as_default=False)
    except (OSError, TimeoutError):
        raise ExecutorError(f"{where}: no Dask scheduler answers there") from None


def _remote(client: Any, spec: str, where: str) -> str:  # noqa: ANN401
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.client import FutureCancelledError
    from distributed.comm.core import CommClosedError

    try:
        version, result = client.submit(work, spec, pure=False).result()
    except KilledWorker as error:
        raise ExecutorError(f"{where}: {error}") from None
    except (FutureCancelledError, CancelledError, CommClosedError):
        raise ExecutorError(f"{where}: the scheduler went away") from None
    except ModuleNotFoundError as error:
        raise ExecutorError(f"{where}: a worker lacks a package: {error}") from None
    if version != engine_version():
        raise ExecutorError(f"{where}: a worker has {version}, and this is {engine_version()}")
    return str(result)


def work(spec: str) -> tuple[str, str]:
    """What a worker does: who ran it, and the result."""
    return engine_version(), native_engine()(spec)
