//! Rules of the scheduler.

use super::choice::choice;

choice! {
    /// The scheduler of ordinary tasks.
    pub enum Class {
        /// Least virtual run time first (2.6.23 to 6.5).
        Cfs = "cfs",
        /// Earliest eligible virtual deadline first (since 6.6).
        Eevdf = "eevdf",
    }
}

choice! {
    /// How many CPUs a wake-up looks at for an idle one.
    pub enum WakeScan {
        /// All under the last-level cache (before 4.13).
        All = "all",
        /// As many as fit into a part of the time that its CPU idles, but four (`SIS_PROP`, 4.13 to 5.18).
        Proportional = "proportional",
        /// The fewer the more they are used (`SIS_UTIL`, since 6.0).
        Utilization = "utilization",
        /// None: a machine on which that has been measured.
        None = "none",
    }
}

choice! {
    /// What a waker does about a sleeper whose CPU, another one, has not switched from it yet. Who leaves it to that CPU leaves it there.
    pub enum Descheduling {
        /// It waits for the switch (before 5.8).
        Waits = "waits",
        /// It leaves it to that CPU if one task at most is in the run queue there, which the sleeper is until it has been dequeued (5.8
        /// to 5.19).
        QueuesBesideOne = "queues_beside_one",
        /// The same if nobody is (6.0 to 6.11).
        QueuesAlone = "queues_alone",
        /// It waits for the lock of the run queue, which is that for the switch, until the sleeper has been dequeued; then as before
        /// (since 6.12).
        DequeuedFirst = "dequeued_first",
    }
}

choice! {
    /// What makes CPUs the busiest, from which an idle one takes a task.
    pub enum Busiest {
        /// Tasks that wait (before 5.5).
        Waiting = "waiting",
        /// More tasks than CPUs where these are used (`group_util`, 5.5 and 5.6).
        Utilization = "utilization",
        /// The same where these are used or wanted (`group_runnable`, since 5.7).
        Runnable = "runnable",
    }
}

choice! {
    /// How much busier a NUMA node may become than another: who is new stays on its parent's, and balancing leaves it as it is.
    pub enum NumaImbalance {
        /// Not at all: the node with most idle CPUs is taken (before 5.5).
        Spread = "spread",
        /// Who is new stays while a CPU of its node idles (5.5).
        IdleCpu = "idle_cpu",
        /// The same, and balancing leaves two tasks on a node (5.6 to 5.10).
        Pair = "pair",
        /// While the node has fewer tasks than a quarter of the domain has CPUs; balancing, of the node (5.11 to 5.17).
        QuarterOfDomain = "quarter_of_domain",
        /// Up to a quarter of the node's CPUs, or a task for each of its last-level caches (5.18 and 5.19).
        QuarterOfNode = "quarter_of_node",
        /// Up to an eighth, and only while it has two idle CPUs less than the other at most (since 6.0).
        EighthOfNode = "eighth_of_node",
    }
}

choice! {
    /// When a CPU about to idle looks for a task to take.
    pub enum NewIdle {
        /// If it idles longer on average than `migration_cost`, and than a look takes (before 5.16).
        AboveMigrationCost = "above_migration_cost",
        /// Whenever it idles longer than a look takes.
        Always = "always",
        /// Then as often as looks have found something (`NI_RANDOM`, since 6.19).
        BySuccess = "by_success",
    }
}

choice! {
    /// Which tasks compete for a CPU as a group, beside kernel threads that do so for themselves.
    pub enum Groups {
        /// None: each task for itself.
        None = "none",
        /// The load, which is one session (since 2.6.38).
        Autogroup = "autogroup",
        /// The load, which is in one cgroup with the CPU controller.
        Cgroup = "cgroup",
    }
}
