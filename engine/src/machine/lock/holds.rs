//! Who has a lock, from when to when, alone or with others: what every kind of lock tells the statistics and the laws.

use crate::machine::state::{Broken, State};
use crate::machine::task::{StateTimes, Status, Wait};
use crate::machine::trace::Object;
use crate::waist::time::Time;
use crate::waist::{LockId, Side, TaskId};

impl State {
    /// `task` takes the free `lock`, which is stealing where somebody else is `first` in the queue.
    pub(in crate::machine) fn take(&mut self, lock: LockId, task: TaskId, first: Option<TaskId>) {
        let class = self.locks[lock as usize].class;
        self.classes[class as usize].steals += u64::from(first.is_some_and(|first| first != task));
        self.begin_hold(lock, task);
    }

    /// `task`, which has just taken `lock`, `owed` so much before: the hold begins when that is paid, that of the lock inside too.
    pub(in crate::machine) fn begins_later(&mut self, lock: LockId, task: TaskId, owed: Time) {
        let inner = self.locks[lock as usize].wait_lock.made();
        for lock in std::iter::once(lock).chain(inner) {
            let l = &mut self.locks[lock as usize];
            if l.holder == Some(task) {
                l.begin_later(owed);
            } else if l.readers > 0 {
                let shared = &mut self.classes[l.class as usize].hold_shared_total;
                *shared = shared.saturating_sub(owed);
            }
        }
    }

    /// `task` has failed to take `lock` at once, and waits for it.
    #[inline(always)]
    pub(in crate::machine) fn begin_wait(&mut self, task: TaskId, lock: LockId, side: Side) {
        let now = self.now;
        let l = &mut self.locks[lock as usize];
        l.mark_contended();
        let held = l.is_held();
        let class = &mut self.classes[l.class as usize];
        class.begin_wait(now);
        if class.for_io {
            self.tasks[task as usize].in_iowait = true;
        }
        self.push_wait(task, Wait { lock, side, held, since: now });
        self.note("wait", task, Object::Lock(lock));
    }

    /// `task` has the lock that it waited for last; `slept` says how it waited.
    #[inline(always)]
    pub(in crate::machine) fn end_wait(&mut self, task: TaskId, slept: bool) {
        let Some(Wait { lock, held, since, .. }) = self.pop_wait(task) else { return };
        let (l, t) = (&self.locks[lock as usize], &self.tasks[task as usize]);
        let lasted = self.now - since.max(self.window_start);
        let class = &mut self.classes[l.class as usize];
        class.end_wait(self.now, lasted, slept, held, (t.site, t.kind));
        if class.for_io {
            self.tasks[task as usize].in_iowait = false;
        }
    }

    /// `lock`, just released, becomes the property of `next`, which still sleeps or spins.
    pub(in crate::machine) fn grant(&mut self, lock: LockId, next: TaskId) {
        let mut at = self.at_lock(next, lock);
        if at.task.status == Status::Sleeping && !at.lock.is_held() {
            at.grant(next, at.task.times_at(at.now, 0));
        } else {
            self.grant_otherwise(lock, next);
        }
        self.holds(lock, next);
    }

    /// The same of one that does not sleep, or of a lock that is not free.
    #[inline(never)]
    fn grant_otherwise(&mut self, lock: LockId, next: TaskId) {
        self.held_by_nobody(lock, next);
        let times = self.times_of(next);
        self.at_lock(next, lock).grant(next, times);
    }

    /// `next`, which still sleeps, becomes one of those who hold `lock` together.
    pub(in crate::machine) fn grant_shared(&mut self, lock: LockId, next: TaskId) {
        self.begin_shared(lock, next);
        let class = &mut self.classes[self.locks[lock as usize].class as usize];
        class.handoffs += 1;
    }

    /// `waker` wakes `task`, which waits for `lock` and whose lines it may have `fetched`, and pays for it.
    #[inline(always)]
    pub(in crate::machine) fn wake_waiter(&mut self, waker: TaskId, lock: LockId, task: TaskId, fetched: bool) {
        let fetched = if fetched { self.lines_of_waiter(waker, task) } else { 0 };
        let l = &mut self.locks[lock as usize];
        self.classes[l.class as usize].wakeups += 1;
        if self.tasks[task as usize].waits.any_for(lock) {
            l.left = None; // it is not left behind
        }
        if matches!(self.tasks[task as usize].status, Status::Running | Status::Runnable) {
            self.runs(waker, |code| code.awake);
        }
        self.wake_fetched(task, Some(waker), fetched);
    }

    /// Whether `lock` was given to the running `task`; if so the task takes note, once.
    #[inline(always)]
    pub(in crate::machine) fn take_grant(&mut self, lock: LockId, task: TaskId) -> bool {
        self.at_lock(task, lock).take_grant(task)
    }

    /// `task` becomes the exclusive holder of `lock`.
    #[inline(always)]
    pub(in crate::machine) fn begin_hold(&mut self, lock: LockId, task: TaskId) {
        let taken = self.at_lock(task, lock).take(task);
        self.has_taken(lock, task, taken);
    }

    /// The same where it has `taken` it already ([`super::at::AtLock::take`]), or could not.
    #[inline(always)]
    pub(in crate::machine) fn has_taken(&mut self, lock: LockId, task: TaskId, taken: bool) {
        if !taken {
            self.begin_hold_of_other(lock, task);
        }
        self.holds(lock, task);
    }

    #[inline(always)]
    fn holds(&mut self, lock: LockId, task: TaskId) {
        self.chain_has_holder(lock);
        self.note("acquire", task, Object::Lock(lock));
    }

    /// The same of a task that does not run, or of a lock that is not free.
    #[inline(never)]
    fn begin_hold_of_other(&mut self, lock: LockId, task: TaskId) {
        self.held_by_nobody(lock, task);
        let times = self.times_of(task);
        self.at_lock(task, lock).begin_hold(task, times);
    }

    /// The law that `task`, which takes `lock`, is alone with it.
    #[inline(always)]
    fn held_by_nobody(&mut self, lock: LockId, task: TaskId) {
        if self.locks[lock as usize].is_held() {
            self.intrusion(task, lock);
        }
    }

    /// `task` becomes one of the readers that hold `lock`.
    pub(in crate::machine) fn begin_shared(&mut self, lock: LockId, task: TaskId) {
        self.book_readers(lock);
        let (l, t) = (&mut self.locks[lock as usize], &self.tasks[task as usize]);
        l.readers += 1;
        let stats = &mut self.classes[l.class as usize];
        stats.at(t.site, t.kind).acquired += 1;
        stats.acquired_shared += 1;
        if l.holder.is_some() {
            self.intrusion(task, lock);
        }
        self.chain_has_reader(lock, task);
        self.note("acquire shared", task, Object::Lock(lock));
    }

    /// `task` is no longer one of the readers that hold `lock`.
    pub(in crate::machine) fn end_shared(&mut self, lock: LockId, task: TaskId) {
        self.book_readers(lock);
        self.locks[lock as usize].readers -= 1;
        if self.locks[lock as usize].readers == 0 {
            self.leave(lock, task);
        }
        self.chain_changes(lock);
        self.note("release shared", task, Object::Lock(lock));
    }

    /// `task` begins to read what `lock` guards, beside whoever holds it: a reader that nobody waits for.
    pub(in crate::machine) fn begin_reading(&mut self, lock: LockId, task: TaskId) {
        let (class, t) = (self.locks[lock as usize].class, &self.tasks[task as usize]);
        let class = &mut self.classes[class as usize];
        class.at(t.site, t.kind).acquired += 1;
        class.acquired_shared += 1;
        self.note("acquire shared", task, Object::Lock(lock));
    }

    /// `task` has read it.
    pub(in crate::machine) fn end_reading(&mut self, lock: LockId, task: TaskId) {
        self.note("release shared", task, Object::Lock(lock));
    }

    fn book_readers(&mut self, lock: LockId) {
        let l = &mut self.locks[lock as usize];
        let (all, any) = l.take_shared(self.now, self.window_start);
        let stats = &mut self.classes[l.class as usize];
        stats.hold_shared_total += all;
        stats.held_shared += any;
    }

    #[cold]
    fn intrusion(&mut self, task: TaskId, lock: LockId) {
        let l = &self.locks[lock as usize];
        let present = l
            .holder
            .map_or_else(|| format!("{} readers hold it", l.readers), |t| format!("{} holds it", self.called(t)));
        let (who, name) = (self.called(task), self.name_of(Object::Lock(lock)));
        let detail = format!("{who} takes {name} at {} ps while {present}", self.now);
        self.broken.push(Broken { law: "mutual exclusion", detail });
    }

    /// The time by state of `task` as it stands.
    pub(in crate::machine) fn times_of(&self, task: TaskId) -> StateTimes {
        let t = &self.tasks[task as usize];
        let idle = if t.status == Status::Runnable { self.idle_clock(t.cpu) } else { 0 }; // nobody else's CPU matters
        t.times_at(self.now, idle)
    }

    /// The exclusive hold of `lock` ends, whoever ends it.
    #[inline(always)]
    pub(in crate::machine) fn end_hold(&mut self, lock: LockId) {
        let Some(holder) = self.locks[lock as usize].holder else { return self.nobody_held(lock) };
        let waited_for = self.chains.is_waited_for(lock);
        if waited_for {
            self.unblock(lock);
        }
        let mut at = self.at_lock(holder, lock);
        if !at.end_running_hold(holder) && !at.end_hold_of_running(holder) {
            self.end_other_hold(lock, holder);
        }
        if waited_for {
            self.chain_changes(lock);
        }
        self.note("release", holder, Object::Lock(lock));
    }

    /// The running `task` gives back `lock`, which is done if `given_back` says so ([`super::at::AtLock::give_back`]) and nobody's chain changes.
    #[inline(always)]
    pub(in crate::machine) fn has_given_back(&mut self, lock: LockId, task: TaskId, given_back: bool) {
        if given_back {
            self.note("release", task, Object::Lock(lock));
        } else {
            self.end_hold(lock);
        }
    }

    /// The same where the holder does not run, or its time is scaled.
    #[inline(never)]
    fn end_other_hold(&mut self, lock: LockId, holder: TaskId) {
        let l = &self.locks[lock as usize];
        if l.scaled {
            self.leave_scaled_hold(holder, u32::from(!l.held_by_device()));
        }
        self.book_hold(lock, holder);
        self.at_lock(holder, lock).end_booked_hold(holder);
    }

    #[cold]
    fn nobody_held(&mut self, lock: LockId) {
        let name = self.name_of(Object::Lock(lock));
        let detail = format!("{name} is released at {} ps and nobody holds it", self.now);
        self.broken.push(Broken { law: "mutual exclusion", detail });
    }

    /// Books the exclusive hold of `lock` by `holder` up to now.
    fn book_hold(&mut self, lock: LockId, holder: TaskId) {
        if !self.at_lock(holder, lock).book_hold_of_running() {
            let times = self.times_of(holder);
            self.at_lock(holder, lock).book_hold(&times);
        }
    }

    /// Books all holds up to now: the window begins or ends.
    pub(in crate::machine) fn book_holds(&mut self) {
        for lock in 0..self.locks.len() as LockId {
            self.book_readers(lock);
            if let Some(holder) = self.locks[lock as usize].holder {
                self.book_hold(lock, holder);
            }
        }
    }

    /// From now on a device holds `lock`, which a task has taken.
    pub(in crate::machine) fn hand_to_device(&mut self, lock: LockId) {
        let Some(holder) = self.locks[lock as usize].holder else { return };
        let times = self.times_of(holder);
        self.leave_scaled_hold(holder, u32::from(self.locks[lock as usize].scaled));
        let l = &mut self.locks[lock as usize];
        l.book(&times);
        l.hand_to_device();
        self.chain_changes(lock);
        self.note("hand to device", holder, Object::Lock(lock));
    }
}
