//! EEVDF (`kernel/sched/fair.c`, Linux 6.6 and later) in one run queue: virtual run time, lag, deadlines, run to parity.
//!
//! From 6.12 on (`DELAY_DEQUEUE`) who goes to sleep ahead of the average stays in the queue's average, and competes until
//! it has fallen behind: then it is picked and leaves without lag. Who is woken before that goes on where it is.

use super::entity::{mul_div, Entity, Member};
use super::policy::Entering;
use super::run_queue::{Level, RunQueue};
use crate::machine::state::State;
use crate::waist::CpuId;

/// A used-up `slice` of the current member of `queue` starts a new request (`update_deadline`). Whether the CPU is to look for
/// another member: then, and from 6.12 on as soon as its slice is not protected and it is ahead (`did_preempt_short`).
#[inline]
pub(super) fn eevdf_update(current: &mut Entity, queue: &mut RunQueue, slice: i64, preempt_short: bool) -> bool {
    let used_up = current.vruntime >= current.deadline;
    if used_up {
        current.deadline = current.vruntime + current.virtual_time(slice);
        current.protected = false;
    }
    queue.base = current.vruntime;
    let is_ahead = || !current.is_eligible(queue.average(Some(&*current)).0);
    queue.members > 1 && (used_up || preempt_short && !current.protected && is_ahead())
}

impl State {
    /// Where a member enters a queue (`place_entity`): with `PLACE_LAG` its lag is kept, scaled so that entering does not shrink
    /// it. From 6.12 on a new task has half a slice to begin with (`PLACE_DEADLINE_INITIAL`), and who comes from another queue has
    /// what was left of its own (`PLACE_REL_DEADLINE`).
    #[inline(always)]
    pub(super) fn eevdf_enter(&mut self, cpu: CpuId, level: Level, member: Member, entering: Entering) {
        let (average, weight) = self.average_vruntime(cpu, level);
        let slice = self.kernel.base_slice as i64;
        let halved = entering == Entering::New && self.kernel.rules.place_deadline_initial;
        let keeps_lag = self.kernel.rules.place_lag && weight > 0;
        let entity = self.entity_mut(cpu, member);
        let lag = if keeps_lag { mul_div(entity.lag, weight + entity.share(), weight) } else { 0 };
        entity.vruntime = average - lag;
        let slice = entity.virtual_time(slice);
        entity.request(if halved { slice / 2 } else { slice });
    }

    /// The most service that anybody is owed, or owes.
    pub(super) fn most_lag(&self) -> i64 {
        (2 * self.kernel.base_slice).max(self.kernel.tick) as i64
    }

    /// Remembers the service that a member, which is about to leave, is still owed (`update_entity_lag`).
    #[inline]
    pub(super) fn store_lag(&mut self, cpu: CpuId, level: Level, member: Member) {
        if self.run_queue(cpu, level).members == 1 {
            self.entity_mut(cpu, member).lag = 0; // it is alone
            return;
        }
        let (average, _) = self.average_vruntime(cpu, level);
        let most = self.most_lag();
        let entity = self.entity_mut(cpu, member);
        entity.lag = entity.lag_behind(average, most);
    }

    /// A queued member is about to have another weight: its lag and what is left to its deadline last as long in real time as
    /// before, on a clock of another pace (`reweight_eevdf`). Where the deadline moves, the slice is no longer protected.
    pub(super) fn eevdf_reweigh(&mut self, cpu: CpuId, level: Level, member: Member, weight: i64) {
        let (average, _) = self.average_vruntime(cpu, level);
        let most = self.most_lag();
        let entity = self.entity_mut(cpu, member);
        let lag = entity.lag_behind(average, most);
        entity.vruntime = average - mul_div(lag, entity.weight, weight);
        let deadline = average + mul_div(entity.deadline - average, entity.weight, weight);
        entity.protected &= deadline == entity.deadline;
        entity.deadline = deadline;
    }

    /// Whether a member is not ahead of the average (`entity_eligible`).
    pub(super) fn is_eligible(&self, cpu: CpuId, level: Level, member: Member) -> bool {
        self.entity(cpu, member).is_eligible(self.average_vruntime(cpu, level).0)
    }

    /// The member that should run (`pick_eevdf`): of those not ahead of the average, the one with the earliest deadline;
    /// the current one, if it is not ahead, stays while its slice is protected.
    #[inline(always)]
    pub(super) fn eevdf_pick(&self, cpu: CpuId, level: Level) -> Option<Member> {
        let queue = self.run_queue(cpu, level);
        match queue.members {
            0 => None,
            1 => queue.current.or_else(|| queue.waiting.first().map(|first| first.member)),
            _ => self.eevdf_pick_among(cpu, level),
        }
    }

    #[inline(never)]
    fn eevdf_pick_among(&self, cpu: CpuId, level: Level) -> Option<Member> {
        let queue = self.run_queue(cpu, level);
        let (average, _) = self.average_vruntime(cpu, level);
        let current = queue.current.filter(|&member| self.entity(cpu, member).is_eligible(average));
        if let Some(member) =
            current.filter(|&member| self.kernel.rules.run_to_parity && self.entity(cpu, member).protected)
        {
            return Some(member);
        }
        let best = queue.waiting.iter().find(|waiting| waiting.vruntime <= average);
        match (current, best) {
            (Some(member), Some(best)) if self.entity(cpu, member).deadline < best.place.0 => current,
            (_, Some(best)) => Some(best.member),
            (current, None) => current,
        }
    }
}
