//! Where dentries of different directories meet (`fs/dcache.c`): in the table of names that are being looked up, and on the lists
//! of dentries that nobody uses.
//!
//! What is done under these locks is a few stores, which the traced steps around them have: holds are those of the lines.

use crate::filesystems::by_slot::BySlot;
use crate::filesystems::costs::Costs;
use crate::filesystems::fs_type::FsType;
use crate::filesystems::names::negative::{Negative, Negatives};
use crate::filesystems::DirId;
use crate::kernel::vfs::DentryLru;
use crate::waist::Machine;
use crate::waist::{Access, CachedId, LineId, LockId, Side};

/// Lines of `in_lookup_hashtable`: 1,024 chains, each with a bit that locks it in a word of 8 bytes.
const IN_LOOKUP_LINES: u64 = 128;

/// A name that is being looked up: its chain of the table, and `i_dir_seq` of its directory.
pub struct Lookup {
    chain: LineId,
    i_dir_seq: LineId,
}

/// A name's number, whose upper half says where it is in tables.
pub(in crate::filesystems) fn hash(dir: DirId, name: &[u8]) -> u64 {
    let start = u64::from(dir).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    name.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

/// The table and the lists.
pub struct Dcache {
    /// None before 4.7, when the directory's lock was held for itself also by lookups.
    in_lookup: Vec<LineId>,
    /// Lines of `i_dir_seq`, of directories' inodes.
    i_dir_seq: BySlot<LineId>,
    /// By directory, dentries of a name that does not exist which somebody is about to kill.
    negative: BySlot<i32>,
    /// Names that are known to be missing; none where a dentry goes with its name.
    removed: Option<Negatives>,
    /// By file, the list that its dentry is on.
    listed: BySlot<u32>,
    /// For each node a lock, with the list's head in its line, and the list's last dentry. None where dentries are kept in use.
    unused: Vec<(LockId, LineId)>,
    cpus_per_node: u32,
}

impl Dcache {
    /// For a kernel's rules and a type of filesystem.
    pub fn new<M: Machine>(m: &M, fs: &FsType, costs: &Costs<'_>) -> Self {
        let rules = costs.rules();
        let class = m.class("vfs.dentry_lru_lock", "vfs.dentry_lru");
        let cpus_per_node = costs.cpus_per_node().clamp(1, m.cpus());
        let nodes = match rules.dentry_lru {
            _ if fs.in_memory => 0,
            DentryLru::Global => 1,
            DentryLru::PerNode => m.cpus().div_ceil(cpus_per_node),
        };
        let lines = if rules.parallel_lookups { IN_LOOKUP_LINES } else { 0 };
        Self {
            i_dir_seq: BySlot::default(),
            negative: BySlot::default(),
            removed: (!fs.in_memory && rules.unlink_keeps_dentry).then(Negatives::default),
            listed: BySlot::default(),
            in_lookup: (0..lines).map(|_| m.new_line("vfs.in_lookup_hashtable", 1)).collect(),
            unused: (0..nodes).map(|_| (m.new_lock(class), m.new_line("vfs.dentry_lru", 1))).collect(),
            cpus_per_node,
        }
    }

    /// The locks of the lists of dentries that nobody uses.
    pub fn lists(&self) -> Vec<LockId> {
        self.unused.iter().map(|(lock, _)| *lock).collect()
    }

    /// A dentry whose name has gone is not kept for another file of this name (`always_delete_dentry`).
    pub fn keeps_none(&self) -> bool {
        self.unused.is_empty()
    }

    /// A walk finds that the name does not exist (`__d_lookup_rcu`).
    pub fn is_negative(&self, dir: DirId) -> bool {
        self.negative.get(dir).is_some_and(|dentries| dentries > 0)
    }

    /// A dentry that says so is hashed, or no more.
    pub fn add_negative(&self, dir: DirId, change: i32) {
        self.negative.put(dir, self.negative.get(dir).unwrap_or_default() + change);
    }

    /// `d_alloc_parallel`: a name that is not known enters the table, after a look at `i_dir_seq`, which says whether the directory has changed
    /// meanwhile. Returns where, for [`Dcache::looked_up`].
    pub fn look_up<M: Machine>(&self, m: &M, dir: DirId, name: &[u8]) -> Option<Lookup> {
        let chain = *self.in_lookup.get(((hash(dir, name) >> 32) % IN_LOOKUP_LINES) as usize)?;
        let i_dir_seq = self.i_dir_seq.get_or_make(dir, || m.new_line("vfs.i_dir_seq", 1));
        m.touch(i_dir_seq, Access::Read);
        m.touch(chain, Access::Atomic);
        Some(Lookup { chain, i_dir_seq })
    }

    /// `__d_add`: it leaves the table, and the directory has changed (`start_dir_add`).
    pub fn looked_up<M: Machine>(&self, m: &M, lookup: Option<Lookup>) {
        if let Some(Lookup { chain, i_dir_seq }) = lookup {
            m.touch(i_dir_seq, Access::Atomic);
            m.touch(chain, Access::Atomic);
        }
    }

    /// The dentry of a name that is removed stays and says that it is missing.
    pub fn keeps_removed(&self) -> bool {
        self.removed.is_some()
    }

    /// The dentry by which a name is known to be missing (`d_lookup`).
    pub fn missing(&self, dir: DirId, name: &[u8]) -> Option<Negative> {
        self.removed.as_ref()?.get(dir, name)
    }

    /// It is that no more.
    pub fn take(&self, dir: DirId, name: &[u8]) -> Option<Negative> {
        self.removed.as_ref()?.take(dir, name)
    }

    /// A name is made. Whether the dentry was there, which is now that of the file in this slot, on its list of unused ones.
    pub fn found(&self, dir: DirId, name: &[u8], slot: Option<u32>) -> bool {
        let found = self.take(dir, name);
        if let (Some(list), Some(slot)) = (found.and_then(|found| found.list), slot) {
            self.listed.put(slot, list);
        }
        found.is_some()
    }

    /// `dentry_unlink_inode`: a name, the last of a file if its slot is told, is missing from now on.
    pub fn is_removed(&self, (dir, name): (DirId, &[u8]), slot: Option<u32>, memory: CachedId) {
        let list = slot.and_then(|slot| self.list_of(slot));
        if let Some(removed) = &self.removed {
            removed.put(dir, name, Negative { memory, list });
        }
    }

    /// A directory goes: how many names it is known not to have.
    pub fn forget(&self, dir: DirId) -> u64 {
        self.removed.as_ref().map_or(0, |removed| removed.forget(dir))
    }

    /// `d_lru_add`: the dentry of a file loses its last user.
    pub async fn unused_of<M: Machine>(&self, m: &M, slot: u32) {
        self.listed.put(slot, self.list_here(m));
        self.unused(m).await;
    }

    /// A file's dentry is on no list.
    pub fn forget_list(&self, slot: u32) {
        self.listed.forget(slot);
    }

    /// `d_lru_del` of a file's dentry.
    pub async fn unlist<M: Machine>(&self, m: &M, slot: u32) {
        self.leave(m, self.list_of(slot)).await;
    }

    /// The same of one on this list.
    pub async fn leave<M: Machine>(&self, m: &M, list: Option<u32>) {
        if let Some(list) = list {
            self.change_list(m, list).await;
        }
    }

    fn list_of(&self, slot: u32) -> Option<u32> {
        let list = self.listed.get(slot);
        self.listed.forget(slot);
        list
    }

    fn list_here<M: Machine>(&self, m: &M) -> u32 {
        m.cpu() / self.cpus_per_node % (self.unused.len() as u32).max(1)
    }

    /// `d_lru_add`, `list_lru_add`: the last user of a dentry has gone.
    pub async fn unused<M: Machine>(&self, m: &M) {
        self.change_list(m, self.list_here(m)).await;
    }

    async fn change_list<M: Machine>(&self, m: &M, list: u32) {
        let Some((lock, last)) = self.unused.get(list as usize) else { return };
        m.lock(*lock, Side::Write).await;
        m.touch(*last, Access::Write);
        m.pay().await;
        m.unlock(*lock, Side::Write).await;
    }
}
