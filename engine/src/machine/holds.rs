//! Who has a lock, from when to when, alone or with others: what every kind of lock tells the statistics and the laws.

use super::lock::{LockId, LockKind};
use super::state::{Broken, State};
use super::task::{StateTimes, TaskId};
use super::time::Time;
use super::trace::Object;
use crate::spec::Preemption;

impl State {
    /// `task` takes the free `lock`, which is stealing where somebody else is `first` in the queue.
    pub(super) fn take(&mut self, lock: LockId, task: TaskId, first: Option<TaskId>) {
        let class = self.locks[lock as usize].class;
        self.classes[class as usize].steals += u64::from(first.is_some_and(|first| first != task));
        self.begin_hold(lock, task);
    }

    /// `task`, which has just taken `lock`, `owed` so much before: the hold begins when that is paid, that of the lock inside too.
    #[cold]
    pub(super) fn begins_later(&mut self, lock: LockId, task: TaskId, owed: Time) {
        let inner = self.locks[lock as usize].wait_lock;
        for lock in std::iter::once(lock).chain(inner) {
            let l = &mut self.locks[lock as usize];
            if l.holder == Some(task) {
                l.held_since += owed;
            } else if l.readers > 0 {
                let shared = &mut self.classes[l.class as usize].hold_shared_total;
                *shared = shared.saturating_sub(owed);
            }
        }
    }

    /// `lock`, just released, becomes the property of `next`, which still sleeps or spins.
    pub(super) fn grant(&mut self, lock: LockId, next: TaskId) {
        self.begin_hold(lock, next);
        self.locks[lock as usize].granted = Some(next);
        let class = self.locks[lock as usize].class;
        self.classes[class as usize].handoffs += 1;
    }

    /// Whether `lock` was given to `task`; if so the task takes note, once.
    pub(super) fn take_grant(&mut self, lock: LockId, task: TaskId) -> bool {
        let granted = self.locks[lock as usize].granted == Some(task);
        if granted {
            self.locks[lock as usize].granted = None;
        }
        granted
    }

    /// The task that `lock` was granted to has come to run.
    pub(super) fn granted_task_runs(&mut self, lock: LockId) {
        let l = &self.locks[lock as usize];
        let waited = self.now - l.held_since.max(self.window_start);
        self.classes[l.class as usize].grant_to_run += waited;
    }

    /// `task` becomes the exclusive holder of `lock`.
    pub(super) fn begin_hold(&mut self, lock: LockId, task: TaskId) {
        let times = self.holder_times(lock, task);
        let l = &mut self.locks[lock as usize];
        if l.holder.is_some() || l.readers > 0 {
            let present = l.holder.map_or_else(|| format!("{} readers hold it", l.readers), |t| format!("task {t} holds it"));
            self.intrusion(task, lock, &present);
        }
        let l = &mut self.locks[lock as usize];
        l.begin_hold(task, self.now, times);
        self.tasks[task as usize].scaled_holds += u32::from(l.scaled);
        self.classes[l.class as usize].acquired += 1;
        self.note("acquire", task, Object::Lock(lock));
    }

    /// `task` becomes one of the readers that hold `lock`.
    pub(super) fn begin_shared(&mut self, lock: LockId, task: TaskId) {
        let l = &mut self.locks[lock as usize];
        let stats = &mut self.classes[l.class as usize];
        l.book_readers(self.now, self.window_start, stats);
        l.readers += 1;
        stats.acquired += 1;
        stats.acquired_shared += 1;
        if let Some(writer) = l.holder {
            self.intrusion(task, lock, &format!("task {writer} holds it"));
        }
        self.note("acquire shared", task, Object::Lock(lock));
    }

    /// `task` is no longer one of the readers that hold `lock`.
    pub(super) fn end_shared(&mut self, lock: LockId, task: TaskId) {
        let l = &mut self.locks[lock as usize];
        l.book_readers(self.now, self.window_start, &mut self.classes[l.class as usize]);
        l.readers -= 1;
        self.note("release shared", task, Object::Lock(lock));
    }

    #[cold]
    fn intrusion(&mut self, task: TaskId, lock: LockId, present: &str) {
        let name = self.name_of(Object::Lock(lock));
        let detail = format!("task {task} takes {name} at {} ps while {present}", self.now);
        self.broken.push(Broken { law: "mutual exclusion", detail });
    }

    /// The holder's time by state. Who holds a spinlock never leaves its CPU: its times are the clock.
    fn holder_times(&self, lock: LockId, holder: TaskId) -> StateTimes {
        match self.locks[lock as usize].kind {
            LockKind::Spin(_) if self.kernel.preemption != Preemption::Host => StateTimes { running: self.now, ..StateTimes::default() },
            _ => self.tasks[holder as usize].times_at(self.now),
        }
    }

    /// The exclusive hold of `lock` ends, whoever ends it.
    pub(super) fn end_hold(&mut self, lock: LockId) {
        let l = &self.locks[lock as usize];
        let Some(holder) = l.holder else {
            let name = self.name_of(Object::Lock(lock));
            let detail = format!("{name} is released at {} ps and nobody holds it", self.now);
            self.broken.push(Broken { law: "mutual exclusion", detail });
            return;
        };
        let own = u32::from(l.scaled && !l.held_by_device());
        let times = self.holder_times(lock, holder);
        self.leave_scaled_hold(holder, own);
        let l = &mut self.locks[lock as usize];
        l.end_hold(self.now, self.window_start, times, &mut self.classes[l.class as usize]);
        self.note("release", holder, Object::Lock(lock));
    }

    /// From now on a device holds `lock`, which a task has taken.
    pub(super) fn hand_to_device(&mut self, lock: LockId) {
        let Some(holder) = self.locks[lock as usize].holder else { return };
        let times = self.tasks[holder as usize].times_at(self.now);
        self.leave_scaled_hold(holder, u32::from(self.locks[lock as usize].scaled));
        self.locks[lock as usize].hand_to_device(self.now, times);
    }
}
