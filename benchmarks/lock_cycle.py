"""Processor time per lock cycle: a loop that models nothing, the engine, SimPy.

24 tasks think (exponential, 1 us) on 24 CPUs and hold one lock (exponential, 50 ns). The engine has its CPUs,
cache lines and statistics on. The runs are taken in turns; a ratio compares minima.

With `--against REV` the engine of another git revision is compiled too and the two are compared instead. With
`--recorded` instructions of the installed engine and of the loop are counted instead (valgrind), and the command fails
where their ratio is higher than that in `recorded.json` by a tenth.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import simpy_cycle
from measure import (
    Report,
    Sample,
    Spec,
    build,
    build_floor,
    build_revision,
    count_engine,
    count_floor,
    interleaved,
    lasting,
    lock_cycle,
    options,
    report,
    run_engine,
    run_floor,
)

TASKS = 24
LOOP = "hand-written loop"
ENGINES: dict[str, Spec] = {
    "engine, qspinlock": lock_cycle("qspinlock"),
    "engine, semaphore": lock_cycle("semaphore"),
    "engine, qspinlock, hardly contended": lock_cycle("qspinlock", think_ns=100_000),
    "engine, semaphore, hardly contended": lock_cycle("semaphore", think_ns=100_000),
}
RECORDED = Path(__file__).parent / "recorded.json"
#: How much worse than recorded a ratio of instructions may be: versions of compilers differ by less.
TOLERANCE = 1.1
#: Lock cycles a run while instructions are counted: valgrind is fifty times as slow, and the count does not vary.
COUNTED_CYCLES = 20_000

Measurements = dict[str, Callable[[], float]]


def main() -> int:
    """Measure, print, and return 1 if a figure misses its mark."""
    parser = options(__doc__, repeats=5)
    parser.add_argument("--cycles", type=int, default=500_000, help="lock cycles a run")
    parser.add_argument("--against", metavar="REV", help="compare with the engine of another git revision")
    parser.add_argument(
        "--recorded", action="store_true", help="compare instructions with the recorded ratios"
    )
    asked = parser.parse_args()
    told = report(asked)
    if asked.recorded:
        _compare_recorded(told)
        return told.end()
    if asked.against:
        measurements, judge = _of_two(asked.cycles, asked.against), _compare
    else:
        measurements, judge = _of_all(asked.cycles), _judge
    samples = interleaved(asked.repeats, measurements)
    told.table("ns of processor time per lock cycle", samples)
    judge(told, samples)
    return told.end()


def _loop(cycles: int) -> Measurements:
    return {LOOP: lambda: run_floor(TASKS, cycles).cpu_ns_per_cycle}


def _of_all(cycles: int) -> Measurements:
    build()
    return {
        **_loop(cycles),
        **{name: _engine_run(lasting(spec, cycles)) for name, spec in ENGINES.items()},
        "SimPy, idiomatic": lambda: simpy_cycle.idiomatic(TASKS, cycles) / cycles,
        "SimPy, tuned by hand": lambda: simpy_cycle.tuned(TASKS, cycles) / cycles,
    }


def _engine_run(spec: Spec, program: Path | None = None) -> Callable[[], float]:
    return lambda: run_engine(spec, program).cpu_ns_per_cycle


def _judge(told: Report, samples: dict[str, Sample]) -> None:
    def ratio(above: str, below: str) -> tuple[str, float]:
        return f"{above} / {below}", samples[above].minimum / samples[below].minimum

    for engine, most, least in (("engine, qspinlock", 2.3, 50), ("engine, semaphore", 3, 35)):
        told.verdict(*ratio(engine, LOOP), most, at_most=True)
        told.verdict(*ratio("SimPy, idiomatic", engine), least)
        told.verdict(*ratio(engine, f"{engine}, hardly contended"), 2)
        told.figure(*ratio("SimPy, tuned by hand", engine))


def _of_two(cycles: int, revision: str) -> Measurements:
    build()
    before = build_revision(revision)
    specs = {name: lasting(spec, cycles) for name, spec in ENGINES.items()}
    now = {name: _engine_run(spec) for name, spec in specs.items()}
    return now | {f"{name}, before": _engine_run(spec, before) for name, spec in specs.items()}


def _compare(told: Report, samples: dict[str, Sample]) -> None:
    for name in ENGINES:
        told.figure(f"{name}: now / before", samples[name].minimum / samples[f"{name}, before"].minimum)


def _compare_recorded(told: Report) -> None:
    build_floor()
    loop = count_floor(TASKS, COUNTED_CYCLES)
    told.figure(f"{LOOP}, instructions a cycle", loop)
    for name, recorded in json.loads(RECORDED.read_text()).items():
        counted = count_engine(ENGINES[name], COUNTED_CYCLES)
        told.figure(f"{name}, instructions a cycle", counted)
        told.verdict(f"{name} / {LOOP}", counted / loop, TOLERANCE * recorded, at_most=True)


if __name__ == "__main__":
    sys.exit(main())
