"""Where the warm-up ends, found from a pilot run (`measure: {warmup: auto}`)."""

from __future__ import annotations

from collections.abc import Callable

from simfs.results.request import Request
from simfs.results.run_result import RunResult
from simfs.results.statistics import mser

PILOT_BATCHES = 100
"""Fine enough for MSER-5 to choose among twenty truncation points."""


def settled(request: Request, engine: Callable[[str], str]) -> float:
    """Nanoseconds that runs like `request` need to settle, by MSER-5 on the operations of a pilot run.

    The pilot is as long as a replication and measures from its first nanosecond on; the answer is at most
    half of it. A pilot that stalls needs no warm-up: the replications will stall as well and tell why.
    """
    run = pilot(request, engine)
    if run.stall or len(run.batch_operations) < PILOT_BATCHES:
        return 0.0
    return mser(run.batch_operations) * run.window_ns / PILOT_BATCHES


def pilot(request: Request, engine: Callable[[str], str]) -> RunResult:
    """The run that the end of the warm-up is found from."""
    return RunResult.read(engine(request.text(warmup_ns=0, batches=PILOT_BATCHES)))
