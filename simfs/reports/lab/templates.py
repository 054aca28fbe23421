"""What the page knows: the RunSpec of `lock-cycle` and what differs in it by lock and CPUs, and how states are drawn.

Nothing is typed twice: names and costs come from the scenario, the models and the policies of the locks.
"""

from __future__ import annotations

from typing import Any

from simfs.machine.locks.policy import POLICIES
from simfs.reports.timeline.figure import ROWS, strips
from simfs.reports.timeline.html import drawn
from simfs.scenario import load, to_run_spec
from simfs.scenario.points import expand
from simfs.scenario.run_spec import AUTO_WARMUP

SCENARIO = "lock-cycle"
CPUS = (1, 2, 4, 8, 12, 16, 24, 48)
"""What the form offers; 48 is two sockets."""
FACTS = {
    "kernel": "in Linux",
    "conflict": "excludes",
    "admission": "may pass the queue",
    "spin": "who spins",
    "queue": "next is",
    "wakes": "a release wakes",
    "grant": "a wake-up is",
}
"""Axes of a lock's policy that the page tells, and what it calls them."""


def kit() -> dict[str, Any]:
    """The page's data, in the words of spec.js and scene.js."""
    base = _spec()
    return {
        "base": {part: value for part, value in base.items() if part not in ("machine", "kernel")},
        "locks": {kind: _spec(f"workload.lock={kind}")["kernel"]["locks"] for kind in POLICIES},
        "cpus": {n: _of_cpus(n) for n in CPUS},
        "warmup": AUTO_WARMUP,
        "about": {
            kind: {said: str(getattr(policy, axis)) for axis, said in FACTS.items()}
            for kind, policy in POLICIES.items()
        },
        "style": {**drawn(), "rows": ROWS, "strips": strips(1)},
    }


def _spec(*settings: str) -> dict[str, Any]:
    return to_run_spec(expand(load(SCENARIO, ("sweep={}", "variants=[]", *settings)))[0], 0)


def _of_cpus(cpus: int) -> dict[str, Any]:
    spec = _spec(f"machine.cpus={cpus}")
    return {"machine": spec["machine"], "kernel": spec["kernel"]}
