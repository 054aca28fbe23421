"""How much busier one NUMA node may be than another (`sched.numa_imbalance`).

A new task stays on its parent's node, and balancing leaves tasks there. The rule's values, with the kernel's functions:
`spread` (before 5.5), `idle_cpu` (5.5), `pair` (5.6), `quarter_of_domain` (5.11), `quarter_of_node` (5.18) and
`eighth_of_node` (6.0).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from simfs.machine.sched.sched_group import ALLOWANCE, Group, Kind

if TYPE_CHECKING:
    from simfs.machine.machine import Machine

SMALL = 2
"""Half the difference in tasks that balancing ignores (`NUMA_IMBALANCE_MIN`)."""


class Nodes:
    """The NUMA nodes of a machine: its sockets."""

    def __init__(self, machine: Machine) -> None:
        self._topology = machine.topology
        self._rule = machine.kernel.numa_imbalance

    def keep_new(self, domain: tuple[int, int], local: Group, idlest: Group) -> bool:
        """Whether a new task stays on its parent's node, `local`, though another is idler (`find_idlest_group`).

        Both are of one kind.
        """
        if self._rule == "spread" or not self._topology.is_numa(domain):
            return False
        if local.kind is not Kind.HAS_SPARE:
            return idlest.load + ALLOWANCE >= local.load
        match self._rule:
            case "quarter_of_domain":
                return local.tasks < domain[0] // 4
            case "quarter_of_node":
                return local.tasks < self._topology.tasks_of_node(4)
            case "eighth_of_node":
                few = local.tasks < max(self._topology.tasks_of_node(8), 1)
                return few and abs(local.idle - idlest.idle) <= SMALL
            case _:
                return local.idle > 0

    def tolerate(self, busiest: Group, tasks: int, even: int) -> bool:
        """Whether balancing leaves `busiest`, a node from which one with `tasks` would take some to have them `even`.

        See `calculate_imbalance`, `adjust_numa_imbalance`.
        """
        match self._rule:
            case "pair":
                return busiest.tasks <= 2
            case "quarter_of_domain":
                return even <= SMALL and busiest.tasks < busiest.cpus // 4
            case "quarter_of_node":
                return even <= SMALL and tasks < self._topology.tasks_of_node(4)
            case "eighth_of_node":
                return even <= SMALL and tasks < max(self._topology.tasks_of_node(8), 1)
            case _:
                return False

    def leave(self, local: Group, tasks: int, idlest: Group) -> bool:
        """Whether balancing would leave a task that starts on `local`, a node with `tasks`, where another is idler."""
        with_it = replace(local, tasks=tasks + 1)
        more = max(with_it.tasks - idlest.tasks, 0)
        return more < 2 or self.tolerate(with_it, idlest.tasks, more // 2)
