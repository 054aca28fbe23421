//! What operations look at of structures that may have left the caches since: inodes, dentries, blocks.

use crate::filesystems::by_slot::BySlot;
use crate::filesystems::costs::Costs;
use crate::filesystems::fs_type::FsType;
use crate::filesystems::inodes::hash_table::HashTable;
use crate::filesystems::names::dcache::hash;
use crate::filesystems::DirId;
use crate::waist::CachedId;
use crate::waist::Machine;
use crate::waist::Time;
use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;

const LINE: u32 = 64;
/// `dcache_init`: a bucket for 8 KiB of memory.
const DCACHE_SCALE: u32 = 13;
/// A grace period takes two ticks at least, and callbacks are invoked in the next (`note_gp_changes`).
const GRACE_TICKS: Time = 3;

/// Cache lines that an operation looks at: `chain` of them one after the other, since each says where the next is, and `others` in
/// any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// One after the other.
    pub chain: u32,
    /// In any order.
    pub others: u32,
}

impl Looks {
    /// So many lines of a body, which the first leads to, after an index of so many.
    pub fn at(index: u32, lines: u32) -> Self {
        Self { chain: index + 1, others: lines.saturating_sub(1) }
    }

    /// How many bytes they are.
    pub fn bytes(self) -> u32 {
        (self.chain + self.others) * LINE
    }

    /// An operation looks at them.
    pub fn of<M: Machine>(self, m: &M, body: CachedId) {
        m.use_block(body, self.bytes());
        m.fetch_block(body, self.chain, self.others);
    }
}

/// How many bytes before the run a block was used of a structure that was there before: blocks lie in the order of their last use
/// as if shuffled.
pub fn used_ago(block: u64, blocks: u64, bytes: u32) -> u64 {
    let place = block.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32; // Weyl: even, and by number
    ((place * blocks) >> 32) * u64::from(bytes)
}

/// Memory that was freed, by CPU, and when. RCU gives it back after a grace period (`i_callback`, `__d_free`), first what was freed first: a
/// new file gets lines that were used thousands of files ago.
#[derive(Default)]
struct Freed(RefCell<Vec<VecDeque<(Time, CachedId)>>>);

impl Freed {
    fn here<M: Machine>(&self, m: &M) -> RefMut<'_, VecDeque<(Time, CachedId)>> {
        let cpu = m.cpu() as usize;
        RefMut::map(self.0.borrow_mut(), |freed| {
            if freed.len() <= cpu {
                freed.resize_with(cpu + 1, VecDeque::new);
            }
            &mut freed[cpu]
        })
    }

    fn push<M: Machine>(&self, m: &M, memory: CachedId) {
        self.here(m).push_back((m.now(), memory));
    }

    /// Where none was given back there is new one.
    fn pop<M: Machine>(&self, m: &M, grace: Time) -> CachedId {
        let mut freed = self.here(m);
        let given_back = freed.front().is_some_and(|&(at, _)| at + grace <= m.now());
        let memory = if given_back { freed.pop_front() } else { None };
        memory.map_or_else(|| m.new_block(0..0, None), |(_, memory)| memory)
    }
}

/// New memory for an inode and a dentry.
fn new_bodies<M: Machine>(m: &M) -> [CachedId; 2] {
    [m.new_block(0..0, None), m.new_block(0..0, None)]
}

/// The inodes and dentries of a mount's files, by slot.
pub struct InCore {
    files: BySlot<[CachedId; 2]>,
    freed_inodes: Freed,
    freed_dentries: Freed,
    /// A dentry is freed with its inode.
    dentry_goes: bool,
    grace: Time,
    /// Dentries that nobody has used yet, or that are on no list of unused ones.
    unlisted: RefCell<Vec<bool>>,
    /// `dentry_hashtable`.
    names: HashTable,
    /// A path walk finds the dentry.
    walk: Looks,
    /// It is made or freed.
    dentry: Looks,
    /// An inode that is used, and one that is made or freed.
    used: Looks,
    whole: Looks,
}

impl InCore {
    /// Of a type of filesystem; the error names what is missing.
    pub fn new(costs: &Costs<'_>, fs: &FsType) -> Result<Self, String> {
        let lines = |name: &str| costs.number(name).map(|n| n as u32);
        let dentry = lines("vfs_dentry.struct")?;
        let used = lines("vfs_inode.used")? + fs.inode_lines(costs, "used")?;
        Ok(Self {
            files: BySlot::default(),
            freed_inodes: Freed::default(),
            freed_dentries: Freed::default(),
            dentry_goes: fs.in_memory,
            grace: GRACE_TICKS * costs.tick(),
            unlisted: RefCell::default(),
            names: HashTable::new(costs, fs, DCACHE_SCALE)?,
            walk: Looks::at(lines("vfs_dentry.index")?, dentry),
            dentry: Looks::at(0, dentry),
            used: Looks::at(0, used),
            whole: Looks::at(0, fs.inode_lines(costs, "struct")?),
        })
    }

    fn of<M: Machine>(&self, m: &M, slot: u32) -> [CachedId; 2] {
        self.files.get_or_make(slot, || new_bodies(m))
    }

    /// `d_lookup` finds no dentry of a name.
    pub fn not_found<M: Machine>(&self, m: &M, dir: DirId, name: &[u8]) {
        self.names.look_up(m, hash(dir, name));
    }

    /// A path walk finds a file.
    pub fn found<M: Machine>(&self, m: &M, slot: u32) {
        let [inode, dentry] = self.of(m, slot);
        self.walk.of(m, dentry);
        self.used.of(m, inode);
    }

    /// A call comes by an open file.
    pub fn held<M: Machine>(&self, m: &M, slot: u32) {
        self.used.of(m, self.of(m, slot)[0]);
    }

    /// The last user of an open file closes it, who gives its dentry back.
    pub fn closed<M: Machine>(&self, m: &M, slot: u32) {
        self.held(m, slot);
        self.whole_dentry(m, slot);
    }

    /// An inode is made in memory that was one before, or is new and comes with the time that it takes; or all of one is freed.
    pub fn whole_inode<M: Machine>(&self, m: &M, slot: u32) {
        self.whole.of(m, self.of(m, slot)[0]);
    }

    /// The same of a dentry.
    pub fn whole_dentry<M: Machine>(&self, m: &M, slot: u32) {
        self.dentry.of(m, self.of(m, slot)[1]);
    }

    /// An inode whose memory RCU frees is evicted. XFS uses it again for the same number (`xfs_iget_recycle`).
    pub fn evicted<M: Machine>(&self, m: &M, slot: u32) {
        self.whole_inode(m, slot);
        let [inode, dentry] = self.of(m, slot);
        self.freed_inodes.push(m, inode);
        if self.dentry_goes {
            self.freed_dentries.push(m, dentry);
        }
    }

    /// The memory of a file's dentry.
    pub fn dentry_of<M: Machine>(&self, m: &M, slot: u32) -> CachedId {
        self.of(m, slot)[1]
    }

    /// That of a dentry is freed.
    pub fn free_dentry<M: Machine>(&self, m: &M, memory: CachedId) {
        self.freed_dentries.push(m, memory);
    }

    /// `d_lookup` finds a dentry that says that a name is missing.
    pub fn found_missing<M: Machine>(&self, m: &M, dentry: CachedId) {
        self.walk.of(m, dentry);
    }

    /// A file's inode and dentry are not in memory when the run begins.
    pub fn leaves_memory(&self, slot: u32) {
        self.files.forget(slot);
        if let Some(unlisted) = self.unlisted.borrow_mut().get_mut(slot as usize) {
            *unlisted = false;
        }
    }

    /// An inode is made.
    pub fn made_inode<M: Machine>(&self, m: &M, slot: u32) {
        self.replace(m, slot, 0, self.freed_inodes.pop(m, self.grace));
        self.whole_inode(m, slot);
    }

    fn replace<M: Machine>(&self, m: &M, slot: u32, which: usize, memory: CachedId) {
        let mut bodies = self.of(m, slot);
        bodies[which] = memory;
        self.files.put(slot, bodies);
    }

    /// A file has the dentry that said that its name is missing. That is on a list of unused ones.
    pub fn has_dentry<M: Machine>(&self, m: &M, slot: u32, dentry: CachedId) {
        self.replace(m, slot, 1, dentry);
    }

    /// A dentry is made.
    pub fn made_dentry<M: Machine>(&self, m: &M, slot: u32) {
        self.replace(m, slot, 1, self.freed_dentries.pop(m, self.grace));
        self.whole_dentry(m, slot);
        let mut unlisted = self.unlisted.borrow_mut();
        if unlisted.len() <= slot as usize {
            unlisted.resize(slot as usize + 1, false);
        }
        unlisted[slot as usize] = true;
    }

    /// Whether a dentry that has lost its last user goes onto the list of unused ones now. It stays there while it is used again.
    pub fn enters_list(&self, slot: u32) -> bool {
        self.unlisted.borrow_mut().get_mut(slot as usize).is_some_and(std::mem::take)
    }
}
