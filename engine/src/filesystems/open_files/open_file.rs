//! What several tasks meet in one open file (`struct file`): threads that use its descriptor, processes that were forked after it was
//! opened. Who shares the table of open files takes a reference for each call by a descriptor and gives it back (`fdget`, `fput`); a
//! `dup` takes one that its `close` gives back, in processes too.
//!
//! Offsets on x86-64: `f_count` (56) is in the line of `f_op` (40) and `f_inode` (32), which calls read once they have the reference,
//! until 6.4; from 6.5 to 6.11 these are in another line; from 6.12 to 6.14 the count (`f_ref` since 6.13) is at 0, beside them, and
//! since 6.15 apart.
//!
//! Left out: `f_pos_lock`, which calls that move the position take where the file has other users; that `fstat` reads `f_path`
//! instead, which from 6.12 on is in another line (64), and that `dup` reads neither; the exchange by which a `close` gives its
//! reference back since 6.15 (`fput_close_sync`): it has looked at the count before, so that this comes to the same.

use crate::filesystems::by_slot::BySlot;
use crate::kernel::vfs::{FileLine, FileRef};
use crate::kernel::Rules;
use crate::waist::{Access, LineId, Machine, TaskId, Time};
use std::cell::Cell;

/// The open files of a mount that several tasks use.
pub struct OpenFiles {
    reference: FileRef,
    line: FileLine,
    /// Tasks whose files are others' too.
    sharing: BySlot<()>,
    /// How long a `dup` and its `close` take a process whose table is its own.
    dup: Cell<Time>,
    /// By file.
    counts: BySlot<LineId>,
}

impl OpenFiles {
    /// Nobody shares one.
    pub fn new(rules: &Rules) -> Self {
        let (reference, line) = (rules.file_ref, rules.file_line);
        Self { reference, line, sharing: BySlot::default(), dup: Cell::default(), counts: BySlot::default() }
    }

    /// The files of this task are others' too.
    pub fn share(&self, task: TaskId) {
        self.sharing.put(task, ());
    }

    /// A `dup` and its `close` take a process so long.
    pub fn set_dup(&self, dup: Time) {
        self.dup.set(dup);
    }

    /// How long they take.
    pub fn dup(&self) -> Time {
        self.dup.get()
    }

    fn count<M: Machine>(&self, m: &M, file: u32) -> Option<LineId> {
        self.sharing.get(m.task())?;
        Some(self.counts.get_or_make(file, || m.new_line("vfs.f_count", 1)))
    }

    /// `__fget_files`: by compare-and-exchange (`get_file_rcu`), which succeeds at the second attempt at the latest, or an addition
    /// (`file_ref_get`).
    pub async fn get<M: Machine>(&self, m: &M, file: u32) {
        let Some(line) = self.count(m, file) else { return };
        if self.reference == FileRef::Exchanged {
            arrives(m, line, Access::Read).await;
        }
        arrives(m, line, Access::Atomic).await;
    }

    /// What a call reads of the file once it has its reference, `f_op` and `f_inode`, where they share the line.
    pub async fn look_at_operations<M: Machine>(&self, m: &M, file: u32) {
        if let Some(line) = self.count(m, file).filter(|_| self.line == FileLine::WithOperations) {
            arrives(m, line, Access::Read).await;
        }
    }

    /// `filp_close` before `fput`: whether there is a reference at all, and what `flush` is.
    pub async fn close<M: Machine>(&self, m: &M, file: u32) {
        if let Some(line) = self.count(m, file) {
            arrives(m, line, Access::Read).await;
            self.look_at_operations(m, file).await;
        }
    }

    /// `fput`.
    pub async fn put<M: Machine>(&self, m: &M, file: u32) {
        if let Some(line) = self.count(m, file) {
            arrives(m, line, Access::Atomic).await;
        }
    }
}

/// The line comes before anything else is done.
async fn arrives<M: Machine>(m: &M, line: LineId, access: Access) {
    m.touch(line, access);
    m.pay().await;
}
