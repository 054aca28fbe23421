//! When a subvolume changed last: whoever changes an inode writes it into the root's item in memory, under a spinlock of the root
//! (`btrfs_update_root_times` of `fs/btrfs/root-tree.c`, called by `btrfs_update_inode` and for each new inode).

use super::mount::Btrfs;
use crate::filesystems::costs::Costs;
use crate::waist::{Access, LineId, LockId, Machine, Side};

/// The root's `ctransid` and `ctime`.
pub struct RootTimes {
    lock: LockId,
    times: LineId,
    lines: u32,
}

impl RootTimes {
    /// Those of a subvolume; the error names a cost that is missing.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self::of_lines(m, costs.number("btrfs_root.times")? as u32))
    }

    /// Those of another subvolume.
    pub fn another<M: Machine>(&self, m: &M) -> Self {
        Self::of_lines(m, self.lines)
    }

    fn of_lines<M: Machine>(m: &M, lines: u32) -> Self {
        let lock = m.new_lock(m.class("btrfs.root_item_lock", "btrfs.root_item_lock"));
        Self { lock, times: m.new_line("btrfs.root item times", lines), lines }
    }
}

impl Btrfs {
    /// `btrfs_update_root_times` for an inode of the root; its stores are in the time of the step that it is part of.
    pub(super) async fn update_root_times<M: Machine>(&self, m: &M, ino: u64) {
        let RootTimes { lock, times, .. } = self.fs_root(ino).times;
        m.lock(lock, Side::Write).await;
        m.touch(times, Access::Write);
        m.unlock(lock, Side::Write).await;
    }
}
