"""Where a woken task goes (`select_task_rq_fair`): its own CPU or its waker's, or an idle one under the same cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simfs.machine.cpus.cpu import Cpu
from simfs.machine.sched.run_queue import Level
from simfs.machine.statistics import TaskKind
from simfs.machine.task import Task
from simfs.machine.time import from_ns

if TYPE_CHECKING:
    from simfs.machine.sched.scheduler import Scheduler

IMBALANCE = 117
"""How much busier in percent a CPU may be than others of its domain (`imbalance_pct` of domains that share a cache)."""

FLIPS_FOR = from_ns(1e9)
"""After this long a task's switches between those whom it wakes count half (`record_wakee`: `HZ` ticks)."""

LEAST_SCANNED = 4
"""A scan ends before this many CPUs at the earliest (`SIS_PROP`)."""


class Placement:
    """Finds CPUs for woken tasks."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._kernel = scheduler.machine.kernel
        self._topology = scheduler.machine.topology

    def choose(self, task: Task, waker: Task | None) -> Cpu:
        """The CPU of a woken task. Without a waker an interrupt wakes it where it ran."""
        if task.pinned:
            return task.cpu
        target = task.cpu if waker is None else self._wake_affine(task, waker)
        chosen = self._select_idle_sibling(task, waker, target)
        if self._kernel.waker_recent_cpu and waker is not None and not self._wake_wide(waker, task):
            waker.recent_used_cpu = waker.cpu
        return chosen

    def _wake_affine(self, task: Task, waker: Task) -> Cpu:
        """The waker's CPU or the previous one (`wake_affine`): the previous one if it idles, else the less loaded."""
        self._record_wakee(waker, task)
        this, previous = waker.cpu, task.cpu
        if this is previous or self._scheduler.is_idle(previous) or self._wake_wide(waker, task):
            return previous
        load = share_of_load(task)
        here = 100 * (this.total_load + load)
        there = (100 + (IMBALANCE - 100) // 2) * (previous.total_load - load)
        return this if here < there else previous

    def _record_wakee(self, waker: Task, wakee: Task) -> None:
        if self._scheduler.now > waker.flips_since + FLIPS_FOR:
            waker.wakee_flips >>= 1
            waker.flips_since = self._scheduler.now
        if waker.last_wakee != wakee.number:
            waker.last_wakee = wakee.number
            waker.wakee_flips += 1

    def _wake_wide(self, waker: Task, wakee: Task) -> bool:
        """Whether one of the two wakes so many others that they would not fit under one cache (`wake_wide`)."""
        near = len(self._topology.llc(waker.cpu.number))
        slave, master = sorted((waker.wakee_flips, wakee.wakee_flips))
        return slave >= near and master >= slave * near

    def _select_idle_sibling(self, task: Task, waker: Task | None, target: Cpu) -> Cpu:
        previous = task.cpu
        if self._scheduler.is_idle(target):
            return target
        if self._scheduler.is_idle(previous) and self._topology.share_llc(previous.number, target.number):
            return previous
        if self._kernel.kthread_stacking and waker is not None and _stacks(waker, previous):
            return previous
        recent = task.recent_used_cpu
        near = recent is not None and self._topology.share_llc(recent.number, target.number)
        candidate = near and recent is not previous and recent is not target
        found = self._kernel.recent_cpu and candidate and recent and self._scheduler.is_idle(recent)
        if found or not self._kernel.waker_recent_cpu:
            task.recent_used_cpu = previous
        if found and recent:
            return recent
        found = self._scan(previous if waker is None else waker.cpu, previous, target)
        return target if found is None else found

    def _scan(self, this: Cpu, previous: Cpu, target: Cpu) -> Cpu | None:
        """An idle CPU under the last-level cache of `target` (`select_idle_cpu`).

        On a core that idles altogether if one is said to do so, else the sibling of `previous`, else any of those that
        the scan looks at.
        """
        near = self._topology.llc(target.number)
        first = self._scheduler.cpus[near.start]
        if not first.idle_cores and self._topology.share_llc(previous.number, target.number):
            for sibling in self._topology.core(previous.number):
                if sibling != previous.number and sibling in self._scheduler.idle:
                    return self._scheduler.cpus[sibling]
        most = self._most_scanned(this, target)
        if most is None:
            return None
        start = target.number + (self._kernel.wake_scan == "utilization")  # before, it began with the target
        order = [*range(start, near.stop), *range(near.start, start)]
        if first.idle_cores:
            return self._scan_cores(first, order)
        found = next((at for at, cpu in enumerate(order[:most]) if cpu in self._scheduler.idle), None)
        if found is not None or most >= len(near):
            self._note_scan(this, len(near) if found is None else found + 1)
        return None if found is None else self._scheduler.cpus[order[found]]

    def _scan_cores(self, first: Cpu, order: Sequence[int]) -> Cpu | None:
        """A CPU of a core that idles altogether (`select_idle_core`).

        Without one, any idle CPU, and `first`, under whose cache they are, notes that.
        """
        for cpu in order:
            if self._is_core_idle(cpu):
                return self._scheduler.cpus[cpu]
        first.idle_cores = False
        others = (other for cpu in order for other in self._topology.core(cpu))
        return next((self._scheduler.cpus[cpu] for cpu in others if cpu in self._scheduler.idle), None)

    def note_idle_core(self, cpu: Cpu) -> None:
        """`cpu` has become idle: if its siblings idle too, wake-ups look for idle cores (`update_idle_core`)."""
        if self._topology.has_siblings and self._is_core_idle(cpu.number):
            self._scheduler.cpus[self._topology.llc(cpu.number).start].idle_cores = True

    def _note_scan(self, this: Cpu, looked: int) -> None:
        """How long it takes on average to look at idle CPUs (`avg_scan_cost`): a line of each."""
        change = looked * self._topology.within_llc - this.scan_cost
        this.scan_cost += change // 8 if change >= 0 else -(-change // 8)

    def _most_scanned(self, this: Cpu, target: Cpu) -> int | None:
        """How many CPUs a scan may look at; none if it is not worth beginning."""
        near = len(self._topology.llc(target.number))
        match self._kernel.wake_scan:
            case "none":
                return None
            case "proportional":
                idle, cost = near * (this.average_idle // 512), this.scan_cost + 1000
                most = idle // cost if idle > LEAST_SCANNED * cost else LEAST_SCANNED
                return most - 1  # `!--nr` ends it
            case "utilization":
                return self._idle_scan(target) or None
        return near

    def _idle_scan(self, cpu: Cpu) -> int:
        """How many CPUs under the last-level cache of `cpu` a wake-up looks at (`SIS_UTIL`, `update_idle_cpu_scan`).

        The fewer the more they are used, none from 85 % on. Load balancing finds that anew once in as many ms as there
        are CPUs.
        """
        near = self._topology.llc(cpu.number)
        first = self._scheduler.cpus[near.start]
        if self._scheduler.now >= first.scan_until:
            roots = (self._scheduler.cpus[number].queue_of(Level.ROOT) for number in near)
            used = sum(queue.load.utilization for queue in roots) // len(near)
            busy = min(used * used * IMBALANCE * IMBALANCE // (10_000 * 1024), 1024)
            first.scans = (1024 - busy) * len(near) // 1024
            first.scan_until = self._scheduler.now + max(self._kernel.tick, from_ns(len(near) * 1e6))
        return first.scans

    def _is_core_idle(self, cpu: int) -> bool:
        """Whether all CPUs of the core of `cpu` idle."""
        return all(other in self._scheduler.idle for other in self._topology.core(cpu))


def share_of_load(task: Task) -> int:
    """What a task is of the load of its CPU (`task_h_load`)."""
    own = task.entity.load.load
    if task.level is Level.ROOT:
        return own
    everything, group = task.cpu.total_load, task.cpu.group.load.load
    inside = task.cpu.queue_of(Level.GROUP).load.load
    return own * (everything * group // (everything + 1)) // (inside + 1)


def _stacks(waker: Task, previous: Cpu) -> bool:
    """Whether a kernel thread of the wakee's own CPU wakes it, which has nothing else to do (`is_per_cpu_kthread`).

    It is likely done with what the wakee gave it.
    """
    per_cpu = waker.kind is TaskKind.BOUND and waker.cpu is previous
    return per_cpu and not previous.queue and not previous.delayed
