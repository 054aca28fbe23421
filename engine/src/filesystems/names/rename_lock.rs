//! `rename_lock` of the whole kernel (`fs/dcache.c`), a sequence lock. Who moves a dentry writes it. Who looks for a name reads it: waits
//! while it is odd, and fetches the line where others have written it since.
//!
//! Before the first rename every CPU has the line, and a read is part of the walk's time.

use crate::filesystems::costs::Costs;
use crate::waist::Machine;
use crate::waist::{Account, LockId, Side, Time};
use std::cell::Cell;
use std::future::Future;

/// The lock, and who reads it.
pub struct RenameLock {
    lock: LockId,
    walks_read: bool,
    written: Cell<bool>,
    d_move: Time,
}

impl RenameLock {
    /// For a kernel's rules; the error names a cost that is missing.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            lock: m.new_lock(m.class("vfs.rename_lock", "vfs.rename_lock")),
            walks_read: costs.rules().walks_read_rename_lock,
            written: Cell::new(false),
            d_move: costs.sum(&["d_move"])?,
        })
    }

    /// Time of a rename that is under it.
    pub fn d_move_time(&self) -> Time {
        self.d_move
    }

    /// `path_init`: a walk begins when nobody moves a dentry. Only a scoped one looks again.
    pub async fn path_init<M: Machine>(&self, m: &M) {
        if self.walks_read {
            self.read(m).await;
        }
    }

    /// `d_lookup` of a name in a locked directory, and for a new name `d_alloc_parallel` right behind it.
    pub async fn d_lookup<M: Machine>(&self, m: &M) {
        self.read(m).await;
    }

    async fn read<M: Machine>(&self, m: &M) {
        if self.written.get() {
            m.lock(self.lock, Side::Read).await;
            m.unlock(self.lock, Side::Read).await;
        }
    }

    /// `d_move`, of which `lists` changes the lists of children.
    pub async fn d_move<M: Machine>(&self, m: &M, lists: impl Future<Output = ()>) {
        self.written.set(true);
        m.lock(self.lock, Side::Write).await;
        lists.await;
        m.run(Account::System, self.d_move).await;
        m.unlock(self.lock, Side::Write).await;
    }
}
