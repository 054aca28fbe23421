//! Rules of processes that end.

use super::choice::choice;

choice! {
    /// How the kernel stack of a process is freed that no CPU keeps for the next one.
    pub enum StackFree {
        /// Its pages at once: stacks are not mapped (before 4.9).
        Pages = "pages",
        /// By a worker, which is told at once.
        Worker = "worker",
        /// By a worker that RCU's callback tells, unless a CPU can keep it then (since 5.18).
        Callback = "callback",
    }
}
