//! Orphans: inodes without a name, or that are being truncated (`fs/ext4/orphan.c`). They are on a list through the superblock
//! and the inodes, under `s_orphan_lock`; or in blocks of the orphan file, where each CPU begins at another and needs no lock.
//!
//! The list is there twice, and what changes it under the lock is with other CPUs: in memory through the inodes (`i_orphan`), where neighbours are
//! stored to; on disk from the superblock (`s_last_orphan`) to the next inode (`NEXT_ORPHAN`, `i_dtime`). So whoever leaves from the middle
//! writes the inode before it into its block: the whole inode, as other CPUs have it in memory (`ext4_reserve_inode_write`,
//! `ext4_mark_iloc_dirty`, fs/ext4/orphan.c 6.18; in fs/ext4/namei.c before 5.15). The first of the list has the superblock name the next:
//! its buffer is locked, and the checksum written.

use super::ialloc::INODES_PER_BLOCK;
use super::inode_table::InodeTable;
use super::journal::Block;
use crate::cost_table;
use crate::filesystems::costs::Costs;
use crate::filesystems::inodes::listed::{Lists, Pointers};
use crate::waist::Machine;
use crate::waist::{Access, Account, LineId, LockId, Side, Time};

cost_table!(OrphanCosts { first: ["orphan.first"], middle: ["orphan.middle"] });

/// From one CPU's first block of the orphan file to the next one's.
const STRIDE: u32 = 13;
/// Blocks of the orphan file of a filesystem of 8 GiB and more (`mke2fs`).
const BLOCKS: u32 = 512;

/// There is one list.
const LIST: u32 = 0;

/// Where orphans are noted.
pub(super) struct Orphans {
    costs: OrphanCosts,
    /// `s_orphan_lock`, in one line with the list's head.
    lock: LockId,
    superblock: Superblock,
    /// Inodes on the list, the newest first.
    list: Lists,
    inodes: Inodes,
    /// There is an orphan file.
    file: bool,
}

/// What is written of the superblock, and of its buffer: on disk `s_last_orphan` is at 232, `s_checksum` at 1,020.
struct Superblock {
    /// Its buffer is locked meanwhile; before, the checksum is written when `s_orphan_lock` is free.
    locked: bool,
    buffer: LineId,
    last_orphan: LineId,
    checksum: LineId,
}

impl Superblock {
    /// `s_last_orphan` changes.
    fn name<M: Machine>(&self, m: &M) {
        if self.locked {
            m.touch(self.buffer, Access::Atomic);
        }
        m.touch(self.last_orphan, Access::Write);
        if self.locked {
            m.touch(self.checksum, Access::Store);
            m.touch(self.buffer, Access::Atomic);
        }
    }

    /// `ext4_handle_dirty_super`.
    fn dirty<M: Machine>(&self, m: &M) {
        if !self.locked {
            m.touch(self.checksum, Access::Write);
        }
    }
}

/// Lines of inodes on the list.
struct Inodes {
    /// `i_orphan` and `i_raw_lock`.
    linked: Pointers,
    /// What is copied when one is written, and where to.
    fields: Pointers,
    on_disk: Pointers,
}

impl Inodes {
    /// A task has changed an inode of its own.
    fn own<M: Machine>(&self, m: &M, inode: u32) {
        [&self.linked, &self.fields, &self.on_disk]
            .iter()
            .for_each(|lines| lines.touch(m, inode.into(), Access::Write));
    }

    fn free<M: Machine>(&self, m: &M, inode: u32) {
        [&self.linked, &self.fields, &self.on_disk].iter().for_each(|lines| lines.free(m, inode.into()));
    }
}

impl Orphans {
    /// Nobody is one.
    pub fn new<M: Machine>(m: &M, file: bool, costs: &Costs<'_>) -> Result<Self, String> {
        let lines = |name: &str| costs.number(name).map(|n| n as u32);
        Ok(Self {
            costs: OrphanCosts::new(costs)?,
            lock: m.new_lock(m.class("ext4.orphan lock", "ext4.orphan")),
            superblock: Superblock {
                locked: costs.rules().locked_superblock,
                buffer: m.new_line("ext4.superblock b_count", 1),
                last_orphan: m.new_line("ext4.s_last_orphan", 1),
                checksum: m.new_line("ext4.s_checksum", 1),
            },
            list: Lists::default(),
            inodes: Inodes {
                linked: Pointers::of_list(costs.rules().debug_list),
                fields: Pointers::of_span(lines("ext4_orphan.inode")?),
                on_disk: Pointers::of_span(lines("ext4_orphan.on_disk")?),
            },
            file,
        })
    }

    /// `s_orphan_lock`.
    pub fn lock(&self) -> LockId {
        self.lock
    }

    /// They are in a list through inodes on disk.
    pub fn are_listed(&self) -> bool {
        !self.file
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
        self.inodes.own(m, inode);
        m.lock(self.lock, Side::Write).await;
        self.superblock.name(m);
        m.touch_beside(self.lock, Access::Write);
        let first = self.list.add(LIST, inode.into());
        self.inodes.linked.relink(m, first);
        m.run(Account::System, self.costs.first).await;
        m.unlock(self.lock, Side::Write).await;
        self.superblock.dirty(m);
        Block::Superblock
    }

    /// `ext4_orphan_del`: the first of the list is named by the superblock, any other by the one before it, whose inode is changed
    /// under the lock.
    pub async fn delete<M: Machine>(&self, m: &M, inode: u32, table: &InodeTable) -> Block {
        if self.file {
            return Block::Orphans(m.cpu() * STRIDE % BLOCKS);
        }
        m.lock(self.lock, Side::Write).await;
        let before = self.take(m, inode);
        let time = match before {
            Some(before) => {
                self.write_other(m, before, table).await;
                self.costs.middle
            }
            None => {
                self.superblock.name(m);
                self.costs.first
            }
        };
        m.run(Account::System, time).await;
        m.unlock(self.lock, Side::Write).await;
        if before.is_none() {
            self.superblock.dirty(m);
        }
        self.inodes.own(m, inode); // which is written after this
        self.inodes.free(m, inode);
        before.map_or(Block::Superblock, |before| Block::Inodes(before / INODES_PER_BLOCK))
    }

    /// `ext4_orphan_del` of what is no orphan, until the list is looked at before the lock is taken.
    pub async fn look<M: Machine>(&self, m: &M) {
        m.lock(self.lock, Side::Write).await;
        m.unlock(self.lock, Side::Write).await;
    }

    /// Takes an inode off the list (`list_del_init`); the one that names it, if it is not the first.
    fn take<M: Machine>(&self, m: &M, inode: u32) -> Option<u32> {
        self.inodes.linked.touch(m, inode.into(), Access::Write);
        let [before, next] = self.list.remove(inode.into());
        if before.is_none() {
            m.touch_beside(self.lock, Access::Write);
        }
        self.inodes.linked.relink(m, [before, next].into_iter().flatten());
        before.map(|before| before as u32)
    }

    /// `ext4_reserve_inode_write` and `ext4_mark_iloc_dirty` of another's inode.
    async fn write_other<M: Machine>(&self, m: &M, inode: u32, table: &InodeTable) {
        table.use_block(m, inode, 0).await;
        self.inodes.linked.touch(m, inode.into(), Access::Atomic); // i_raw_lock
        self.inodes.fields.touch(m, inode.into(), Access::Read);
        self.inodes.on_disk.touch(m, inode.into(), Access::Write);
    }

    /// The error names an inode that is still an orphan.
    pub fn audit(&self) -> Result<(), String> {
        self.list.first(LIST).map_or(Ok(()), |inode| Err(format!("inode {inode} is still an orphan")))
    }
}
