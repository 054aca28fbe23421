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
        /// The fewer the more they are used (`SIS_UTIL`, since 5.19).
        Utilization = "utilization",
        /// None: a machine on which that has been measured.
        None = "none",
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
    /// When a CPU about to idle looks for a task to take.
    pub enum NewIdle {
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
