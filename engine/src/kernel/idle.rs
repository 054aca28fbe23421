//! Rules of idle CPUs.

use super::choice::choice;

choice! {
    /// Who chooses the idle state of a CPU.
    pub enum Governor {
        /// Nobody, or not the kernel: it is in the deepest state that it has idled long enough for.
        Residency = "residency",
        /// A governor that guesses for how long the CPU is going to idle.
        Menu = "menu",
    }
}
