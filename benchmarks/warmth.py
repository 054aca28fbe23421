"""What it costs to simulate warmth of caches: the same runs with it and on caches that are always warm.

Instructions of the installed engine (valgrind) and its processor time, for each compile of `compile-24` with 24 tasks
and for each lock cycle, whose program has no calls that could be cold. Instructions are counted for an event, and
events for an operation in a longer run, as compilers go in step.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from measure import Sample, Spec, count_an_event, interleaved, lock_cycle, options, report

from simfs import _engine
from simfs.scenario import expand, load, to_run_spec

#: Simulated time (ns) of a counted run, and of one that is timed.
SHORT, LONG = {"compile": 1e8, "cycle": 2e6}, {"compile": 2e9, "cycle": 1e8}
LOADS = {
    "compile on XFS": ("compile", "xfs"),
    "compile on ext4": ("compile", "ext4"),
    "compile on tmpfs": ("compile", "tmpfs"),
    "cycle, qspinlock": ("cycle", "qspinlock"),
    "cycle, semaphore": ("cycle", "semaphore"),
}


def main() -> int:
    """Measure and print; nothing is asked of the figures."""
    asked = options(__doc__, repeats=5).parse_args()
    told = report(asked)
    for name, (kind, of) in LOADS.items():
        computed = _compile(of) if kind == "compile" else lock_cycle(of)
        both = {"computed": computed, "always warm": _warm(computed)}
        long = {case: spec | {"warmup_ns": 0, "duration_ns": LONG[kind]} for case, spec in both.items()}
        done = {case: json.loads(_engine.run(json.dumps(spec))) for case, spec in long.items()}
        times = interleaved(
            asked.repeats, {case: _timed(long[case], done[case]["operations"]) for case in both}
        )
        told.table(f"{name}: ns of CPU", times)
        counts = {
            case: count_an_event(spec, SHORT[kind]) * done[case]["events"] / done[case]["operations"]
            for case, spec in both.items()
        }
        told.table(f"{name}: instructions", {case: Sample((count,)) for case, count in counts.items()})
        told.figure(
            f"{name}: instructions, computed / always warm", counts["computed"] / counts["always warm"]
        )
        told.figure(f"{name}: time", times["computed"].minimum / times["always warm"].minimum)
    return told.end()


def _compile(variant: str) -> Spec:
    points = expand(load("compile-24", ["sweep.workload.tasks=[24]"]))
    return to_run_spec(next(point for point in points if point.variant == variant), 0)


def _warm(spec: Spec) -> Spec:
    machine = spec["machine"]
    return spec | {"machine": machine | {"caches": machine["caches"] | {"code_lines": 0.0}}}


def _timed(spec: Spec, operations: int) -> Callable[[], float]:
    """Processor time (ns) of an operation."""
    text = json.dumps(spec)

    def run() -> float:
        began = time.process_time_ns()
        _engine.run(text)
        return (time.process_time_ns() - began) / operations

    return run


if __name__ == "__main__":
    sys.exit(main())
