"""The nodes of RCU's tree that CPUs belong to (`struct rcu_node`, `kernel/rcu/tree.h` of 6.12).

All CPUs tick at one moment, and in the first round of its softirq each that has something to tell or to learn wants the
lock of its node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from simfs.machine.cpus.cpu import Phase
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.machine import Machine
    from simfs.machine.rcu import OfCpu
    from simfs.machine.task import Task

FANOUT = 16
"""CPUs of a node at most (`RCU_FANOUT_LEAF`)."""

Comer = tuple[Time, int, bool]
"""A CPU that wants the lock of its node: when, which, and whether it tries (`raw_spin_trylock` in `note_gp_changes`).

Others wait (`rcu_report_qs_rdp`).
"""


def nodes(cpus: int) -> list[range]:
    """Return the CPUs of each node: as few nodes as there can be, all alike (`rcu_init_levelspread`)."""
    count = -(-cpus // FANOUT)
    size = -(-cpus // count)
    return [range(first, min(first + size, cpus)) for first in range(0, cpus, size)]


def losers(comers: Iterable[Comer], noting: Time, reporting: Time) -> Iterator[int]:
    """Yield who tries in vain, if the lock is held so long by who takes it after a trial, and by others."""
    free: Time = 0
    for at, cpu, tries in sorted(comers):
        if tries and at < free:
            yield cpu
        else:
            free = max(at, free) + (noting if tries else reporting)


class Leaves:
    """Who is outside of readers in a tick, and who finds the lock of its node held."""

    def __init__(self, machine: Machine, cpus: Sequence[OfCpu]) -> None:
        self._machine, self._cpus = machine, cpus
        self._random, self._cv = machine.stream("rcu"), machine.spec["machine"]["costs"]["step_cv"]
        self._node_of = {cpu: node for node in nodes(len(cpus)) for cpu in node}
        self._met: dict[range, Time] = {}

    def tick(self, of: OfCpu) -> None:
        """A CPU ticks, outside of readers or not."""
        running = of.cpu.current if of.cpu.phase is Phase.RUNNING else None
        asks = of.needed and not of.passed
        outside = not asks or running is None or self._is_outside(running, of)
        of.seen_outside = of.seen_outside or outside
        of.misses, of.rang = False, 0

    def meet(self, of: OfCpu, sequence: int) -> None:
        """The softirq of a tick begins on the CPUs of a node; the state of grace periods is this."""
        node, now = self._node_of[of.cpu.number], self._machine.now
        if self._met.get(node) == now:
            return
        self._met[node] = now
        comers = [self._comes(self._cpus[cpu], sequence) for cpu in node]
        kernel = self._machine.kernel
        for loser in losers(filter(None, comers), kernel.rcu_note, kernel.rcu_report):
            self._cpus[loser].misses = True

    def _comes(self, of: OfCpu, sequence: int) -> Comer | None:
        """The timers of a tick come before (`TIMER_SOFTIRQ`, `RCU_SOFTIRQ`), and each wakes somebody."""
        cpu, machine = of.cpu, self._machine
        if cpu.next_tick is None or cpu.next_tick > machine.now:
            return None
        tries = of.noted != sequence
        if not tries and not (of.needed and sequence % 2 == 1 and of.passed):
            return None
        factor = self._random.factor(self._cv) if self._cv > 0 else 1.0
        return int(machine.kernel.rcu_tick * factor) + of.rang * machine.costs.wakeup, cpu.number, tries

    def _is_outside(self, task: Task, of: OfCpu) -> bool:
        """Whether RCU sees a running task outside of readers (`rcu_flavor_sched_clock_irq`).

        Softirqs of `ksoftirqd` are inside.
        """
        if task.preempt_off or of.ksoftirqd is task:
            return False
        if self._machine.scheduler.in_user_mode(task):
            return True
        kernel = self._machine.kernel
        return kernel.preemptible_rcu and self._random.uniform() >= kernel.rcu_inside
