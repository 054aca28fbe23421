//! Where all inodes of a kernel meet: the hash table under `inode_hash_lock`, and the superblock's list (`fs/inode.c`).
//!
//! What is done under these locks is part of a traced step: callers hand in the step's time and get back what is left of it.

use crate::filesystems::costs::Costs;
use crate::filesystems::fs_type::FsType;
use crate::filesystems::inodes::hash_table::HashTable;
use crate::filesystems::inodes::inode_list::InodeLists;
use crate::filesystems::inodes::listed::Entry;
use crate::kernel::vfs::{InodeHash, InodeLookup};
use crate::memory::{hash_buckets, Held};
use crate::waist::time::from_ns;
use crate::waist::Machine;
use crate::waist::{Account, LockId, Side, Time};
use std::cell::Cell;
use std::rc::Rc;

/// Chains that stand for those of a hash table with a lock each. A real table has a million, where two tasks never meet.
const CHAINS: usize = 1024;

/// The hash table and the list.
pub struct InodeCache {
    hash: Vec<LockId>,
    hash_hold: Time,
    table: HashTable,
    chains: Chains,
    lookup: InodeLookup,
    s_inodes: InodeLists,
}

/// Who looks for an inode that is not there goes along a chain (`find_inode_fast`): where inodes do not fit into the caches, each of it
/// is a load from memory that says where the next one is.
struct Chains {
    inodes: Rc<Cell<u64>>,
    buckets: Option<u64>,
    load_ns: f64,
}

impl Chains {
    fn new(costs: &Costs<'_>) -> Result<Self, String> {
        let inodes = Rc::new(Cell::new(costs.number("cached_inodes")? as u64));
        Ok(Self { inodes, buckets: costs.memory().map(|memory| hash_buckets(memory, SCALE)), load_ns: costs.load_ns() })
    }

    /// Time for the mean chain, in whole nanoseconds.
    fn time(&self) -> Time {
        let length = self.buckets.map_or(0.0, |buckets| self.inodes.get() as f64 / buckets as f64);
        from_ns((length * self.load_ns).floor())
    }
}

/// `inode_init`: a bucket for 16 KiB of memory.
const SCALE: u32 = 14;

impl InodeCache {
    /// Makes the locks; the error names a cost that is missing.
    pub fn new<M: Machine>(m: &M, fs: &FsType, costs: &Costs<'_>) -> Result<Self, String> {
        let rules = costs.rules();
        let hash = m.class("vfs.inode_hash_lock", "vfs.inode_hash");
        let s_inodes = InodeLists::of_superblock(m, costs)?;
        let chains = if rules.inode_hash == InodeHash::Global { 1 } else { CHAINS };
        Ok(Self {
            hash: (0..chains).map(|_| m.new_lock(hash)).collect(),
            hash_hold: costs.sum(&["inode_hash"])?,
            table: HashTable::new(costs, fs, SCALE)?,
            chains: Chains::new(costs)?,
            lookup: rules.inode_lookup,
            s_inodes,
        })
    }

    /// Looks for an inode that is not in memory (`iget_locked`, `iget5_locked`), under the lock of its chain or under RCU. Returns what is
    /// left of the `step` that this is part of.
    pub async fn look_up<M: Machine>(&self, m: &M, number: u64, step: Time) -> Time {
        let time = self.hash_hold + self.chains.time();
        self.table.look_up(m, hash(number));
        match self.lookup {
            InodeLookup::Locked => self.hash(m, Some(number), time, step).await,
            InodeLookup::Rcu => {
                m.run(Account::System, time).await;
                step.saturating_sub(time)
            }
        }
    }

    /// An inode comes onto the list (`inode_sb_list_add`), and at `hashed` into the hash table if the filesystem uses it, after another look
    /// along its chain (`insert_inode_locked`). Returns what is left of the `step` that this is part of.
    pub async fn enter<M: Machine>(&self, m: &M, inode: Entry, hashed: Option<u64>, step: Time) -> Time {
        let time = self.hash_hold + hashed.map_or(0, |_| self.chains.time());
        if let Some(number) = hashed {
            self.table.look_up(m, hash(number));
            self.chains.inodes.set(self.chains.inodes.get() + 1);
        }
        let rest = self.hash(m, hashed, time, step).await;
        rest.saturating_sub(self.s_inodes.add(m, inode).await)
    }

    /// An inode is in neither when the run begins.
    pub fn leaves_memory(&self, inode: Entry, hashed: bool) {
        self.s_inodes.leaves_memory(inode);
        let inodes = &self.chains.inodes;
        inodes.set(inodes.get().saturating_sub(u64::from(hashed)));
    }

    /// An inode leaves both (`inode_sb_list_del`, `remove_inode_hash`). Returns what is left of the `step` that this is part of.
    pub async fn leave<M: Machine>(&self, m: &M, inode: Entry, hashed: Option<u64>, step: Time) -> Time {
        if hashed.is_some() {
            self.chains.inodes.set(self.chains.inodes.get().saturating_sub(1));
        }
        let rest = self.hash(m, hashed, self.hash_hold, step).await;
        rest.saturating_sub(self.s_inodes.remove(m, inode).await)
    }

    /// What an inode takes that goes because memory is short (`evict`); in the hash table if the filesystem uses it.
    pub fn held(&self, hashed: bool) -> Vec<Held> {
        let hash = Held { locks: self.hash.clone(), hold: self.hash_hold, count: Some(self.chains.inodes.clone()) };
        std::iter::once(self.s_inodes.held()).chain(hashed.then_some(hash)).collect()
    }

    async fn hash<M: Machine>(&self, m: &M, hashed: Option<u64>, hold: Time, step: Time) -> Time {
        let Some(number) = hashed else { return step };
        let chain = self.chain(number);
        m.lock(chain, Side::Write).await;
        m.run(Account::System, hold).await;
        m.unlock(chain, Side::Write).await;
        step.saturating_sub(hold)
    }

    fn chain(&self, number: u64) -> LockId {
        self.hash[(hash(number) >> 32) as usize % self.hash.len()]
    }
}

/// An inode's number, spread; the upper half says where it is in tables.
fn hash(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
