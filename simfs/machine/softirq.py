"""Softirqs at the end of the tick's interrupt (`handle_softirqs`, `kernel/softirq.c` of 6.12).

Rounds of RCU's, until nothing is left or it has taken too long; then `ksoftirqd` of the CPU goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simfs.machine.clock import What
from simfs.machine.cpus.cpu import Account, Cpu, Phase
from simfs.machine.rcu import OfCpu, Rcu
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.sched.scheduler import Scheduler

ROUNDS = 10
"""Rounds after which the rest is left to `ksoftirqd` (`MAX_SOFTIRQ_RESTART`)."""
LONGEST: Time = 2 * 10**9
"""Or ticks of so much time (`MAX_SOFTIRQ_TIME`)."""


class Softirqs:
    """Runs RCU's softirq, where there is RCU."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._machine = scheduler, scheduler.machine
        self.rcu: Rcu | None = None

    def needs_tick(self, cpu: Cpu) -> bool:
        """Whether a CPU is to tick for RCU."""
        return self.rcu is not None and self.rcu.needs_tick(cpu)

    def tick(self, cpu: Cpu) -> bool:
        """Tell RCU of a tick. Returns whether its softirq has something to do."""
        return self.rcu is not None and self.rcu.tick(cpu)

    def run(self, cpu: Cpu) -> None:
        """The tick's interrupt ends and RCU's softirq has something to do."""
        assert self.rcu is not None
        self.rcu.meet(cpu)
        now, of = self._machine.now, self.rcu.cpus[cpu.number]
        inside = cpu.softirq_until > now or cpu.current is of.ksoftirqd
        if inside or (of.awake and self._machine.kernel.ksoftirqd_first):
            return
        time = self._rounds(self.rcu, of)
        self._machine.note_cpu("softirq", cpu)
        cpu.softirq_until = now + time
        if cpu.phase is Phase.IDLE:
            self._on_idle(cpu, time)
        else:
            self._scheduler.segments.steal(cpu, time)
        if time > 0:
            self._machine.clock.at(now + time, What.SOFTIRQ_DONE, cpu.number, lambda: self._done(of))

    def _rounds(self, rcu: Rcu, of: OfCpu) -> Time:
        now, tick, idle = self._machine.now, self._machine.kernel.tick, of.cpu.phase is Phase.IDLE
        last, time = now // tick + -(-LONGEST // tick), 0
        for number in range(ROUNDS):
            time += rcu.core(of, idle=idle, meets=number == 0)
            late = (now + time) // tick >= last
            if not of.callbacks.done.count or late or self._is_wanted(of.cpu):
                break
        return time

    def _is_wanted(self, cpu: Cpu) -> bool:
        """Whether a CPU is to go to another task when the interrupt ends.

        A timer that rings in this tick, before RCU's softirq, may have woken one.
        """
        return cpu.since == self._machine.now if cpu.phase is Phase.IDLE_EXIT else cpu.need_resched

    def _done(self, of: OfCpu) -> None:
        """The softirqs of a CPU end, and with them the interrupt.

        What they leave is for `ksoftirqd`, which competes with those that timers woke in this tick.
        """
        if of.callbacks.done.count:
            self._wake_ksoftirqd(of)
        self._scheduler.heed_resched(of.cpu)

    def _wake_ksoftirqd(self, of: OfCpu) -> None:
        """If it sleeps (`wakeup_softirqd`)."""
        if not of.awake:
            of.awake = True
            of.wait.requests += 1
            of.wait.done_by_interrupt()

    def _on_idle(self, cpu: Cpu, time: Time) -> None:
        """An idle CPU has softirqs for so long: it is as if it were still switching to idle."""
        _, joules = self._scheduler.idling.end(cpu)
        self._scheduler.idle_exit.joules += joules
        cpu.account(self._machine.now, Account.IDLE)
        cpu.in_softirq = True
        self._scheduler.occupy(cpu, None, time)
