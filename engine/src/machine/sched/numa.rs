//! How much busier one NUMA node may be than another: a new task stays on its parent's node, and balancing leaves tasks there
//! (`sched.numa_imbalance`, with the kernel's functions).

use super::sched_group::{Group, Kind};
use crate::kernel::sched::NumaImbalance;
use crate::machine::cpus::topology::Domain;
use crate::machine::state::State;

/// Half the difference in tasks that balancing ignores (`NUMA_IMBALANCE_MIN`).
const SMALL: u64 = 2;

impl State {
    /// Whether a new task stays on its parent's node, `local`, though another is idler (`find_idlest_group`). Both are of one kind.
    pub(super) fn stays_on_node(&self, domain: Domain, local: &Group, idlest: &Group) -> bool {
        let rule = self.kernel.rules.numa_imbalance;
        if rule == NumaImbalance::Spread || !self.topology.is_numa(domain) {
            return false;
        }
        if local.kind != Kind::HasSpare {
            return idlest.load + Group::allowance() >= local.load;
        }
        match rule {
            NumaImbalance::Spread => false,
            NumaImbalance::IdleCpu | NumaImbalance::Pair => local.idle > 0,
            NumaImbalance::QuarterOfDomain => local.tasks < u64::from(domain.span / 4),
            NumaImbalance::QuarterOfNode => local.tasks < self.topology.tasks_of_node(4),
            NumaImbalance::EighthOfNode => {
                local.tasks < self.topology.tasks_of_node(8).max(1) && local.idle.abs_diff(idlest.idle) <= SMALL
            }
        }
    }

    /// Whether balancing leaves `busiest` as it is, a node from which one with `tasks` would take some to have them `even`
    /// (`calculate_imbalance`, `adjust_numa_imbalance`).
    pub(super) fn tolerates(&self, busiest: &Group, tasks: u64, even: u64) -> bool {
        let small = even <= SMALL;
        match self.kernel.rules.numa_imbalance {
            NumaImbalance::Spread | NumaImbalance::IdleCpu => false,
            NumaImbalance::Pair => busiest.tasks <= 2,
            NumaImbalance::QuarterOfDomain => small && busiest.tasks < busiest.cpus / 4,
            NumaImbalance::QuarterOfNode => small && tasks < self.topology.tasks_of_node(4),
            NumaImbalance::EighthOfNode => small && tasks < self.topology.tasks_of_node(8).max(1),
        }
    }

    /// Whether balancing would leave a task that starts on `local`, a node with `tasks`, there although another is idler.
    pub(super) fn is_left_on_node(&self, local: &Group, tasks: u64, idlest: &Group) -> bool {
        let with = Group { tasks: tasks + 1, ..*local };
        let more = with.tasks.saturating_sub(idlest.tasks);
        more < 2 || self.tolerates(&with, idlest.tasks, more / 2)
    }
}
