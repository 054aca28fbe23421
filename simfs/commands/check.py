"""`simfs check`: a judge for locks that users write."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from simfs.commands.common import Output, TextOrJson, emit
from simfs.commands.errors import BROKEN, plain_errors
from simfs.scenario.problems import Problem, ScenarioError


def check(
    lock: Annotated[str, typer.Argument(metavar="FILE.py:CLASS", help="The lock to test.")],
    schedules: Annotated[
        int, typer.Option(min=1, max=10_000_000, metavar="N", help="Try at most this many schedules.")
    ] = 20_000,
    simulate: Annotated[
        bool,
        typer.Option(
            "--simulate/--schedules-only",
            help="Run the lock on the simulated machine as well, or try schedules only.",
        ),
    ] = True,
    output: Output = TextOrJson.TEXT,
) -> None:
    """Test a lock for mutual exclusion, deadlock, lost wake-up, FIFO, starvation, convoy and throughput class.

    A lock of simfs.teach first runs through schedules: all schedules of few tasks with few disturbances (preemptions,
    wake-ups for no reason), then random schedules of more tasks. If one shows a fault, the shortest such schedule is
    printed beside the lines of code. Then the lock runs on the simulated machine. A lock with the full interface runs
    only there.
    """
    ok = True
    with plain_errors():
        from simfs.machine.own import OwnLockError
        from simfs.reports.check import document, text
        from simfs.teach.verdicts import judge

        if ".py:" not in lock:
            hint = f"simfs explain {lock}" if lock.endswith((".yaml", ".yml")) else None
            raise ScenarioError([Problem(lock, "is not FILE.py:CLASS, a lock to be tested", hint)])
        try:
            judgement = judge(_found(lock), schedules, simulate=simulate)
        except OwnLockError as error:
            raise ScenarioError([Problem(error.where or lock, error.message, error.suggestion)]) from None
        ok = judgement.ok
        emit(
            f"{json.dumps(document(judgement), indent=2)}\n" if output is TextOrJson.JSON else text(judgement)
        )
    raise typer.Exit(0 if ok else BROKEN)


def _found(lock: str) -> str:
    """A lock in a file here, or else in one that comes with simfs."""
    from pathlib import Path

    from simfs.scenario import paths

    here, name = lock.rpartition(":")[::2]
    shipped = paths.SCENARIOS / Path(here).name
    return (
        f"{shipped}:{name}" if here == shipped.name and not Path(here).exists() and shipped.exists() else lock
    )
