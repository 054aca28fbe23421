"""Guests poll before they halt, and hosts for who has halted (`haltpoll.c`, `kvm_vcpu_halt`)."""

from __future__ import annotations

from typing import Any

import pytest
from machines import assert_same

from engine import CONSTANTS, FREE, Spec, lock_cycle, simulate
from simfs.machine.cpus.cpu import IdleLadder
from simfs.machine.cpus.haltpoll import Haltpoll
from simfs.machine.kernel import HaltPolling

US = 10**6
TICK = 4_000 * US
POLLS, HALT, GIVEN_AWAY = range(3)
STATES: list[dict[str, Any]] = [
    {"name": "halt", "exit_ns": 1e3, "residency_ns": 1e3, "watts": 1.0},
    {"name": "descheduled", "exit_ns": 5e3, "residency_ns": 30e3, "watts": 0.1},
]
LADDER = IdleLadder({"watts_active": 4.0, "idle_states": STATES})


def limits(guest: int = 200, host: int = 200, *, adapts: bool = True, shrink: int = 0) -> HaltPolling:
    """Of a guest and a host, in us."""
    return HaltPolling(guest * US, 50 * US, adapts, host * US, 10 * US, shrink)


class Guest:
    """A virtual CPU that works for a moment and idles for a while."""

    def __init__(self, polling: HaltPolling) -> None:
        self.governor, self.now = Haltpoll(polling, 0), 0

    def idle(self, us: int) -> tuple[list[int], int]:
        """The states that it goes through, and the one that it wakes from."""
        self.governor.enter(LADDER, self.now, self.now + 10**6 * US, TICK)
        self.now += us * US
        states = [state for state, _, _ in self.governor.idle(LADDER, self.now, TICK)]
        return states, self.governor.wake(LADDER, self.now, TICK)


def test_a_guest_begins_to_poll_after_a_short_halt() -> None:
    guest = Guest(limits(host=0))
    assert guest.idle(60) == ([HALT, GIVEN_AWAY], GIVEN_AWAY)
    assert guest.idle(40) == ([POLLS], POLLS)
    assert guest.idle(60) == ([POLLS, HALT, GIVEN_AWAY], GIVEN_AWAY)  # 50 us, and a halt of 10
    assert guest.idle(110) == ([POLLS, HALT, GIVEN_AWAY], GIVEN_AWAY)
    assert guest.idle(90) == ([POLLS], POLLS)  # 100 us: the halt was longer than the 50


def test_a_guest_polls_half_as_long_after_a_long_halt() -> None:
    guest = Guest(limits())
    guest.idle(60)
    guest.idle(1_000)
    assert guest.governor._polls_for == 25 * US
    guest.idle(24)
    assert guest.governor._polls_for == 25 * US


def test_the_host_polls_for_halts_that_are_longer_than_it_does() -> None:
    guest = Guest(limits(guest=0))
    assert [guest.idle(60)[1] for _ in range(6)] == [GIVEN_AWAY] * 4 + [HALT] * 2
    assert guest.governor._host_polls_for == 80 * US


@pytest.mark.parametrize(("shrink", "us"), [(0, 0), (2, 40), (10, 0)])
def test_after_a_long_halt_it_polls_for_less(shrink: int, us: int) -> None:
    """Or not at all, where that were less than it begins with."""
    guest = Guest(limits(guest=0, shrink=shrink))
    for _ in range(5):
        guest.idle(60)
    guest.idle(300)
    assert guest.governor._host_polls_for == us * US


def test_a_host_that_does_not_adapt_goes_by_the_residency() -> None:
    guest = Guest(limits(guest=0, adapts=False))
    assert [guest.idle(us)[1] for us in (29, 30, 60, 29)] == [HALT, GIVEN_AWAY, GIVEN_AWAY, HALT]


def test_energy_is_that_of_the_states_on_the_way() -> None:
    guest = Guest(limits(guest=0, adapts=False))
    guest.governor.enter(LADDER, 0, 10**12, TICK)
    assert list(guest.governor.idle(LADDER, 100 * US, TICK)) == [
        (HALT, 0, 30 * US),
        (GIVEN_AWAY, 30 * US, 100 * US),
    ]


def hand_over(governor: str, host: str = "fixed", **constants: float) -> Spec:
    """Two tasks hand a semaphore on, each on its CPU; the sleeper idles for 20 us."""
    kernel = {
        "rules": {"idle.governor": governor, "idle.host_polling": host},
        "constants": {**CONSTANTS, **constants},
    }
    costs = {
        **FREE,
        "ipi_send": 5e3,
        "ipi_deliver": 3e3,
        "context_switch": 1e3,
        "wakeup": 500.0,
        "cpu_relax": 37.0,
    }
    return lock_cycle(
        "semaphore", 2, hold_ns=20e3, duration_ns=2e7, idle_states=STATES, kernel=kernel, costs=costs
    )


def test_who_polls_is_woken_without_an_interrupt() -> None:
    """Which spares the hand-over 5 us of the waker, 3 us on the way and 1 us of the halt."""
    halts, polls = (2e7 / simulate(hand_over(governor)).operations for governor in ("residency", "haltpoll"))
    assert 6e3 < halts - polls < 10e3


@pytest.mark.slow
@pytest.mark.parametrize("host", ["fixed", "adaptive"])
@pytest.mark.parametrize("guest_us", [0, 10, 200])
@pytest.mark.parametrize("shrink", [0, 2])
def test_both_machines_halt_alike(host: str, guest_us: int, shrink: int) -> None:
    constants = {
        "guest_halt_poll": guest_us * 1e3,
        "host_halt_poll": 4e4,
        "host_halt_poll_shrink": float(shrink),
    }
    assert_same(hand_over("haltpoll", host, **constants))
