"""EEVDF (`kernel/sched/fair.c`, Linux 6.6 and later) in one run queue.

Virtual run time, lag, deadlines, run to parity. All virtual times are picoseconds.

From 6.12 on (`DELAY_DEQUEUE`) who goes to sleep ahead of the average stays in the queue's average, and competes until
it has fallen behind: then it is picked and leaves without lag. Who is woken before that goes on where it is.
"""

from __future__ import annotations

from simfs.machine.cpus.cpu import Cpu
from simfs.machine.kernel import Kernel
from simfs.machine.sched.entity import Entity, mul_div
from simfs.machine.sched.policy import Entering
from simfs.machine.sched.run_queue import Level, RunQueue


class Eevdf:
    """Decides which member of a run queue runs."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def update(self, queue: RunQueue, current: Entity) -> bool:
        """Start a new request if the slice is used up (`update_deadline`): then the CPU is to look for another.

        From 6.12 on it does so as soon as the slice is not protected and the member is ahead (`did_preempt_short`).
        """
        used_up = current.vruntime >= current.deadline
        if used_up:
            current.deadline = current.vruntime + current.virtual_time(self._kernel.base_slice)
            current.protected = False
        queue.base = current.vruntime
        if queue.members <= 1 or not (used_up or self._is_preempted_short(queue, current)):
            return False
        queue.cpu.clear_next(current)
        return True

    def _is_preempted_short(self, queue: RunQueue, current: Entity) -> bool:
        return self._kernel.preempt_short and not current.protected and not self.is_eligible(queue, current)

    def enter(self, queue: RunQueue, entity: Entity, entering: Entering) -> None:
        """Place a member that enters a queue (`place_entity`).

        With `PLACE_LAG` its lag is kept, scaled so that entering does not shrink it. From 6.12 on a new task has half a
        slice to begin with (`PLACE_DEADLINE_INITIAL`), and who comes from another queue has what was left of its own
        (`PLACE_REL_DEADLINE`).
        """
        average, weight = queue.average()
        keeps_lag = self._kernel.place_lag and weight
        lag = mul_div(entity.lag, weight + entity.share, weight) if keeps_lag else 0
        entity.vruntime = average - lag
        halved = entering is Entering.NEW and self._kernel.place_deadline_initial
        slice_ = entity.virtual_time(self._kernel.base_slice)
        entity.request(slice_ // 2 if halved else slice_)

    def moves(self, entity: Entity) -> None:
        """A member has left a queue for another one, where it goes on with its slice (`rel_deadline`)."""
        if self._kernel.place_rel_deadline:
            entity.left_of_slice = entity.deadline - entity.vruntime

    def store_lag(self, queue: RunQueue, entity: Entity) -> None:
        """Remember the service that a member, which is about to leave, is still owed (`update_entity_lag`)."""
        average, _ = queue.average()
        most = entity.virtual_time(self._kernel.most_lag)
        entity.lag = min(max(average - entity.vruntime, -most), most)

    def reweigh(self, queue: RunQueue, entity: Entity, weight: int) -> None:
        """A queued member is about to have another weight (`reweight_eevdf`).

        Its lag and what is left to its deadline last as long in real time as before, on a clock of another pace. Where
        the deadline moves, the slice is no longer protected.
        """
        average, _ = queue.average()
        most = entity.virtual_time(self._kernel.most_lag)
        lag = min(max(average - entity.vruntime, -most), most)
        entity.vruntime = average - mul_div(lag, entity.weight, weight)
        deadline = average + mul_div(entity.deadline - average, entity.weight, weight)
        entity.protected = entity.protected and deadline == entity.deadline
        entity.deadline = deadline

    def left(self, queue: RunQueue) -> None:
        """A member has left; the others' average is what it is."""

    def is_eligible(self, queue: RunQueue, entity: Entity) -> bool:
        """Whether a member is not ahead of the average (`entity_eligible`)."""
        return entity.vruntime <= queue.average()[0]

    def delays(self, queue: RunQueue, entity: Entity) -> bool:
        """Whether a member that goes to sleep competes on (`DELAY_DEQUEUE`)."""
        return self._kernel.delay_dequeue and not self.is_eligible(queue, entity)

    def next(self, queue: RunQueue) -> Entity | None:
        """The member that should run; the group, whose task has just gone to sleep, if it has others (`PICK_BUDDY`)."""
        cpu = queue.cpu
        if self._kernel.pick_buddy and _group_is_next(cpu, queue) and self.is_eligible(queue, cpu.group):
            return cpu.group
        return self.pick(queue)

    def pick(self, queue: RunQueue) -> Entity | None:
        """`pick_eevdf`: of those not ahead of the average, the one with the earliest deadline.

        The current one, if it is not ahead, stays while its slice is protected.
        """
        if queue.members <= 1:
            return next(queue.everybody(), None)
        average, _ = queue.average()
        current = queue.current if queue.current and queue.current.vruntime <= average else None
        if current and self._kernel.run_to_parity and current.protected:
            return current
        eligible = [entity for entity in queue.waiting() if entity.vruntime <= average]
        best = min(eligible, key=lambda entity: entity.deadline, default=None)
        if best is None or (current and current.deadline < best.deadline):
            return current
        return best

    def preempts(self, queue: RunQueue, woken: Entity) -> bool:
        """Whether a member that has just been queued should run at once (`check_preempt_wakeup_fair`)."""
        return self.pick(queue) is woken

    def slice_ends(self, queue: RunQueue, current: Entity) -> bool:
        """The tick ends no slice but a used-up one."""
        return False


def _group_is_next(cpu: Cpu, queue: RunQueue) -> bool:
    return queue.level is Level.ROOT and cpu.group_is_next
