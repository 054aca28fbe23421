//! Locks of block groups (`ext4_lock_group`): groups share them, and one count says how often somebody had to wait. And their descriptors.

use super::ialloc::FLEX;
use crate::waist::Machine;
use crate::waist::{Access, LineId, LockId, Side};
use std::cell::Cell;
use std::rc::Rc;

/// Locks that all groups share (`NR_BG_LOCKS` of a kernel for 32 CPUs and more).
const LOCKS: u32 = 128;
/// The most that the count of waits rises to (`EXT4_MAX_CONTENTION`).
const MOST: u32 = 8;

/// The locks of all groups.
#[derive(Clone)]
pub(super) struct GroupLocks {
    locks: Rc<[LockId]>,
    /// `s_lock_busy`: its line, and how far it is.
    busy: (LineId, Rc<Cell<u32>>),
}

/// `struct ext4_group_desc` of all groups: whoever takes or frees an inode or blocks writes the counts and the checksum, whoever looks
/// for an inode's block reads where the table is.
#[derive(Clone)]
pub(super) struct Descriptors(Rc<[LineId]>);

impl Descriptors {
    /// By group.
    pub fn new(lines: impl Iterator<Item = LineId>) -> Self {
        Self(lines.collect())
    }

    /// The line of a group's.
    pub fn of(&self, group: u32) -> LineId {
        self.0[group as usize]
    }
}

/// `struct flex_groups` of all flex groups: free inodes, directories and free blocks.
#[derive(Clone)]
pub(super) struct FlexGroups {
    counts: Rc<[LineId]>,
    /// The line of `s_lock_busy`, in which `s_flex_groups`, `s_log_groups_per_flex` and `s_locality_groups` are.
    beside: LineId,
}

/// Flex groups whose counts share a line: each has 16 bytes.
const COUNTS: u32 = 4;

impl FlexGroups {
    /// Those of so many groups.
    pub fn new<M: Machine>(m: &M, groups: u64, locks: &GroupLocks) -> Self {
        let counts =
            (0..groups.div_ceil(u64::from(FLEX * COUNTS))).map(|_| m.new_line("ext4.s_flex_groups", 1)).collect();
        Self { counts, beside: locks.busy.0 }
    }

    /// A count of a group's flex group changes.
    pub async fn count<M: Machine>(&self, m: &M, group: u32) {
        self.look(m).await;
        m.touch(self.counts[(group / (FLEX * COUNTS)) as usize], Access::Atomic);
        m.settle().await;
    }

    /// Which flex group, or whose blocks of a CPU, is looked up.
    pub async fn look<M: Machine>(&self, m: &M) {
        m.touch(self.beside, Access::Read);
        m.settle().await;
    }
}

impl GroupLocks {
    /// Free ones for so many groups.
    pub fn new<M: Machine>(m: &M, groups: u64) -> Self {
        let class = m.class("ext4.group lock", "ext4.group_spin");
        let locks = (0..groups.min(u64::from(LOCKS))).map(|_| m.new_lock(class)).collect();
        Self { locks, busy: (m.new_line("ext4.s_lock_busy", 1), Rc::default()) }
    }

    fn of(&self, group: u32) -> LockId {
        self.locks[(group % LOCKS) as usize % self.locks.len()]
    }

    /// `ext4_lock_group`.
    pub async fn lock<M: Machine>(&self, m: &M, group: u32) {
        if !self.try_lock(m, group) {
            self.count(m, |busy| (busy + 1).min(MOST));
            m.lock(self.of(group), Side::Write).await;
        }
    }

    /// `ext4_try_lock_group`.
    pub fn try_lock<M: Machine>(&self, m: &M, group: u32) -> bool {
        let taken = m.try_lock(self.of(group), Side::Write);
        if taken {
            self.count(m, |busy| busy.saturating_sub(1));
        }
        taken
    }

    /// `atomic_add_unless`: who need not change the count only reads it.
    fn count<M: Machine>(&self, m: &M, change: impl Fn(u32) -> u32) {
        let (line, count) = &self.busy;
        let before = count.replace(change(count.get()));
        m.touch(*line, if before == count.get() { Access::Read } else { Access::Write });
    }

    /// `ext4_unlock_group`.
    pub async fn unlock<M: Machine>(&self, m: &M, group: u32) {
        m.unlock(self.of(group), Side::Write).await;
    }
}
