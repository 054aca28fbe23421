//! Softirqs at the end of the tick's interrupt (`handle_softirqs`, `kernel/softirq.c` of 6.12): rounds of RCU's, until nothing is left
//! or it has taken too long; then `ksoftirqd` of the CPU goes on.

use super::cpus::cpu::Phase;
use super::locks::completion;
use super::queue::Happening;
use super::state::State;
use super::trace::Object;
use crate::waist::time::{Time, US};
use crate::waist::{Account, CpuId};

/// Rounds after which the rest is left to `ksoftirqd` (`MAX_SOFTIRQ_RESTART`).
const ROUNDS: u32 = 10;
/// Or ticks of so much time (`MAX_SOFTIRQ_TIME`).
const LONGEST: Time = 2000 * US;

impl State {
    /// The tick's interrupt on `cpu` ends and RCU's softirq has something to do.
    pub(super) fn softirqs(&mut self, cpu: CpuId) {
        let Some((ksoftirqd, awake)) = self.ksoftirqd(cpu) else { return };
        let inside =
            self.cpus[cpu as usize].softirq_until > self.now || self.cpus[cpu as usize].current == Some(ksoftirqd);
        if inside || awake && self.kernel.rules.ksoftirqd_first {
            return;
        }
        let idle = matches!(self.cpus[cpu as usize].phase, Phase::Idle(_));
        let (tick, mut time) = (self.kernel.tick, 0);
        let last = self.now / tick + LONGEST.div_ceil(tick);
        for round in 0..ROUNDS {
            time += self.rcu_core(cpu, idle, round == 0);
            let late = (self.now + time) / tick >= last;
            if !self.callbacks_ready(cpu) || late || self.is_wanted(cpu) {
                break;
            }
        }
        self.note_cpu("softirq", cpu, Object::Nothing);
        self.cpus[cpu as usize].softirq_until = self.now + time;
        if matches!(self.cpus[cpu as usize].phase, Phase::Idle(_)) {
            self.softirq_on_idle(cpu, time);
        } else {
            self.steal(cpu, time);
        }
        if time > 0 {
            self.push(self.now + time, Happening::SoftirqDone, cpu, 0);
        }
    }

    /// Whether `cpu` is to go to another task when the interrupt ends: a timer that rings in this tick, before RCU's softirq, may have
    /// woken one.
    fn is_wanted(&self, cpu: CpuId) -> bool {
        let c = &self.cpus[cpu as usize];
        match c.phase {
            Phase::IdleExit(since) => since == self.now,
            _ => c.need_resched,
        }
    }

    /// The softirqs of `cpu` end, and with them the interrupt. What they leave is for `ksoftirqd`, which competes with those that timers
    /// woke in this tick.
    pub(super) fn softirqs_done(&mut self, cpu: CpuId) {
        if self.callbacks_ready(cpu) {
            self.wake_ksoftirqd(cpu);
        }
        self.heed_resched(cpu);
    }

    /// If it sleeps (`wakeup_softirqd`).
    fn wake_ksoftirqd(&mut self, cpu: CpuId) {
        if let Some(wait) = self.wakes_ksoftirqd(cpu) {
            completion::expect(self, wait);
            completion::complete_from_interrupt(self, wait);
        }
    }

    /// The idle `cpu` has softirqs for so long: it is as if it were still switching to idle.
    fn softirq_on_idle(&mut self, cpu: CpuId, time: Time) {
        let Phase::Idle(since) = self.cpus[cpu as usize].phase else { return };
        let (now, (_, joules)) = (self.now, self.end_idle(cpu, since));
        self.idle_joules += joules;
        self.cpus[cpu as usize].account(now, Account::Idle);
        self.cpus[cpu as usize].in_softirq = true;
        self.occupy(cpu, None, time);
    }
}
