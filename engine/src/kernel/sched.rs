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
