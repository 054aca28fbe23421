"""Running the points of a scenario: replications on a thread pool, stopped by precision, in any order.

What comes out depends on points, seeds and engine alone: a point's replications are always the first n, and n
is decided from those n, never from which run happened to end first.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from queue import SimpleQueue
from typing import Any, Protocol

from simfs.results.aggregate import PointLike, compare, findings, summarise, unanswered
from simfs.results.defect import EngineError
from simfs.results.model import Finding, MeasuredRow, PointResult, ScenarioResult, Wall
from simfs.results.request import Request
from simfs.results.run_result import RunResult
from simfs.results.statistics import LEVEL, replications_needed
from simfs.results.stopping import stopped_by_interrupt
from simfs.results.warmup import settled
from simfs.scenario.measured.metrics import metric

Engine = Callable[[str], str]
"""One run: a RunSpec as JSON in, a RunResult as JSON out."""

ToSpec = Callable[[Any, int], Mapping[str, Any]]
"""The RunSpec of a point and a replication; replications of a point differ in their number alone."""

Progress = Callable[[int, int, str], None]
"""Called with runs done, runs known to be needed, and the label of the run that ended."""


class MeasureLike(Protocol):
    """The parts of a scenario's `measure:` that decide how many runs there are."""

    @property
    def replications(self) -> int:
        """Runs of each point, at least."""

    @property
    def precision(self) -> float | None:
        """Wanted relative half-width of the throughput's interval."""

    @property
    def max_replications(self) -> int:
        """Runs of each point, at most."""

    @property
    def confidence(self) -> float:
        """Confidence level of the intervals."""

    @property
    def warmup(self) -> float | str:
        """Nanoseconds before measuring, or 'auto'."""


@dataclass(frozen=True)
class Runs:
    """A plain `MeasureLike`."""

    replications: int = 5
    precision: float | None = None
    max_replications: int = 50
    confidence: float = LEVEL
    warmup: float | str = 0.0


FIRST_STAGE = 10
"""Replications from which it is decided how many a wanted precision needs: fewer make it costlier to be sure."""


def first_stage(measure: MeasureLike) -> int:
    """Replications of every point before anything is decided."""
    if measure.precision is None:
        return measure.replications
    return min(max(measure.replications, FIRST_STAGE), measure.max_replications)


def run_scenario(
    points: Sequence[PointLike],
    measure: MeasureLike,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    to_spec: ToSpec | None = None,
    measured: Iterable[MeasuredRow] = (),
    name: str = "scenario",
    operation: str = "operation",
    sweep: Sequence[str] = (),
    titles: Mapping[str, str] | None = None,
    metrics: Iterable[str] = (),
) -> ScenarioResult:
    """Run every point until it is known well enough and return what came out.

    `metrics` names metrics that are wanted besides those of the `measured` rows.
    `threads` defaults to the CPUs of this computer. Broken laws and stalls are collected in
    `ScenarioResult.findings`. Raises ValueError where the engine refuses a spec; a KeyboardInterrupt ends
    the runs under way, drops those that have not started, and is raised again.
    """
    begin = time.perf_counter()
    threads = threads or os.cpu_count() or 1
    rows = tuple(measured)
    states = _states(points, to_spec or _native_spec(), [*metrics, *_metrics_by_run(rows)])
    _run_all(states, measure, threads, progress, engine or suited_engine())
    found = tuple(finding for state in states for finding in state.findings)
    compared, unmatched = compare([state.summary for state in states if state.summary], rows)
    compared, unanswerable = unanswered(compared, found)
    return ScenarioResult(
        name=name,
        operation=operation,
        sweep=tuple(sweep),
        titles=dict(titles or {}),
        points=compared,
        findings=found,
        unmatched=(*unmatched, *unanswerable),
        wall=_wall(begin, states, threads),
    )


def _metrics_by_run(rows: Iterable[MeasuredRow]) -> Iterator[str]:
    """Metrics of measured rows that every run must be asked for."""
    return (row.metric for row in rows if metric(row.metric).by_run)


def _states(points: Sequence[PointLike], to_spec: ToSpec, metrics: Sequence[str]) -> list[_State]:
    return [_State(point, to_spec, tuple(dict.fromkeys(metrics))) for point in points]


def _wall(begin: float, states: Sequence[_State], threads: int) -> Wall:
    seconds = {state.point.id: state.seconds for state in states}
    return Wall(total_s=time.perf_counter() - begin, points_s=seconds, threads=threads)


@dataclass
class _State:
    """What is known of one point so far."""

    point: PointLike
    to_spec: ToSpec
    metrics: Sequence[str] = ()
    warmup_ns: float | None = None
    runs: dict[int, RunResult] = field(default_factory=dict)
    submitted: int = 0
    seconds: float = 0.0
    summary: PointResult | None = None
    findings: Sequence[Finding] = ()

    @cached_property
    def request(self) -> Request:
        return Request(self.to_spec(self.point, 0))

    def wanted(self, measure: MeasureLike) -> int:
        """How many replications are known to be needed now."""
        first = first_stage(measure)
        if self.submitted != first or len(self.runs) < first or measure.precision is None:
            return max(self.submitted, first)
        rates = [run.throughput_per_s for run in self._in_order()]
        needed = replications_needed(rates, measure.precision, measure.confidence)
        return max(first, min(needed, measure.max_replications))

    def complete(self, measure: MeasureLike) -> None:
        """Sum the runs up and forget them: those of a large sweep would not fit into memory."""
        runs, decided_by = self._in_order(), first_stage(measure)
        self.summary = summarise(self.point, runs, measure.confidence, decided_by, self.metrics)
        self.findings = findings(self.point, self._in_order())
        self.runs.clear()

    def _in_order(self) -> list[RunResult]:
        return [self.runs[i] for i in sorted(self.runs)]


@dataclass(frozen=True)
class _Job:
    """One call of the engine: a replication, or the pilot run that finds the end of the warm-up."""

    state: _State
    replication: int | None

    @property
    def label(self) -> str:
        point = self.state.point
        where = " ".join(f"{k.rsplit('.', 1)[-1]}={v}" for k, v in point.values.items())
        what = "warm-up" if self.replication is None else f"#{self.replication}"
        return " ".join(part for part in (point.variant, where, what) if part)


def _run_all(
    states: Sequence[_State], measure: MeasureLike, threads: int, progress: Progress | None, engine: Engine
) -> None:
    auto = measure.warmup == "auto"
    ended: SimpleQueue[tuple[_Job, Future[tuple[Any, float]]]] = SimpleQueue()
    pending = 0
    pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="simfs")

    def submit(job: _Job) -> None:
        nonlocal pending
        pending += 1
        future = pool.submit(_work, job, engine)
        future.add_done_callback(lambda done: ended.put((job, done)))

    def replicate(state: _State) -> None:
        for replication in range(state.submitted, wanted := state.wanted(measure)):
            submit(_Job(state, replication))
        state.submitted = wanted
        if len(state.runs) == wanted:
            state.complete(measure)

    done, unstarted = 0, len(states) if auto else 0
    try:
        with stopped_by_interrupt():
            for state in states:
                submit(_Job(state, None)) if auto else replicate(state)
            while pending:
                job, future = ended.get()
                pending -= 1
                _record(job, *future.result())
                unstarted -= job.replication is None
                replicate(job.state)
                done += 1
                if progress:
                    progress(done, done + pending + unstarted * first_stage(measure), job.label)
    finally:
        # Also on an interrupt or an error: what has not started never will.
        pool.shutdown(wait=True, cancel_futures=True)


def _work(job: _Job, engine: Engine) -> tuple[Any, float]:
    begin = time.perf_counter()
    try:
        return _outcome(job, engine), time.perf_counter() - begin
    except ValueError as error:
        raise ValueError(f"{job.label}: {error}") from error
    except RuntimeError as error:
        raise EngineError(f"{job.label}: {error}") from error


def _outcome(job: _Job, engine: Engine) -> RunResult | float:
    request = job.state.request
    if job.replication is None:
        return settled(request, engine)
    changes: dict[str, float] = {"replication": job.replication}
    if job.state.warmup_ns is not None:
        changes["warmup_ns"] = job.state.warmup_ns
    return RunResult.read(engine(request.text(**changes)))


def _record(job: _Job, outcome: RunResult | float, seconds: float) -> None:
    job.state.seconds += seconds
    if isinstance(outcome, RunResult):
        assert job.replication is not None
        job.state.runs[job.replication] = outcome
    else:
        job.state.warmup_ns = outcome


def native_engine(*, check: bool = False) -> Engine:
    """The compiled engine; raise ImportError where there is none.

    With `check` it compares the filesystem's structures with the files that exist when a run is over.
    """
    engine = import_module("simfs._engine")
    return _with_programs(partial(engine.run, check=True) if check else engine.run)


def suited_engine() -> Engine:
    """The compiled engine, and the reference machine for what it cannot run: locks that are written in Python."""
    native = native_engine()

    def engine(spec: str) -> str:
        return reference_engine()(spec) if _has_own_lock(spec) else native(spec)

    return engine


def _has_own_lock(spec: str) -> bool:
    if ".py:" not in spec:  # parsing a spec takes as long as a hundredth of a run
        return False
    is_own = import_module("simfs.machine.own").is_own
    return any(is_own(kind) for kind in json.loads(spec)["kernel"]["locks"].values())


def reference_engine() -> Engine:
    """The reference machine on SimPy; raise ImportError where SimPy or the compiled programs are missing."""
    return _with_programs(import_module("simfs.machine").run)


def _with_programs(run: Callable[..., str]) -> Engine:
    engine: Engine = import_module("simfs.scenario.program").with_programs(run)
    return engine


def _native_spec() -> ToSpec:
    to_spec: ToSpec = import_module("simfs.scenario").to_run_spec
    return to_spec
