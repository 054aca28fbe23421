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

    /// The task becomes the exclusive holder; its times are these.
    #[inline(always)]
    pub fn begin_hold(&mut self, number: TaskId, times: StateTimes) {
        self.lock.begin_hold(number, times);
        self.task.scaled_holds += u32::from(self.lock.scaled);
        self.classes[self.lock.class as usize].at(self.task.site, self.task.kind).acquired += 1;
    }

    /// Books the exclusive hold of the task, if it has only run with the lock. Whether it has.
    #[inline(always)]
    pub fn book_running_hold(&mut self) -> bool {
        let only_ran = self.task.status == Status::Running && self.lock.only_ran(&self.task.times);
        if only_ran {
            let span = self.lock.book_running(self.now);
            self.classes[self.lock.class as usize].end_running_hold(self.task.kind, self.lock.is_contended(), span);
        }
        only_ran
    }

    /// The exclusive hold of the task, of this number, ends, if it has only run with the lock. Whether it has.
    #[inline(always)]
    pub fn end_running_hold(&mut self, number: TaskId) -> bool {
        let ends = !self.lock.scaled && self.book_running_hold();
        if ends {
            self.lock.holder = None;
            self.lock.left.get_or_insert((self.now, number));
        }
        ends
    }
}
