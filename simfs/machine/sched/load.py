"""PELT (`kernel/sched/pelt.c`): how much somebody has wanted to run, and has run, lately.

What was 32 ms ago counts half. Time is cut into periods of 1024 units of 1024 ns. The arithmetic is the kernel's, in
whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from simfs.machine.time import Time

MOST = 47_742
"""The sum of a history that was always on (`LOAD_AVG_MAX`)."""

HALF_LIFE = 32
"""Periods in which the past loses half of its weight."""

DECAY = tuple(int((2**32 - 1) * 0.5 ** (n / HALF_LIFE)) for n in range(HALF_LIFE))
"""`y^n * (2^32 - 1)` for n below the half-life, where y^32 = 1/2 (`runnable_avg_yN_inv`)."""


def decayed(value: int, periods: int) -> int:
    """`value * y^periods`."""
    if periods > HALF_LIFE * 63:
        return 0
    return ((value >> periods // HALF_LIFE) * DECAY[periods % HALF_LIFE]) >> 32


class Wanted(NamedTuple):
    """What a member or a run queue was in the time that is added."""

    load: int
    """1 if the member was in its queue; of a queue the sum of its members' weights."""
    tasks: int
    """How many tasks ran or waited."""
    running: bool


@dataclass
class Average:
    """Averages of a member or a run queue (`sched_avg`)."""

    updated: int = 0
    """Up to when it is complete, in ns."""
    passed: int = 0
    """Units of the current period that have passed."""
    load_sum: int = 0
    runnable_sum: int = 0
    running_sum: int = 0
    load: int = 0
    """Weight times the share of the time in which it was runnable (`load_avg`)."""
    utilization: int = 0
    """1024 times the share of the time in which it ran (`util_avg`)."""
    runnable: int = 0
    """1024 times the share in which it ran or waited; a queue's is the sum of its tasks (`runnable_avg`)."""

    @property
    def divider(self) -> int:
        """The longest history that there can be at this point of the period (`get_pelt_divider`)."""
        return MOST - 1024 + self.passed

    def update(self, now: Time, wanted: Wanted, weight: int) -> None:
        """Until now it was as `wanted` says; `weight` is what a member's average counts."""
        units = max(now // 1000 - self.updated, 0) >> 10
        if units == 0:
            return
        self.updated += units << 10
        begun = self.passed
        periods, self.passed = divmod(units + begun, 1024)
        added = units
        if periods:
            self.load_sum = decayed(self.load_sum, periods)
            self.runnable_sum = decayed(self.runnable_sum, periods)
            self.running_sum = decayed(self.running_sum, periods)
            whole = MOST - decayed(MOST, periods) - 1024
            added = decayed(1024 - begun, periods) + whole + self.passed
        self.load_sum += wanted.load * added
        self.runnable_sum += wanted.tasks * added << 10
        if wanted.running and wanted.load > 0:
            self.running_sum += added << 10
        if periods:
            self.load = weight * self.load_sum // self.divider
            self.utilization = self.running_sum // self.divider
            self.runnable = self.runnable_sum // self.divider

    def align(self, queue: Average, weight: int) -> None:
        """Go with the periods of `queue`, which its member joins (`attach_entity_load_avg`)."""
        self.updated, self.passed = queue.updated, queue.passed
        self.running_sum = self.utilization * self.divider
        self.runnable_sum = self.runnable * self.divider
        self.load_sum = max(self.load * self.divider // weight, 1)

    def attach(self, member: Average, weight: int) -> None:
        """Add what a member of a queue brings (`attach_entity_load_avg`)."""
        self.load += member.load
        self.load_sum += weight * member.load_sum
        self.attach_use(member)

    def detach(self, member: Average, weight: int) -> None:
        """Take off what a member of a queue takes with it (`detach_entity_load_avg`)."""
        self._take_load(member, weight)
        self.detach_use(member)

    def attach_use(self, member: Average) -> None:
        """Add the running and waiting time of a member of the group, in the queue that the group is in.

        `update_tg_cfs_util`, `update_tg_cfs_runnable`.
        """
        self.utilization += member.utilization
        self.running_sum += member.running_sum
        self.runnable += member.runnable
        self.runnable_sum += member.runnable_sum

    def detach_use(self, member: Average) -> None:
        """The opposite of `attach_use`."""
        self.utilization = max(self.utilization - member.utilization, 0)
        self.running_sum = max(self.running_sum - member.running_sum, self.utilization * (MOST - 1024))
        self.runnable = max(self.runnable - member.runnable, 0)
        self.runnable_sum = max(self.runnable_sum - member.runnable_sum, self.runnable * (MOST - 1024))

    def came(self, member: Average, weight: int, came: int) -> None:
        """Load that has come to a group has come to its entity, a `member` of this queue (`update_tg_cfs_load`)."""
        self._propagate(member, weight, min(member.load_sum + came, self.divider))

    def went(self, member: Average, weight: int, rest: int) -> None:
        """Load has gone from a group, whose members have the sum `rest` on average (`update_tg_cfs_load`)."""
        self._propagate(member, weight, min(member.load_sum, rest))

    def _propagate(self, member: Average, weight: int, runnable: int) -> None:
        runnable = max(runnable, member.running_sum >> 10)
        self._take_load(member, weight)
        member.load_sum, member.load = runnable, weight * runnable // self.divider
        self.load += member.load
        self.load_sum += weight * runnable

    def _take_load(self, member: Average, weight: int) -> None:
        self.load = max(self.load - member.load, 0)
        self.load_sum = max(self.load_sum - weight * member.load_sum, self.load * (MOST - 1024))

    def reweigh(self, member: Average, old: int, new: int) -> None:
        """A member's weight changes from `old` to `new` (`reweight_entity`)."""
        self._take_load(member, old)
        member.load = new * member.load_sum // member.divider
        self.load += member.load
        self.load_sum += new * member.load_sum
