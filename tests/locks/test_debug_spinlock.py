"""Kernels with `CONFIG_DEBUG_SPINLOCK`, whose spinlocks check and store their owner in their own line."""

from __future__ import annotations

import pytest
from machines import assert_same

from engine import Spec, lock_cycle, rate, simulate

LINE = 100


def cycle(kind: str, tasks: int, checked: bool) -> Spec:
    costs = {"line_llc": LINE, "line_hit": 1, "cpu_relax": 1}
    spec = lock_cycle(kind, tasks, 8, think_ns=500, hold_ns=50, costs=costs, duration_ns=2e6)
    spec["kernel"].setdefault("rules", {})["lock.debug_spinlock"] = checked
    return spec


@pytest.mark.parametrize("kind", ["qspinlock", "cna", "mcs"])
def test_a_holder_fetches_the_owner_back_from_those_who_ask(kind: str) -> None:
    """Under load a turn takes longer, by less than two transfers: others have taken the owner away at its end."""
    plain, checked = (1 / rate(simulate(cycle(kind, 8, of))) for of in (False, True))
    assert plain + 0.25 * LINE < checked < plain + 2 * LINE


def test_who_is_alone_finds_the_owner_in_his_cache() -> None:
    """Two looks, each a hit of a nanosecond."""
    plain, checked = (1 / rate(simulate(cycle("qspinlock", 1, of))) for of in (False, True))
    assert 0 < checked - plain < 3


@pytest.mark.parametrize("kind", ["qspinlock", "ticket", "tas", "mcs", "cna", "pvqspinlock"])
def test_both_machines_check_owners(kind: str) -> None:
    assert_same(cycle(kind, 6, checked=True))


@pytest.mark.parametrize("checked", [False, True])
def test_both_machines_agree_where_a_pvqspinlock_costs_nothing(checked: bool) -> None:
    """Its accesses begin a segment of their own, also one of no time."""
    spec = cycle("pvqspinlock", 3, checked)
    spec["machine"]["costs"] |= dict.fromkeys(
        ("line_hit", "line_atomic", "line_llc", "line_socket", "cpu_relax"), 0.0
    )
    assert_same(spec)
