"""Why tasks of one point wait: its replications with chains recorded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from simfs.experiments.points import common_runs
from simfs.results.aggregate import findings
from simfs.results.chains import Why
from simfs.results.model import Finding
from simfs.results.request import Request
from simfs.results.run import Engine, native_engine
from simfs.results.run_result import RunResult
from simfs.results.stopping import stopped_by_interrupt
from simfs.scenario import Measure, Point, to_run_spec


def why(
    point: Point, measure: Measure, *, threads: int = 1, engine: Engine | None = None
) -> tuple[Why, list[Finding]]:
    """Run a point as often as its scenario says, with chains, and return them and what is wrong with the runs.

    `precision` is not used. Raises ValueError where the engine refuses the point's spec.
    """
    engine = engine or native_engine()
    runs = common_runs(point, measure, engine)
    request = Request(dict(to_run_spec(point, 0)) | {"chains": True})
    asked = [request.text(replication=n, warmup_ns=float(runs.warmup)) for n in range(runs.replications)]
    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="simfs") as pool, stopped_by_interrupt():
        results = list(pool.map(partial(_run, engine), asked))
    return Why.of(point.id, point.variant, results), findings(point, results)


def _run(engine: Engine, text: str) -> RunResult:
    return RunResult.read(engine(text))
