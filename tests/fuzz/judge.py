"""Whether simfs answers or refuses an input as it should, and quickly."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from simfs.results.run import native_engine, reference_engine
from simfs.results.run_result import RunResult
from simfs.scenario import Point, ScenarioError, expand, load, paths, to_run_spec

from .inputs import Input

PATIENCE_S = 10
"""CPU seconds in which an input must be loaded or refused, and then run for a moment."""

MOMENT_NS = 20_000.0
SMALL = 32
"""Tasks and replications of what is run: more takes its time, rightly."""
FEW = 100_000
"""Files that lie on a filesystem before it is run: to lay out more takes its time, too."""


class HangError(Exception):
    """It took too long."""


def outcome(given: Input, *, run: bool) -> str:
    """'refused', 'loaded' or 'run'; raises for what should not be."""
    with _patience():
        try:
            points = expand(load(given.scenario, given.settings))
        except ScenarioError as error:
            _expect_plain([str(problem) for problem in error.problems])
            return "refused"
        try:
            specs = [(point, to_run_spec(point, 0)) for point in (*points[:2], points[-1])]
        except (ScenarioError, ValueError) as error:
            _expect_plain([str(error)])
            return "refused"
    return _ran(*specs[0]) if run else "loaded"


def _expect_plain(messages: list[str]) -> None:
    assert messages
    for message in messages:
        assert message.strip(), "an empty message"
        assert len(message) < 3000, f"a message of {len(message)} characters"
        assert "\n" not in message, f"more than a line: {message!r}"
        assert "\x1b" not in message, f"an escape sequence: {message!r}"


def _ran(point: Point, spec: dict[str, object]) -> str:
    workload = point.scenario.workload
    if workload.tasks > SMALL or getattr(workload, "initial_files", 0) > FEW or spec.get("whatif"):
        return "loaded"
    engine = reference_engine() if point.scenario.own_locks else native_engine()
    short = spec | {"warmup_ns": 0.0, "duration_ns": MOMENT_NS, "batches": 1}
    with _patience():
        try:
            result = RunResult.read(engine(json.dumps(short)))
        except ValueError as error:
            _expect_plain([str(error)])
            return "refused"
    broken = [law for law in result.laws if not law.ok]
    assert not broken or point.scenario.own_locks, f"broken laws: {broken}"
    return "run"


@contextmanager
def _patience() -> Iterator[None]:
    def too_long(number: int, frame: FrameType | None) -> None:
        raise HangError(f"more than {PATIENCE_S} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def warm_up() -> None:
    """Read what every worker would read: all shipped scenarios and their models."""
    for name in paths.names(paths.SCENARIOS):
        for point in expand(load(name)):
            to_run_spec(point, 0)


def quiet() -> None:
    """Let programs of the user's own print nothing."""
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
