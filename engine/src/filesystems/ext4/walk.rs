//! A walk through directories whose files are not in memory: `getdents` and, for each name, a `stat` that finds the name (`ext4_lookup`)
//! and reads the inode (`__ext4_iget`). Blocks of the inode table are read ahead 32 at a time (`inode_readahead_blks`) by whoever needs the
//! first inode of them; blocks of directories are taken for read.

use super::ialloc::INODES_PER_BLOCK;
use super::Ext4;
use crate::cost_table;
use crate::filesystems::costs::Costs;
use crate::filesystems::inodes::listed;
use crate::filesystems::{DirId, BLOCK};
use crate::waist::Machine;
use crate::waist::{Access, Account, Side};

cost_table!(WalkCosts {
    before: ["openat.before_i_rwsem"],
    lookup: ["openat.under_i_rwsem"],
    iget: ["cu_short.ext4_journal_start_sb"],
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
        let (c, (i_rwsem, line, _)) = (&self.walk.0, self.directory(dir));
        m.run(Account::System, self.sb.calls.readdir_name() + c.before).await;
        m.lock(i_rwsem, Side::Read).await; // lookup_slow
        m.touch(line, Access::Read);
        let htree = if self.is_htree(dir) { self.htree.lookup.saturating_sub(self.htree.lookup_linear) } else { 0 };
        m.run(Account::System, c.lookup + htree).await;
        let number = u64::from(dir) << 32 | u64::from(nth);
        self.storage.memory.add_inode(m, &self.storage.writeback).await;
        let step = self.sb.inodes.look_up(m, number, c.iget).await;
        let rest = self.sb.inodes.enter(m, listed::OTHERS, Some(number), step).await;
        m.run(Account::System, rest).await;
        if nth.is_multiple_of(READ_AHEAD * INODES_PER_BLOCK) {
            self.storage.read(m, READ_AHEAD * BLOCK).await;
        }
        m.unlock(i_rwsem, Side::Read).await;
        m.run(Account::System, c.stat).await;
        self.sb.calls.dcache.unused(m).await;
    }
}
