//! What competes for a CPU: a task, or the group of the load's tasks on that CPU. Weights are those of `kernel/sched/core.c`.

use super::load::Average;
use super::waiters::Place;
use crate::waist::TaskId;

/// The weight of nice level 0, at the resolution that weights have on 64-bit kernels (`scale_load`).
pub const NICE_0: i64 = 1 << 20;

/// Weights of nice levels -20 to 19 (`sched_prio_to_weight`): each level is a tenth of a CPU more or less.
const WEIGHTS: [i64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, // from -20
    9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277, // from -10
    1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, // from 0
    110, 87, 70, 56, 45, 36, 29, 23, 18, 15, // from 10
];

/// The weight of a nice level.
pub fn weight_of(nice: i32) -> i64 {
    WEIGHTS[(nice.clamp(-20, 19) + 20) as usize] << 10
}

/// What a run queue consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// A task.
    Task(TaskId),
    /// The load's group.
    Group,
}

/// The state of a member; virtual times in ps, at the pace of nice level 0.
#[derive(Clone, Copy, Debug)]
pub struct Entity {
    /// Its weight (`load.weight`).
    pub weight: i64,
    /// CPU time received, on the queue's virtual clock.
    pub vruntime: i64,
    /// When its current request is to be fulfilled, on the same clock.
    pub deadline: i64,
    /// How much service it was owed when it left the queue.
    pub lag: i64,
    /// How much of its request was left when it left the queue for another one (`rel_deadline`).
    pub left_of_slice: Option<i64>,
    /// CPU time since it was picked.
    pub ran: i64,
    /// It has been picked and has not used up its slice since (run to parity).
    pub protected: bool,
    /// It is in its queue or runs.
    pub queued: bool,
    /// It sleeps and is in its queue until it is no longer ahead of the average.
    pub delayed: bool,
    /// Where it stands while it waits in its queue.
    pub place: Option<Place>,
    /// How much it wants to run and runs.
    pub load: Average,
}

impl Entity {
    /// One of a weight that is in no queue.
    pub fn new(weight: i64, load: Average) -> Self {
        Self {
            weight,
            vruntime: 0,
            deadline: 0,
            lag: 0,
            left_of_slice: None,
            ran: 0,
            protected: false,
            queued: false,
            delayed: false,
            place: None,
            load,
        }
    }

    /// It comes into a queue with what was left of its request, or else with one of so much virtual time.
    pub fn request(&mut self, slice: i64) {
        self.deadline = self.vruntime + self.left_of_slice.take().unwrap_or(slice);
    }

    /// Whether it is not ahead of the average of its queue (`entity_eligible`).
    pub fn is_eligible(&self, average: i64) -> bool {
        self.vruntime <= average
    }

    /// `time` on the virtual clock of its queue (`calc_delta_fair`).
    #[inline]
    pub fn virtual_time(&self, time: i64) -> i64 {
        if self.weight == NICE_0 {
            time
        } else {
            mul_div(time, NICE_0, self.weight)
        }
    }

    /// The service that it is owed where the `average` of its queue is this, `most` at most (`entity_lag`).
    pub fn lag_behind(&self, average: i64, most: i64) -> i64 {
        let lag = average - self.vruntime;
        if lag == 0 {
            return 0; // it is alone
        }
        let most = self.virtual_time(most);
        lag.clamp(-most, most)
    }

    /// Its weight where weights are summed (`scale_load_down`).
    pub fn share(&self) -> i64 {
        (self.weight >> 10).max(2)
    }
}

/// `a * b / c`, rounded toward zero.
#[inline]
pub fn mul_div(a: i64, b: i64, c: i64) -> i64 {
    let product = i128::from(a) * i128::from(b);
    match i64::try_from(product) {
        Ok(product) => product / c,
        Err(_) => (product / i128::from(c)) as i64,
    }
}
