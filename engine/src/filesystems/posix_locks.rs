//! Locks of ranges of files (`fcntl(F_SETLK)`, `posix_lock_inode` in `fs/locks.c`): one list a file, under the lock of the file's
//! lists. Ranges of tasks are their own here, so that nobody is refused; but each looks at those of the others.
//!
//! Left out: the list of all locks that `/proc/locks` shows, which has a lock for each CPU (`file_lock_list`), `i_lock` as far as others
//! take it (3.11 to 3.19), locks that a `close` gives back.

use super::by_slot::BySlot;
use crate::kernel::vfs::PosixLocks as Guard;
use crate::waist::{Access, Account, ClassId, LineId, LockId, Machine, Side, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// What is locked of one file.
struct FileLocks {
    flc_lock: LockId,
    /// Who has locked a range, in the order of the list, and the line of the `struct file_lock`.
    held: RefCell<Vec<(u32, LineId)>>,
}

/// What is locked of all files.
pub struct PosixLocks {
    class: ClassId,
    /// That of all files, before 3.11.
    global: Option<LockId>,
    /// Under the lock, in both calls.
    hold: Time,
    files: BySlot<Rc<FileLocks>>,
    /// The line of each task's `struct file_lock`: the allocator gives the same memory again.
    lines: BySlot<LineId>,
}

impl PosixLocks {
    /// Nobody has locked anything.
    pub fn new<M: Machine>(m: &M, guard: Guard, hold: Time) -> Self {
        let class = m.class("vfs.flc_lock", "vfs.flc_lock");
        let global = (guard == Guard::Global).then(|| m.new_lock(class));
        Self { class, global, hold, files: BySlot::default(), lines: BySlot::default() }
    }

    fn of<M: Machine>(&self, m: &M, file: u32) -> Rc<FileLocks> {
        let new =
            || FileLocks { flc_lock: self.global.unwrap_or_else(|| m.new_lock(self.class)), held: RefCell::default() };
        self.files.get_or_make(file, || Rc::new(new()))
    }

    /// `F_SETLK`, of a call that takes `time`: all that others have locked is compared (`posix_locks_conflict`), and the range enters.
    pub async fn lock<M: Machine>(&self, m: &M, file: u32, time: Time) {
        let of = self.of(m, file);
        m.run(Account::System, time.saturating_sub(self.hold)).await;
        m.lock(of.flc_lock, Side::Write).await;
        of.compare(m, usize::MAX);
        of.insert(m, self.lines.get_or_make(m.task(), || m.new_line(1)));
        m.run(Account::System, self.hold.min(time)).await;
        m.unlock(of.flc_lock, Side::Write).await;
    }

    /// The same with `F_UNLCK`: the list is searched up to the owner's, which leaves it.
    pub async fn unlock<M: Machine>(&self, m: &M, file: u32, time: Time) {
        let of = self.of(m, file);
        let before = time.saturating_sub(self.hold) / 2;
        m.run(Account::System, before).await;
        m.lock(of.flc_lock, Side::Write).await;
        let own = of.held.borrow().iter().position(|&(task, _)| task == m.task());
        of.compare(m, own.unwrap_or(usize::MAX));
        if let Some(own) = own {
            of.held.borrow_mut().remove(own);
        }
        m.run(Account::System, self.hold.min(time)).await;
        m.unlock(of.flc_lock, Side::Write).await;
        m.run(Account::System, time.saturating_sub(self.hold) - before).await;
    }
}

impl FileLocks {
    /// Looks at so many entries of the list, each of which its owner has written.
    fn compare<M: Machine>(&self, m: &M, entries: usize) {
        for &(task, line) in self.held.borrow().iter().take(entries) {
            if task != m.task() {
                m.touch(line, Access::Read);
            }
        }
    }

    /// The range of who has none becomes the last of the list.
    fn insert<M: Machine>(&self, m: &M, line: LineId) {
        m.touch(line, Access::Write);
        let mut held = self.held.borrow_mut();
        if held.iter().all(|&(task, _)| task != m.task()) {
            held.push((m.task(), line));
        }
    }
}
