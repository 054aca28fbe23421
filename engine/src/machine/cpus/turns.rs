//! User and kernel time in turns, as one segment: a program whose page faults and calls are spread over its user time. Where a turn
//! begins no event happens, unless somebody waits for it.

use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::{Account, TaskId};

/// A turn, and how much of the present one is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    user: Time,
    kernel: Time,
    /// Own time used in the present turn.
    done: Time,
}

impl Turns {
    /// So much user time, then so much kernel time, and again.
    pub fn new(user: Time, kernel: Time) -> Self {
        Self { user, kernel, done: 0 }
    }

    fn length(&self) -> Time {
        (self.user + self.kernel).max(1)
    }

    /// How much of the first `own` time since a turn began is the kernel's.
    fn kernel_in(&self, own: Time) -> Time {
        own / self.length() * self.kernel + (own % self.length()).saturating_sub(self.user)
    }

    /// Uses up `own` time. Returns how much of it was the kernel's.
    pub fn consume(&mut self, own: Time) -> Time {
        let kernel = self.kernel_in(self.done + own) - self.kernel_in(self.done);
        self.done = (self.done + own) % self.length();
        kernel
    }

    /// How long it is, after another `own` time, until the kernel's part of the turn is over; 0 where it has not begun.
    fn left_of_kernel(&self, own: Time) -> Time {
        let done = (self.done + own) % self.length();
        if done == 0 || done < self.user {
            0
        } else {
            self.length() - done
        }
    }

    /// All time is so much longer from now on.
    pub fn stretch(&mut self, factor: f64) {
        for time in [&mut self.user, &mut self.kernel, &mut self.done] {
            *time = (*time as f64 * factor) as Time;
        }
    }
}

impl State {
    /// The running task `id` starts `count` turns, after what it owes. Returns whether they are over already.
    pub(in crate::machine) fn start_turns(&mut self, id: TaskId, count: u64, user: Time, kernel: Time) -> bool {
        if kernel > 0 {
            self.fetch_code(id, count * kernel);
        }
        let kernel = self.paces.taken(id, Account::System, kernel);
        if self.turns.len() <= id as usize {
            self.turns.resize(id as usize + 1, Turns::default());
        }
        self.turns[id as usize] = Turns::new(user, kernel);
        self.start(id, Account::User, count * (user + kernel), true)
    }

    /// Books `own` time of `id`, which was booked as user time: some of it was the kernel's.
    pub(super) fn book_turns(&mut self, id: TaskId, own: Time) {
        let kernel = self.turns[id as usize].consume(own);
        let cpu = self.tasks[id as usize].cpu;
        self.cpus[cpu as usize].rebook(kernel, Account::User, Account::System);
    }

    /// How long the segment of `id`, which is one in turns, keeps its CPU from others (with voluntary preemption).
    pub(super) fn left_of_kernel(&self, id: TaskId) -> Time {
        let task = &self.tasks[id as usize];
        let mut segment = task.segment;
        let (_, _, own) = segment.consume(self.now - task.started);
        self.turns[id as usize].left_of_kernel(own)
    }

    /// How long the segment of `id`, one in turns with so much `left`, lasts from now until somebody has to look.
    pub(super) fn until_look(&self, id: TaskId, left: Time) -> Time {
        let task = &self.tasks[id as usize];
        match self.left_of_kernel(id) {
            kernel if kernel > 0 && self.cpus[task.cpu as usize].need_resched => {
                left.min(task.segment.irq + task.segment.debt + kernel)
            }
            _ => left,
        }
    }

    /// Goes on with the segment of `id` if it has only come to the end of a turn.
    #[cold]
    pub(in crate::machine) fn begins_turn(&mut self, id: TaskId) -> bool {
        let task = &self.tasks[id as usize];
        let goes_on = self.now < task.started + task.segment.total();
        if goes_on {
            self.book_segment(id);
            self.continue_segment(id);
        }
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_time_comes_after_the_user_time_of_each_turn() {
        let mut turns = Turns::new(30, 10);
        let parts: Vec<Time> = [25, 10, 5, 45, 75].map(|own| turns.consume(own)).into();
        assert_eq!(parts, [0, 5, 5, 10, 20]);
    }

    #[test]
    fn only_the_kernels_part_of_a_turn_keeps_others_waiting() {
        let turns = Turns::new(30, 10);
        assert_eq!([0, 29, 30, 39, 40, 75].map(|own| turns.left_of_kernel(own)), [0, 0, 10, 1, 0, 5]);
        assert_eq!([0, 4, 10].map(|own| Turns::new(0, 10).left_of_kernel(own)), [0, 6, 0]);
        assert_eq!(Turns::default().left_of_kernel(5), 0);
    }
}
