"""CFS (`kernel/sched/fair.c` before Linux 6.6) in one run queue.

The `base` of a run queue is its `min_vruntime`. Left out: the buddies of tasks.
"""

from __future__ import annotations

from simfs.machine.sched.entity import Entity, mul_div
from simfs.machine.sched.policy import Entering
from simfs.machine.sched.run_queue import Level, RunQueue
from simfs.machine.time import Time


class Cfs:
    """The member with the least virtual run time runs, for its share of a period.

    Sleepers get up to half a period of credit.
    """

    def __init__(self, latency: Time, min_granularity: Time, wakeup_granularity: Time) -> None:
        self._latency = latency
        """The period that all runnable tasks share (`sched_latency`)."""
        self._min_granularity = min_granularity
        """The least share of it: with more tasks the period grows."""
        self._wakeup_granularity = wakeup_granularity
        """How far behind the current task a woken one must be to preempt it."""

    def _slice(self, queue: RunQueue, entity: Entity) -> Time:
        """A member's share of the period of its queue, and so on upwards (`sched_slice`).

        One that is about to enter counts already.
        """
        members = queue.members + (not entity.queued)
        share = max(self._latency, members * self._min_granularity)
        levels = [(queue, entity)]
        if queue.level is Level.GROUP:
            levels.append((queue.cpu.queue_of(Level.ROOT), queue.cpu.group))
        for run_queue, member in levels:
            others = run_queue.weight
            share = mul_div(share, member.weight, others if member.queued else others + member.weight)
        return share

    def update(self, queue: RunQueue, current: Entity) -> bool:
        """Let the least virtual run time go on with that of the current member."""
        self.left(queue)
        return False

    def left(self, queue: RunQueue) -> None:
        """`update_min_vruntime`: it never goes back."""
        queue.base = max(
            queue.base, min((entity.vruntime for entity in queue.everybody()), default=queue.base)
        )

    def enter(self, queue: RunQueue, entity: Entity, entering: Entering) -> None:
        """`place_entity`; a task from another CPU keeps its distance to the least virtual run time there."""
        old = queue if entity.task is None else entity.task.cpu.queue_of(queue.level)
        moved = entity.vruntime - old.base + queue.base
        match entering:
            case Entering.NEW:
                entity.vruntime = queue.base + entity.virtual_time(self._slice(queue, entity))
            case Entering.WOKEN:
                entity.vruntime = max(moved, queue.base - self._latency // 2)
            case Entering.MOVED:
                entity.vruntime = moved

    def store_lag(self, queue: RunQueue, entity: Entity) -> None:
        """There is none."""

    def moves(self, entity: Entity) -> None:
        """Slices are not remembered."""

    def reweigh(self, queue: RunQueue, entity: Entity, weight: int) -> None:
        """Its virtual run time is what it is."""

    def delays(self, queue: RunQueue, entity: Entity) -> bool:
        """Who sleeps leaves."""
        return False

    def next(self, queue: RunQueue) -> Entity | None:
        """The member with the least virtual run time (`pick_next_entity`).

        The first come of equals, the current one only if it has less. The group, if it is the next buddy, goes before
        who is not far behind it.
        """
        left = min(queue.waiting(), key=lambda entity: entity.vruntime, default=queue.current)
        if left and queue.current and queue.current.vruntime < left.vruntime:
            left = queue.current
        if queue.level is Level.ROOT and queue.cpu.group_is_next and left:
            group = queue.cpu.group
            return left if self._is_behind(group.vruntime, left) else group
        return left

    def preempts(self, queue: RunQueue, woken: Entity) -> bool:
        """`check_preempt_wakeup`."""
        return queue.current is not None and self._is_behind(queue.current.vruntime, woken)

    def _is_behind(self, vruntime: int, entity: Entity) -> bool:
        """Whether a member is so far behind that it should run instead (`wakeup_preempt_entity`)."""
        return vruntime - entity.vruntime > entity.virtual_time(self._wakeup_granularity)

    def slice_ends(self, queue: RunQueue, current: Entity) -> bool:
        """Whether `current` has had its share, or is that far ahead of who waits (`check_preempt_tick`)."""
        share = self._slice(queue, current)
        if current.ran > share:
            queue.cpu.clear_next(current)
            return True
        first = min((entity.vruntime for entity in queue.waiting()), default=current.vruntime)
        return current.ran >= self._min_granularity and current.vruntime - first > share
