"""The `menu` governor (`drivers/cpuidle/governors/menu.c`, as of 6.12).

It guesses for how long the CPU is going to idle, from the next timer times how wrong that was, and from the last eight
times if they are alike, and takes the deepest state that pays for so long. If that is less than a tick, the tick goes
on, and the CPU chooses anew in it. So it does when it has polled for long enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simfs.machine.cpus.governor import End, Governor
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.cpus.cpu import IdleLadder

INTERVALS = 8
RESOLUTION = 1024
DECAY = 8
BUCKETS = 6
MAX_INTERESTING = 50_000
"""Whoever idles longer has been predicted well (us)."""
NEVER = 2**64 - 1
US: Time = 1_000_000


class Menu(Governor):
    """What the governor knows of a CPU (`struct menu_device`); times in us."""

    def __init__(self) -> None:
        super().__init__()
        self._intervals = [0] * INTERVALS
        self._next = 0
        self._factors = [RESOLUTION * DECAY] * 2 * BUCKETS
        """By the magnitude of the time to the next timer, what part of it the CPU idled, in 8192nds.

        And the same where tasks wait for I/O.
        """

    def choose(self, ladder: IdleLadder, tick: Time) -> tuple[int, bool]:
        """The state for a CPU that idles from now on, and whether the tick goes on (`menu_select`)."""
        scale = RESOLUTION * DECAY
        by_timer = (self._timer_us * self._factors[self._bucket()] + scale // 2) // scale
        predicted = min(by_timer, self._typical()) * US
        ticks = predicted < tick
        idles = min(predicted, tick - self.since % tick) if ticks else predicted
        state = ladder.deepest(idles, self.waiters)
        return state, ticks or state == 0

    def learn(self, ladder: IdleLadder, end: End, tick: Time) -> None:
        """What it was chosen for has come to an end (`menu_update`)."""
        if end.ticked and self._timer_us > tick // US:
            self._note(9 * MAX_INTERESTING // 10)
        elif end.polled_in_vain:
            self._note(self._timer_us)  # nobody would have woken it before
        else:
            self._note((end.at - self.since) // US)

    @property
    def _timer_us(self) -> int:
        """How long it was to the next timer."""
        return self.to_timer // US

    def _note(self, idled: int) -> None:
        to_timer, at = self._timer_us, self._bucket()
        idled = min(idled, to_timer)
        well = to_timer == 0 or idled >= MAX_INTERESTING
        part = RESOLUTION if well else RESOLUTION * idled // to_timer
        self._factors[at] = max(self._factors[at] - self._factors[at] // DECAY + part, 1)
        self._intervals[self._next] = idled
        self._next = (self._next + 1) % INTERVALS

    def _bucket(self) -> int:
        """`which_bucket`."""
        magnitude = sum(self._timer_us >= limit for limit in (10, 100, 1_000, 10_000, 100_000))
        return magnitude + (BUCKETS if self.waiters else 0)

    def _typical(self) -> int:
        """`get_typical_interval`: the mean of the last intervals, without the longest quarter if need be."""
        kept = self._intervals
        while longest := max(kept):
            mean = sum(kept) // len(kept)
            variance = sum((interval - mean) ** 2 for interval in kept) // len(kept)
            most_are_kept = len(kept) * 4 >= INTERVALS * 3
            if variance <= 400 or (most_are_kept and mean * mean > 36 * variance):
                return mean
            if len(kept) * 4 <= INTERVALS * 3:
                break
            kept = [interval for interval in kept if interval < longest]
        return NEVER
