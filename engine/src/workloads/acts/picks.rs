//! The mutex of a set of files of filebench (`fs_pick_lock` of its fileset.c, 1.5): all its threads take it to choose a file and to give
//! it back.

use super::{Act, Actor};
use crate::filesystems::Filesystem;
use crate::spec::WorkloadSpec;
use crate::waist::time::from_ns;
use crate::waist::{Account, LockId, Machine, Side, Time};

/// How long it is held; and the mutex, once it is made.
#[derive(Clone, Copy, Debug)]
pub struct Picks {
    /// A search in a tree of the set's files (`fileset_find_entry`).
    pick: Time,
    /// A file is no longer busy (`fileset_unbusy`).
    give_back: Time,
}

impl Picks {
    /// If a mix chooses files under a mutex; `speed` multiplies its times.
    pub fn of(w: &WorkloadSpec, speed: f64) -> Option<Self> {
        let time = |name| from_ns(w.number(name) * speed);
        (w.number("pick_ns") > 0.0).then(|| Self { pick: time("pick_ns"), give_back: time("give_back_ns") })
    }

    /// The mutex of a set.
    pub fn new_lock<M: Machine>(m: &M) -> LockId {
        m.new_lock(m.class("fs_pick_lock", "user.pick_lock"))
    }

    /// How long it is held before an operation, and each time after it: who makes or removes a file moves it to another tree
    /// (`fileset_move_entry`), who closes one comes again.
    fn times(self, act: Act) -> (Option<Time>, [Option<Time>; 2]) {
        let (pick, back) = (Some(self.pick), Some(self.give_back));
        match act {
            Act::Create => (pick, [pick, back]),
            Act::Unlink => (pick, [pick, None]),
            Act::Open | Act::OpenRdwr | Act::OpenCreat => (pick, [back, back]),
            Act::Stat => (pick, [back, None]),
            _ => (None, [None, None]), // by an open file
        }
    }
}

impl<M: Machine, F: Filesystem<M>> Actor<M, F> {
    /// The same one, which chooses its files so.
    pub fn picking(self, picks: Option<(Picks, LockId)>) -> Self {
        Self { picks, ..self }
    }

    /// Chooses a file.
    pub(super) async fn pick(&self, act: Act) {
        if let Some((picks, lock)) = self.picks {
            self.hold(lock, picks.times(act).0).await;
        }
    }

    /// Gives it back.
    pub(super) async fn give_back(&self, act: Act) {
        if let Some((picks, lock)) = self.picks {
            for time in picks.times(act).1 {
                self.hold(lock, time).await;
            }
        }
    }

    async fn hold(&self, lock: LockId, time: Option<Time>) {
        let Some(time) = time else { return };
        self.m.lock(lock, Side::Write).await;
        self.m.run(Account::User, time).await;
        self.m.unlock(lock, Side::Write).await;
    }
}
