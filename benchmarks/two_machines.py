"""How much faster the native machine is than the reference machine, on the same runs of a scenario.

Both give the same result, which is checked. The reference machine's run is short, so its time includes making the
machine and the filesystem; the native one's does too.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from measure import Sample, Spec, interleaved, options, report

from simfs import _engine
from simfs.machine import run as run_reference
from simfs.scenario import expand, load, to_run_spec


def main() -> int:
    """Measure, print, and return 1 if the ratio misses its mark."""
    parser = options(__doc__, repeats=3)
    parser.add_argument("--scenario", default="compile-24", help="scenario, all its variants at 24 tasks")
    parser.add_argument("--duration", type=float, default=200.0, help="simulated time of a run (ms)")
    asked = parser.parse_args()
    told = report(asked)
    specs = _specs(asked.scenario, asked.duration)
    events = _same_events(specs)
    samples = interleaved(
        asked.repeats,
        {"native": _timed(specs, _engine.run), "reference": _timed(specs, run_reference)},
    )
    title = f"ns an event, {asked.scenario}: {len(specs)} runs of {asked.duration:g} ms"
    told.table(
        title,
        {name: Sample(tuple(1e9 * s / events for s in sample.values)) for name, sample in samples.items()},
    )
    told.verdict("reference / native", samples["reference"].minimum / samples["native"].minimum, 100)
    return told.end()


def _specs(scenario: str, duration_ms: float) -> list[Spec]:
    points = [p for p in expand(load(scenario)) if p.values.get("workload.tasks") == 24]
    return [to_run_spec(p, 0) | {"warmup_ns": 0, "duration_ns": duration_ms * 1e6} for p in points]


def _same_events(specs: list[Spec]) -> int:
    total = 0
    for spec in specs:
        native, reference = (json.loads(run(json.dumps(spec))) for run in (_engine.run, run_reference))
        if native != reference:
            raise RuntimeError("the two machines' results differ")
        total += native["events"]
    return total


def _timed(specs: list[Spec], run: Callable[[str], str]) -> Callable[[], float]:
    texts = [json.dumps(spec) for spec in specs]

    def measured() -> float:
        started = time.process_time()
        for text in texts:
            run(text)
        return time.process_time() - started

    return measured


if __name__ == "__main__":
    sys.exit(main())
