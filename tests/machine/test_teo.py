"""Which idle state the `teo` governor chooses (`drivers/cpuidle/governors/teo.c`)."""

from __future__ import annotations

import pytest

from simfs.machine.cpus.cpu import IdleLadder
from simfs.machine.cpus.teo import Teo

US = 10**6
TICK = 4_000 * US
SECOND = 10**6 * US
POLLS, C1, C1E, C6 = range(4)
LADDER = IdleLadder(
    {
        "watts_active": 4.0,
        "idle_states": [
            {"name": "C1", "exit_ns": 2e3, "residency_ns": 2e3, "watts": 1.0},
            {"name": "C1E", "exit_ns": 10e3, "residency_ns": 20e3, "watts": 0.5},
            {"name": "C6", "exit_ns": 133e3, "core_exit_ns": 41e3, "residency_ns": 600e3, "watts": 0.1},
        ],
    },
    22 * US,
)


def after(*idled_us: float, to_timer: int = SECOND) -> tuple[Teo, int]:
    """A governor, about to idle once more after idling for some times, and the time."""
    teo, now = Teo(), 0
    for us in idled_us:
        teo.enter(LADDER, now, now + to_timer, TICK)
        now += int(us * US)
        list(teo.idle(LADDER, now, TICK))
        teo.wake(LADDER, now, TICK)
        now += 10 * US
    teo.enter(LADDER, now, now + to_timer, TICK)
    return teo, now


@pytest.mark.parametrize(("to_timer_us", "state"), [(10**6, C6), (700, C6), (500, C1E), (10, C1), (1, POLLS)])
def test_who_has_never_idled_goes_by_its_timer(to_timer_us: int, state: int) -> None:
    assert after(to_timer=to_timer_us * US)[0].state == state


@pytest.mark.parametrize(("idled_us", "state"), [(0.5, POLLS), (8, C1), (100, C1E), (900, C6)])
def test_who_was_woken_before_its_timer_time_after_time_counts_on_it(idled_us: float, state: int) -> None:
    assert after(*[idled_us] * 9)[0].state == state


def test_most_times_decide() -> None:
    """Of those that ended too soon for C6, the deepest state that half of them paid for."""
    assert after(*[100, 100, 8] * 4)[0].state == C1E
    assert after(*[100, 8, 8] * 4)[0].state == C1
    assert after(*[900, 900, 8] * 4)[0].state == C6


def test_the_time_that_it_takes_to_wake_is_not_idled() -> None:
    """Half of the way out of C1E, 5 us, counts: 14 us are too short for it and 16 are not."""
    for idled_us, counts in ((14, ([0] * 4, [0, 1024, 0, 0])), (16, ([0, 0, 1024, 0], [0] * 4))):
        teo = Teo()
        teo.enter(LADDER, 0, 300 * US, TICK)
        assert teo.state == C1E
        teo.wake(LADDER, idled_us * US, TICK)
        assert (teo._hits, teo._intercepts) == counts


def test_polling_in_vain_counts_as_a_long_time() -> None:
    teo, now = after(*[0.5] * 9)
    states = [(state, (end - start) // US) for state, start, end in teo.idle(LADDER, now + 500 * US, TICK)]
    polled = [us for state, us in states if state == POLLS]
    assert set(polled) == {22}
    assert 2 <= len(polled) <= 6
    assert states[-1][0] == C6


def test_if_times_below_a_tick_are_most_the_tick_goes_on() -> None:
    """And the state has to pay until then."""
    teo, now = after(*[900] * 9)
    assert teo._ticks
    assert now % TICK < TICK - 600 * US
    teo.enter(LADDER, 10 * TICK - 100 * US, 20 * TICK, TICK)
    assert teo.state == C1E
