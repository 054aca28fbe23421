//! The layer above every filesystem: freeze protection, the directory's `i_rwsem`, the victim's, the superblock's inode list.

use super::calls::Calls;
use super::costs::Costs;
use crate::machine::{Access, ClassId, LineId, LockId, Side};
use crate::waist::Machine;

/// What all filesystems of one mount share.
pub struct SuperBlock {
    /// `sb_start_write`: a percpu-rwsem taken shared by every operation that writes.
    pub freeze: LockId,
    /// `s_inode_list_lock` and the list head that it protects.
    inode_list: LineId,
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
            inode_list: m.new_line(costs.number("vfs_sb.inode_list")? as u32),
            i_rwsem: m.class("vfs.i_rwsem (file)", "vfs.i_rwsem"),
            directory_i_rwsem: m.class("vfs.i_rwsem (directory)", "vfs.i_rwsem"),
            calls: Calls::new(costs)?,
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

    /// An inode enters or leaves the superblock's list (`inode_sb_list_add`, `inode_sb_list_del`): lock and list head
    /// move to this CPU.
    pub fn list_inode<M: Machine>(&self, m: &M) {
        m.touch(self.inode_list, Access::Write);
    }

    /// `mnt_want_write`.
    pub async fn start_write<M: Machine>(&self, m: &M) {
        m.lock(self.freeze, Side::Read).await;
    }

    /// `mnt_drop_write`.
    pub async fn end_write<M: Machine>(&self, m: &M) {
        m.unlock(self.freeze, Side::Read).await;
    }
}
