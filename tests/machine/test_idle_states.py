"""How long a CPU takes to leave its idle state: deeper after a longer stay, longer where the package sleeps, too."""

from __future__ import annotations

import pytest
from machines import assert_same

from engine import Spec, lock_cycle, simulate
from simfs.machine.cpus.cpu import IdleLadder

US = 10**6
"""Picoseconds."""

STATES = [
    {"name": "C1", "exit_ns": 2e3, "residency_ns": 2e3, "watts": 1.0},
    {"name": "C6", "exit_ns": 170e3, "core_exit_ns": 41e3, "residency_ns": 600e3, "watts": 0.1},
]
LADDER = IdleLadder({"watts_active": 4.0, "idle_states": STATES})


@pytest.mark.parametrize(
    ("idle_us", "sleeps", "exit_us"),
    [(1, True, 2), (599, True, 2), (599, False, 2), (600, True, 170), (600, False, 41), (10**6, False, 41)],
)
def test_only_who_wakes_alone_in_its_package_waits_for_the_package(
    idle_us: int, sleeps: bool, exit_us: int
) -> None:
    assert LADDER.exit_where(LADDER.deepest(idle_us * US), lambda: sleeps) == exit_us * US


def hand_over(cpus_per_socket: int) -> Spec:
    """Two tasks hand a semaphore to each other; each holds it for 2 ms, while the other sleeps and its CPU is in C6."""
    spec = lock_cycle("semaphore", 2, hold_ns=2e6, duration_ns=1e9, idle_states=STATES)
    spec["machine"]["cpus_per_socket"] = spec["machine"]["cpus_per_llc"] = cpus_per_socket
    return spec


@pytest.mark.parametrize(("cpus_per_socket", "exit_ms"), [(2, 0.041), (1, 0.170)])
def test_a_lock_is_handed_over_faster_within_a_package(cpus_per_socket: int, exit_ms: float) -> None:
    """The waker keeps its own package awake."""
    assert simulate(hand_over(cpus_per_socket)).operations == pytest.approx(1000 / (2 + exit_ms), abs=2)


@pytest.mark.parametrize("cpus_per_socket", [1, 2])
def test_both_machines_wake_alike(cpus_per_socket: int) -> None:
    assert_same(hand_over(cpus_per_socket) | {"duration_ns": 5e7})
