"""Processor time per lock cycle: a loop that models nothing, the engine, SimPy.

24 tasks think (exponential, 1 us) on 24 CPUs and hold one lock (exponential, 50 ns). The engine has its CPUs,
cache lines and statistics on. The runs are taken in turns; a ratio compares minima.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import simpy_cycle
from measure import Sample, Spec, build, interleaved, lasting, lock_cycle, run_engine, run_floor, verdict

TASKS = 24


def main() -> int:
    """Measure, print, and return 1 if a figure misses its mark."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cycles", type=int, default=500_000, help="lock cycles a run")
    options.add_argument("--repeats", type=int, default=5, help="runs of each kind")
    asked = options.parse_args()
    build()
    samples = interleaved(asked.repeats, _measurements(asked.cycles))
    print(f"{'ns of processor time per lock cycle':<58}   minimum    median")
    for name, sample in samples.items():
        print(f"{name:<58} {sample.minimum:9.1f} {sample.median:9.1f}")
    print()
    return 0 if all(_verdicts(samples)) else 1


def _measurements(cycles: int) -> dict[str, Callable[[], float]]:
    engine = {
        "engine, qspinlock": lock_cycle("qspinlock"),
        "engine, semaphore": lock_cycle("semaphore"),
        "engine, qspinlock, hardly contended": lock_cycle("qspinlock", think_ns=100_000),
        "engine, semaphore, hardly contended": lock_cycle("semaphore", think_ns=100_000),
    }
    return {
        "hand-written loop": lambda: run_floor(TASKS, cycles).cpu_ns_per_cycle,
        **{name: _engine(lasting(spec, cycles)) for name, spec in engine.items()},
        "SimPy, idiomatic": lambda: simpy_cycle.idiomatic(TASKS, cycles) / cycles,
        "SimPy, tuned by hand": lambda: simpy_cycle.tuned(TASKS, cycles) / cycles,
    }


def _engine(spec: Spec) -> Callable[[], float]:
    return lambda: run_engine(spec).cpu_ns_per_cycle


def _verdicts(samples: dict[str, Sample]) -> list[bool]:
    def ratio(above: str, below: str) -> float:
        return samples[above].minimum / samples[below].minimum

    verdicts = []
    for lock in ("qspinlock", "semaphore"):
        engine = f"engine, {lock}"
        verdicts += [
            verdict(f"{engine} / hand-written loop", ratio(engine, "hand-written loop"), 2.5, at_most=True),
            verdict(f"SimPy, idiomatic / {engine}", ratio("SimPy, idiomatic", engine), 40),
            verdict(
                f"{engine} / the same, hardly contended", ratio(engine, f"{engine}, hardly contended"), 2
            ),
        ]
        print(f"{'SimPy, tuned by hand / ' + engine:<58} {ratio('SimPy, tuned by hand', engine):9.2f}")
    return verdicts


if __name__ == "__main__":
    sys.exit(main())
