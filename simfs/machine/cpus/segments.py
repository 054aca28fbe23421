"""Segments: stretches of CPU time of a task, and their exact booking."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from simfs.machine.clock import What
from simfs.machine.cpus.cpu import Account, Cpu, Phase
from simfs.machine.cpus.turns import Turns
from simfs.machine.task import Task
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.sched.scheduler import Scheduler


class Segments:
    """Runs segments of running tasks and books the time of CPUs."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._machine = scheduler.machine

    @property
    def _now(self) -> Time:
        return self._machine.now

    def start(self, task: Task, account: Account, own: Time) -> None:
        """Start a stretch of `own` CPU time of a running task, after what it owes."""
        if account is Account.SYSTEM:
            self._fetch_code(task, own)
        self._start(task, account, self._machine.paces.taken(task, account, own), None)

    def start_turns(self, task: Task, count: int, user: Time, kernel: Time) -> None:
        """Start a stretch of `count` turns of user and kernel time, after what the task owes."""
        self._fetch_code(task, count * kernel)
        kernel = self._machine.paces.taken(task, Account.SYSTEM, kernel)
        self._start(task, Account.USER, count * (user + kernel), Turns(user, kernel))

    def _fetch_code(self, task: Task, own: Time) -> None:
        if (warmth := self._machine.warmth) is not None and own > 0:
            warmth.fetch(task, own)

    def _start(self, task: Task, account: Account, own: Time, turns: Turns | None) -> None:
        task.account, task.turns = account, turns
        task.beside = 0
        task.segment.own = own
        self.go_on(task)

    def go_on(self, task: Task) -> None:
        """Go on with what is left of a task's segment."""
        task.in_segment = True
        task.started = self._now
        if (
            task.need_resched
            and self._scheduler.preemptible(task)
            and (other := self._scheduler.replacement(task.cpu))
        ):
            self._scheduler.preempt(task.cpu, other)
            return
        self.run(task)

    def run(self, task: Task) -> None:
        """From now on what is left of the segment is used up."""
        self._scheduler.siblings.stretch(task)
        task.generation += 1
        generation = task.generation
        end = self._now + self._until_look(task)
        self._machine.clock.at(end, What.SEGMENT_END, task.number, lambda: self._end(task, generation))

    def _until_look(self, task: Task) -> Time:
        left, kernel = task.segment.total, self.left_of_kernel(task)
        if kernel > 0 and task.need_resched:
            return min(left, task.segment.irq + task.segment.debt + kernel)
        return left

    def left_of_kernel(self, task: Task) -> Time:
        """How long a task in turns keeps its CPU from others (with voluntary preemption)."""
        if task.turns is None:
            return 0
        _, _, own = replace(task.segment).consume(self._now - task.started)
        return task.turns.left_of_kernel(own)

    def _end(self, task: Task, generation: int) -> None:
        if task.generation != generation:
            return  # stale: it was preempted or interrupted
        self.book(task)
        if task.segment.total > 0:
            self.go_on(task)  # only a turn has ended
            return
        task.in_segment = False
        self._machine.note("segment end", task)
        task.resume()

    def book(self, task: Task) -> None:
        """Book the running segment up to now; its remainder stays."""
        irq, debt, own = task.segment.consume(self._now - task.started)
        task.started = self._now
        accounts = task.cpu.accounts
        accounts[Account.IRQ] += irq
        accounts[Account.SYSTEM] += debt
        accounts[task.account] += own
        if task.turns is not None:
            kernel = task.turns.consume(own)
            accounts[task.account] -= kernel
            accounts[Account.SYSTEM] += kernel
        task.cpu.accounted = self._now

    def book_spin(self, task: Task) -> None:
        """Book a spin up to now: first the interrupts that came and what the task owed."""
        irq, debt, _ = task.segment.consume(self._now - task.started)
        task.started = self._now
        task.cpu.accounts[Account.IRQ] += irq
        task.cpu.accounts[Account.SYSTEM] += debt
        task.cpu.accounted += irq + debt
        task.cpu.account(self._now, Account.SPIN)

    def interrupt(self, cpu: Cpu, handler: Time) -> None:
        """Let an interrupt that wakes somebody take its time from whatever runs on `cpu`.

        On an idle CPU it takes it from who runs there next, whose own wake-up is the end of its idling.
        """
        self.steal(cpu, handler + (self._machine.costs.wakeup if cpu.current else 0))

    def steal(self, cpu: Cpu, time: Time) -> None:
        """Let interrupts take so much time from whatever runs on `cpu`, or from who runs there next."""
        task = cpu.current
        if task is None:
            cpu.owed_irq += time
            return
        if task.in_segment:
            self.book(task)
            task.segment.irq += time
            self.run(task)
        else:
            if task.spinning:
                self.book_spin(task)  # the handler runs while the task waits
            task.segment.irq += time

    def book_everything(self) -> None:
        """Bring all time accounts up to now."""
        for cpu in self._scheduler.cpus:
            task = cpu.current
            if task is None or cpu.phase is not Phase.RUNNING:
                cpu.account(self._now, cpu.between_tasks if cpu.phase is Phase.SWITCHING else Account.IDLE)
            elif task.in_segment:
                self.book(task)
            else:
                self.book_spin(task)
