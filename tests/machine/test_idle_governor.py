"""Which idle state the `menu` governor chooses (`drivers/cpuidle/governors/menu.c`)."""

from __future__ import annotations

import pytest
from machines import assert_same

from engine import Spec, lock_cycle, simulate
from simfs.machine.cpus.cpu import IdleLadder
from simfs.machine.cpus.menu import Menu

US = 10**6
TICK = 4_000 * US
SECOND = 10**6 * US
STATES = [
    {"name": "C1", "exit_ns": 1e3, "residency_ns": 1e3, "watts": 1.0},
    {"name": "C1E", "exit_ns": 4e3, "residency_ns": 20e3, "watts": 0.5},
    {"name": "C6", "exit_ns": 40e3, "residency_ns": 600e3, "watts": 0.1},
]
LADDER = IdleLadder({"watts_active": 4.0, "idle_states": STATES})


def after(*idled_us: int, to_timer: int = SECOND) -> Menu:
    """A governor, about to idle once more after idling for some times."""
    menu, now = Menu(), 0
    for us in idled_us:
        menu.enter(LADDER, now, now + to_timer, TICK)
        now += us * US
        list(menu.idle(LADDER, now, TICK))
        menu.wake(LADDER, now, TICK)
        now += 10 * US
    menu.enter(LADDER, now, now + to_timer, TICK)
    return menu


def test_who_has_never_idled_goes_by_its_timer() -> None:
    assert after().state == 3
    assert after(to_timer=30 * US).state == 2


@pytest.mark.parametrize(("idled_us", "state"), [(15, 1), (25, 2), (650, 3)])
def test_eight_times_alike_are_a_pattern(idled_us: int, state: int) -> None:
    assert after(*[idled_us] * 8).state == state


def test_the_longest_two_of_eight_do_not_hide_it() -> None:
    """`get_typical_interval` discards outliers to the upside."""
    assert after(15, 16, 15, 900, 14, 15, 1200, 15).state == 1
    assert after(15, 800, 15, 900, 14, 700, 1200, 15).state == 3


def test_who_idles_on_in_a_shallow_state_goes_deeper_by_ticks() -> None:
    """A tick that was not expected counts as a long time; after a few the times are no pattern any more."""
    menu = after(*[15] * 8)
    states = [state for state, _, _ in menu.idle(LADDER, 100 * TICK, TICK)]
    assert states[0] == 1
    assert states[-1] == 3
    assert 2 <= len(states) <= 9


def sleepers(governor: str) -> Spec:
    """Tasks that hand a semaphore on; each sleeps for some 30 us at a time, seldom for long."""
    rules = {"rules": {"idle.governor": governor}}
    return lock_cycle(
        "semaphore", 3, hold_ns=15e3, think_ns=1e3, duration_ns=2e7, idle_states=STATES, kernel=rules
    )


@pytest.mark.slow
@pytest.mark.parametrize("governor", ["menu", "teo", "haltpoll", "residency"])
def test_both_machines_idle_alike(governor: str) -> None:
    assert_same(sleepers(governor))


def test_a_pattern_is_slept_through_in_the_state_for_it() -> None:
    """After eight times the exit is that of C1E, as by residency."""
    menu, residency = (simulate(sleepers(governor)).operations for governor in ("menu", "residency"))
    assert menu == pytest.approx(residency, rel=0.05)
