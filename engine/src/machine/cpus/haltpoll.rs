//! Idle virtual CPUs. The guest polls for a while before it halts (`drivers/cpuidle/governors/haltpoll.c`, since 5.4), and the host
//! polls for a halted CPU before it gives its own CPU to others (`kvm_vcpu_halt`). Both find out for how long that pays.

use super::cpu::IdleLadder;
use super::governor::{Chosen, End, Stay};
use crate::kernel::idle::HostPolling;
use crate::spec::KernelSpec;
use crate::waist::time::{from_ns, Time};

/// By what the times grow, and by what the guest's shrinks (`guest_halt_poll_grow`, `guest_halt_poll_shrink`, `halt_poll_ns_grow`).
const FACTOR: Time = 2;

/// What a guest and its host allow.
#[derive(Clone, Copy, Debug)]
struct Limits {
    guest: Time,
    guest_start: Time,
    host_adapts: bool,
    host: Time,
    host_start: Time,
    /// By what the host's time is divided after a long halt; 0: it does not poll any more.
    host_shrink: Time,
}

/// What the governor and the host know of a CPU.
#[derive(Clone, Debug)]
pub struct Haltpoll {
    limits: Limits,
    /// For how long the guest polls (`poll_limit_ns`).
    pub polls_for: Time,
    /// For how long the host does (`vcpu->halt_poll_ns`).
    host_polls_for: Time,
    /// It has polled for all that time, and nobody came.
    in_vain: bool,
}

impl Haltpoll {
    /// Of a CPU that has never idled.
    pub fn new(kernel: &KernelSpec) -> Self {
        let constants = &kernel.constants;
        let limits = Limits {
            guest: from_ns(constants.guest_halt_poll),
            guest_start: from_ns(constants.guest_halt_poll_start),
            host_adapts: kernel.rules.host_polling == HostPolling::Adaptive,
            host: from_ns(constants.host_halt_poll),
            host_start: from_ns(constants.host_halt_poll_start),
            host_shrink: constants.host_halt_poll_shrink as Time,
        };
        Self { limits, polls_for: 0, host_polls_for: 0, in_vain: false }
    }

    /// It polls, unless it has done so in vain (`haltpoll_select`).
    pub fn choose(&self) -> Chosen {
        let polls = self.polls_for > 0 && !self.in_vain;
        Chosen { state: if polls { 0 } else { 1 }, ticks: polls }
    }

    /// Polling or a halt has come to an end (`haltpoll_reflect`).
    pub fn learn(&mut self, ladder: &IdleLadder, stay: &Stay, end: &End) {
        self.in_vain = end.polled_in_vain;
        if stay.state > 0 {
            let halted = end.at - stay.since;
            let exit = ladder.core_exit(self.halted(ladder, halted));
            self.adjust_guest(halted + exit);
            self.adjust_host(halted);
        }
    }

    /// `adjust_poll_limit`.
    fn adjust_guest(&mut self, blocked: Time) {
        let most = self.limits.guest;
        if blocked > most {
            self.polls_for /= FACTOR;
        } else if blocked > self.polls_for {
            self.polls_for = (self.polls_for * FACTOR).max(self.limits.guest_start).min(most);
        }
    }

    /// `grow_halt_poll_ns` and `shrink_halt_poll_ns`.
    fn adjust_host(&mut self, halted: Time) {
        let Limits { host: most, host_start, host_shrink, .. } = self.limits;
        if halted <= self.host_polls_for || most == 0 {
            return;
        }
        if halted > most {
            let less = self.host_polls_for.checked_div(host_shrink).unwrap_or(0);
            self.host_polls_for = if less < host_start { 0 } else { less };
        } else if self.host_polls_for < most && halted < most {
            self.host_polls_for = (self.host_polls_for * FACTOR).max(host_start).min(most);
        }
    }

    /// From when on a halt is in a state: in the last one, when the host has given its CPU away.
    pub fn begins(&self, ladder: &IdleLadder, state: usize) -> Time {
        match state {
            1 => 0,
            _ if self.limits.host_adapts => self.host_polls_for + 1,
            _ => ladder.target(state),
        }
    }

    /// The state that a halt is in after some time.
    pub fn halted(&self, ladder: &IdleLadder, time: Time) -> usize {
        (1..ladder.len()).take_while(|&state| self.begins(ladder, state) <= time).count()
    }
}
