"""Wake-ups: who pays for one, where the task goes, and who of the CPUs does what of it.

After `kernel/sched/core.c` of Linux 5 and 6: `try_to_wake_up`, `ttwu_queue_cond`, `wake_up_new_task`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simfs.machine.chains import Reason
from simfs.machine.cpus.cpu import Cpu, Phase
from simfs.machine.sched.policy import Entering
from simfs.machine.sched.resched import Waker
from simfs.machine.statistics import TaskKind
from simfs.machine.task import Task
from simfs.machine.task_state import Status
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.sched.scheduler import Scheduler


class Wakeups:
    """Wakes sleepers and starts new tasks."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._machine = scheduler, scheduler.machine

    def wake(self, task: Task, waker: Task | None, fetched: Time = 0) -> None:
        """Wake a task. `waker` is the running task that does it and pays for it; without one it is an interrupt.

        It may have spent the time `fetched` on the lines of `task` already. A task that is awake remembers the wake-up:
        it came before the sleep.
        """
        if task.status is not Status.SLEEPING:
            task.woken = task.status is not Status.DEAD
            if waker and task.woken and not fetched:
                waker.read_node(task)  # its `pi_lock` and state
            return
        if self._scheduler.workers.rests_on(task):
            return
        self._machine.chains.wakes(task)
        self._machine.counters.wakeups += 1
        task.cpu.io_waiters -= task.in_iowait
        left = waker is not None and self._leaves_to_switch(waker, task)
        if task.entity.delayed:
            self._note_wakeup(task, task.cpu, waker)
            self._wake_in_queue(task, waker, fetched)
            return
        cpu = task.cpu if left else self._scheduler.placement.choose(task, waker)
        self._note_wakeup(task, cpu, waker)
        ways = task.cpu, cpu
        by = self._charge_waker(waker, ways, Entering.WOKEN, fetched, left=left) if waker else None
        if left and cpu.next is not None:
            by = None  # the interrupt that queues it comes right after the switch
        self.enqueue(task, cpu, Entering.WOKEN, by)

    def _leaves_to_switch(self, waker: Task, task: Task) -> bool:
        """Whether a waker leaves `task` to its CPU, another one, which has not switched from it yet.

        Else it waits until that has (`try_to_wake_up`, `ttwu_queue_cond`).
        """
        home, at, kernel = task.cpu, self._machine.now + waker.segment.debt, self._machine.kernel
        if home.leaving is not task or waker.cpu is home or at >= home.leaves_at:
            return False
        dequeued = at >= task.times.since + kernel.dequeue and not task.entity.delayed
        others = home.load + len(home.delayed)
        afar = not self._machine.topology.share_llc(waker.cpu.number, home.number)
        match kernel.descheduling:
            case "waits":
                left = False
            case "queues_beside_one":
                left = afar or others + (not dequeued) <= 1
            case "queues_alone":
                left = afar or others + (not dequeued) == 0
            case _:
                left = dequeued and (afar or others == 0)
        if not left:
            before = self._machine.lock_code.before_wait
            waker.segment.debt += max(home.leaves_at - at - before, 0)
        return left

    def _note_wakeup(self, task: Task, cpu: Cpu, waker: Task | None) -> None:
        """Record that a sleeper is woken and is to go to `cpu`, where it has not been put yet."""
        previous, stays = task.cpu, cpu is task.cpu
        others_idle = any(
            other in self._scheduler.idle for other in self._machine.topology.llc(previous.number)
        )
        beside_idle = others_idle and not self._scheduler.is_idle(previous) and not task.pinned
        wakes = self._machine.wakes[task.kind]
        wakes.wakeups += 1
        wakes.on_previous += stays
        wakes.on_waker += not stays and waker is not None and waker.cpu is cpu
        wakes.beside_idle += beside_idle
        wakes.stacked += beside_idle and stays
        task.woken_at, task.woken_busy = self._machine.now, cpu.busy

    def _wake_in_queue(self, task: Task, waker: Task | None, fetched: Time) -> None:
        """Wake a task that sleeps and has not left its queue yet: it stays there (`ttwu_runnable`)."""
        by = self._charge_waker(waker, (task.cpu, task.cpu), Entering.WOKEN, fetched) if waker else None
        told, task.cpu.need_resched = task.cpu.need_resched, False
        self._scheduler.policy.requeue(task)
        self._add_awake(task, by, told)

    def start(self, task: Task, parent: Task | None) -> None:
        """Make a new task runnable on the CPU chosen for it (`wake_up_new_task`)."""
        self._machine.note("start", task, task.kind.value)
        by = self._charge_waker(parent, (task.cpu, task.cpu), Entering.NEW, 0) if parent else None
        self.enqueue(task, task.cpu, Entering.NEW, by)

    def _charge_waker(
        self, waker: Task, ways: tuple[Cpu, Cpu], entering: Entering, fetched: Time, *, left: bool = False
    ) -> Waker:
        """Let the waker pay for the wake-up of who slept on one CPU and is to go to another one.

        An idle CPU, or one to which the task was `left`, is only told whom to wake, and does the rest before it
        switches (`ttwu_queue_wakelist`, `sched_ttwu_pending`), or in the interrupt after the switch to another task.
        """
        home, target = ways
        costs, kernel, beyond = (
            self._machine.costs,
            self._machine.kernel,
            self._machine.topology.beyond_socket,
        )
        lines = kernel.wakeup_lines * beyond(home.number, waker.cpu.number)
        lines_back = kernel.woken_lines * beyond(waker.cpu.number, target.number)
        interrupt = left or (
            target is not waker.cpu and (target.number in self._scheduler.idle or target.looks)
        )
        queued = left or (interrupt and entering is Entering.WOKEN and kernel.wakeup_queue)
        wakeup = costs.wakeup_queued if queued else costs.wakeup
        if left and target.next is not None:
            target.owed_irq += costs.wakeup - wakeup + lines_back + costs.resched_serve
        else:
            target.before_switch += costs.wakeup - wakeup + lines_back
        sends = interrupt and not self._scheduler.idle_exit.polls_in_guest(target)
        waker.segment.debt += max(wakeup + lines - fetched, 0) + (costs.ipi_send if sends else 0)
        return Waker(waker.cpu, self._machine.now + waker.segment.debt, waker)

    def enqueue(self, task: Task, cpu: Cpu, entering: Entering, by: Waker | None) -> None:
        """Make a task runnable on `cpu`."""
        if entering is Entering.NEW:
            # A kernel thread that the machine begins with has slept for long.
            if by is not None or task.kind is TaskKind.LOAD:
                self._scheduler.policy.group.load_of_new(task, cpu)
            self._scheduler.policy.group.attach_load(task, cpu)
        elif task.cpu is not cpu:
            self._machine.counters.migrations += 1
            self._scheduler.policy.group.detach_load(task, task.cpu)
            self._scheduler.policy.group.attach_load(task, cpu)
        if entering is Entering.WOKEN:
            self._scheduler.balance.note_idle_time(cpu)
        told, cpu.need_resched = cpu.need_resched, False
        self._scheduler.policy.enqueue(task, cpu, entering)
        self._add_awake(task, by, told)
        arrives = (by.done - self._machine.now if by else 0) + self._scheduler.idle_exit.delivery(
            cpu, by.cpu if by else None
        )
        if cpu.phase is Phase.IDLE:
            self._scheduler.idle_exit.leave_idle(cpu, arrives)
        elif cpu.number in self._scheduler.idle or cpu.looks:
            # Switching to it; if not in it, somebody else's interrupt is under way.
            self._scheduler.idle_exit.end_idling(cpu)
            cpu.interrupted = self._machine.now + arrives

    def _add_awake(self, task: Task, by: Waker | None, told: bool) -> None:
        """Make a queued task runnable on its CPU; it runs at once if it should.

        `told` is whether the CPU was to look for another task before; who uses up a slice is noticed now, too.
        """
        cpu = task.cpu
        task.become(Status.RUNNABLE)
        task.reason = Reason.WOKEN
        self._machine.note("wake", task)
        if cpu.phase is Phase.RUNNING:
            wanted = self._scheduler.policy.preempts(task, cpu) or cpu.need_resched
            cpu.need_resched = told
            cpu.skips_clock |= wanted or told or cpu.resched_sent
            if wanted:
                self._scheduler.resched.want(cpu, by)
            self._scheduler.tick.arm(cpu)
            return
        cpu.need_resched |= told
        if cpu.next is not None:
            cpu.arrivals.append((task, by or Waker(cpu, self._machine.now, None)))
