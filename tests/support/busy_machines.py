"""Machines on SimPy whose CPUs are busy, to see where tasks go."""

from __future__ import annotations

from collections.abc import Mapping

from engine import lock_cycle
from simfs.machine.cpus.cpu import Phase
from simfs.machine.machine import Machine
from simfs.machine.sched.policy import Entering
from simfs.machine.sched.run_queue import Level
from simfs.machine.task import Task
from simfs.machine.task_state import Status

US, MS = 10**6, 10**9
"""Picoseconds."""

Shape = Mapping[str, int]
Rule = str | bool


class Machines:
    """A machine whose CPUs are busy with a task each, but for those that idle."""

    def __init__(
        self, cpus: int, idle: tuple[int, ...] = (), shape: Shape | None = None, **rules: Rule
    ) -> None:
        spec = lock_cycle(
            tasks=1, cpus=cpus, kernel={"rules": {f"sched.{name}": of for name, of in rules.items()}}
        )
        spec["machine"] |= shape or {}
        spec["machine"]["costs"] = {**spec["machine"]["costs"], "line_llc": 50}
        self.machine = Machine(spec)
        self.scheduler, self.cpus = self.machine.scheduler, self.machine.scheduler.cpus
        self.busy = {number: self.start(number) for number in range(cpus) if number not in idle}

    def start(self, number: int) -> Task:
        """Let a new task have a CPU."""
        task, cpu = self.task(number), self.cpus[number]
        self.scheduler.policy.enqueue(task, cpu, Entering.NEW)
        self.scheduler.policy.set_next(cpu, task)
        cpu.queue.remove(task)
        cpu.current, cpu.phase, task.status = task, Phase.RUNNING, Status.RUNNING
        self.scheduler.idle.discard(number)
        return task

    def task(self, last_on: int, *, bound: bool = False) -> Task:
        """A task that sleeps."""
        task = Task(self.machine, len(self.machine.tasks), self.cpus[last_on], pinned=bound)
        self.machine.tasks.append(task)
        return task

    def wait(self, number: int) -> Task:
        """A task that waits for a busy CPU."""
        task = self.task(number)
        self.scheduler.policy.enqueue(task, self.cpus[number], Entering.WOKEN)
        task.status = Status.RUNNABLE
        return task

    def woken(self, task: Task, by: int | None = None) -> int:
        """Where a task goes that the task of a CPU wakes, or an interrupt."""
        waker = None if by is None else self.busy[by]
        return self.scheduler.placement.choose(task, waker).number

    def pull(self, number: int) -> Task | None:
        """Whom a CPU takes that is about to idle, when its looks are over."""
        cpu = self.cpus[number]
        self.scheduler.idle.discard(number)
        self.scheduler.newidle.begin(cpu)
        while errand := cpu.errand:
            cpu.errand = None
            errand()
        return cpu.next

    def use(self, utilization: int) -> None:
        """Let all CPUs have been used so much lately, of 1024."""
        for cpu in self.cpus:
            cpu.queue_of(Level.ROOT).load.utilization = utilization

    def load(self, load: int) -> None:
        """Let all CPUs have this load."""
        for cpu in self.cpus:
            cpu.queue_of(Level.ROOT).load.load = load

    def pass_(self, time: int) -> None:
        """Let time go by."""
        self.machine.clock.env.run(until=self.machine.now + time)
