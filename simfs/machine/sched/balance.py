"""Idle CPUs take waiting tasks at a tick of a busy CPU, once in as many ms as there are CPUs (`nohz_balancer_kick`).

Those about to idle: `newidle.py`. From other caches and sockets: `afar.py`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from simfs.machine.cpus.cpu import Cpu, Phase
from simfs.machine.sched.afar import Afar, Domain
from simfs.machine.sched.busiest import Busiest
from simfs.machine.sched.policy import Entering, Leaving
from simfs.machine.sched.run_queue import Level
from simfs.machine.sched.sched_group import in_queues
from simfs.machine.task import Task
from simfs.machine.time import Time, from_ns

if TYPE_CHECKING:
    from simfs.machine.sched.scheduler import Scheduler

BLOCKED_EVERY = from_ns(32e6)
"""The averages of idle CPUs are brought up to date once in a half-life of them (`nohz.next_blocked`)."""


class Balance:
    """Moves tasks to idle CPUs."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._machine = scheduler.machine
        self._topology = scheduler.machine.topology
        self._busiest = Busiest(scheduler)
        self._afar = Afar(scheduler, lambda cpu, domain: self.take_in(cpu, domain, about_to_idle=False))
        self._failed: defaultdict[tuple[int, Domain], int] = defaultdict(int)
        """How many looks of the idle CPU found somebody to take from, and nobody to take (`nr_balance_failed`)."""
        self._next_blocked: Time = 0

    @property
    def _now(self) -> Time:
        return self._machine.now

    def update_blocked(self, cpu: Cpu) -> None:
        """`sched_balance_update_blocked_averages`."""
        for level in (Level.GROUP, Level.ROOT):
            self._scheduler.policy.group.update_queue_load(cpu.queue_of(level))

    def _pull_to(self, cpu: Cpu) -> Task | None:
        """Move a task to the idle `cpu` from one under the same cache, of the smallest domain that has one to give."""
        near = self.near(cpu)
        if self._machine.kernel.busiest == "waiting":
            return self.take_most_waiting(cpu, about_to_idle=False) if near else None
        tasks = (self.take_in(cpu, domain, about_to_idle=False) for domain in reversed(near))
        return next((task for task in tasks if task is not None), None)

    def near(self, cpu: Cpu) -> list[Domain]:
        """The domains under the last-level cache of a CPU, the largest first."""
        return [
            domain for domain in self._topology.domains if domain[0] <= len(self._topology.llc(cpu.number))
        ]

    def take_most_waiting(self, cpu: Cpu, *, about_to_idle: bool) -> Task | None:
        """Move a task to `cpu` from the CPU under its cache with most waiting tasks (before 5.5)."""
        self._scheduler.policy.overloaded = self._is_overloaded()
        source = self._busiest.most_waiting(cpu)
        return self._take_from(source, cpu, self.near(cpu)[0], about_to_idle)

    def _is_overloaded(self) -> bool:
        """Whether anybody waits behind anybody."""
        return any(cpu.queue and in_queues(cpu) > 1 for cpu in self._scheduler.cpus)

    def take_in(self, cpu: Cpu, domain: Domain, *, about_to_idle: bool) -> Task | None:
        """Move a task to `cpu` from the busiest of a domain, if there is one."""
        overloaded = self._is_overloaded()
        if domain == self._topology.domains[0]:
            self._scheduler.policy.overloaded = overloaded
        if not overloaded:
            return None
        return self._take_from(self._busiest.cpu_in(domain, cpu), cpu, domain, about_to_idle)

    def _take_from(self, source: Cpu | None, cpu: Cpu, domain: Domain, about_to_idle: bool) -> Task | None:
        """Move a task from `source`, and count the looks of idle CPUs that found a source and nobody to move.

        That is `nr_balance_failed` in `sched_balance_rq` (before 6.9 `load_balance`). After some of these, tasks may
        move that ran a moment ago.
        """
        failed = self._failed[cpu.number, domain]
        enough = failed > self._topology.nice_tries(domain)
        task = self._movable(source, even_hot=enough) if source else None
        if source and task:
            self._migrate(task, source, cpu)
        in_vain = source is not None and task is None
        self._failed[cpu.number, domain] = failed + (not about_to_idle) if in_vain else 0
        return task

    def _movable(self, cpu: Cpu, *, even_hot: bool) -> Task | None:
        """Who waits longest and, unless `even_hot`, has not run a moment ago (`task_hot`)."""
        hot_since = max(self._now - self._machine.kernel.migration_cost, 0)
        moves = (task for task in cpu.queue if not task.pinned and (even_hot or task.last_ran <= hot_since))
        return next(moves, None)

    def _migrate(self, task: Task, source: Cpu, target: Cpu) -> None:
        policy = self._scheduler.policy
        self._machine.counters.migrations += 1
        self._machine.counters.pulls += 1
        task.note_move(target)
        policy.dequeue(task, source, Leaving.MOVED)
        source.arrivals = [(woken, by) for woken, by in source.arrivals if woken is not task]
        policy.group.detach_load(task, source)
        policy.group.attach_load(task, target)
        policy.enqueue(task, target, Entering.MOVED)
        self._machine.note("migrate", task)
        self._scheduler.heed_resched(source)

    def kick_idle_cpus(self, kicker: Cpu) -> None:
        """The tick of a CPU with waiting tasks has idle CPUs look for some, each only if it has not done so lately.

        The first of all idle CPUs does it for the others, and then for itself (`kick_ilb`, `_nohz_idle_balance`).
        """
        self._update_idle_cpus()
        first = min(self._scheduler.idle, default=None)
        if first is None:
            return
        near = self._topology.llc(kicker.number)
        others = [cpu for cpu in self._scheduler.cpus if cpu.number != first]
        for cpu in [*others, self._scheduler.cpus[first]]:
            if cpu.phase is not Phase.IDLE:
                continue
            moved = False
            if cpu.number in near and self._now >= cpu.next_balance:
                moved = self._pull_to(cpu) is not None
                cpu.next_balance = self._next_balance(len(near), moved)
            if moved or self._afar.balance(cpu, self._next_balance):
                idle_exit = self._scheduler.idle_exit
                idle_exit.leave_idle(cpu, idle_exit.delivery(cpu, kicker))

    def _update_idle_cpus(self) -> None:
        if self._now >= self._next_blocked:
            self._next_blocked = self._now + BLOCKED_EVERY
            for cpu in self._scheduler.cpus:
                if self._scheduler.is_idle(cpu):
                    self.update_blocked(cpu)

    def _next_balance(self, cpus: int, moved: bool) -> Time:
        """The interval is as many ms as there are CPUs, twice that where there was nothing to move."""
        interval = from_ns((cpus if moved else 2 * cpus) * 1e6)
        tick = self._machine.kernel.tick
        return self._now + max(-(-interval // tick), 1) * tick

    def note_idle_time(self, cpu: Cpu) -> None:
        """Somebody wakes on `cpu`, which has idled: how long it does so on average (`rq->avg_idle`)."""
        if cpu.idle_stamp is None:
            return
        change = self._now - cpu.idle_stamp - cpu.average_idle
        cpu.idle_stamp = None
        average = cpu.average_idle + (change // 8 if change >= 0 else -(-change // 8))
        cpu.average_idle = min(average, 2 * self._machine.kernel.migration_cost)
