"""A process's page faults come one by one, and a task gives way where one ends."""

from __future__ import annotations

from engine import simulate
from simfs._engine import Histogram
from simfs.scenario import expand, load, to_run_spec


def test_a_process_gives_way_where_a_page_fault_ends() -> None:
    """A kernel thread that is woken on a busy CPU waits for a fault of some 6 us, not for all those of 200 us."""
    scenario = load(
        {
            "simfs": 1,
            "extends": "emulated-compile",
            "workload": {"tasks": 1},
            "sweep": {"workload.tasks": [1]},
            "measure": {"warmup": "20 ms", "duration": "100 ms"},
        }
    )
    point = next(point for point in expand(scenario) if point.variant == "xfs-6.12-noautogroup")
    spec = to_run_spec(point, 0)
    spec["kernel"]["kernel_threads"] = {"bound_interval_ns": 2e5, "unbound_interval_ns": 0, "run_ns": 2e3}
    (bound,) = (wakes for wakes in simulate(spec).wakes if wakes.kind == "bound")
    waits = Histogram.pooled([bound.to_run_busy.hdr])
    assert waits.count > 100
    assert waits.percentile(90) < 12_000
