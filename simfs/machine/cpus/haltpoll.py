"""Idle virtual CPUs.

The guest polls for a while before it halts (`drivers/cpuidle/governors/haltpoll.c`, since 5.4), and the host polls for
a halted CPU before it gives its own CPU to others (`kvm_vcpu_halt`). Both find out for how long that pays.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from simfs.machine.cpus.governor import End, Governor
from simfs.machine.cpus.polling import until_look
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.cpus.cpu import IdleLadder
    from simfs.machine.kernel import HaltPolling

FACTOR = 2
"""By what the times grow, and by what the guest's shrinks."""


class Haltpoll(Governor):
    """What the governor and the host know of a CPU."""

    def __init__(self, limits: HaltPolling, relax: Time) -> None:
        super().__init__()
        self._limits, self._relax = limits, relax
        self._polls_for: Time = 0
        """For how long the guest polls (`poll_limit_ns`)."""
        self._host_polls_for: Time = 0
        """For how long the host does (`vcpu->halt_poll_ns`)."""
        self._in_vain = False
        """It has polled for all that time, and nobody came."""

    def choose(self, ladder: IdleLadder, tick: Time) -> tuple[int, bool]:
        """It polls, unless it has done so in vain (`haltpoll_select`)."""
        polls = self._polls_for > 0 and not self._in_vain
        return (0, True) if polls else (1, False)

    def learn(self, ladder: IdleLadder, end: End, tick: Time) -> None:
        """Polling or a halt has come to an end (`haltpoll_reflect`)."""
        self._in_vain = end.polled_in_vain
        if self.state > 0:
            halted = end.at - self.since
            self._adjust_guest(halted + ladder.core_exit(self._halted(ladder, halted)))
            self._adjust_host(halted)

    def polls_until(self, ladder: IdleLadder) -> Time:
        """When it gives polling up."""
        return self.since + until_look(self._polls_for, self._relax)

    def state_at(self, ladder: IdleLadder, now: Time) -> int:
        """The state that it is in, by now."""
        return self._halted(ladder, now - self.since) if self.state else 0

    def parts(self, ladder: IdleLadder, until: Time) -> Iterator[tuple[int, Time, Time]]:
        """The states of the present stay, with their beginnings and ends."""
        if not self.state:
            yield 0, self.since, until
            return
        ends = [*(self._begins(ladder, state) for state in range(2, len(ladder))), until - self.since]
        for state, end in enumerate(ends, start=1):
            begins = self._begins(ladder, state)
            if begins < until - self.since:
                yield state, self.since + begins, min(self.since + end, until)

    def polls(self, now: Time, ladder: IdleLadder) -> bool:
        """Whether it sees by itself that somebody is to run, so that a waker need not interrupt it."""
        return self.state == 0 and now <= self.polls_until(ladder)

    def _adjust_guest(self, blocked: Time) -> None:
        """`adjust_poll_limit`."""
        most = self._limits.guest
        if blocked > most:
            self._polls_for //= FACTOR
        elif blocked > self._polls_for:
            self._polls_for = min(max(self._polls_for * FACTOR, self._limits.guest_start), most)

    def _adjust_host(self, halted: Time) -> None:
        """`grow_halt_poll_ns` and `shrink_halt_poll_ns`."""
        most, start, shrink = self._limits.host, self._limits.host_start, self._limits.host_shrink
        if halted <= self._host_polls_for or not most:
            return
        if halted > most:
            less = self._host_polls_for // shrink if shrink else 0
            self._host_polls_for = 0 if less < start else less
        elif self._host_polls_for < most and halted < most:
            self._host_polls_for = min(max(self._host_polls_for * FACTOR, start), most)

    def _begins(self, ladder: IdleLadder, state: int) -> Time:
        """From when on a halt is in a state: in the last one, when the host has given its CPU away."""
        if state == 1:
            return 0
        return self._host_polls_for + 1 if self._limits.host_adapts else ladder.target(state)

    def _halted(self, ladder: IdleLadder, time: Time) -> int:
        """The state that a halt is in after some time."""
        return sum(
            1 for _ in takewhile(lambda state: self._begins(ladder, state) <= time, range(1, len(ladder)))
        )
