"""A wake-up that wants a busy CPU elsewhere back sends it an interrupt (`resched_curr`, `smp_send_reschedule`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simfs.machine.clock import What
from simfs.machine.cpus.cpu import Cpu, Phase
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.sched.scheduler import Scheduler
    from simfs.machine.task import Task


@dataclass(frozen=True)
class Waker:
    """Who makes a task runnable."""

    cpu: Cpu
    done: Time
    """When it has done so."""
    task: Task | None
    """The task that pays for it, if one does."""


class Resched:
    """Tells CPUs to look for another task."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._machine = scheduler.machine

    def want(self, cpu: Cpu, by: Waker | None) -> None:
        """Let a task that has become runnable run instead of the current one.

        The CPU's own wake-ups are heeded at once; another CPU interrupts it, unless it has been told already.
        """
        if by is None or by.cpu is cpu:
            cpu.need_resched = True
        else:
            self._send(cpu, by)
        self._scheduler.heed_resched(cpu)

    def forget(self, cpu: Cpu) -> None:
        """`cpu` looks for another task: what asked it to is dealt with."""
        cpu.need_resched = cpu.resched_sent = cpu.skips_clock = False

    def _send(self, cpu: Cpu, by: Waker) -> None:
        if cpu.need_resched or cpu.resched_sent:
            return
        costs, now = self._machine.costs, self._machine.now
        served = max(by.done, now) + costs.resched_send + costs.resched_deliver + costs.resched_serve
        if by.task is not None:
            by.task.segment.debt += costs.resched_send
        if served == now:
            cpu.need_resched = True
            return
        cpu.resched_sent = True
        cpu.resched += 1
        number = cpu.resched
        self._machine.clock.at(
            served, What.RESCHEDULED, cpu.number, lambda: self._served(cpu, number), rank=number
        )

    def _served(self, cpu: Cpu, number: int) -> None:
        """`cpu` has served the interrupt. It looks for another task, unless it has done so since that was sent."""
        serve = self._machine.costs.resched_serve
        if cpu.phase is Phase.SWITCHING and cpu.next is not None:
            cpu.owed_irq += serve
        if cpu.phase is not Phase.RUNNING:
            return  # if it idles, it is nobody's time
        wanted = cpu.resched_sent and cpu.resched == number
        if wanted:
            cpu.need_resched, cpu.resched_sent = True, False
        if serve:
            self._scheduler.segments.steal(cpu, serve)
        if wanted:
            self._scheduler.heed_resched(cpu)
