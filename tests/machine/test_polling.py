"""An idle CPU polls for some time, and then its governor chooses again (`poll_idle`, `cpuidle_poll_time`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import per_second, read_answer, written_spec
from simfs.machine.cpus.cpu import IdleLadder
from simfs.machine.cpus.menu import Menu
from simfs.machine.cpus.polling import ENDLESS, polls_for
from simfs.scenario.models import load_timeline
from simfs.scenario.models.timeline import parse_version

NS, US = 10**3, 10**6
TICK = 4_000 * US
SECOND = 10**6 * US
POLLS, C1, C6 = range(3)
MACHINE: dict[str, Any] = {
    "watts_active": 4.0,
    "idle_states": [
        {"name": "C1", "exit_ns": 2e3, "residency_ns": 2e3, "watts": 1.0},
        {"name": "C6", "exit_ns": 170e3, "residency_ns": 600e3, "watts": 0.1},
    ],
}
XEON, EPYC = (2 * US, 20 * US, 600 * US), (2 * US, 800 * US)
"""Residencies; M. Gorman's examples of November 2020."""


@pytest.mark.parametrize(
    ("rule", "residencies", "us"),
    [
        ("part_of_tick", XEON, 250),
        ("first_residency", XEON, 2),
        ("long_residency", XEON, 20),
        ("long_residency", EPYC, 250),
        ("long_residency", XEON[:1], 250),
    ],
)
def test_the_limit_of_polling(rule: str, residencies: tuple[int, ...], us: int) -> None:
    assert polls_for(rule, residencies, TICK, 0) == us * US


def test_the_clock_is_looked_at_once_in_201_rounds() -> None:
    """And polling ends when more than the limit has gone by."""
    assert polls_for("first_residency", XEON, TICK, 40 * NS) == 201 * 40 * NS
    assert polls_for("long_residency", XEON, TICK, 40 * NS) == 3 * 201 * 40 * NS
    assert polls_for("first_residency", (201 * NS,), TICK, 1 * NS) >= US


def test_before_4_17_nothing_ends_it() -> None:
    assert polls_for("endless", XEON, TICK, 40 * NS) == ENDLESS


def test_which_kernel_polls_for_how_long() -> None:
    versions = {
        "4.16": "endless",
        "4.20": "part_of_tick",
        "5.10": "first_residency",
        "5.11": "long_residency",
    }
    timeline = load_timeline()
    found = {version: timeline.kernel(parse_version(version)).rules["idle.polling"] for version in versions}
    assert found == versions


@pytest.mark.parametrize(
    ("idle_us", "waiters", "state"),
    [
        (9, 5, POLLS),
        (10, 5, C1),
        (500, 9, C1),
        (8_670, 5, C6),
        (5, 1, POLLS),
        (22, 1, C1),
        (600, 0, C6),
        (1, 0, C1),
    ],
)
def test_who_has_polled_in_vain_is_in_the_shallowest_state(idle_us: int, waiters: int, state: int) -> None:
    """Five who wait would keep the CPU from C1 for 102 us. C6 has to pay as before."""
    assert IdleLadder(MACHINE, 10 * US).after(idle_us * US, waiters) == state


def test_only_polling_takes_the_power_of_work() -> None:
    ladder = IdleLadder(MACHINE, 10 * US)
    assert ladder.joules(0, 100 * US, 5) == pytest.approx((10 * 4.0 + 90 * 1.0) * 1e-6)
    assert IdleLadder(MACHINE).joules(0, 100 * US, 5) == pytest.approx(100 * 4.0 * 1e-6)


def states(menu: Menu, ladder: IdleLadder, us: int, now: int = 0) -> list[tuple[int, int]]:
    """The states that a CPU goes through in so many us, and for how many us."""
    return [(state, (end - start) // US) for state, start, end in menu.idle(ladder, now + us * US, TICK)]


def after_eight(us: int, waiters: int, ladder: IdleLadder) -> tuple[Menu, int]:
    """A governor that has seen eight times alike, and begins to idle where some wait for I/O."""
    menu, now = Menu(), 0
    for _ in range(8):
        menu.enter(ladder, now, now + SECOND, TICK)
        now += us * US
        list(menu.idle(ladder, now, TICK))
        menu.wake(ladder, now, TICK)
    menu.enter(ladder, now, now + SECOND, TICK, waiters)
    return menu, now


def test_the_menu_governor_polls_until_its_guess_is_no_pattern_any_more() -> None:
    """Of eight times two that are far longer are left out (`get_typical_interval`); polling in vain counts as one."""
    ladder = IdleLadder(MACHINE, 10 * US)
    menu, now = after_eight(30, 5, ladder)
    assert states(menu, ladder, 100, now) == [(POLLS, 10)] * 3 + [(C6, 70)]


def test_a_tick_does_not_end_it() -> None:
    ladder = IdleLadder(MACHINE)
    menu, now = after_eight(30, 5, ladder)
    assert states(menu, ladder, 20_000, now) == [(POLLS, 20_000)]


READERS = """\
simfs: 1
name: readers
title: Tasks read pages that they lock in turn, and wait for each other as for I/O
machine: {profile: haswell-ep-24, cpus: 6}
kernel: {profile: linux-6.12, rules: {idle.io_waiters: true}}
filesystem: {kind: tmpfs}
workload: {kind: mix, tasks: 6, operations: [{op: read}], file_set: shared, threads: true}
locks: {mm.folio_lock: semaphore}
measure: {warmup: 5 ms, duration: 40 ms, replications: 1}
"""


@pytest.mark.slow
@pytest.mark.parametrize("governor", ["menu", "teo", "residency"])
@pytest.mark.parametrize("polling", ["endless", "part_of_tick", "first_residency", "long_residency"])
def test_both_machines_poll_alike(tmp_path: Path, governor: str, polling: str) -> None:
    rules = (f"kernel.rules.idle.governor={governor}", f"kernel.rules.idle.polling={polling}")
    given = written_spec(tmp_path / "readers.yaml", READERS, *rules)
    assert assert_same(given | {"warmup_ns": 0.0, "duration_ns": 5e5}) > 50


def test_who_has_polled_in_vain_takes_longer_to_wake(tmp_path: Path) -> None:
    """Several wait for a page on each CPU: it would poll without end, and does until it has looked at the clock."""
    of = {
        rule: 1e9
        / per_second(
            read_answer(written_spec(tmp_path / "readers.yaml", READERS, f"kernel.rules.idle.polling={rule}"))
        )
        for rule in ("endless", "first_residency")
    }
    assert of["first_residency"] > of["endless"]
