//! Blocks of the inode table that nobody has used since the filesystem was made: the first who makes an inode there brings the
//! block in under its buffer's lock, and reads it if others of its inodes are in use (`__ext4_get_inode_loc`).

use super::ialloc::{Ialloc, INODES_PER_BLOCK};
use crate::devices::BlockDevice;
use crate::filesystems::cached::Looks;
use crate::filesystems::costs::Costs;
use crate::filesystems::BLOCK;
use crate::fx::{FxMap, FxSet};
use crate::waist::Machine;
use crate::waist::{Access, Account, CachedId, ClassId, LineId, LockId, Side, Time};
use std::cell::RefCell;

/// Changes of the buffer's `b_count` each time that an inode is marked dirty: `sb_getblk`, `ext4_mark_iloc_dirty`,
/// `ext4_do_update_inode`, `ext4_mark_iloc_dirty` at its end.
const REFERENCES: u32 = 4;

/// The inode table.
pub(super) struct InodeTable {
    /// Blocks that are in memory.
    uptodate: RefCell<FxSet<u32>>,
    /// The locks of those that are being brought in, and how many tasks hold them or wait.
    buffers: RefCell<FxMap<u32, (LockId, u32)>>,
    class: ClassId,
    /// Those that somebody has used, and what one looks at to change an inode.
    used: RefCell<Vec<Option<(CachedId, LineId)>>>,
    looks: Looks,
}

impl InodeTable {
    /// Nothing but the root's block is in memory.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let lines = |name: &str| costs.number(name).map(|n| n as u32);
        Ok(Self {
            used: RefCell::default(),
            looks: Looks::at(lines("ext4_buffer.index")?, lines("ext4_inode.on_disk")?),
            uptodate: RefCell::new(FxSet::from_iter([0])),
            buffers: RefCell::default(),
            class: m.class("ext4.inode table", "ext4.buffer"),
        })
    }

    /// Says that inodes were made without programs.
    pub fn filled(&self, inode: u32) {
        self.uptodate.borrow_mut().insert(inode / INODES_PER_BLOCK);
    }

    /// `ext4_mark_inode_dirty`: an inode is written into its block.
    pub async fn use_block<M: Machine>(&self, m: &M, inode: u32) {
        let (memory, count) = self.block(m, (inode / INODES_PER_BLOCK) as usize);
        self.looks.of(m, memory);
        for _ in 0..REFERENCES {
            m.touch(count, Access::Atomic);
            m.settle().await;
        }
    }

    fn block<M: Machine>(&self, m: &M, block: usize) -> (CachedId, LineId) {
        let mut used = self.used.borrow_mut();
        if used.len() <= block {
            used.resize(block + 1, None);
        }
        *used[block].get_or_insert_with(|| (m.new_block(0..0, None), m.new_line(1)))
    }

    fn has(&self, block: u32) -> bool {
        self.uptodate.borrow().contains(&block)
    }

    /// Brings in the block of a new inode; making a block of it takes `time`.
    pub async fn load<M: Machine>(&self, m: &M, device: &BlockDevice, inode: u32, ialloc: &Ialloc, time: Time) {
        let block = inode / INODES_PER_BLOCK;
        if self.has(block) {
            return;
        }
        let lock = self.join(m, block);
        m.lock(lock, Side::Write).await;
        if !self.has(block) {
            if !ialloc.alone_in_block(inode) {
                device.read(m, BLOCK).await;
            }
            m.run(Account::System, time).await;
            self.uptodate.borrow_mut().insert(block);
        }
        m.unlock(lock, Side::Write).await;
        self.leave(m, block);
    }

    fn join<M: Machine>(&self, m: &M, block: u32) -> LockId {
        let mut buffers = self.buffers.borrow_mut();
        let (lock, users) = buffers.entry(block).or_insert_with(|| (m.new_lock(self.class), 0));
        *users += 1;
        *lock
    }

    fn leave<M: Machine>(&self, m: &M, block: u32) {
        let mut buffers = self.buffers.borrow_mut();
        let (lock, users) = buffers.get_mut(&block).expect("it has joined");
        *users -= 1;
        if *users == 0 {
            m.drop_lock(*lock);
            buffers.remove(&block);
        }
    }
}
