//! What a process uses up while it works: CPU time, and memory, whose pages it faults in one by one and frees when it ends.

use crate::lru::Lru;
use crate::waist::{Machine, Time};
use std::rc::Rc;

/// CPU time is used in turns, user time first, then the page fault or the system calls that go with it: a fault ends where the task
/// goes back to user mode and gives way. Where a process faults in nothing they have this length.
const TURN: Time = 200 * crate::waist::time::US;

/// Bytes of data and of code of its own that a process uses.
#[derive(Clone, Copy)]
pub struct Footprint {
    pub data: f64,
    pub code: f64,
}

impl Footprint {
    pub const NONE: Self = Self { data: 0.0, code: 0.0 };

    /// A part of it.
    pub fn times(self, part: f64) -> Self {
        Self { data: self.data * part, code: self.code * part }
    }

    fn use_up<M: Machine>(self, m: &M) {
        if self.data >= 1.0 {
            m.use_memory(self.data as u64);
        }
        if self.code >= 1.0 {
            m.use_code(self.code as u64);
        }
    }
}

/// One process's CPU time and memory, used up to given fractions of it.
pub struct Progress {
    lru: Rc<Lru>,
    user: Time,
    kernel: Time,
    footprint: Footprint,
    pages: u64,
    faulted: u64,
    done: f64,
}

impl Progress {
    /// Of a process that uses so much user and kernel time, bytes of caches, and pages of its own.
    pub fn new(lru: Rc<Lru>, (user, kernel): (Time, Time), footprint: Footprint, pages: u64) -> Self {
        Self { lru, user, kernel, footprint, pages, faulted: 0, done: 0.0 }
    }

    /// Runs until `fraction` of the whole is done. The page that fills its CPU's batch puts the batch on the list.
    pub async fn to<M: Machine>(&mut self, m: &M, fraction: f64) {
        let part = (fraction - self.done).max(0.0);
        self.done = self.done.max(fraction);
        let (mut user, mut kernel) = ((self.user as f64 * part) as Time, (self.kernel as f64 * part) as Time);
        self.footprint.times(part).use_up(m);
        let mut pages = (self.pages as f64 * self.done).round() as u64 - self.faulted;
        self.faulted += pages;
        while pages > 0 {
            let few = self.lru.room(m).min(pages);
            let now = (user * few / pages, kernel * few / pages);
            run(m, now.0, now.1, few).await;
            m.exception("page fault");
            self.lru.add(m, few).await;
            m.return_from_exception();
            (user, kernel, pages) = (user - now.0, kernel - now.1, pages - few);
        }
        if user + kernel > 0 {
            run(m, user, kernel, 1).await;
        }
    }

    /// Runs to the end and gives its memory back.
    pub async fn exit<M: Machine>(mut self, m: &M) {
        self.to(m, 1.0).await;
        self.lru.exit_mmap(m, self.faulted).await;
    }
}

async fn run<M: Machine>(m: &M, user: Time, kernel: Time, faults: u64) {
    let turns = (user + kernel).div_ceil(TURN).max(faults);
    m.run_turns(turns, user / turns, kernel / turns).await;
}
