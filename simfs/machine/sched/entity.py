"""What competes for a CPU: a task, or the group of the load's tasks on that CPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simfs.machine.sched.load import Average

if TYPE_CHECKING:
    from simfs.machine.task import Task

NICE_0 = 1 << 20
"""The weight of nice level 0, at the resolution that weights have on 64-bit kernels (`scale_load`)."""

WEIGHTS = (
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
    9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277,
    1024, 820, 655, 526, 423, 335, 272, 215, 172, 137,
    110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
)  # fmt: skip
"""Weights of nice levels -20 to 19 (`sched_prio_to_weight`): each level is a tenth of a CPU more or less."""


def weight_of(nice: int) -> int:
    """The weight of a nice level."""
    return WEIGHTS[min(max(nice, -20), 19) + 20] << 10


def mul_div(a: int, b: int, c: int) -> int:
    """`a * b / c`, rounded toward zero as C does."""
    product = a * b
    return product // c if product >= 0 else -(-product // c)


@dataclass(eq=False)
class Entity:
    """A member of a run queue; virtual times in ps, at the pace of nice level 0."""

    task: Task | None = None
    """Whose; none for the group."""
    weight: int = NICE_0
    """`load.weight`."""
    vruntime: int = 0
    """CPU time received, on the queue's virtual clock."""
    deadline: int = 0
    """When its current request is to be fulfilled, on the same clock."""
    lag: int = 0
    """How much service it was owed when it left the queue."""
    left_of_slice: int | None = None
    """How much of its request was left when it left the queue for another one (`rel_deadline`)."""
    ran: int = 0
    """CPU time since it was picked."""
    protected: bool = False
    """It has been picked and has not used up its slice since (run to parity)."""
    queued: bool = False
    """It is in its queue or runs."""
    delayed: bool = False
    """It sleeps and is in its queue until it is no longer ahead of the average."""
    load: Average = field(default_factory=Average)
    """How much it wants to run and runs."""

    def request(self, slice_: int) -> None:
        """It comes into a queue with what was left of its request, or else with one of so much virtual time."""
        left, self.left_of_slice = self.left_of_slice, None
        self.deadline = self.vruntime + (slice_ if left is None else left)

    def virtual_time(self, time: int) -> int:
        """`time` on the virtual clock of its queue (`calc_delta_fair`)."""
        return mul_div(time, NICE_0, self.weight)

    @property
    def share(self) -> int:
        """Its weight where weights are summed (`scale_load_down`)."""
        return max(self.weight >> 10, 2)
