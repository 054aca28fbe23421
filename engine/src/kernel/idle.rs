//! Rules of idle CPUs.

use super::choice::choice;

choice! {
    /// Who chooses the idle state of a CPU.
    pub enum Governor {
        /// Nobody, or not the kernel: it is in the deepest state that it has idled long enough for.
        Residency = "residency",
        /// A governor that guesses for how long the CPU is going to idle.
        Menu = "menu",
        /// One that counts how often the CPU was woken before the next timer.
        Teo = "teo",
        /// That of guests, which polls before it halts.
        Haltpoll = "haltpoll",
    }
}

choice! {
    /// How long the host polls for a halted virtual CPU before it gives its own to others.
    pub enum HostPolling {
        /// As the machine's idle states say.
        Fixed = "fixed",
        /// As long as halts of the CPU make it pay (`kvm_vcpu_halt`).
        Adaptive = "adaptive",
    }
}

choice! {
    /// How long an idle CPU polls before its governor chooses again (`cpuidle_poll_time`).
    pub enum Polling {
        /// Until somebody is to run there.
        Endless = "endless",
        /// A sixteenth of a tick.
        PartOfTick = "part_of_tick",
        /// The residency of the first state that is deeper.
        FirstResidency = "first_residency",
        /// That of the first one with a residency of at least 10 us, and a sixteenth of a tick at most.
        LongResidency = "long_residency",
    }
}
