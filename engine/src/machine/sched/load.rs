//! PELT (`kernel/sched/pelt.c`): how much somebody has wanted to run, and has run, lately. What was 32 ms ago counts half.
//!
//! Time is cut into periods of 1024 units of 1024 ns. The arithmetic is the kernel's, in whole numbers.

use crate::waist::time::{Time, NS};

/// The sum of a history that was always on (`LOAD_AVG_MAX`).
const MOST: u64 = 47_742;
/// Units of a period.
const PERIOD: u64 = 1024;
const UNIT: Time = 1024 * NS;
/// Periods in which the past loses half of its weight.
const HALF_LIFE: u64 = 32;

/// `y^n * (2^32 - 1)` for n below the half-life, where y^32 = 1/2 (`runnable_avg_yN_inv`).
#[rustfmt::skip]
const DECAY: [u32; HALF_LIFE as usize] = [
    0xffff_ffff, 0xfa83_b2da, 0xf525_7d14, 0xefe4_b99a, 0xeac0_c6e6, 0xe5b9_06e6, 0xe0cc_deeb, 0xdbfb_b796,
    0xd744_fcc9, 0xd2a8_1d91, 0xce24_8c14, 0xc9b9_bd85, 0xc567_2a10, 0xc12c_4cc9, 0xbd08_a39e, 0xb8fb_af46,
    0xb504_f333, 0xb123_f581, 0xad58_3ee9, 0xa9a1_5ab4, 0xa5fe_d6a9, 0xa270_4302, 0x9ef5_325f, 0x9b8d_39b9,
    0x9837_f050, 0x94f4_efa8, 0x91c3_d373, 0x8ea4_398a, 0x8b95_c1e3, 0x8898_0e80, 0x85aa_c367, 0x82cd_8698,
];

/// What some periods leave of the past (`decay_load`): y to their power.
#[derive(Clone, Copy)]
struct Decay {
    halvings: u64,
    factor: u32,
}

impl Decay {
    #[inline]
    fn over(periods: u64) -> Self {
        let (halvings, rest) = (periods / HALF_LIFE, periods % HALF_LIFE);
        if halvings >= 63 {
            return Self { halvings: 63, factor: 0 };
        }
        Self { halvings, factor: DECAY[rest as usize] }
    }

    #[inline]
    fn of(self, value: u64) -> u64 {
        ((u128::from(value >> self.halvings) * u128::from(self.factor)) >> 32) as u64
    }
}

/// The unit of time that has begun at `now`: averages go by whole units.
pub fn unit_at(now: Time) -> u64 {
    now / UNIT
}

/// Averages of a member or a run queue (`sched_avg`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Average {
    /// Up to which unit of time it is complete. Periods begin at multiples of [`PERIOD`].
    updated: u64,
    load_sum: u64,
    runnable_sum: u64,
    running_sum: u64,
    /// Weight times the share of the time in which it was runnable (`load_avg`).
    pub load: u64,
    /// 1024 times the share of the time in which it ran (`util_avg`).
    pub utilization: u64,
    /// 1024 times the share of the time in which it ran or waited for the CPU; a queue's is the sum of its tasks (`runnable_avg`).
    pub runnable: u64,
}

/// What a member or a run queue was in the time that is added.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// 1 if the member was in its queue; of a queue the sum of its members' weights.
    pub load: u64,
    /// How many tasks ran or waited.
    pub tasks: u64,
    /// Whether it ran.
    pub running: bool,
}

impl Wanted {
    /// A member that is in no queue, or a queue without members.
    pub const NOTHING: Self = Self { load: 0, tasks: 0, running: false };
    /// A member that waits.
    pub const WAITS: Self = Self { load: 1, tasks: 1, running: false };
    /// A member that runs.
    pub const RUNS: Self = Self { load: 1, tasks: 1, running: true };
}

/// What happens to a group's load.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// A member of this sum has come.
    Came(u64),
    /// One has gone; the sum that the others have on average.
    Went(u64),
}

impl Average {
    /// A new task's: seen as heavy until it has shown what it is (`init_entity_runnable_average`).
    pub fn of_new(weight: u64) -> Self {
        Self { load: weight, ..Self::default() }
    }

    /// The longest history that there can be at this point of the period (`get_pelt_divider`).
    fn divider(&self) -> u64 {
        MOST - PERIOD + self.updated % PERIOD
    }

    /// Until the `unit` that has begun ([`unit_at`]) it was as `state` says. Whether a period has ended, so that there are new
    /// averages: see [`Average::average`].
    #[inline(always)]
    #[must_use]
    pub fn update(&mut self, unit: u64, state: Wanted) -> bool {
        if unit <= self.updated {
            return false;
        }
        let before = std::mem::replace(&mut self.updated, unit);
        if before / PERIOD == unit / PERIOD {
            self.add(unit - before, state);
            return false;
        }
        let counted = self.decay(before, unit);
        self.add(counted, state);
        true
    }

    /// Ends the periods that were completed between two units of time. What these units count then.
    #[cold]
    fn decay(&mut self, before: u64, unit: u64) -> u64 {
        let begun = before % PERIOD;
        let decay = Decay::over(unit / PERIOD - before / PERIOD);
        self.load_sum = decay.of(self.load_sum);
        self.runnable_sum = decay.of(self.runnable_sum);
        self.running_sum = decay.of(self.running_sum);
        decay.of(PERIOD - begun) + (MOST - decay.of(MOST) - PERIOD) + unit % PERIOD
    }

    #[inline(always)]
    fn add(&mut self, units: u64, state: Wanted) {
        self.load_sum += state.load * units;
        self.runnable_sum += (state.tasks * units) << 10;
        if state.running && state.load > 0 {
            self.running_sum += units << 10;
        }
    }

    /// The averages at the end of a period. `weight` is what a member's average counts.
    #[cold]
    pub fn average(&mut self, weight: u64) {
        let divider = self.divider();
        self.load = weight * self.load_sum / divider;
        self.utilization = self.running_sum / divider;
        self.runnable = self.runnable_sum / divider;
    }

    /// Makes it go with the periods of `queue`, which its member joins (`attach_entity_load_avg`).
    pub fn align(&mut self, queue: &Self, weight: u64) {
        self.updated = queue.updated;
        let divider = self.divider();
        self.running_sum = self.utilization * divider;
        self.runnable_sum = self.runnable * divider;
        self.load_sum = (self.load * divider / weight).max(1);
    }

    /// What a member of a queue brings (`attach_entity_load_avg`).
    pub fn attach(&mut self, member: &Self, weight: u64) {
        self.load += member.load;
        self.load_sum += weight * member.load_sum;
        self.attach_use(member);
    }

    /// What a member of a queue takes with it (`detach_entity_load_avg`).
    pub fn detach(&mut self, member: &Self, weight: u64) {
        self.take_load(member, weight);
        self.detach_use(member);
    }

    /// The running and waiting time of a member of the group, in the queue that the group is in (`update_tg_cfs_util`,
    /// `update_tg_cfs_runnable`).
    pub fn attach_use(&mut self, member: &Self) {
        self.utilization += member.utilization;
        self.running_sum += member.running_sum;
        self.runnable += member.runnable;
        self.runnable_sum += member.runnable_sum;
    }

    /// The opposite of [`Average::attach_use`].
    pub fn detach_use(&mut self, member: &Self) {
        self.utilization = self.utilization.saturating_sub(member.utilization);
        self.running_sum = self.running_sum.saturating_sub(member.running_sum).max(self.utilization * (MOST - PERIOD));
        self.runnable = self.runnable.saturating_sub(member.runnable);
        self.runnable_sum = self.runnable_sum.saturating_sub(member.runnable_sum).max(self.runnable * (MOST - PERIOD));
    }

    /// Load has come to a group (`change` of its sum), or gone from it (and leaves `rest`, that of its members on average): so has
    /// it to the group's entity, which is `member` of this queue and weighs `weight` (`update_tg_cfs_load`).
    pub fn propagate(&mut self, member: &mut Self, weight: u64, change: Change) {
        let divider = self.divider();
        let runnable = match change {
            Change::Came(sum) => (member.load_sum + sum).min(divider),
            Change::Went(rest) => member.load_sum.min(rest),
        };
        let runnable = runnable.max(member.running_sum >> 10);
        self.take_load(member, weight);
        (member.load_sum, member.load) = (runnable, weight * runnable / divider);
        self.load += member.load;
        self.load_sum += weight * runnable;
    }

    /// The sum of a member of this group's queue on average, if these weigh so much together.
    pub fn of_members(&self, weight: u64) -> u64 {
        self.load_sum.checked_div(weight).unwrap_or(0)
    }

    /// What a member adds to the sum of its group's queue, before weights.
    pub fn sum(&self) -> u64 {
        self.load_sum
    }

    fn take_load(&mut self, member: &Self, weight: u64) {
        self.load = self.load.saturating_sub(member.load);
        self.load_sum = self.load_sum.saturating_sub(weight * member.load_sum).max(self.load * (MOST - PERIOD));
    }

    /// A member's weight changes from `old` to `new` (`reweight_entity`).
    pub fn reweigh(&mut self, member: &mut Self, old: u64, new: u64) {
        self.take_load(member, old);
        member.load = new * member.load_sum / member.divider();
        self.load += member.load;
        self.load_sum += new * member.load_sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_the_powers_of_the_half_life() {
        for (n, &factor) in DECAY.iter().enumerate() {
            assert_eq!(factor, (f64::from(u32::MAX) * 0.5f64.powf(n as f64 / HALF_LIFE as f64)) as u32, "y^{n}");
        }
    }

    #[test]
    fn what_was_long_ago_counts_nothing() {
        assert_eq!(Decay::over(HALF_LIFE).of(MOST), MOST / 2 - 1);
        assert_eq!(Decay::over(HALF_LIFE * 63 + 1).of(u64::MAX), 0);
        let mut average = Average::default();
        assert!(average.update(3_000_000, Wanted { load: 1024, tasks: 1, running: true }));
        assert_eq!(average.load_sum, 1024 * average.divider());
    }
}
