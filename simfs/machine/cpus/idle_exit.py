"""CPUs leave their idle states: who wakes one, how long it takes, and its energy."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from simfs.machine.clock import What
from simfs.machine.cpus.cpu import Account, Cpu, Phase
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.sched.scheduler import Scheduler


class IdleExit:
    """Wakes idle CPUs, and knows what idling has cost."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._machine = scheduler.machine
        self._idling, self._ladder = scheduler.idling, scheduler.ladder
        self.joules = 0.0
        """Energy of idle periods that have ended in the measured window."""

    def begin_idling(self, cpu: Cpu) -> None:
        """`cpu` has nothing to run."""
        if cpu.number not in self._scheduler.idle:
            self._scheduler.idle.add(cpu.number)
            cpu.idles_since = self._machine.now
            cpu.idles_for_io = cpu.io_waiters if self._machine.kernel.io_waiters else 0

    def end_idling(self, cpu: Cpu) -> None:
        """Somebody is to run on `cpu`."""
        if cpu.number in self._scheduler.idle:
            self._scheduler.idle.discard(cpu.number)
            cpu.idled_until = self._machine.now

    def idled_at(self, cpu: Cpu, moment: Time) -> bool:
        """Whether a CPU idled at a moment that is not long ago."""
        return cpu.idles_since <= moment and (self._scheduler.is_idle(cpu) or moment < cpu.idled_until)

    def woken_while_switching(self, cpu: Cpu) -> None:
        """A task was woken here before the switch to idle was complete.

        The waker left it to an interrupt (`ttwu_queue_wakelist`), for which the CPU idles.
        """
        idles = cpu.interrupted - self._machine.now
        if idles <= 0:
            self._scheduler.schedule(cpu)
        else:
            self._exit(cpu, idles + self._exit_time(cpu, self._ladder.after(idles, cpu.idles_for_io)))

    def leave_idle(self, cpu: Cpu, interrupt: Time) -> None:
        """An interrupt that wakes `cpu` arrives in `interrupt`."""
        self.end_idling(cpu)
        state, joules = self._idling.end(cpu)
        self.joules += joules
        self._exit(cpu, interrupt + self._exit_time(cpu, state))

    def delivery(self, cpu: Cpu, sender: Cpu | None) -> Time:
        """From sending an interrupt, if it takes one to wake somebody on `cpu`, to its arrival."""
        if sender is None or sender is cpu or self.polls_in_guest(cpu):
            return 0
        return self._machine.costs.ipi_deliver

    def polls_in_guest(self, cpu: Cpu) -> bool:
        """Whether the idle CPU of a guest polls now."""
        return cpu.phase is Phase.IDLE and cpu.governor.polls(self._machine.now, self._ladder)

    def energy(self) -> float:
        """Energy (J) of idle time in the window, periods in progress included; added up as natively."""
        open_periods = 0.0
        for cpu in self._scheduler.cpus:
            if cpu.phase is Phase.IDLE:
                open_periods += self._idling.joules(cpu, deepcopy(cpu.governor))
            elif cpu.phase is Phase.IDLE_EXIT:
                open_periods += self._exit_joules(cpu)
        return self.joules + open_periods

    def _exit_time(self, cpu: Cpu, state: int) -> Time:
        """How long a CPU takes to leave an idle state. A package sleeps only with all its CPUs."""
        topology = self._machine.topology
        socket = topology.group(cpu.number, topology.per_socket)
        awake = (other not in self._scheduler.idle for other in socket if other != cpu.number)
        return self._ladder.exit_where(state, lambda: not any(awake))

    def _exit(self, cpu: Cpu, time: Time) -> None:
        cpu.phase, cpu.since = Phase.IDLE_EXIT, self._machine.now
        cpu.generation += 1
        self._scheduler.later(cpu, time, What.IDLE_EXIT, self._done)

    def _done(self, cpu: Cpu) -> None:
        self.joules += self._exit_joules(cpu)
        cpu.account(self._machine.now, Account.IDLE)
        self._machine.note_cpu("idle exit", cpu)
        self._scheduler.schedule(cpu)

    def _exit_joules(self, cpu: Cpu) -> float:
        return self._ladder.exit_joules(self._machine.now - max(cpu.since, self._machine.window_start))
