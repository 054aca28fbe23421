"""Group scheduling (`CONFIG_FAIR_GROUP_SCHED`): the load's tasks are one group, a session's (autogroup) or a cgroup.

Each CPU with such tasks has an entity of the group among its kernel threads. All entities together weigh what one task
does; each has the share of the load that is on its CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simfs.machine.cpus.cpu import Cpu
from simfs.machine.sched.entity import NICE_0, Entity, mul_div
from simfs.machine.sched.load import Average, Wanted
from simfs.machine.sched.run_queue import Level, RunQueue
from simfs.machine.task import Task
from simfs.machine.time import Time, from_ns

if TYPE_CHECKING:
    from simfs.machine.sched.policy import Policy

LEAST = 2
"""The least weight of an entity (`MIN_SHARES`), at the resolution of weights."""

NOTED_EVERY = from_ns(1e6)
"""The sum over the CPUs follows a CPU's average at most this often (`update_tg_load_avg`)."""


@dataclass
class Contribution:
    """What a CPU's part of the group adds to the sum over the CPUs (`tg_load_avg_contrib`)."""

    noted: int = 0
    at: Time | None = None


class Group:
    """The load's tasks, and the averages of everybody, which say how much each CPU has of them."""

    def __init__(self, policy: Policy, cpus: int) -> None:
        self._policy = policy
        self._load = 0
        """Of all CPUs (`tg->load_avg`)."""
        self._contributions = [Contribution() for _ in range(cpus)]

    @property
    def _now(self) -> Time:
        return self._policy.machine.now

    def update_load(self, queue: RunQueue, entity: Entity) -> None:
        """Bring the averages of a member and of its run queue up to date (`update_load_avg`)."""
        wants = entity.queued and not entity.delayed
        wanted = Wanted(load=entity.queued, tasks=wants, running=queue.current is entity)
        entity.load.update(self._now, wanted, entity.share)
        self.update_queue_load(queue)

    def update_queue_load(self, queue: RunQueue) -> None:
        """Bring the averages of a run queue up to date."""
        queue.update_load(self._now)
        if queue.level is Level.GROUP:
            self._note(queue)

    def _note(self, queue: RunQueue) -> None:
        """`update_tg_load_avg`: differences below a 64th are not worth it."""
        contribution = self._contributions[queue.cpu.number]
        lately = contribution.at is not None and self._now - contribution.at < NOTED_EVERY
        change = queue.load.load - contribution.noted
        if not lately and abs(change) > contribution.noted // 64:
            self._load += change
            contribution.noted, contribution.at = queue.load.load, self._now

    def _share(self, queue: RunQueue) -> int:
        """The weight of the group's entity on a CPU (`calc_group_shares`)."""
        load = max(queue.weight >> 10, queue.load.load)
        everywhere = self._load - self._contributions[queue.cpu.number].noted + load
        return min(max(NICE_0 * load // max(everywhere, 1), LEAST), NICE_0)

    def update_weight(self, cpu: Cpu) -> None:
        """Give the group's entity the weight it should have now (`update_cfs_group`). That of an empty group stays."""
        inner = cpu.queue_of(Level.GROUP)
        if inner.weight and (weight := self._share(inner)) != cpu.group.weight:
            self.reweigh(cpu.queue_of(Level.ROOT), cpu.group, weight)

    def reweigh(self, queue: RunQueue, entity: Entity, weight: int) -> None:
        """Give a member another weight, and its queue what follows from that (`reweight_entity`)."""
        old, before = entity.weight, entity.share
        if entity.queued:
            self._policy.update_current(queue.cpu)
            self._policy.rules.reweigh(queue, entity, weight)
        else:
            entity.lag = mul_div(entity.lag, old, weight)
        entity.weight = weight
        queue.load.reweigh(entity.load, before, entity.share)
        if entity.queued:
            queue.weight += weight - old

    def attach_load(self, task: Task, cpu: Cpu) -> None:
        """A task comes to a CPU, from another or for the first time: its averages count (`attach_entity_load_avg`)."""
        queue, entity = cpu.queue_of(task.level), task.entity
        self.update_queue_load(queue)
        entity.load.align(queue.load, entity.share)
        queue.load.attach(entity.load, entity.share)
        if task.level is Level.GROUP:
            self._note(queue)
            root = cpu.queue_of(Level.ROOT)
            self.update_load(root, cpu.group)
            root.load.came(cpu.group.load, cpu.group.share, entity.load.load_sum)  # `propagate_entity_cfs_rq`
            root.load.attach_use(entity.load)

    def detach_load(self, task: Task, cpu: Cpu) -> None:
        """A task leaves a CPU for good (`detach_entity_load_avg`, `remove_entity_load_avg`)."""
        queue, entity = cpu.queue_of(task.level), task.entity
        self.update_load(queue, entity)
        queue.load.detach(entity.load, entity.share)
        if task.level is Level.GROUP:
            self._note(queue)
            root, weight = cpu.queue_of(Level.ROOT), queue.weight >> 10
            self.update_load(root, cpu.group)
            root.load.went(cpu.group.load, cpu.group.share, queue.load.load_sum // weight if weight else 0)
            root.load.detach_use(entity.load)

    def load_of_new(self, task: Task, cpu: Cpu) -> None:
        """Give a new task its averages (`post_init_entity_util_avg`).

        It is as heavy as it may be, and runs as much as those that are there, but leaves half of the CPU. That is read
        as it was when somebody last came, went, or saw a tick: there is no `update_load_avg`.
        """
        queue, entity = cpu.queue_of(task.level), task.entity
        busy, half = queue.load.utilization, max(1024 - queue.load.utilization, 0) // 2
        entity.load = Average(load=entity.share)
        entity.load.utilization = min(busy * entity.share // (queue.load.load + 1), half) if busy else half
        entity.load.runnable = entity.load.utilization
