"""Who competes in which run queue, and which of a CPU's tasks runs.

What differs between EEVDF and CFS, the scheduler before 6.6, is asked of `Rules`, run queue by run queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from simfs.machine.cpus.cpu import Cpu
from simfs.machine.sched.entity import Entity, weight_of
from simfs.machine.sched.group import Group
from simfs.machine.sched.run_queue import Level, RunQueue
from simfs.machine.task import Task

if TYPE_CHECKING:
    from simfs.machine.machine import Machine


class Entering(Enum):
    """How a member comes into a run queue."""

    NEW = "new"
    WOKEN = "woken"
    MOVED = "moved"
    """From another CPU's queue."""


class Leaving(Enum):
    """Why a task leaves its run queue."""

    SLEEPING = "sleeping"
    ENDED = "ended"
    MOVED = "moved"
    """For another CPU's queue."""


class Rules(Protocol):
    """Decides which member of a run queue runs."""

    def update(self, queue: RunQueue, current: Entity) -> bool:
        """The current member has run: whether the CPU is to look for another."""

    def enter(self, queue: RunQueue, entity: Entity, entering: Entering) -> None:
        """Place a member that is about to enter a queue; the CPU of its task is still where it was."""

    def store_lag(self, queue: RunQueue, entity: Entity) -> None:
        """Remember what a member, which is about to leave, is still owed."""

    def left(self, queue: RunQueue) -> None:
        """Note that a member has left."""

    def reweigh(self, queue: RunQueue, entity: Entity, weight: int) -> None:
        """A queued member is about to have another weight."""

    def delays(self, queue: RunQueue, entity: Entity) -> bool:
        """Whether a member that goes to sleep competes on."""

    def moves(self, entity: Entity) -> None:
        """A member has left a queue for another one."""

    def next(self, queue: RunQueue) -> Entity | None:
        """The member that the CPU should run."""

    def preempts(self, queue: RunQueue, woken: Entity) -> bool:
        """Whether a member that has just been queued should run at once."""

    def slice_ends(self, queue: RunQueue, current: Entity) -> bool:
        """Whether the tick finds that another member should run."""


class Policy:
    """The run queues of all CPUs."""

    def __init__(self, machine: Machine, rules: Rules, cpus: int) -> None:
        self.machine = machine
        self.rules = rules
        self.group = Group(self, cpus)
        self.overloaded = False
        """Whether a CPU had two tasks since it was last looked (`rd->overloaded`)."""

    def update_current(self, cpu: Cpu) -> None:
        """Bring the virtual run times of the current task and its group up to date (`update_curr`).

        A used-up slice sets `need_resched`; who calls it sees to that.
        """
        task = cpu.executing_task
        if task is None:
            return
        ran = self.machine.now - cpu.exec_start
        cpu.exec_start = self.machine.now
        if ran == 0:
            return
        for queue, entity in self._levels(task, cpu):
            entity.vruntime += entity.virtual_time(ran)
            entity.ran += ran
            cpu.need_resched |= self.rules.update(queue, entity)

    def read_clock(self, cpu: Cpu) -> None:
        """A CPU is about to look for another task (`__schedule`).

        The current one has run until now, or until the wake-up because of which the CPU looks. What is left of the time
        is of who runs next.
        """
        now, skips = self.machine.now, cpu.skips_clock
        cpu.skips_clock, cpu.behind = False, 0
        if skips:
            cpu.behind, cpu.exec_start = now - cpu.exec_start, now
        else:
            self.update_current(cpu)

    def run_by_clock(self, cpu: Cpu) -> None:
        """Let who has been picked run on `cpu` by the clock of the run queues."""
        cpu.exec_start, cpu.behind = self.machine.now - cpu.behind, 0

    def _levels(self, task: Task, cpu: Cpu) -> Iterator[tuple[RunQueue, Entity]]:
        """The run queues that a task competes in, its own first, and as what."""
        yield cpu.queue_of(task.level), task.entity
        if task.level is Level.GROUP:
            yield cpu.queue_of(Level.ROOT), cpu.group

    # ---- entering and leaving ---------------------------------------------------------------------------------------

    def enqueue(self, task: Task, cpu: Cpu, entering: Entering) -> None:
        """A task comes into the run queues of `cpu`; `task.cpu` is still where it was (`enqueue_task_fair`)."""
        self.update_current(cpu)
        self._enter(cpu.queue_of(task.level), task.entity, entering)
        task.cpu = cpu
        cpu.queue.append(task)
        self.overloaded |= cpu.load + len(cpu.delayed) > 1
        if task.level is Level.GROUP:
            self._group_has_more(cpu)
        cpu.queue_of(Level.ROOT).runnable += 1

    def _group_has_more(self, cpu: Cpu) -> None:
        root = cpu.queue_of(Level.ROOT)
        if cpu.group.delayed:
            self._requeue(root, cpu.group)
        self.group.update_load(root, cpu.group)
        self.group.update_weight(cpu)
        if not cpu.group.queued:
            self._enter(root, cpu.group, Entering.WOKEN)

    def _enter(self, queue: RunQueue, entity: Entity, entering: Entering) -> None:
        self.group.update_load(queue, entity)
        self.rules.enter(queue, entity, entering)
        entity.queued = True
        queue.members += 1
        queue.weight += entity.weight

    def dequeue(self, task: Task, cpu: Cpu, leaving: Leaving) -> None:
        """A task, which runs or waits on `cpu`, leaves its run queues (`dequeue_task_fair`)."""
        self.update_current(cpu)
        queue = cpu.queue_of(task.level)
        if leaving is Leaving.SLEEPING and self._stays_delayed(queue, task.entity):
            cpu.delayed.append(task)
        else:
            self._leave(queue, task.entity)
            if leaving is Leaving.MOVED:
                self.rules.moves(task.entity)
            if leaving is Leaving.MOVED and task is not cpu.executing_task:
                cpu.queue.remove(task)
            if task.level is Level.GROUP:
                self._group_has_less(cpu, asleep=leaving is not Leaving.MOVED)
        cpu.queue_of(Level.ROOT).runnable -= 1

    def _stays_delayed(self, queue: RunQueue, entity: Entity) -> bool:
        """Who goes to sleep ahead of the average competes on until it is not (`DELAY_DEQUEUE`)."""
        if not self.rules.delays(queue, entity):
            return False
        self.group.update_load(queue, entity)
        entity.delayed = True
        _no_longer_current(queue, entity)
        return True

    def _group_has_less(self, cpu: Cpu, *, asleep: bool) -> None:
        root = cpu.queue_of(Level.ROOT)
        if cpu.queue_of(Level.GROUP).members:
            self.group.update_load(root, cpu.group)
            self.group.update_weight(cpu)
            cpu.group_is_next |= asleep  # `set_next_buddy`: its others rather than somebody else
            return
        cpu.group_is_next = False
        if not self._stays_delayed(root, cpu.group):
            self._leave(root, cpu.group)

    def _leave(self, queue: RunQueue, entity: Entity) -> None:
        self.group.update_load(queue, entity)
        self.rules.store_lag(queue, entity)
        _no_longer_current(queue, entity)
        entity.queued = entity.protected = False
        queue.members -= 1
        queue.weight -= entity.weight
        self.rules.left(queue)

    def _finish_delay(self, queue: RunQueue, entity: Entity) -> None:
        """Who only competes for the end of its delay has been picked: it leaves, without lag (`DELAY_ZERO`)."""
        self._leave(queue, entity)
        entity.delayed = False
        entity.lag = min(entity.lag, 0)
        if entity.task is not None:
            queue.cpu.delayed.remove(entity.task)
        if queue.level is Level.GROUP:
            self._group_has_less(queue.cpu, asleep=True)

    def requeue(self, task: Task) -> None:
        """A task that slept and had not left its run queue is awake again.

        It is placed beside what the current task was when it was last accounted: `enqueue_task_fair` with
        `ENQUEUE_DELAYED` (6.12) comes before any `update_curr`, so who has run since is ahead and gives way.
        """
        self._requeue(task.cpu.queue_of(task.level), task.entity)
        self.update_current(task.cpu)
        task.cpu.delayed.remove(task)
        task.cpu.queue_of(Level.ROOT).runnable += 1
        task.cpu.queue.append(task)

    def _requeue(self, queue: RunQueue, entity: Entity) -> None:
        """What it has gained while it was asleep is forfeit (`requeue_delayed_entity`)."""
        self.rules.store_lag(queue, entity)
        entity.delayed = False
        if entity.lag > 0:
            entity.lag = 0
            entity.queued = False  # it is placed beside the others
            self.rules.enter(queue, entity, Entering.WOKEN)
            entity.queued = True
        self.group.update_load(queue, entity)

    # ---- choosing ---------------------------------------------------------------------------------------------------

    def pick(self, cpu: Cpu) -> Task | None:
        """The task that `cpu` should run, from the root down (`pick_task_fair`).

        Those who only compete for the end of their delay leave when they are picked.
        """
        queue = cpu.queue_of(Level.ROOT)
        while (entity := self.rules.next(queue)) is not None:
            if entity.delayed:
                self._finish_delay(queue, entity)
                queue = cpu.queue_of(Level.ROOT)
            elif entity.task is not None:
                return entity.task
            else:
                queue = cpu.queue_of(Level.GROUP)
        return None

    def set_next(self, cpu: Cpu, task: Task | None) -> None:
        """A picked task has `cpu` from now on, instead of who has it now (`put_prev_entity`, `set_next_entity`).

        Where both are of the group, only its own run queue changes.
        """
        levels = {} if task is None else {queue.level: entity for queue, entity in self._levels(task, cpu)}
        for queue in (cpu.queue_of(Level.GROUP), cpu.queue_of(Level.ROOT)):
            old, new = queue.current, levels.get(queue.level)
            if old is new:
                continue
            if old is not None:
                self.group.update_load(queue, old)
            if new is not None:
                self.group.update_load(queue, new)
                new.protected, new.ran = True, 0
                cpu.clear_next(new)
            queue.current = new

    def preempts(self, woken: Task, cpu: Cpu) -> bool:
        """Whether a task that has just been queued should run at once.

        It is compared with the current one where both, or their groups, are in one run queue
        (`check_preempt_wakeup_fair`, `find_matching_se`).
        """
        if cpu.current is None:
            return False
        if woken.level is Level.GROUP and cpu.current.level is Level.ROOT:
            return self.rules.preempts(cpu.queue_of(Level.ROOT), cpu.group)
        return self.rules.preempts(cpu.queue_of(woken.level), woken.entity)

    def tick(self, cpu: Cpu, task: Task) -> None:
        """The tick of the current task and its group (`task_tick_fair`).

        Their averages, the group's weight, the end of a slice of CFS.
        """
        self.update_current(cpu)
        for queue, entity in self._levels(task, cpu):
            self.group.update_load(queue, entity)
            if entity is cpu.group:
                self.group.update_weight(cpu)
            if queue.members > 1:
                cpu.need_resched |= self.rules.slice_ends(queue, entity)

    def leave_group(self, task: Task) -> None:
        """Move a running task from the group's run queue to the root's (`sched_move_task`)."""
        cpu = task.cpu
        self.dequeue(task, cpu, Leaving.MOVED)
        self.group.detach_load(task, cpu)
        task.entity.vruntime += cpu.queue_of(Level.ROOT).base - cpu.queue_of(Level.GROUP).base
        task.level = Level.ROOT
        self.group.attach_load(task, cpu)
        self.enqueue(task, cpu, Entering.MOVED)
        self.set_next(cpu, task)
        cpu.queue.remove(task)

    def set_nice(self, task: Task, nice: int) -> None:
        """Give a task another nice level (`set_user_nice`)."""
        cpu = task.cpu
        self.group.reweigh(cpu.queue_of(task.level), task.entity, weight_of(nice))
        if task.level is Level.GROUP:
            self.group.update_load(cpu.queue_of(Level.ROOT), cpu.group)
            self.group.update_weight(cpu)


def _no_longer_current(queue: RunQueue, entity: Entity) -> None:
    if queue.current is entity:
        queue.current = None
