//! Without a journal calls do not take what the journal takes of them. `fsync` (`ext4_fsync_nojournal`) writes the blocks of the file's
//! extents, of its inode and, if its name is new, of its directory to their places, each with its buffer locked until it is on the
//! device.

use super::costs::{CreateCosts, HtreeCosts, UnlinkCosts};
use super::ialloc::INODES_PER_BLOCK;
use super::journal::Block;
use super::Ext4;
use crate::cost_table;
use crate::devices::BlockDevice;
use crate::filesystems::costs::Costs;
use crate::filesystems::{DirId, BLOCK};
use crate::fx::FxMap;
use crate::waist::Machine;
use crate::waist::{Account, Side, Time};
use std::cell::RefCell;

/// Buffers that each CPU knows (`BH_LRU_SIZE`).
const BUFFERS_KNOWN: usize = 16;

/// Buffers of metadata that were changed and not written since (`BH_Dirty`), and on whose list of the directory's they are
/// (`b_assoc_buffers`).
#[derive(Debug)]
pub(super) struct Unjournaled {
    /// Inodes that were freed some seconds ago are not taken again (`recently_deleted`).
    pub avoids_freed: bool,
    costs: UnjournaledCosts,
    /// What the journal takes of handles whose times are not in tables of steps; nothing where there is one.
    pub less: HandleTimes,
    dirty: RefCell<FxMap<Block, ()>>,
    listed: RefCell<FxMap<DirId, Vec<u32>>>,
}

cost_table!(UnjournaledCosts {
    write_buffer: ["unjournaled.write_buffer"],
    write_inode: ["unjournaled.write_inode"],
    freed_inode: ["unjournaled.freed_inode"],
    freed_block: ["unjournaled.freed_block"],
});

// What the journal takes of calls: starting and stopping handles, filing blocks (`jbd2_journal_get_write_access`,
// `jbd2_journal_dirty_metadata`), and the list of orphans.
cost_table!(StepTimes {
    create: ["journal.create"],
    unlink: ["journal.unlink"],
    orphan: ["journal.orphan_add"],
    evict: ["journal.evict"],
});

cost_table!(pub(super) HandleTimes {
    rename: ["journal.rename"],
    link: ["journal.link"],
    inode: ["journal.inode"],
    truncate: ["journal.truncate"],
});

impl HandleTimes {
    fn unless(self, journal: bool) -> Self {
        let none = Self { rename: 0, link: 0, inode: 0, truncate: 0 };
        if journal {
            none
        } else {
            self
        }
    }
}

/// The steps of calls are those with a journal; unless there is one, what it takes of them is taken off.
pub(super) fn shorten_unless(
    journal: bool,
    create: &mut CreateCosts,
    unlink: &mut UnlinkCosts,
    htree: &mut HtreeCosts,
    costs: &Costs<'_>,
) -> Result<(), String> {
    let less = StepTimes::new(costs)?;
    if journal {
        return Ok(());
    }
    shorten(less.create, [&mut create.stop, &mut create.new_inode]);
    shorten(less.unlink, [&mut unlink.stop]);
    shorten(less.orphan, [&mut unlink.delete_entry]);
    shorten(less.orphan, [&mut htree.delete_entry]);
    shorten(less.evict, [&mut unlink.orphan, &mut unlink.evict_stop]);
    Ok(())
}

/// Takes so much off these steps: off the first as much as it has, the rest off the next.
pub(super) fn shorten<const N: usize>(mut less: Time, steps: [&mut Time; N]) {
    for step in steps {
        let taken = less.min(*step);
        *step -= taken;
        less -= taken;
    }
}

impl Unjournaled {
    /// Nothing is dirty.
    pub fn new(journal: bool, costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            avoids_freed: !journal && costs.rules().avoids_freed,
            costs: UnjournaledCosts::new(costs)?,
            less: HandleTimes::new(costs)?.unless(journal),
            dirty: RefCell::default(),
            listed: RefCell::default(),
        })
    }

    /// `mark_buffer_dirty_inode`: whether the block came onto its directory's list, which takes `private_lock`.
    fn mark_dirty(&self, block: Block) -> bool {
        self.dirty.borrow_mut().insert(block, ());
        let Block::Leaf(dir, leaf) = block else { return false };
        let mut listed = self.listed.borrow_mut();
        let leaves = listed.entry(dir).or_default();
        let is_new = !leaves.contains(&leaf);
        if is_new {
            leaves.push(leaf);
        }
        is_new
    }

    /// `test_clear_buffer_dirty`.
    fn clear(&self, block: Block) -> bool {
        self.dirty.borrow_mut().remove(&block).is_some()
    }

    /// The leaves on a directory's list, which leave it.
    pub fn take(&self, dir: DirId) -> Vec<u32> {
        self.listed.borrow_mut().remove(&dir).unwrap_or_default()
    }
}

impl Ext4 {
    /// The end of a handle on a filesystem without a journal (`__ext4_handle_dirty_metadata`).
    pub(super) async fn dirty_buffers<M: Machine>(&self, m: &M, changed: &[Block]) {
        for &block in changed {
            if self.unjournaled.mark_dirty(block) {
                self.info.lists_buffer(m).await;
            }
        }
    }

    /// `find_inode_bit`: looks into the blocks of the inode table when inodes were freed, one after the other. Those of more blocks than
    /// a CPU knows (`bh_lrus`) are looked for in the device's page cache.
    pub(super) async fn pass_by<M: Machine>(&self, m: &M, inodes: u32, blocks: &[u32]) {
        let c = &self.unjournaled.costs;
        let each = c.freed_inode * Time::from(inodes) / (blocks.len() as u64).max(1);
        for &block in blocks {
            self.tables.count_block(m, block).await;
            m.run(Account::System, each).await;
            if blocks.len() > BUFFERS_KNOWN {
                m.run(Account::System, c.freed_block).await;
                self.info.find_buffer(m).await;
            }
        }
    }

    /// `ext4_fsync_nojournal` after the file's pages were written: before 5.5 with the inode's lock (`__generic_file_fsync`). An `fdatasync`
    /// leaves an inode of which only the times are dirty.
    pub(super) async fn sync_buffers<M: Machine>(&self, m: &M, slot: u32, data_only: bool) {
        let (lock, inode) = {
            let files = self.files.borrow();
            let file = &files.slots[slot as usize];
            (self.fsync.locked.then_some(file.i_rwsem), file.inode)
        };
        if let Some(lock) = lock {
            m.lock(lock, Side::Write).await;
        }
        self.write_buffers(m, &[Block::Extents(inode)]).await;
        let dirty = self.files.borrow_mut().slots[slot as usize].clean(data_only);
        if dirty {
            m.run(Account::System, self.unjournaled.costs.write_inode).await;
            self.write_buffers(m, &[Block::Inodes(inode / INODES_PER_BLOCK)]).await;
        }
        if let Some(lock) = lock {
            m.unlock(lock, Side::Write).await;
        }
        self.sync_parent(m, slot).await;
    }

    /// `ext4_sync_parent`: if the file's name is new, the blocks of its directory that were changed, and the directory's inode if its
    /// times are dirty.
    async fn sync_parent<M: Machine>(&self, m: &M, slot: u32) {
        let dir = self.files.borrow_mut().slots[slot as usize].new_entry.take();
        if let Some(dir) = dir {
            self.sync_directory_buffers(m, dir).await;
        }
    }

    /// The blocks of a directory that were changed, and its inode (`sync_mapping_buffers`, `sync_inode_metadata`).
    pub(super) async fn sync_directory_buffers<M: Machine>(&self, m: &M, dir: DirId) {
        self.info.lists_buffer(m).await; // fsync_buffers_list
        let leaves: Vec<_> = self.unjournaled.take(dir).into_iter().map(|leaf| Block::Leaf(dir, leaf)).collect();
        self.write_buffers(m, &leaves).await;
        if let Some(inode) = self.clean_directory(dir) {
            self.write_buffers(m, &[Block::Inodes(inode / INODES_PER_BLOCK)]).await;
        }
    }

    /// Writes those of these blocks that are dirty, and waits for all (`write_dirty_buffer`, `wait_on_buffer`; `sync_dirty_buffer`).
    async fn write_buffers<M: Machine>(&self, m: &M, blocks: &[Block]) {
        let mut written = Vec::new();
        for &block in blocks {
            let lock = self.tables.join(m, block);
            m.lock(lock, Side::Write).await;
            if self.unjournaled.clear(block) {
                m.run(Account::System, self.unjournaled.costs.write_buffer).await;
                written.push((block, self.storage.submit_buffer(m, BLOCK, lock).await));
            } else {
                m.unlock(lock, Side::Write).await;
                self.tables.leave(m, block);
            }
        }
        for (block, done) in written {
            BlockDevice::wait_on_buffer(m, done).await;
            self.tables.leave(m, block);
        }
    }
}
