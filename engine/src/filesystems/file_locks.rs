//! Locks of ranges of a file (`fcntl(F_SETLK)`, `posix_lock_inode` of fs/locks.c). A file's list of them is under a spinlock that
//! lies in one line with the list's head: `flc_lock` since 4.0, before that `i_lock`; until 3.10 one of all files, which is not
//! modelled. Who asks here has the range for itself, or is a thread of the process that has it: threads have their locks together,
//! and do not wait for each other.
//!
//! A lock that is there is changed or taken off by whoever comes, whose CPU fetches its lines: those of the lock, and of the list of
//! the CPU that put it there (`file_lock_list`, `fl_link_cpu`).

use super::by_slot::BySlot;
use super::File;
use crate::waist::{Access, Account, ClassId, LineId, LockId, Machine, Side, Time};
use std::cell::Cell;
use std::rc::Rc;

/// `struct file_lock_context`.
struct Context {
    flc_lock: LockId,
    /// The task whose lock is there.
    held_by: Cell<Option<u32>>,
}

/// A task's lock, and the list of the CPU on which it was put there.
#[derive(Clone, Copy)]
struct Placed {
    lock: LineId,
    list: LineId,
}

/// Those of a mount's files.
pub struct FileLocks {
    class: ClassId,
    under: Time,
    contexts: BySlot<Rc<Context>>,
    placed: BySlot<Placed>,
}

impl FileLocks {
    /// No file has one; what is done under the spinlock takes `under`.
    pub fn new<M: Machine>(m: &M, under: Time) -> Self {
        let class = m.class("vfs.flc_lock", "vfs.flc_lock");
        Self { class, under, contexts: BySlot::default(), placed: BySlot::default() }
    }

    /// `posix_lock_inode`, all of which takes `time`: the task's lock comes, or the one that is there goes.
    pub async fn posix_lock_inode<M: Machine>(&self, m: &M, file: &File, set: bool, time: Time) {
        let new = || Rc::new(Context { flc_lock: m.new_lock(self.class), held_by: Cell::default() });
        let context = self.contexts.get_or_make(file.inode, new);
        m.run(Account::System, time.saturating_sub(self.under)).await;
        m.lock(context.flc_lock, Side::Write).await;
        m.touch_beside(context.flc_lock, Access::Write);
        match context.held_by.get() {
            Some(task) => {
                let there = self.of(m, task);
                m.touch(there.lock, Access::Write);
                if !set {
                    m.touch(there.list, Access::Atomic);
                    context.held_by.set(None);
                }
            }
            None if set => {
                let new = self.of(m, m.task());
                m.touch(new.lock, Access::Write);
                m.touch(new.list, Access::Atomic);
                context.held_by.set(Some(m.task()));
            }
            None => {}
        }
        m.run(Account::System, self.under).await;
        m.unlock(context.flc_lock, Side::Write).await;
    }

    fn of<M: Machine>(&self, m: &M, task: u32) -> Placed {
        self.placed.get_or_make(task, || Placed { lock: m.new_line(2), list: m.new_line(1) })
    }
}
