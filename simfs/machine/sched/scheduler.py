"""The scheduler: switches, preemption and its parts: wake-ups, ticks, placement, idle CPUs, balancing.

Rules from `kernel/sched/{core,fair}.c` of Linux 5 and 6. Who runs next is decided by a `policy`, with the rules of
`eevdf` or `cfs`. Left out: real-time classes, periodic balancing other than pulls by idle CPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from simfs.machine.chains import Reason
from simfs.machine.clock import What
from simfs.machine.cpus.cpu import Account, Cpu, IdleLadder, Phase
from simfs.machine.cpus.governor import Governor, Idling
from simfs.machine.cpus.haltpoll import Haltpoll
from simfs.machine.cpus.idle_exit import IdleExit
from simfs.machine.cpus.menu import Menu
from simfs.machine.cpus.polling import polls_for
from simfs.machine.cpus.segments import Segments
from simfs.machine.cpus.smt import Siblings
from simfs.machine.cpus.teo import Teo
from simfs.machine.sched.address_space import AddressSpaces
from simfs.machine.sched.balance import Balance
from simfs.machine.sched.cfs import Cfs
from simfs.machine.sched.eevdf import Eevdf
from simfs.machine.sched.idlest import Idlest
from simfs.machine.sched.newidle import NewIdle
from simfs.machine.sched.placement import Placement
from simfs.machine.sched.policy import Entering, Leaving, Policy, Rules
from simfs.machine.sched.resched import Resched, Waker
from simfs.machine.sched.run_queue import Level
from simfs.machine.sched.tick import Tick
from simfs.machine.sched.wakeups import Wakeups
from simfs.machine.softirq import Softirqs
from simfs.machine.task import Task
from simfs.machine.task_state import Status
from simfs.machine.time import Time, from_ns
from simfs.machine.workers import Workers

if TYPE_CHECKING:
    from simfs.machine.machine import Machine


class Scheduler:
    """Gives CPUs to tasks."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.ladder = IdleLadder(machine.spec["machine"], _polls_for(machine))
        self.idling = Idling(machine, self.ladder)
        self.idle_exit = IdleExit(self)
        average_idle = 2 * machine.kernel.migration_cost
        self.cpus = [Cpu(number, average_idle, _governor(machine)) for number in range(machine.topology.cpus)]
        self.idle: set[int] = {cpu.number for cpu in self.cpus}
        """CPUs without anything to run, those that are still switching to idle included."""
        self.address_spaces = AddressSpaces(machine)
        self.policy = Policy(machine, _rules(machine), machine.topology.cpus)
        self.segments = Segments(self)
        self.siblings = Siblings(self, machine.topology)
        self.placement = Placement(self)
        for cpu in self.cpus:
            self.placement.note_idle_core(cpu)
            self.idling.enter(cpu)
        self.idlest = Idlest(self)
        self.balance = Balance(self)
        self.newidle = NewIdle(self)
        self.resched = Resched(self)
        self.wakeups = Wakeups(self)
        self.tick = Tick(self)
        self.workers = Workers(self)
        self.softirqs = Softirqs(self)

    @property
    def now(self) -> Time:
        """The clock."""
        return self.machine.now

    def preemptible(self, task: Task) -> bool:
        """Whether a task may be preempted in the segment that it runs."""
        preemption = self.machine.kernel.preemption
        if preemption == "host":
            return True
        return task.preempt_off == 0 and (preemption == "full" or self.in_user_mode(task))

    def in_user_mode(self, task: Task) -> bool:
        """Whether a task is in user mode now."""
        return task.account is Account.USER and self.segments.left_of_kernel(task) == 0

    def replacement(self, cpu: Cpu) -> Task | None:
        """Who should run instead of the current task, which could go on (`schedule`, `pick_next_task`).

        What made the CPU look is dealt with.
        """
        self.policy.read_clock(cpu)
        self.resched.forget(cpu)
        if self.softirqs.rcu is not None:
            self.softirqs.rcu.passes(cpu)
        picked = self.policy.pick(cpu)
        if picked is cpu.current:
            self.policy.run_by_clock(cpu)
            return None
        return picked

    def preempt(self, cpu: Cpu, other: Task) -> None:
        """Take the current task off involuntarily for another one; it goes on later where it was."""
        task = cpu.current
        assert task is not None, "only a running task is preempted"
        self.machine.counters.involuntary += 1
        self.machine.note("preempt", task)
        self._give_way(task, other)

    def yield_cpu(self, task: Task, other: Task) -> None:
        """The running task gives way to another one and stays runnable."""
        task.in_segment = False
        self.machine.note("yield", task)
        self._give_way(task, other)

    def _give_way(self, task: Task, other: Task) -> None:
        self._leave_cpu(task, Status.RUNNABLE, Reason.PREEMPTED)
        self.switch_to(task.cpu, other)
        task.cpu.queue.append(task)

    def sleep(self, task: Task, reason: Reason) -> None:
        """The running task goes to sleep; `reason` is why, if it is not for a lock."""
        if task.preempt_off:
            detail = f"{task} sleeps at {self.now} ps and holds a spinlock"
            self.machine.broken("no sleep while atomic", detail)
        task.in_segment = False
        task.plug.flush_asleep()
        self.workers.sleeps(task)
        self.machine.note("sleep", task)
        self.policy.read_clock(task.cpu)
        self.policy.dequeue(task, task.cpu, Leaving.SLEEPING)
        self._leave_cpu(task, Status.SLEEPING, reason)
        task.cpu.io_waiters += task.in_iowait
        task.cpu.leaving = task
        self.schedule(task.cpu)

    def exit(self, task: Task) -> None:
        """The running task has ended."""
        self.machine.note("exit", task)
        self.policy.read_clock(task.cpu)
        self.policy.dequeue(task, task.cpu, Leaving.ENDED)
        self.policy.group.detach_load(task, task.cpu)
        self._leave_cpu(task, Status.DEAD, Reason.GONE)
        self.schedule(task.cpu)

    def move_running(self, task: Task, to: Cpu) -> None:
        """A running task wakes the stopper thread, which takes it off, and puts it into the queue of another CPU.

        That is a switch to it and, when it sleeps again, another one from it (`migration_cpu_stop`).
        """
        source = task.cpu
        task.in_segment = False
        self.machine.counters.involuntary += 1
        self.machine.note("preempt", task)
        self.policy.dequeue(task, source, Leaving.MOVED)
        self._leave_cpu(task, Status.RUNNABLE, Reason.PREEMPTED)
        source.errand = lambda: self._moved_running(task, source, to)
        self.occupy(source, None, self.machine.costs.wakeup + self.address_spaces.switch(source, None))

    def _moved_running(self, task: Task, source: Cpu, to: Cpu) -> None:
        self.machine.counters.switches += 1
        task.note_move(to)
        self.wakeups.enqueue(task, to, Entering.MOVED, Waker(source, self.now, None))
        self.schedule(source)

    def _leave_cpu(self, task: Task, status: Status, reason: Reason) -> None:
        task.become(status)
        task.reason = reason
        task.generation += 1
        task.last_ran = self.now
        watchers, task.watchers = task.watchers, []
        for watcher in watchers:
            watcher.look_at(self.now)
        task.cpu.current = None

    def schedule(self, cpu: Cpu) -> None:
        """Give a CPU whose task has left the next one, if it has one."""
        self.resched.forget(cpu)
        if task := self.policy.pick(cpu):
            self.switch_to(cpu, task)
        else:
            cpu.behind = 0
            self.newidle.begin(cpu)

    def switch_to(self, cpu: Cpu, task: Task) -> None:
        """Take a task of its queue."""
        self.policy.set_next(cpu, task)
        cpu.queue.remove(task)
        self.policy.run_by_clock(cpu)
        self._begin_switch(cpu, task)

    def go_idle(self, cpu: Cpu) -> None:
        """Nobody is to run on a CPU."""
        self.idle_exit.begin_idling(cpu)
        self.placement.note_idle_core(cpu)
        self.switch_to_idle(cpu)

    def switch_to_idle(self, cpu: Cpu) -> None:
        """Switch to idle, although somebody may have been woken."""
        self.policy.set_next(cpu, None)
        self._begin_switch(cpu, None)

    def _begin_switch(self, cpu: Cpu, task: Task | None) -> None:
        self.occupy(cpu, task, self.address_spaces.switch(cpu, task) + cpu.before_switch)
        cpu.before_switch = 0

    def occupy(self, cpu: Cpu, task: Task | None, time: Time) -> None:
        """Let a CPU be between tasks for so long, before `task` or idle."""
        cpu.phase, cpu.next = Phase.SWITCHING, task
        cpu.leaves_at = self.now + time + (self.address_spaces.time_to_switch(cpu, None) if cpu.looks else 0)
        cpu.generation += 1
        self.siblings.set_executing(cpu, True)
        self.later(cpu, time, What.SWITCH_DONE, self._switch_done)

    def later(self, cpu: Cpu, delay: Time, what: What, done: Callable[[Cpu], None]) -> None:
        """Let a switch or idle exit of `cpu` end, unless another has begun meanwhile."""
        generation = cpu.generation

        def end() -> None:
            if cpu.generation == generation:
                done(cpu)

        self.machine.clock.at(self.now + delay, what, cpu.number, end, rank=generation)

    def _switch_done(self, cpu: Cpu) -> None:
        cpu.account(self.now, cpu.between_tasks)
        errand, cpu.errand = cpu.errand, None
        if errand:
            errand()
            return
        cpu.leaving = None
        task = cpu.next
        self.machine.counters.switches += not cpu.in_softirq  # also to idle: rq->nr_switches
        cpu.in_softirq = False
        if task is None:
            self.siblings.set_executing(cpu, False)
            if cpu.queue:
                self.idle_exit.end_idling(cpu)
                self.idle_exit.woken_while_switching(cpu)
            else:
                cpu.phase, cpu.since = Phase.IDLE, self.now
                self.idling.enter(cpu)
                self.idle_exit.begin_idling(cpu)
                self.machine.note_cpu("idle", cpu)
                self.tick.arm(cpu)
            return
        cpu.phase, cpu.current, cpu.next = Phase.RUNNING, task, None
        task.segment.irq += cpu.owed_irq
        cpu.owed_irq = 0
        task.become(Status.RUNNING)
        self.machine.note("run", task)
        self.machine.runs_after_wakeup(task)
        self.tick.arm(cpu)
        arrivals, cpu.arrivals = cpu.arrivals, []
        if task.in_segment:
            self.segments.go_on(task)
            self._look_at(arrivals, cpu)
        else:
            self._look_at(arrivals, cpu)
            task.resume()

    def _look_at(self, arrivals: Sequence[tuple[Task, Waker]], cpu: Cpu) -> None:
        """Compare those who were woken while `cpu` switched, and waited for its run queue, with who has it now."""
        wakers = [by for task, by in arrivals if self.policy.preempts(task, cpu)]
        if wakers:
            cpu.skips_clock = True
            first = min(wakers, key=lambda by: (by.cpu is not cpu, by.done))
            self.resched.want(cpu, Waker(first.cpu, first.done, None))

    def leave_autogroup(self, task: Task) -> None:
        """Let a running task that ends compete as one of the root's (`sched_autogroup_exit_task`)."""
        kernel = self.machine.kernel
        if kernel.exit_leaves_autogroup and kernel.groups == "autogroup" and task.level is Level.GROUP:
            self.policy.leave_group(task)
            task.cpu.need_resched |= len(task.cpu.queue) > 0

    def set_nice(self, task: Task, nice: int) -> None:
        """Give a running task another nice level; it may not be the one that should run (`prio_changed_fair`)."""
        self.policy.set_nice(task, nice)
        task.cpu.need_resched |= len(task.cpu.queue) > 0

    def is_idle(self, cpu: Cpu) -> bool:
        """Whether a CPU has nothing to run."""
        return cpu.number in self.idle

    def heed_resched(self, cpu: Cpu) -> None:
        """If another task may be wanted on `cpu`, preempt its current one at once if that may be."""
        task = cpu.current
        if task is None or not cpu.need_resched or cpu.phase is not Phase.RUNNING:
            return
        if cpu.in_tick(self.now):
            return  # when the interrupt ends
        if task.in_segment and self.preemptible(task):
            self.segments.book(task)
            if other := self.replacement(cpu):
                self.preempt(cpu, other)
            else:
                self.segments.run(task)
        elif task.in_segment and task.turns is not None:
            self.segments.book(task)
            self.segments.run(task)  # to the end of the turn
        elif task.spins_until_resched:
            task.look_at(self.now)
        elif task.spinning and self.machine.kernel.preemption == "host" and (other := self.replacement(cpu)):
            task.spinning = False  # it looks again when it comes to run
            self.segments.book_spin(task)
            self.preempt(cpu, other)


def _governor(machine: Machine) -> Governor:
    """What is known of a CPU, by the rule `idle.governor`; where that is `residency`, nobody asks."""
    if machine.kernel.governor == "haltpoll":
        return Haltpoll(machine.kernel.halt_polling, machine.costs.cpu_relax)
    return Teo() if machine.kernel.governor == "teo" else Menu()


def _polls_for(machine: Machine) -> Time:
    residencies = [from_ns(state["residency_ns"]) for state in machine.spec["machine"]["idle_states"]]
    return polls_for(machine.kernel.polling, residencies, machine.kernel.tick, machine.costs.cpu_relax)


def _rules(machine: Machine) -> Rules:
    kernel = machine.kernel
    if kernel.cfs is None:
        return Eevdf(kernel)
    latency, wakeup_granularity = kernel.cfs
    return Cfs(latency, kernel.base_slice, wakeup_granularity)
