"""What the engine runs while it is profiled for a wheel (`maturin build --release --pgo`).

Every kind of lock under load, and compiles on every filesystem, so that nothing which many runs need is taken for
rare. A profile changes how fast the engine is, never what it computes.
"""

from __future__ import annotations

import json

from simfs import _engine
from simfs.scenario import expand, load, to_run_spec

#: By scenario: what is fixed of it, and the simulated time of each of its points (ns).
LOADS = {
    "lock-cycle": ("workload.think=1 us", 100e6),
    "lock-tournament": ("workload.tasks=32", 5e6),
    "compile-24": ("workload.tasks=24", 1e9),
}


def main() -> None:
    """Run all of them."""
    for scenario, (fixed, duration) in LOADS.items():
        for point in expand(load(scenario, [fixed])):
            _engine.run(json.dumps(to_run_spec(point, 0) | {"warmup_ns": 0, "duration_ns": duration}))


if __name__ == "__main__":
    main()
