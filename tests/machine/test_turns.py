"""User and kernel time in turns, where others want the CPU meanwhile: equal on both machines."""

from __future__ import annotations

import pytest
from machines import assert_same

from engine import scenario_spec


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        ("machine=guest-2cpu", "workload.binding=none"),
        ("machine.cpus=2", "kernel.preemption=full"),
        ("machine.cpus=4", "machine.cpus_per_core=2", "workload.binding=none", "workload.tasks=9"),
    ],
)
def test_crowded_compilers_are_preempted_at_the_same_moments(settings: tuple[str, ...]) -> None:
    spec = scenario_spec("compile-24", "xfs", "workload.tasks=5", *settings, warmup_ns=0, duration_ns=6e7)
    assert assert_same(spec) > 1000
