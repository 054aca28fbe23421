"""The order of events at one instant is specified, and no prediction hangs on it."""

from __future__ import annotations

import pytest
from scipy import stats

from engine import Spec, lock_cycle, rate, replications, scenario_spec
from simfs.machine.locks.kinds import KINDS

ROUND = {"line_hit": 0, "line_llc": 100, "context_switch": 1000, "wakeup": 1000, "ipi_deliver": 1000}
"""Round numbers, so that much happens at the same instant."""
LEVEL = 0.999


def equal_means(spec: Spec) -> bool:
    """Whether the throughput is the same, at the 99.9 % level, when ties are taken in random order."""
    plain, shuffled = (
        [rate(run) for run in replications(spec | {"shuffle_ties": shuffle}, 12)] for shuffle in (False, True)
    )
    return bool(stats.ttest_ind(plain, shuffled, equal_var=False).pvalue > 1 - LEVEL)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_mean_of_a_lock_cycle_does_not_hang_on_the_order_of_ties(kind: str) -> None:
    readers = 0.5 if kind.startswith(("rw", "qrw", "percpu", "seq", "rcu")) else 0.0
    spec = lock_cycle(
        kind, 9, 6, warmup_ns=1e6, duration_ns=2e7, costs=ROUND, readers=readers,
        think_distribution="exponential", think_ns=2e4, hold_ns=2e3,
    )  # fmt: skip
    assert equal_means(spec)


@pytest.mark.slow
def test_the_mean_of_a_filesystem_does_not_hang_on_the_order_of_ties() -> None:
    spec = scenario_spec(
        "guest-2cpu", "xfs-shared", "workload.kind=create_unlink", "workload.tasks=8", "workload.pin_to_cpu=null",
        warmup_ns=1e7, duration_ns=1e8,
    )  # fmt: skip
    assert equal_means(spec)
