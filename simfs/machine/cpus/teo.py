"""The `teo` governor (`drivers/cpuidle/governors/teo.c`, as of 6.12).

It counts for each state how often the CPU idled for as long as the next timer made it expect (hits), and how often
somebody woke it before (intercepts). If most of the latter ended in shallow states, it takes the one in which half of
them did, else the deepest that pays until the timer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simfs.machine.cpus.governor import End, Governor
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.cpus.cpu import IdleLadder

PULSE, DECAY_SHIFT = 1024, 3
"""What one time counts, and what part of the counts it makes forgotten."""
SHORT: Time = 15_000_000
"""For states with shorter residencies it does not ask for the next timer (`RESIDENCY_THRESHOLD_NS`)."""
UNKNOWN: Time = 2**64 - 1


class Teo(Governor):
    """What the governor knows of a CPU (`struct teo_cpu`)."""

    def __init__(self) -> None:
        super().__init__()
        self._hits: list[int] = []
        """By state, in units of `PULSE`."""
        self._intercepts: list[int] = []
        self._tick_hits = 0
        """Times of a tick and more that were expected, where no state is for so long."""
        self._total = 0
        self._sleep = UNKNOWN
        """How long it was to the next timer, if it has asked."""

    def choose(self, ladder: IdleLadder, tick: Time) -> tuple[int, bool]:
        """The state for a CPU that idles from now on, and whether the tick goes on (`teo_select`)."""
        if not self._hits:
            self._hits, self._intercepts = [0] * len(ladder), [0] * len(ladder)
        state = self._by_experience()
        asks = state == 0 or ladder.target(state) >= SHORT
        self._sleep = self.to_timer if asks else UNKNOWN
        return self._by_timer(ladder, state, tick) if asks and state else (state, True)

    def _by_experience(self) -> int:
        """The deepest state, or a shallower one if somebody mostly woke the CPU before it paid."""
        deepest = len(self._hits) - 1
        early, in_time = sum(self._intercepts[:deepest]), sum(self._hits[:deepest])
        if 2 * early <= self._total - in_time:
            return deepest
        return next(
            state for state in reversed(range(deepest)) if 2 * sum(self._intercepts[state:deepest]) > early
        )

    def _by_timer(self, ladder: IdleLadder, state: int, tick: Time) -> tuple[int, bool]:
        """The same, or a shallower one that pays until the next timer, and until the tick if that goes on."""
        state = shallower(ladder, state, self._sleep)
        often_early = sum(self._intercepts) > self._total // 2 + self._total // 8
        ticks = state == 0 or self._sleep < tick or (ladder.target(state) < tick and often_early)
        next_event = min(self._sleep, tick - self.since % tick)
        return (shallower(ladder, state, next_event) if ticks else state), ticks

    def learn(self, ladder: IdleLadder, end: End, tick: Time) -> None:
        """What it was chosen for has come to an end (`teo_update`)."""
        idled, states = self._measured(ladder, end, tick), len(ladder)
        for counts in (self._hits, self._intercepts):
            counts[:] = [count - (count >> DECAY_SHIFT) for count in counts]
        self._total = sum(self._hits) + sum(self._intercepts) + PULSE
        timer = shallower(ladder, states - 1, self._sleep)
        lasted = shallower(ladder, states - 1, min(idled, self._sleep))
        if ladder.target(states - 1) < tick:
            self._tick_hits -= self._tick_hits >> DECAY_SHIFT
            self._total += self._tick_hits
            if self._sleep >= tick:
                timer = states
        if timer == states and idled >= tick:
            self._tick_hits += PULSE
        else:
            (self._hits if timer == lasted else self._intercepts)[lasted] += PULSE

    def _measured(self, ladder: IdleLadder, end: End, tick: Time) -> Time:
        """How long the CPU has idled.

        Without end, if nobody has woken it, or its timer: then it could have idled for longer. Half of the way out
        counts, on average.
        """
        until_awake = end.at - self.since + ladder.core_exit(self.state)
        declared = ladder.declared_exit(self.state)
        if end.polled_in_vain or (end.ticked and self._sleep > tick) or until_awake >= self._sleep:
            return UNKNOWN
        return until_awake - declared // 2 if until_awake >= declared else until_awake // 2


def shallower(ladder: IdleLadder, state: int, time: Time) -> int:
    """`state`, or the deepest shallower one that pays for so long (`teo_find_shallower_state`)."""
    return next(at for at in range(state, -1, -1) if ladder.target(at) <= time)
