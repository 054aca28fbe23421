//! Who waits for whom: waits begin and end, locks get and lose holders.

use super::Waited;
use crate::machine::state::State;
use crate::machine::task::{Status, Task, Wait};
use crate::waist::{LockId, Side, TaskId};

impl State {
    /// `task` begins a wait.
    #[inline]
    pub(in crate::machine) fn push_wait(&mut self, task: TaskId, wait: Wait) {
        if self.chains.on {
            self.chain_begins(task, wait);
        } else {
            self.tasks[task as usize].waits.push(wait);
        }
    }

    /// `task` has the lock that it waited for last; that wait is returned.
    #[inline]
    pub(in crate::machine) fn pop_wait(&mut self, task: TaskId) -> Option<Wait> {
        let waits = &mut self.tasks[task as usize].waits;
        if self.chains.on {
            let wait = waits.last().copied();
            wait.inspect(|&wait| self.chain_ends(task, wait))
        } else {
            waits.pop()
        }
    }

    #[inline(never)]
    fn chain_begins(&mut self, task: TaskId, wait: Wait) {
        let lock = wait.lock;
        if self.chains.locks.len() <= lock as usize {
            self.chains.locks.resize_with(self.locks.len(), Waited::default);
        }
        let side = self.side_of(lock, wait.side);
        if self.chains.is_waited_for(lock) {
            self.chains.book(lock, self.locks[lock as usize].class, self.now);
        } else {
            self.chains.locks[lock as usize].since = self.now;
            self.chains.mark(lock);
            self.block(lock);
        }
        self.chains.count(lock, self.tasks[task as usize].site, side, 1);
        self.turn_to(task, |task| task.waits.push(Wait { side, ..wait }));
    }

    #[inline(never)]
    fn chain_ends(&mut self, task: TaskId, Wait { lock, side, .. }: Wait) {
        self.chains.book(lock, self.locks[lock as usize].class, self.now);
        self.chains.count(lock, self.tasks[task as usize].site, side, -1);
        self.turn_to(task, |task| {
            task.waits.pop();
        });
        let given = &mut self.chains.locks[lock as usize].given;
        if let Some(at) = given.iter().position(|&reader| reader == task) {
            given.remove(at);
            self.chains.mark(lock);
        }
        if !self.chains.is_waited_for(lock) {
            self.unblock(lock);
        }
    }

    /// Changes what `task` waits for.
    fn turn_to(&mut self, task: TaskId, change: impl FnOnce(&mut Task)) {
        let blocks = !self.tasks[task as usize].blocks().is_empty();
        if blocks {
            self.stand(task, false);
        }
        change(&mut self.tasks[task as usize]);
        if blocks {
            self.stand(task, true);
            self.chain_of_task_changes(task);
        }
    }

    /// Those who wait for exclusive locks wait on one side.
    fn side_of(&self, lock: LockId, side: Side) -> Side {
        if self.locks[lock as usize].kind.shares() {
            side
        } else {
            Side::Write
        }
    }

    /// `lock`, which somebody waits for, is in the way of who waits for its holder.
    fn block(&mut self, lock: LockId) {
        let Some(holder) = self.locks[lock as usize].holder else { return };
        let blocks = &mut self.tasks[holder as usize].others().blocks;
        blocks.push(lock);
        if blocks.len() == 1 {
            self.stand(holder, true);
        }
    }

    /// `lock` is no longer, for its holder will have it no more or nobody waits for it.
    pub(in crate::machine) fn unblock(&mut self, lock: LockId) {
        let Some(holder) = self.locks[lock as usize].holder else { return };
        let blocks = &mut self.tasks[holder as usize].others().blocks;
        let before = blocks.len();
        blocks.retain(|&blocked| blocked != lock);
        if before > 0 && blocks.is_empty() {
            self.stand(holder, false);
        }
    }

    /// `task`, for which others wait, stands, or not, among those who wait for the lock it waits for.
    fn stand(&mut self, task: TaskId, there: bool) {
        let Some(lock) = self.tasks[task as usize].waits_for() else { return };
        let blocking = &mut self.chains.locks[lock as usize].blocking;
        if there {
            blocking.push(task);
        } else {
            blocking.retain(|&other| other != task);
        }
    }

    /// `lock` has its exclusive holder.
    #[inline]
    pub(in crate::machine) fn chain_has_holder(&mut self, lock: LockId) {
        if self.chains.is_waited_for(lock) {
            self.block(lock);
            self.chains.mark(lock);
        }
    }

    /// `task` is one of the readers of `lock` from now on.
    #[inline]
    pub(in crate::machine) fn chain_has_reader(&mut self, lock: LockId, task: TaskId) {
        if self.chains.is_waited_for(lock) {
            if self.tasks[task as usize].status != Status::Running {
                self.chains.locks[lock as usize].given.push(task);
            }
            self.chains.mark(lock);
        }
    }

    /// Something has changed about who has `lock`.
    #[inline]
    pub(in crate::machine) fn chain_changes(&mut self, lock: LockId) {
        if self.chains.is_waited_for(lock) {
            self.chains.mark(lock);
        }
    }

    /// `task` does something else than before.
    #[inline]
    pub(in crate::machine) fn chain_of_task_changes(&mut self, task: TaskId) {
        for &lock in self.tasks[task as usize].blocks() {
            self.chains.mark(lock);
        }
    }
}
