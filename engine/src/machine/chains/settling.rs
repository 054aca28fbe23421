//! What stands in the way of those who wait, seen anew when an instant is over.

use super::{Reason, Word, MOST, ROUND};
use crate::machine::state::State;
use crate::machine::task::{Status, Wait};
use crate::waist::{LockId, TaskId};

impl State {
    /// The instant is over: sees what stands in the way of those who wait from now on.
    pub(in crate::machine) fn settle_chains(&mut self) {
        while let Some(lock) = self.chains.stale.pop() {
            self.chains.locks[lock as usize].stale = false;
            if self.chains.is_waited_for(lock) {
                self.look_again(lock, 0);
            }
        }
    }

    fn pass_on(&mut self, task: TaskId, passed: u8) {
        for at in 0..self.tasks[task as usize].blocks().len() {
            let lock = self.tasks[task as usize].blocks()[at];
            self.look_again(lock, passed);
        }
    }

    /// Sees what stands in the way of those who wait for `lock`.
    fn look_again(&mut self, lock: LockId, passed: u8) {
        let held = self.in_the_way(lock);
        if held == self.chains.locks[lock as usize].held {
            return;
        }
        self.chains.book(lock, self.locks[lock as usize].class, self.now);
        self.chains.change(lock, held);
        if passed == ROUND {
            return;
        }
        for at in 0..self.chains.locks[lock as usize].blocking.len() {
            let task = self.chains.locks[lock as usize].blocking[at];
            if self.locks[lock as usize].holder != Some(task) {
                self.pass_on(task, passed + 1);
            }
        }
    }

    fn in_the_way(&mut self, lock: LockId) -> u32 {
        let l = &self.locks[lock as usize];
        let reason = match l.holder {
            Some(_) if l.held_by_device() => Reason::InDevice,
            Some(holder) => return self.doing(holder),
            None if l.readers > 0 => return self.shared(lock),
            None => Reason::Nobody,
        };
        reason as u32
    }

    /// The chain of a lock that readers have: all of them may have been given it in their sleep.
    fn shared(&mut self, lock: LockId) -> u32 {
        let given = &self.chains.locks[lock as usize].given;
        match given.first() {
            Some(&first) if given.len() == self.locks[lock as usize].readers as usize => {
                self.chains.grown(Reason::Granted as u32, Word::Site(self.tasks[first as usize].site))
            }
            _ => Reason::Readers as u32,
        }
    }

    /// The chain of what `task` does: it sleeps or spins for another lock, or sleeps for something else, or waits for a CPU, or runs.
    fn doing(&mut self, id: TaskId) -> u32 {
        let task = &self.tasks[id as usize];
        let waits = task.status == Status::Sleeping || task.spinning;
        let nearer = match task.waits.last() {
            Some(&Wait { lock, side, .. }) if waits && self.locks[lock as usize].holder != Some(id) => {
                let held = self.chains.locks[lock as usize].held;
                let class = self.locks[lock as usize].class;
                let far = self.chains.nodes[held as usize].locks >= MOST || self.is_deadlocked(id);
                self.chains.grown(if far { Reason::Farther as u32 } else { held }, Word::Lock(class, side))
            }
            Some(&Wait { lock, .. }) => self.reason(id, self.locks[lock as usize].holder == Some(id)),
            None => self.reason(id, false),
        };
        self.chains.grown(nearer, Word::Site(self.tasks[id as usize].site))
    }

    /// Whether who stands in the way of `id` waits for it in turn.
    fn is_deadlocked(&self, id: TaskId) -> bool {
        let mut holders = std::iter::successors(self.waits_behind(id), |&task| self.waits_behind(task));
        holders.by_ref().take(ROUND.into()).any(|holder| holder == id)
    }

    /// Which other task holds the lock that `id` sleeps or spins for.
    fn waits_behind(&self, id: TaskId) -> Option<TaskId> {
        let task = &self.tasks[id as usize];
        let waits = task.status == Status::Sleeping || task.spinning;
        let lock = &self.locks[task.waits.last().filter(|_| waits)?.lock as usize];
        lock.holder.filter(|&holder| holder != id && !lock.held_by_device())
    }

    fn reason(&mut self, id: TaskId, has_its_lock: bool) -> u32 {
        let task = &self.tasks[id as usize];
        let reason = match task.status {
            Status::Running => Reason::Runs,
            Status::Dead => Reason::Gone,
            Status::Runnable | Status::Sleeping if has_its_lock => Reason::Granted,
            Status::Runnable | Status::Sleeping => task.reason,
        };
        match (task.status, task.function) {
            (Status::Sleeping, function @ 1..) => self.chains.grown(reason as u32, Word::Function(function)),
            _ => reason as u32,
        }
    }

    /// The time in the chains of each class that somebody waited for; nothing where they are not recorded.
    pub(in crate::machine) fn chains_by_class(&self) -> Vec<u128> {
        let mut sums = vec![0; if self.chains.on { self.classes.len() } else { 0 }];
        self.chains.waits().for_each(|chain| sums[chain.links[0].class as usize] += u128::from(chain.time));
        sums
    }

    /// Brings all chains up to now.
    pub(in crate::machine) fn book_chains(&mut self) {
        for lock in 0..self.chains.locks.len() as LockId {
            if self.chains.is_waited_for(lock) {
                self.chains.book(lock, self.locks[lock as usize].class, self.now);
            }
        }
    }
}
