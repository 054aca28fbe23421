//! A task and a lock that it takes or releases, with all that most steps of that need: looked up once.

use super::Lock;
use crate::machine::caches::line::Line;
use crate::machine::cpus::topology::Topology;
use crate::machine::locks::family::InBody;
use crate::machine::locks::spinlock::Spinlock;
use crate::machine::state::State;
use crate::machine::statistics::ClassStats;
use crate::machine::task::{StateTimes, Status, Task};
use crate::waist::time::Time;
use crate::waist::{Access, LockId, TaskId};

/// See [`State::at_lock`].
pub(in crate::machine) struct AtLock<'a> {
    pub task: &'a mut Task,
    pub lock: &'a mut Lock,
    pub line: &'a mut Line,
    pub classes: &'a mut [ClassStats],
    topology: &'a Topology,
    pub now: Time,
    window: Time,
}

impl State {
    /// The running `task` at `lock`.
    #[inline(always)]
    pub(in crate::machine) fn at_lock(&mut self, task: TaskId, lock: LockId) -> AtLock<'_> {
        let lock = &mut self.locks[lock as usize];
        AtLock {
            task: &mut self.tasks[task as usize],
            line: &mut self.lock_lines[lock.lies_in as usize],
            lock,
            classes: &mut self.classes,
            topology: &self.topology,
            now: self.now,
            window: self.window_start,
        }
    }
}

impl AtLock<'_> {
    /// The task accesses the line; the cost is added to what it owes.
    #[inline(always)]
    pub fn touch(&mut self, access: Access) {
        self.task.access(self.topology, self.line, self.now, access);
    }

    /// Whether the task can read the line without fetching it.
    #[inline(always)]
    pub fn has_copy(&self) -> bool {
        self.line.has_copy(self.task.cpu)
    }

    /// The state of the lock, which is a spinlock.
    #[inline(always)]
    pub fn spinlock(&mut self) -> &mut Spinlock {
        Spinlock::in_body(&mut self.lock.body)
    }

    /// The task, of this number, becomes the exclusive holder, if it runs. Whether it does.
    #[inline(always)]
    pub fn begin_running_hold(&mut self, number: TaskId) -> bool {
        let runs = self.task.status == Status::Running;
        if runs {
            self.begin_hold(number, StateTimes { since: self.now, ..self.task.times });
        }
        runs
    }

    /// The running task, of this number, takes the lock, which is free. Whether it is, and the task runs.
    #[inline(always)]
    pub fn take(&mut self, number: TaskId) -> bool {
        !self.lock.is_held() && self.begin_running_hold(number)
    }

    /// The task, of this number, gives back the lock that it has, if it has only run with it. Whether it has.
    #[inline(always)]
    pub fn give_back(&mut self, number: TaskId) -> bool {
        self.lock.holder == Some(number) && self.end_running_hold(number)
    }

    /// The lock becomes the property of the task, of this number, which still sleeps or spins; its times are these.
    #[inline(always)]
    pub fn grant(&mut self, number: TaskId, times: StateTimes) {
        self.begin_hold(number, times);
        (self.lock.granted, self.lock.left) = (Some(number), None);
        self.classes[self.lock.class as usize].handoffs += 1;
    }

    /// Whether the lock was given to the running task, of this number, which then takes note, once.
    #[inline(always)]
    pub fn take_grant(&mut self, number: TaskId) -> bool {
        let given = self.lock.granted == Some(number);
        if given {
            self.lock.book(&StateTimes { since: self.now, ..self.task.times });
            self.lock.granted = None;
            let waited = self.now - self.lock.held_since.max(self.window);
            self.classes[self.lock.class as usize].granted_task_runs(self.task.kind, waited);
        }
        given
    }

    /// The task becomes the exclusive holder; its times are these.
    #[inline(always)]
    pub fn begin_hold(&mut self, number: TaskId, times: StateTimes) {
        self.lock.begin_hold(number, times);
        self.task.scaled_holds += u32::from(self.lock.scaled);
        self.classes[self.lock.class as usize].at(self.task.site, self.task.kind).acquired += 1;
    }

    /// Books the exclusive hold of the task, if it has only run with the lock. Whether it has.
    #[inline(always)]
    fn book_running_hold(&mut self) -> bool {
        let only_ran = self.task.status == Status::Running && self.lock.only_ran(&self.task.times);
        if only_ran {
            let span = self.lock.book_running(self.now);
            self.classes[self.lock.class as usize].end_running_hold(self.task.kind, self.lock.is_contended(), span);
        }
        only_ran
    }

    /// Books the exclusive hold of the task, if it runs. Whether it does.
    #[inline]
    pub fn book_hold_of_running(&mut self) -> bool {
        let runs = self.task.status == Status::Running;
        if runs && !self.book_running_hold() {
            self.book_hold(&StateTimes { since: self.now, ..self.task.times });
        }
        runs
    }

    /// Books the exclusive hold of the task, whose times are these.
    #[inline]
    pub fn book_hold(&mut self, times: &StateTimes) {
        let hold = self.lock.book_all(times);
        let lasted = self.now.saturating_sub(self.lock.held_since.max(self.window));
        let class = &mut self.classes[self.lock.class as usize];
        class.end_hold(self.task.kind, &hold, self.lock.is_contended(), lasted);
    }

    /// The exclusive hold of the task, of this number, ends, if it has only run with the lock. Whether it has.
    #[inline(always)]
    pub fn end_running_hold(&mut self, number: TaskId) -> bool {
        let ends = !self.lock.scaled && self.book_running_hold();
        if ends {
            self.end_booked_hold(number);
        }
        ends
    }

    /// The same if it runs now. Whether it does.
    #[inline(never)]
    pub fn end_hold_of_running(&mut self, number: TaskId) -> bool {
        let ends = !self.lock.scaled && self.book_hold_of_running();
        if ends {
            self.end_booked_hold(number);
        }
        ends
    }

    /// The exclusive hold of the task, of this number, which is booked, ends.
    #[inline(always)]
    pub fn end_booked_hold(&mut self, number: TaskId) {
        self.lock.holder = None;
        self.lock.left.get_or_insert((self.now, number));
    }
}
