//! Where all inodes of a kernel meet: the hash table under `inode_hash_lock`, and the superblock's list under
//! `s_inode_list_lock` (`fs/inode.c`).
//!
//! What is done under these locks is part of a traced step: callers hand in the step's time and get back what is left of it.

use super::costs::Costs;
use crate::kernel::vfs::{InodeHash, InodeList};
use crate::waist::Machine;
use crate::waist::{Access, Account, LineId, LockId, Side, Time};

/// Chains that stand for those of a hash table with a lock each. A real table has a million, where two tasks never meet.
const CHAINS: usize = 1024;

/// The hash table and the list.
pub struct InodeCache {
    hash: Vec<LockId>,
    hash_hold: Time,
    lists: Vec<(LockId, LineId)>,
    list_hold: Time,
}

impl InodeCache {
    /// Makes the locks; the error names a cost that is missing.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let rules = costs.rules();
        let (hash, list) =
            (m.class("vfs.inode_hash_lock", "vfs.inode_hash"), m.class("vfs.s_inode_list_lock", "vfs.inode_list"));
        let chains = if rules.inode_hash == InodeHash::Global { 1 } else { CHAINS };
        let lists = if rules.inode_list == InodeList::Global { 1 } else { m.cpus() as usize };
        // The list's head lies in the lock's line; the old first inode's pointers in another.
        let neighbours = (costs.number("vfs_sb.inode_list")? as u32).saturating_sub(1).max(1);
        Ok(Self {
            hash: (0..chains).map(|_| m.new_lock(hash)).collect(),
            hash_hold: costs.sum(&["inode_hash"])?,
            lists: (0..lists).map(|_| (m.new_lock(list), m.new_line(neighbours))).collect(),
            list_hold: costs.sum(&["inode_list"])?,
        })
    }

    /// An inode enters or leaves the list (`inode_sb_list_add`, `inode_sb_list_del`), and the hash table at `hashed` if the
    /// filesystem uses it. Returns what is left of the `step` that this is part of.
    pub async fn pass<M: Machine>(&self, m: &M, hashed: Option<u64>, step: Time) -> Time {
        let mut rest = step;
        if let Some(number) = hashed {
            let chain = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % self.hash.len();
            rest = Self::under(m, self.hash[chain], None, self.hash_hold, rest).await;
        }
        let (lock, neighbour) = self.lists[m.cpu() as usize % self.lists.len()];
        Self::under(m, lock, Some(neighbour), self.list_hold, rest).await
    }

    async fn under<M: Machine>(m: &M, lock: LockId, line: Option<LineId>, hold: Time, step: Time) -> Time {
        m.lock(lock, Side::Write).await;
        if let Some(line) = line {
            m.touch(line, Access::Write);
        }
        m.run(Account::System, hold).await;
        m.unlock(lock, Side::Write).await;
        step.saturating_sub(hold)
    }
}
