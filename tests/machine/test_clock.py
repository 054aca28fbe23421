"""The clock of a machine's cores falls with the number of those that are active."""

from __future__ import annotations

from typing import Any

import pytest

from engine import scenario_spec
from simfs.scenario import expand, load
from simfs.scenario.models import load_machine
from simfs.scenario.run_spec import to_run_spec
from simfs.scenario.sections.clock import active_cores, slowed


@pytest.mark.parametrize(
    ("active", "clock"), [(1, 3.1), (2, 3.1), (3, 2.9), (4, 2.8), (5, 2.7), (6, 2.6), (12, 2.6), (40, 2.6)]
)
def test_a_socket_is_slower_the_more_of_its_cores_are_active(active: int, clock: float) -> None:
    assert slowed(load_machine("haswell-ep-24"), active) == pytest.approx(3.1 / clock)


@pytest.mark.parametrize(
    ("active", "clock"), [(1, 3.8), (28, 3.8), (29, 3.6), (40, 3.4), (44, 3.2), (48, 3.1)]
)
def test_cores_of_sapphire_rapids_keep_their_clock_until_half_of_them_are_active(
    active: int, clock: float
) -> None:
    assert slowed(load_machine("sapphire-rapids-192"), active) == pytest.approx(3.8 / clock)


def test_a_machine_whose_clocks_are_not_told_is_always_as_fast() -> None:
    assert slowed(load_machine("server-24"), 24) == 1


@pytest.mark.parametrize(
    ("tasks", "binding", "active"),
    [
        (1, "compact", 1),
        (12, "compact", 12),
        (24, "compact", 12),
        (4, "spread", 2),
        (5, "none", 3),
        (99, "none", 12),
    ],
)
def test_tasks_that_are_not_bound_closely_spread_over_sockets(tasks: int, binding: str, active: int) -> None:
    machine: dict[str, Any] = {"cpus": 24, "cpus_per_core": 1, "cpus_per_socket": 12}
    assert active_cores(machine, tasks, binding) == active


def test_what_a_core_does_takes_longer_and_lines_come_as_fast() -> None:
    alone, all_active = (
        scenario_spec("fxmark-mwcl", "journal", f"workload.tasks={tasks}", warmup_ns=0, duration_ns=1)[
            "machine"
        ]
        for tasks in (1, 24)
    )
    for name in ("speed", "instruction", "context_switch", "wakeup", "cpu_relax", "line_hit"):
        assert all_active["costs"][name] == pytest.approx(alone["costs"][name] * 3.1 / 2.6), name
    assert all_active["costs"]["line_remote"] == alone["costs"]["line_remote"]
    assert all_active["caches"] == alone["caches"]


def test_a_slower_clock_leaves_lines_and_memory_as_they_are() -> None:
    def machine(*settings: str) -> dict[str, Any]:
        use = load("guest-cold", ["sweep={}", *settings])
        spec: dict[str, Any] = to_run_spec(expand(use)[0], 0)["machine"]
        return spec

    usual, slow = machine(), machine("machine.clock=0.8")
    assert slow["costs"]["context_switch"] == pytest.approx(usual["costs"]["context_switch"] / 0.8)
    assert slow["costs"]["line_socket"] == usual["costs"]["line_socket"]
    assert slow["caches"] == usual["caches"]
