"""What a sweep costs besides its runs.

Points of compile-24 (every variant; tasks and CPU time of a compile as a Latin hypercube) with two
replications instead of five, into a store, in batches that alternate between one thread and two. Printed are ratios:
the overhead as processor time beside that of the engine (so it holds on a busy machine too), and the parallel
efficiency of two threads from wall time (which needs a quiet one).
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from threading import Lock

from measure import options, report

from simfs.experiments.answer import run_points
from simfs.experiments.sweep_design import factor, rows_of
from simfs.results.run import Engine, native_engine
from simfs.results.store import Store
from simfs.scenario import load, points_at

BATCHES = 6


class Timed:
    """An engine that adds up the processor time spent in it."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.seconds, self.runs, self.lock = engine, 0.0, 0, Lock()

    def __call__(self, spec: str) -> str:
        begin = time.thread_time()
        result = self.engine(spec)
        with self.lock:
            self.seconds += time.thread_time() - begin
            self.runs += 1
        return result


def main() -> int:
    """Measure and print."""
    parser = options(__doc__)
    parser.add_argument("points", type=int, nargs="?", default=1000, help="points of the sweep")
    parsed = parser.parse_args()
    told, points = report(parsed), parsed.points
    asked = load("compile-24")
    measure = asked.measure.model_copy(update={"replications": 2})
    asked = asked.model_copy(update={"measure": measure, "measured": None, "calibrate": ()})
    variants = len(asked.variants)
    factors = [factor("workload.tasks=1..48"), factor("workload.user_cpu=5 ms..30 ms")]
    rows = rows_of(factors, "lhs", -(-points // variants), seed=1)
    size = -(-len(rows) // BATCHES)
    overheads, efficiencies, total = [], [], 0.0
    for batch in (rows[i : i + size] for i in range(0, len(rows), size)):
        wall = {}
        for threads in (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                engine = Timed(native_engine())
                store = Store(Path(folder))
                begin, busy = time.perf_counter(), time.process_time()
                made = points_at(asked, batch)
                run_points(asked, made, tuple(batch[0]), threads=threads, engine=store.remembering(engine))
                wall[threads] = time.perf_counter() - begin
                overheads.append((time.process_time() - busy) / engine.seconds - 1)
        efficiencies.append(wall[1] / (2 * wall[2]))
        total += wall[2]
    made_points = len(rows) * variants
    told.figure(f"{made_points} points on 2 threads, each", 1e3 * total / made_points, " ms")
    told.figure("overhead, processor time beside the engine's", 100 * median(overheads), " %")
    told.figure("parallel efficiency of 2 threads", 100 * median(efficiencies), " %")
    return told.end()


if __name__ == "__main__":
    sys.exit(main())
