"""For how long an idle CPU polls (`poll_idle`, `drivers/cpuidle/poll_state.c`) before its governor chooses again."""

from __future__ import annotations

from collections.abc import Sequence

from simfs.machine.time import Time

ENDLESS: Time = 2**64 - 1
ROUNDS = 201
"""It looks at the clock once in so many rounds of `cpu_relax`.

`POLL_IDLE_RELAX_COUNT`, and the round that finds the count full.
"""
SHORT: Time = 10_000_000
"""States of shorter residencies do not limit it (`CPUIDLE_POLL_MIN`)."""
LEAST: Time = 1_000_000
"""To look at the clock and to choose again takes some time, even where a machine's `cpu_relax` takes none."""


def polls_for(rule: str, residencies: Sequence[Time], tick: Time, relax: Time) -> Time:
    """How long it polls for with states of these residencies; a round of `cpu_relax` takes `relax`."""
    if rule == "endless":
        return ENDLESS
    part = tick // 16
    if rule == "part_of_tick":
        limit = part
    elif rule == "first_residency":
        limit = next(iter(residencies), tick)
    else:
        limit = min(next((time for time in residencies if time >= SHORT), part), part)
    return until_look(limit, relax)


def until_look(limit: Time, relax: Time) -> Time:
    """When it looks at the clock first after more than `limit`."""
    look = ROUNDS * relax
    return max((limit // look + 1) * look if look else limit, LEAST)
