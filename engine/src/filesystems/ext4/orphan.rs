//! Orphans: inodes without a name, or that are being truncated (`fs/ext4/orphan.c`). They are on a list through the superblock
//! and the inodes, under `s_orphan_lock`; or in blocks of the orphan file, where each CPU begins at another and needs no lock.

use super::ialloc::INODES_PER_BLOCK;
use super::journal::Block;
use crate::cost_table;
use crate::filesystems::costs::Costs;
use crate::waist::Machine;
use crate::waist::{Access, Account, LineId, LockId, Side, Time};
use std::cell::RefCell;

cost_table!(OrphanCosts { first: ["orphan.first"], middle: ["orphan.middle"] });

/// From one CPU's first block of the orphan file to the next one's.
const STRIDE: u32 = 13;
/// Blocks of the orphan file of a filesystem of 8 GiB and more (`mke2fs`).
const BLOCKS: u32 = 512;

/// Where orphans are noted.
pub(super) struct Orphans {
    costs: OrphanCosts,
    /// `s_orphan_lock` and the list head.
    lock: LockId,
    line: LineId,
    /// Inodes on the list, the newest last.
    list: RefCell<Vec<u32>>,
    /// There is an orphan file.
    file: bool,
}

impl Orphans {
    /// Nobody is one.
    pub fn new<M: Machine>(m: &M, file: bool, costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            costs: OrphanCosts::new(costs)?,
            lock: m.new_lock(m.class("ext4.orphan lock", "ext4.orphan")),
            line: m.new_line(costs.number("ext4_orphan.list")? as u32),
            list: RefCell::default(),
            file,
        })
    }

    /// `s_orphan_lock`.
    pub fn lock(&self) -> LockId {
        self.lock
    }

    /// What a single task's part under the lock takes.
    pub fn usual(&self) -> Time {
        if self.file {
            0
        } else {
            self.costs.first
        }
    }

    /// `ext4_orphan_add`; returns what it changes besides the inode's block.
    pub async fn add<M: Machine>(&self, m: &M, inode: u32) -> Block {
        if self.file {
            return Block::Orphans(m.cpu() * STRIDE % BLOCKS);
        }
        m.lock(self.lock, Side::Write).await;
        m.touch(self.line, Access::Write);
        self.list.borrow_mut().push(inode);
        m.run(Account::System, self.costs.first).await;
        m.unlock(self.lock, Side::Write).await;
        Block::Superblock
    }

    /// `ext4_orphan_del`: the first of the list is named by the superblock, any other by the one before it, whose inode is changed
    /// under the lock.
    pub async fn delete<M: Machine>(&self, m: &M, inode: u32) -> Block {
        if self.file {
            return Block::Orphans(m.cpu() * STRIDE % BLOCKS);
        }
        m.lock(self.lock, Side::Write).await;
        m.touch(self.line, Access::Write);
        let before = self.take(inode);
        let time = if before.is_some() { self.costs.middle } else { self.costs.first };
        m.run(Account::System, time).await;
        m.unlock(self.lock, Side::Write).await;
        before.map_or(Block::Superblock, |before| Block::Inodes(before / INODES_PER_BLOCK))
    }

    /// `ext4_orphan_del` of what is no orphan, until the list is looked at before the lock is taken.
    pub async fn look<M: Machine>(&self, m: &M) {
        m.lock(self.lock, Side::Write).await;
        m.unlock(self.lock, Side::Write).await;
    }

    /// Takes an inode off the list; the one that names it, if it is not the first.
    fn take(&self, inode: u32) -> Option<u32> {
        let mut list = self.list.borrow_mut();
        let at = list.iter().position(|&other| other == inode)?;
        list.remove(at);
        list.get(at).copied()
    }

    /// The error names an inode that is still an orphan.
    pub fn audit(&self) -> Result<(), String> {
        let list = self.list.borrow();
        list.first().map_or(Ok(()), |inode| Err(format!("inode {inode} is still an orphan")))
    }
}
