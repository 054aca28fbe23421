"""The tick of a busy CPU (`scheduler_tick`), and what runs behind it: timers and RCU's softirq."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from simfs.machine.clock import What
from simfs.machine.cpus.cpu import Cpu, Phase

if TYPE_CHECKING:
    from simfs.machine.sched.scheduler import Scheduler


class Tick:
    """Ticks of all CPUs."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._machine = scheduler, scheduler.machine

    def arm(self, cpu: Cpu) -> None:
        """A busy CPU ticks; an idle one for RCU."""
        busy = cpu.current is not None or cpu.queue
        if cpu.next_tick is None and (busy or self._scheduler.softirqs.needs_tick(cpu)):
            tick = self._machine.kernel.tick
            cpu.next_tick = (self._machine.now // tick + 1) * tick
            self._machine.clock.at(cpu.next_tick, What.TICK, cpu.number, lambda: self._tick(cpu))

    def _tick(self, cpu: Cpu) -> None:
        """Account the running task, which ends a used-up slice, and let an idle CPU take a waiting task.

        Then the timers of the tick ring and RCU's softirq runs.
        """
        self._machine.note_cpu("tick", cpu)
        if cpu.queue:
            self._scheduler.balance.kick_idle_cpus(cpu)
        pending = self._scheduler.softirqs.tick(cpu)
        if cpu.current is not None and cpu.phase is Phase.RUNNING:
            self._scheduler.policy.tick(cpu, cpu.current)
        if pending or cpu.need_resched:
            done = self._machine.now + self._machine.kernel.tick_timers
            end = partial(self._ends, cpu, pending=pending)
            self._machine.clock.at(done, What.TICK_DONE, cpu.number, end, rank=pending)
        else:
            self._ends(cpu, pending=False)

    def _ends(self, cpu: Cpu, *, pending: bool) -> None:
        """The interrupt of the tick ends, after RCU's softirq if that has something to do."""
        if pending:
            self._scheduler.softirqs.run(cpu)
        cpu.next_tick = None
        self._scheduler.heed_resched(cpu)
        self.arm(cpu)
