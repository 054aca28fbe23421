"""Which idle state a CPU enters, where a governor of the kernel chooses it (`drivers/cpuidle/governors`).

The parts that all governors have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.cpus.cpu import Cpu, IdleLadder
    from simfs.machine.machine import Machine

NEVER: Time = 2**64 - 1


class End(NamedTuple):
    """How a stay in a state has ended."""

    at: Time
    ticked: bool
    """There was a tick."""
    polled_in_vain: bool
    """The CPU has polled for as long as it may (`poll_time_limit`)."""


class Governor(ABC):
    """What a governor knows of a CPU."""

    def __init__(self) -> None:
        self.state = 0
        """The state that the CPU is in."""
        self.since: Time = 0
        """Since when it is in it."""
        self.waiters = 0
        """How many tasks wait for I/O there."""
        self._rings: Time = 0
        """When the next timer is known to ring."""
        self._ticks = False
        """The tick goes on."""

    @abstractmethod
    def choose(self, ladder: IdleLadder, tick: Time) -> tuple[int, bool]:
        """The state for a CPU that idles from now on, and whether the tick goes on."""

    @abstractmethod
    def learn(self, ladder: IdleLadder, end: End, tick: Time) -> None:
        """What it was chosen for has come to an end."""

    @property
    def to_timer(self) -> Time:
        """How long it was to the next timer."""
        return max(self._rings - self.since, 0)

    def enter(self, ladder: IdleLadder, now: Time, rings: Time, tick: Time, waiters: int = 0) -> None:
        """Begin to idle; `waiters` wait for I/O, the next timer is known to ring at `rings`."""
        self.since, self._rings, self.waiters = now, rings, waiters
        self.state, self._ticks = self.choose(ladder, tick)

    def idle(self, ladder: IdleLadder, until: Time, tick: Time) -> Iterator[tuple[int, Time, Time]]:
        """Choose anew in ticks before `until`, and where polling ends. Each state comes with its beginning and end."""
        while (at := self._chooses_anew(ladder, tick)) < until:
            yield self.state, self.since, at
            self.learn(ladder, End(at, next_tick(self.since, tick) <= at, self.state == 0), tick)
            self.enter(ladder, at, self._rings, tick, self.waiters)
        yield from self.parts(ladder, until)

    def parts(self, ladder: IdleLadder, until: Time) -> Iterator[tuple[int, Time, Time]]:
        """The states of the present stay, with their beginnings and ends."""
        yield self.state, self.since, until

    def state_at(self, ladder: IdleLadder, now: Time) -> int:
        """The state that it is in, by now."""
        return self.state

    def polls_until(self, ladder: IdleLadder) -> Time:
        """When it gives polling up."""
        return ladder.polls_until(self.since)

    def polls(self, now: Time, ladder: IdleLadder) -> bool:
        """Whether a virtual CPU sees by itself that somebody is to run (`set_nr_if_polling`)."""
        return False

    def _chooses_anew(self, ladder: IdleLadder, tick: Time) -> Time:
        """When it does, unless it is woken before: a tick does not end its polling (`poll_idle`)."""
        if self.state == 0:
            return self.polls_until(ladder)
        return next_tick(self.since, tick) if self._ticks else NEVER

    def wake(self, ladder: IdleLadder, now: Time, tick: Time) -> int:
        """Take note of a wake-up, and return from which state."""
        state = self.state_at(ladder, now)
        ticked = self._ticks and next_tick(self.since, tick) < now
        self.learn(ladder, End(now, ticked, polled_in_vain=False), tick)
        return state


def next_tick(since: Time, tick: Time) -> Time:
    """The first tick after a moment."""
    return (since // tick + 1) * tick


class Idling:
    """The idle states of the CPUs of a machine, as its governor chooses them."""

    def __init__(self, machine: Machine, ladder: IdleLadder) -> None:
        self._machine = machine
        self._ladder = ladder
        self._governs = machine.kernel.governor != "residency" and (
            ladder.has_choice or machine.kernel.governor == "haltpoll"
        )
        """Nobody chooses otherwise: a CPU is in the deepest state that it has idled long enough for."""

    def enter(self, cpu: Cpu) -> None:
        """Let a CPU begin to idle."""
        if self._governs:
            kernel, now = self._machine.kernel, self._machine.now
            rings = cpu.next_timer if cpu.next_timer > now else now + kernel.idle_timer
            cpu.governor.enter(self._ladder, now, rings, kernel.tick, cpu.idles_for_io)

    def note_timer(self, cpu: Cpu, at: Time) -> None:
        """Take note of a timer of a CPU that is to ring at a time."""
        if cpu.next_timer <= self._machine.now or at < cpu.next_timer:
            cpu.next_timer = at

    def end(self, cpu: Cpu) -> tuple[int, float]:
        """Wake an idle CPU. Returns its state and the energy (J) of its idling in the window."""
        joules = self.joules(cpu, cpu.governor)
        if not self._governs:
            return self._ladder.after(self._machine.now - cpu.since, cpu.idles_for_io), joules
        return cpu.governor.wake(self._ladder, self._machine.now, self._machine.kernel.tick), joules

    def joules(self, cpu: Cpu, governor: Governor) -> float:
        """The energy (J) of the idling of a CPU so far, in the window; its governor chooses in the ticks up to now."""
        now, window, joules = self._machine.now, self._machine.window_start, 0.0
        if not self._governs:
            return self._ladder.joules(max(window - cpu.since, 0), now - cpu.since, cpu.idles_for_io)
        for state, start, end in governor.idle(self._ladder, now, self._machine.kernel.tick):
            joules += self._ladder.stay_joules(state, max(end - max(start, window), 0))
        return joules

    def declared_exit(self, cpu: Cpu, *, idles: bool) -> Time:
        """How long a CPU takes to wake, as the driver declares it (`idle_get_state`); it may not idle yet."""
        if not idles:
            return self._ladder.declared_exit(self._ladder.after(0))
        if self._governs:
            return self._ladder.declared_exit(cpu.governor.state_at(self._ladder, self._machine.now))
        return self._ladder.declared_exit(self._ladder.after(self._machine.now - cpu.since, cpu.idles_for_io))
