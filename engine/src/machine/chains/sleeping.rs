//! Sleeps of the load that no lock is the cause of: chains without a lock, from the sleeper to the reason.

use super::{Reason, Word};
use crate::machine::state::State;
use crate::machine::task::{Status, Task, TaskKind};
use crate::waist::time::Time;
use crate::waist::TaskId;

impl State {
    /// `task`, which sleeps, is woken.
    #[inline]
    pub(in crate::machine) fn chain_wakes(&mut self, task: TaskId) {
        if self.chains.on {
            self.book_sleep(task);
        }
    }

    /// The run is over: who still sleeps has slept until now.
    pub(in crate::machine) fn book_sleeps(&mut self) {
        for task in 0..self.tasks.len() as TaskId {
            if self.tasks[task as usize].status == Status::Sleeping {
                self.chain_wakes(task);
            }
        }
    }

    fn book_sleep(&mut self, id: TaskId) {
        let task = &self.tasks[id as usize];
        if let Some(since) = slept_since(task) {
            let (reason, function, site) = (task.reason as u32, task.function, task.site);
            let nearer = if function > 0 { self.chains.grown(reason, Word::Function(function)) } else { reason };
            let sleeper = self.chains.grown(nearer, Word::Site(site));
            self.chains.nodes[sleeper as usize].time += self.now - since.max(self.window_start);
        }
    }
}

/// Since when a task of the load sleeps for something else than a lock.
fn slept_since(task: &Task) -> Option<Time> {
    let sleeps = task.kind == TaskKind::Load && task.reason != Reason::Lock && task.waits_for().is_none();
    sleeps.then_some(task.last_ran)
}
