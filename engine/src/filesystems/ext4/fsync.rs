//! `fsync` (`ext4_sync_file`): dirty pages are written, then the transaction that last changed the inode is committed, or if it
//! is on disk already, the device's cache is flushed.
//!
//! New blocks are allocated as unwritten extents when their pages are written (`ext4_do_writepages`); when these are on the device a
//! worker makes them written ones, in a handle of its own (`ext4_end_io_rsv_work`), and only then they are no longer under writeback.

use super::journal::credits;
use super::Ext4;
use crate::cost_table;
use crate::devices::{End, Request, Work};
use crate::filesystems::costs::Costs;
use crate::filesystems::dirty::DirtyFiles;
use crate::machine::{Account, Time};
use crate::waist::Machine;
use crate::workqueue::Workqueue;
use std::rc::Rc;

cost_table!(FsyncCosts {
    writepages: ["wfsync.writepages"],
    writepages_over: ["wfsync.writepages_over"],
    page: ["writeback_page"],
    convert: ["wfsync.convert"],
    dirty_inode: ["wfsync.dirty_inode"],
    exit: ["wfsync.exit"],
});

/// What writing back and syncing needs.
pub(super) struct Fsync {
    costs: FsyncCosts,
    /// Length of a tick.
    pub tick: Time,
    /// What was written to files and not written back.
    pub dirty: DirtyFiles,
    /// Files with extents to be made written ones, and what completes when they are.
    unwritten: Rc<Workqueue<Work>>,
}

impl Fsync {
    /// Nothing is dirty.
    pub fn new<M: Machine>(m: &M, tick: Time, costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self { costs: FsyncCosts::new(costs)?, tick, dirty: DirtyFiles::default(), unwritten: Rc::new(Workqueue::unbound(m)) })
    }
}

impl Ext4 {
    /// `file_update_time` and `ext4_dirty_inode`: the clock of inodes goes on once a tick.
    pub(super) async fn update_times<M: Machine>(&self, m: &M, slot: u32) {
        let tick = m.now() / self.fsync.tick;
        if std::mem::replace(&mut self.files.borrow_mut().slots[slot as usize].changed, tick) == tick {
            return;
        }
        let handle = self.journal.start(m, credits::INODE).await;
        m.run(Account::System, self.fsync.costs.dirty_inode).await;
        self.stop(m, handle, slot, &[]).await;
    }

    pub(super) async fn sync_file<M: Machine>(&self, m: &M, slot: u32) {
        self.write_back_laid_out(m, slot).await;
        self.write_back(m, slot).await;
        let transaction = self.files.borrow().slots[slot as usize].transaction;
        if !(self.journal.on && self.journal.sync(m, transaction).await) {
            self.storage.io(m, Request::Flush).await;
        }
        m.run(Account::System, self.fsync.costs.exit).await;
    }

    /// `ext4_writepages` and `filemap_fdatawait_range`.
    async fn write_back<M: Machine>(&self, m: &M, slot: u32) {
        let (c, dirty) = (&self.fsync.costs, self.fsync.dirty.take(slot));
        let done = m.new_completion();
        let mut submitted = 0;
        if dirty.over > 0 {
            m.run(Account::System, c.writepages_over + c.page * (dirty.pages() - 1)).await;
            self.storage.submit(m, Request::Write { bytes: dirty.over, at: None }, End::Complete(done)).await;
            submitted += 1;
        }
        if dirty.new > 0 {
            let group = self.files.borrow().slots[slot as usize].group;
            let handle = self.journal.start(m, credits::EXTENT).await;
            m.run(Account::System, c.writepages + c.page * (dirty.pages() - 1)).await;
            self.stop(m, handle, slot, &self.group_blocks(group)).await;
            let end = End::Queue(self.fsync.unwritten.clone(), (slot, done));
            self.storage.submit(m, Request::Write { bytes: dirty.new, at: None }, end).await;
            submitted += 1;
        }
        for _ in 0..submitted {
            m.wchan("folio_wait_writeback");
            m.wait_for(done).await;
        }
        m.drop_completion(done);
    }

    /// The program of the worker that ends writes of unwritten extents.
    pub async fn conversion_worker<M: Machine>(m: M, fs: Rc<Self>) {
        m.at("ext4 conversion");
        loop {
            let (slot, done) = fs.fsync.unwritten.next(&m, 0).await;
            let handle = fs.journal.start(&m, credits::EXTENT).await;
            m.run(Account::System, fs.fsync.costs.convert).await;
            fs.stop(&m, handle, slot, &[]).await;
            m.complete(done).await;
        }
    }
}
