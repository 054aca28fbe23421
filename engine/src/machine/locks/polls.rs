//! Who polls the word of a spinlock looks at it once a round, and fetches its line back from whoever wrote to it: to the word, or to
//! what lies beside it. So the holder of a contended lock loses the line after each of its stores, and its next store to it,
//! which may be the release, waits for the line again. What comes of a look is told at the release; here only lines move.

use super::queued;
use super::spinlock::{body, Policy, Spinlock};
use crate::machine::lock::LockKind;
use crate::machine::state::State;
use crate::machine::task::Status;
use crate::waist::time::Time;
use crate::waist::{Access, LockId, TaskId};

impl State {
    /// The running `me` accesses what lies in the line of the word of `lock`.
    pub(in crate::machine) fn touch_beside(&mut self, me: TaskId, lock: LockId, access: Access) {
        let polled = access != Access::Read && matches!(self.locks[lock as usize].kind, LockKind::Spin(_));
        if polled && is_polled(body(self, lock)) {
            self.pollers_have_looked(me, lock);
        }
        self.touch_lock(me, lock, access);
    }

    /// The running `me` is about to write to the line of the spinlock `lock`. Who polls the word has looked since it was written to
    /// last, if there was time for that.
    #[cold]
    pub(super) fn pollers_have_looked(&mut self, me: TaskId, lock: LockId) {
        let task = &self.tasks[me as usize];
        let (cpu, stored) = (task.cpu, task.stores_until);
        let at = stored.max(self.now + task.segment.debt);
        let line = &self.lock_lines[self.locks[lock as usize].lies_in as usize];
        let written = if line.is_elsewhere(cpu) { line.moves_until() } else { line.moves_until().max(stored) };
        if written >= at {
            return;
        }
        let pollers = all_pollers(body(self, lock));
        for (nth, &poller) in pollers.iter().enumerate() {
            let looks = written + self.next_look(nth, pollers.len());
            self.has_looked(lock, poller, looks, at);
        }
    }

    /// `poller` looked at `looks`, if that was before `at`, and had no copy any more.
    fn has_looked(&mut self, lock: LockId, poller: TaskId, looks: Time, at: Time) {
        let task = &self.tasks[poller as usize];
        let line = self.locks[lock as usize].lies_in as usize;
        if looks < at && task.status == Status::Running && !self.lock_lines[line].has_copy(task.cpu) {
            self.refetch(looks, lock, poller);
        }
    }
}

/// Whether anybody polls the word.
#[inline(always)]
pub(super) fn is_polled(lock: &Spinlock) -> bool {
    match lock.policy {
        Policy::Queued | Policy::Cna | Policy::Hq => lock.pending.is_some() || lock.head_polls,
        Policy::TestAndSet | Policy::Ticket => !lock.waiters.is_empty(),
        Policy::Mcs => false,
    }
}

fn all_pollers(lock: &Spinlock) -> Vec<TaskId> {
    if lock.policy.queues() {
        queued::pollers(lock).collect()
    } else {
        lock.waiters.iter().copied().collect()
    }
}
