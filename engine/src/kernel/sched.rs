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
