"""When a timer of the wheel rings."""

from __future__ import annotations

from simfs.machine.time import Time

SHIFT = 3
"""Each level has granules eight times as long as the one below, and 64 of them."""

LAST = 8
"""The last level, for all longer timeouts."""


def rings(wheel: str, now: Time, jiffies: int, tick: Time) -> Time:
    """When a timer rings that is armed `now` for so many jiffies (ticks of this length).

    `levels`: the granule in which it expires has to be over (`calc_wheel_index`, `calc_index`, Linux 4.8 to 6.18), so
    that one jiffy ends with the second tick. `cascading`: the tick at which it expires (`internal_add_timer`, Linux
    3.6), which for none is the next one too; the slack of `mod_timer`, 0.4 % of timeouts of 256 jiffies and more, is
    left out.
    """
    this = now // tick
    expires = this + jiffies
    if wheel == "cascading":
        return max(expires, this + 1) * tick
    level = next((level for level in range(LAST) if jiffies < 63 << (SHIFT * level)), LAST)
    return ((expires >> (SHIFT * level)) + 1 << (SHIFT * level)) * tick
