"""Which idle state a CPU enters: the `menu` governor (`drivers/cpuidle/governors/menu.c`, as of 6.12).

It guesses for how long the CPU is going to idle, from the next timer times how wrong that was, and from the last eight
times if they are alike, and takes the deepest state that pays for so long. If that is less than a tick, the tick goes
on, and the CPU chooses anew in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.cpus.cpu import Cpu, IdleLadder
    from simfs.machine.machine import Machine

INTERVALS = 8
RESOLUTION = 1024
DECAY = 8
BUCKETS = 6
MAX_INTERESTING = 50_000
"""Whoever idles longer has been predicted well (us)."""
NEVER = 2**64 - 1
US: Time = 1_000_000


class Menu:
    """What the governor knows of a CPU (`struct menu_device`); times in us unless told."""

    def __init__(self) -> None:
        self._intervals = [0] * INTERVALS
        self._next = 0
        self._factors = [RESOLUTION * DECAY] * 2 * BUCKETS
        """By the magnitude of the time to the next timer, what part of it the CPU idled, in 8192nds.

        And the same where tasks wait for I/O.
        """
        self._rings: Time = 0
        """When the next timer is known to ring (ps)."""
        self._to_timer = 0
        self._waiters = 0
        """How many tasks wait for I/O there."""
        self.state = 0
        """The state that the CPU is in."""
        self._since: Time = 0
        self._ticks = False

    def enter(self, ladder: IdleLadder, now: Time, rings: Time, tick: Time, waiters: int = 0) -> None:
        """Begin to idle; `waiters` wait for I/O, the next timer is known to ring at `rings` (`menu_select`)."""
        self._waiters = waiters
        self._since, self._rings = now, rings
        self._to_timer = max(rings - now, 0) // US
        scale = RESOLUTION * DECAY
        by_timer = (self._to_timer * self._factors[self._bucket()] + scale // 2) // scale
        predicted = min(by_timer, self._typical()) * US
        self._ticks = predicted < tick
        self.state = ladder.deepest(min(predicted, tick - now % tick) if self._ticks else predicted, waiters)

    def idle(self, ladder: IdleLadder, until: Time, tick: Time) -> Iterator[tuple[int, Time, Time]]:
        """Choose anew in the ticks before `until`. Each state comes with its beginning and end."""
        while self._ticks and (next_tick := (self._since // tick + 1) * tick) < until:
            yield self.state, self._since, next_tick
            mistaken = self._to_timer > tick // US
            self._note(9 * MAX_INTERESTING // 10 if mistaken else (next_tick - self._since) // US)
            self.enter(ladder, next_tick, self._rings, tick, self._waiters)
        yield self.state, self._since, until

    def wake(self, now: Time) -> None:
        """Take note of a wake-up (`menu_update`)."""
        self._note((now - self._since) // US)

    def _note(self, idled: int) -> None:
        idled = min(idled, self._to_timer)
        at = self._bucket()
        well = self._to_timer == 0 or idled >= MAX_INTERESTING
        part = RESOLUTION if well else RESOLUTION * idled // self._to_timer
        self._factors[at] = max(self._factors[at] - self._factors[at] // DECAY + part, 1)
        self._intervals[self._next] = idled
        self._next = (self._next + 1) % INTERVALS

    def _bucket(self) -> int:
        """`which_bucket`."""
        magnitude = sum(self._to_timer >= limit for limit in (10, 100, 1_000, 10_000, 100_000))
        return magnitude + (BUCKETS if self._waiters else 0)

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


class Idling:
    """The idle states of the CPUs of a machine, as its governor chooses them."""

    def __init__(self, machine: Machine, ladder: IdleLadder) -> None:
        self._machine = machine
        self._ladder = ladder
        self._governs = machine.kernel.governor == "menu" and ladder.has_choice
        """Nobody chooses otherwise: a CPU is in the deepest state that it has idled long enough for."""

    def enter(self, cpu: Cpu) -> None:
        """Let a CPU begin to idle."""
        if self._governs:
            kernel, now = self._machine.kernel, self._machine.now
            rings = cpu.next_timer if cpu.next_timer > now else now + kernel.idle_timer
            cpu.menu.enter(self._ladder, now, rings, kernel.tick, cpu.idles_for_io)

    def note_timer(self, cpu: Cpu, at: Time) -> None:
        """Take note of a timer of a CPU that is to ring at a time."""
        if cpu.next_timer <= self._machine.now or at < cpu.next_timer:
            cpu.next_timer = at

    def end(self, cpu: Cpu) -> tuple[int, float]:
        """Wake an idle CPU. Returns its state and the energy (J) of its idling in the window."""
        joules = self.joules(cpu, cpu.menu)
        if not self._governs:
            return self._ladder.deepest(self._machine.now - cpu.since, cpu.idles_for_io), joules
        cpu.menu.wake(self._machine.now)
        return cpu.menu.state, joules

    def joules(self, cpu: Cpu, menu: Menu) -> float:
        """The energy (J) of the idling of a CPU so far, in the window; its governor chooses in the ticks up to now."""
        now, window, joules = self._machine.now, self._machine.window_start, 0.0
        if not self._governs:
            return self._ladder.joules(max(window - cpu.since, 0), now - cpu.since, cpu.idles_for_io)
        for state, start, end in menu.idle(self._ladder, now, self._machine.kernel.tick):
            joules += self._ladder.stay_joules(state, max(end - max(start, window), 0))
        return joules

    def declared_exit(self, cpu: Cpu, *, idles: bool) -> Time:
        """How long a CPU takes to wake, as the driver declares it (`idle_get_state`); it may not idle yet."""
        if not idles:
            return self._ladder.declared_exit(self._ladder.deepest(0))
        if self._governs:
            return self._ladder.declared_exit(cpu.menu.state)
        return self._ladder.declared_exit(
            self._ladder.deepest(self._machine.now - cpu.since, cpu.idles_for_io)
        )
