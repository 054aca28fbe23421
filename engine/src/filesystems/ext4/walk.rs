//! A walk through directories whose files are not in memory: `getdents` and, for each name, a `stat` that finds the name (`ext4_lookup`)
//! and reads the inode (`__ext4_iget`). Blocks of the inode table are read ahead 32 at a time (`inode_readahead_blks`) by whoever needs the
//! first inode of them; blocks of directories are taken for read. Each block that is asked for is looked for among those that the CPU knows,
//! and then under `private_lock` (`__ext4_read_dirblock` and `__ext4_get_inode_loc`, by `sb_getblk`).

use super::ialloc::INODES_PER_BLOCK;
use super::known_buffers::Buffer;
use super::walk_order::place;
use super::Ext4;
use crate::cost_table;
use crate::filesystems::costs::Costs;
use crate::filesystems::inodes::listed::{self, Entry};
use crate::filesystems::{DirId, BLOCK};
use crate::waist::Machine;
use crate::waist::{Access, Account, Side, Time};

cost_table!(WalkCosts {
    before: ["openat.before_i_rwsem"],
    lookup: ["openat.under_i_rwsem"],
    dx_probe: ["walk.dx_probe"],
    iget: ["walk.iget"],
    stat: ["call.fstat"],
});

/// Blocks of the inode table that are read together.
const READ_AHEAD: u32 = 32;

/// The times of a walk.
pub(super) struct Walk(WalkCosts);

impl Walk {
    /// From the cost tables.
    pub fn new(costs: &Costs<'_>) -> Result<Self, String> {
        WalkCosts::new(costs).map(Self)
    }
}

impl Ext4 {
    /// The `nth` file of a directory: its part of `getdents`, and `stat`. Inodes lie in the order of their files.
    pub(super) async fn walk_to<M: Machine>(&self, m: &M, dir: DirId, nth: u32) {
        m.at("walk");
        let (c, (i_rwsem, line, names)) = (&self.walk.0, self.directory(dir));
        let at = place(dir, nth, names, self.leaves(dir));
        self.list_leaf(m, dir, nth, at.listed).await;
        m.run(Account::System, self.sb.calls.readdir_name() + c.before).await;
        m.lock(i_rwsem, Side::Read).await; // lookup_slow
        m.touch(line, Access::Read);
        self.find_name(m, dir, at.leaf).await;
        m.run(Account::System, c.lookup + self.finds_name(dir, names)).await;
        let number = u64::from(dir) << 32 | u64::from(nth);
        let first = nth.is_multiple_of(READ_AHEAD * INODES_PER_BLOCK);
        self.read_inode(m, (listed::OTHERS, number), Buffer::Inodes(dir, at.inodes), first).await;
        m.unlock(i_rwsem, Side::Read).await;
        m.run(Account::System, c.stat).await;
        self.sb.calls.dcache.unused(m).await;
    }

    /// `ext4_lookup` of a name whose file is not in memory.
    pub(super) async fn look_up_cold<M: Machine>(&self, m: &M, dir: DirId, name: &[u8], slot: u32) {
        let (_, line, names) = self.directory(dir);
        m.touch(line, Access::Read);
        self.find_name(m, dir, self.leaf_with(dir, name)).await;
        m.run(Account::System, self.walk.0.lookup + self.finds_name(dir, names)).await;
        let inode = self.files.borrow().slots[slot as usize].inode;
        let block = inode / INODES_PER_BLOCK;
        let first = self.sb.cold.reads(u64::from(block / READ_AHEAD));
        self.read_inode(m, (listed::file(slot), u64::from(slot)), Buffer::Table(block), first).await;
    }

    /// `__ext4_iget`, by its entry in the list and its number in the hash table; the first who needs one of these blocks reads them.
    async fn read_inode<M: Machine>(&self, m: &M, (entry, number): (Entry, u64), block: Buffer, first: bool) {
        self.storage.memory.add_inode(m, &self.storage.writeback).await;
        let step = self.sb.inodes.look_up(m, number, self.walk.0.iget).await;
        let rest = self.sb.inodes.enter(m, entry, Some(number), step).await;
        self.info.get_block(m, block).await; // __ext4_get_inode_loc
        m.run(Account::System, rest).await;
        if first {
            self.storage.read(m, READ_AHEAD * BLOCK).await;
        }
    }

    /// `ext4_htree_fill_tree`: a leaf, if listing has just come to it; its root is asked for at each part.
    async fn list_leaf<M: Machine>(&self, m: &M, dir: DirId, nth: u32, leaf: u32) {
        let (_, _, names) = self.directory(dir);
        if nth == 0 || place(dir, nth - 1, names, self.leaves(dir)).listed != leaf {
            self.info.get_block(m, Buffer::Leaf(dir, leaf)).await;
        }
    }

    /// `dx_probe` reads the root, `ext4_dx_find_entry` the leaf; a directory of one block has no other.
    async fn find_name<M: Machine>(&self, m: &M, dir: DirId, leaf: u32) {
        if self.is_htree(dir) {
            self.info.get_block(m, Buffer::Root(dir)).await;
        }
        self.info.get_block(m, Buffer::Leaf(dir, leaf)).await;
    }

    /// How long the search for a name that is there takes: it ends in the middle of its block (`ext4_search_dir`), on the mean.
    fn finds_name(&self, dir: DirId, names: u32) -> Time {
        let search = self.entry.search * u64::from(names / self.leaves(dir).max(1)) / 2;
        search + if self.is_htree(dir) { self.walk.0.dx_probe } else { 0 }
    }
}
