//! Locks of ranges of a file (`fcntl(F_SETLK)`, `posix_lock_inode` of fs/locks.c). A file's list of them is under a spinlock that
//! lies in one line with the list's head: `flc_lock` since 4.0, before that `i_lock`; until 3.10 one of all files.
//!
//! Nobody is refused: processes have ranges of their own in a file, and each looks at those of the others. Threads of a process have
//! their locks together, and do not wait for each other. A lock that is there is changed or taken off by whichever of them comes,
//! whose CPU fetches its lines: those of the lock, and of the list of the CPU that put it there (`file_lock_list`, `fl_link_cpu`).
//!
//! Who waits for a range is in the list of the lock that he waits for, under one spinlock of all files (`blocked_lock_lock`). Nobody waits
//! here; who has got a range, or given it back, took that lock in 5.6-rc5 to see so (`locks_delete_block`).
//!
//! Left out: locks that a `close` gives back, `i_lock` as far as others take it (3.11 to 3.19).

use super::by_slot::BySlot;
use crate::kernel::vfs::PosixLocks as Guard;
use crate::kernel::Rules;
use crate::waist::{Access, Account, ClassId, LineId, LockId, Machine, Side, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// Its place in the list, its owner and its range are in a line each (0, 64 and 128 of `struct file_lock`, counted in 6.12).
const LOCK_LINES: u32 = 3;

/// The lines of a lock, and of the list of the CPU on which it was put there.
#[derive(Clone, Copy)]
struct Placed {
    lock: LineId,
    list: LineId,
}

/// `struct file_lock_context`.
struct Context {
    flc_lock: LockId,
    /// Whose locks are there, in the order of the list.
    held: RefCell<Vec<(u32, Placed)>>,
}

impl Context {
    /// Looks at so many of the list.
    fn compare<M: Machine>(&self, m: &M, entries: usize) {
        self.held.borrow().iter().take(entries).for_each(|(_, there)| m.touch(there.lock, Access::Read));
    }
}

/// Those of a mount's files.
pub struct FileLocks {
    class: ClassId,
    /// That of all files, before 3.11.
    global: Option<LockId>,
    /// `blocked_lock_lock`, where it is taken though nobody waits.
    blocked: Option<LockId>,
    /// Under the spinlock.
    under: Time,
    contexts: BySlot<Rc<Context>>,
    /// By task: the allocator gives the same memory again.
    placed: BySlot<Placed>,
}

impl FileLocks {
    /// No file has one, by the rules of a kernel; what is done under the spinlock takes `under`.
    pub fn new<M: Machine>(m: &M, rules: &Rules, under: Time) -> Self {
        let class = m.class("vfs.flc_lock", "vfs.flc_lock");
        let global = (rules.posix_locks == Guard::Global).then(|| m.new_lock(class));
        let blocked = rules.asks_blocked.then(|| m.new_lock(m.class("vfs.blocked_lock_lock", "vfs.blocked_lock_lock")));
        Self { class, global, blocked, under, contexts: BySlot::default(), placed: BySlot::default() }
    }

    /// `posix_lock_inode` of a file, all of which takes `time`: the lock of `owner` (a process) comes, or the one that is there goes.
    pub async fn posix_lock_inode<M: Machine>(&self, m: &M, file: u32, owner: u32, set: bool, time: Time) {
        let context = self.context(m, file);
        m.run(Account::System, time.saturating_sub(self.under)).await;
        m.lock(context.flc_lock, Side::Write).await;
        m.touch_beside(context.flc_lock, Access::Write);
        let own = context.held.borrow().iter().position(|&(by, _)| by == owner);
        match own {
            Some(at) if set => {
                context.compare(m, usize::MAX);
                m.touch(context.held.borrow()[at].1.lock, Access::Write);
            }
            Some(at) => {
                context.compare(m, at);
                let (_, there) = context.held.borrow_mut().remove(at);
                m.touch(there.lock, Access::Write);
                m.touch(there.list, Access::Atomic);
            }
            None => {
                context.compare(m, usize::MAX);
                if set {
                    self.put(m, &context, owner);
                }
            }
        }
        m.run(Account::System, self.under.min(time)).await;
        m.unlock(context.flc_lock, Side::Write).await;
        self.delete_block(m).await;
    }

    /// `locks_delete_block`: the request is in nobody's list.
    async fn delete_block<M: Machine>(&self, m: &M) {
        if let Some(blocked) = self.blocked {
            m.lock(blocked, Side::Write).await;
            m.unlock(blocked, Side::Write).await;
        }
    }

    fn context<M: Machine>(&self, m: &M, file: u32) -> Rc<Context> {
        let new =
            || Context { flc_lock: self.global.unwrap_or_else(|| m.new_lock(self.class)), held: RefCell::default() };
        self.contexts.get_or_make(file, || Rc::new(new()))
    }

    fn put<M: Machine>(&self, m: &M, context: &Context, owner: u32) {
        let new = self.placed.get_or_make(m.task(), || Placed { lock: m.new_line(LOCK_LINES), list: m.new_line(1) });
        m.touch(new.lock, Access::Write);
        m.touch(new.list, Access::Atomic);
        context.held.borrow_mut().push((owner, new));
    }
}
