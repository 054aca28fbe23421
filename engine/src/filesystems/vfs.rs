//! The layer above every filesystem: freeze protection, the directory's `i_rwsem`, the victim's, the inode cache.

use super::calls::Calls;
use super::costs::Costs;
use super::inode_cache::InodeCache;
use crate::machine::{Account, ClassId, LockId, Side, Time};
use crate::waist::Machine;

/// What all filesystems of one mount share.
pub struct SuperBlock {
    /// `sb_start_write`: a percpu-rwsem taken shared by every operation that writes.
    pub freeze: LockId,
    /// The hash table and the list of inodes.
    pub inodes: InodeCache,
    i_rwsem: ClassId,
    directory_i_rwsem: ClassId,
    /// The calls that need little of the filesystem.
    pub calls: Calls,
}

impl SuperBlock {
    /// Makes the locks of a mount; the error names a cost that is missing.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let freeze = m.class("vfs.freeze", "vfs.freeze");
        Ok(Self {
            freeze: m.new_lock(freeze),
            inodes: InodeCache::new(m, costs)?,
            i_rwsem: m.class("vfs.i_rwsem (file)", "vfs.i_rwsem"),
            directory_i_rwsem: m.class("vfs.i_rwsem (directory)", "vfs.i_rwsem"),
            calls: Calls::new(m, costs)?,
        })
    }

    /// `i_rwsem` of a new directory.
    pub fn new_directory<M: Machine>(&self, m: &M) -> LockId {
        m.new_lock(self.directory_i_rwsem)
    }

    /// `i_rwsem` of a new file.
    pub fn new_file<M: Machine>(&self, m: &M) -> LockId {
        m.new_lock(self.i_rwsem)
    }

    /// `mnt_want_write`.
    pub async fn start_write<M: Machine>(&self, m: &M) {
        m.lock(self.freeze, Side::Read).await;
    }

    /// `mnt_drop_write`.
    pub async fn end_write<M: Machine>(&self, m: &M) {
        m.unlock(self.freeze, Side::Read).await;
    }
    /// `vfs_utimes`: `setattr` is what the filesystem does under the file's `i_rwsem`, and is told how long that takes.
    pub async fn utimes<M: Machine>(&self, m: &M, i_rwsem: LockId, setattr: impl AsyncFnOnce(Time)) {
        m.at("utimes");
        let (before, under) = self.calls.setattr();
        m.run(Account::System, before).await;
        self.start_write(m).await;
        m.lock(i_rwsem, Side::Write).await;
        setattr(under).await;
        m.unlock(i_rwsem, Side::Write).await;
        self.end_write(m).await;
    }
}
