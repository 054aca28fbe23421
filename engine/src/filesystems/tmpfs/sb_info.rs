//! `struct shmem_sb_info`: inodes that may still be made, and since 5.9 the next inode's number, under `stat_lock` (`shmem_reserve_inode`,
//! `shmem_free_inode` of an eviction). A mount has a limit of inodes unless it says otherwise.
//!
//! It is a few stores, which the traced steps around them have: holds are those of the lines. `free_ispace` (before 6.6 `free_inodes`) is at 56,
//! the lock at 64 with what else is written: two lines.

use crate::waist::{Access, LineId, LockId, Machine, Side};

pub(super) struct SbInfo {
    stat_lock: LockId,
    free_ispace: LineId,
}

impl SbInfo {
    /// Of a mount.
    pub fn new<M: Machine>(m: &M) -> Self {
        let stat_lock = m.new_lock(m.class("tmpfs.stat_lock", "tmpfs.stat_lock"));
        Self { stat_lock, free_ispace: m.new_line("tmpfs.free_ispace", 1) }
    }

    /// An inode more, or one less.
    pub async fn count_inode<M: Machine>(&self, m: &M) {
        m.lock(self.stat_lock, Side::Write).await;
        m.touch(self.free_ispace, Access::Write);
        m.touch_beside(self.stat_lock, Access::Write);
        m.pay().await;
        m.unlock(self.stat_lock, Side::Write).await;
    }
}
