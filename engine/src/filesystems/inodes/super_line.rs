//! The line of `struct super_block` with `s_remove_count`: how many inodes have no name left and are still there. Whoever unlinks a file writes
//! it twice, in whatever directory, and others read what lies beside.
//!
//! `s_readonly_remount` follows the count (include/linux/fs.h). `s_user_ns`, since 4.8, lies 32 bytes behind it: at 1,112 and 1,144 in the
//! type information (BTF) of Linux 6.12, in the line that begins at 1,088.

use crate::filesystems::costs::Costs;
use crate::kernel::vfs::RemoveCount;
use crate::waist::Machine;
use crate::waist::{Access, LineId};

/// The line, and who meets there.
#[derive(Clone, Copy)]
pub struct SuperLine {
    line: LineId,
    rule: RemoveCount,
}

impl SuperLine {
    /// That of one mount.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Self {
        Self { line: m.new_line("vfs.s_remove_count", 1), rule: costs.rules().remove_count }
    }

    /// `drop_nlink`, `clear_nlink`: an inode has lost its last name.
    pub async fn nameless<M: Machine>(&self, m: &M) {
        self.access(m, Access::Atomic, RemoveCount::Counted).await;
    }

    /// `__destroy_inode` of such an inode: the count is looked at first.
    pub async fn destroyed<M: Machine>(&self, m: &M) {
        self.access(m, Access::Read, RemoveCount::Counted).await;
        self.access(m, Access::Atomic, RemoveCount::Counted).await;
    }

    /// `mnt_want_write` asks for `s_readonly_remount` (`mnt_is_readonly`).
    pub async fn want_write<M: Machine>(&self, m: &M) {
        self.access(m, Access::Read, RemoveCount::Counted).await;
    }

    /// An inode's owner is written to its block by the numbers of `s_user_ns` (`i_uid_read`).
    pub async fn owner<M: Machine>(&self, m: &M) {
        self.access(m, Access::Read, RemoveCount::BesideOwner).await;
    }

    /// A new inode's owner is translated by them, too (`i_uid_write` of `inode_init_always`).
    pub async fn new_inode<M: Machine>(&self, m: &M) {
        self.owner(m).await;
    }

    /// The memory of an inode without names becomes that of a new file, which has one (`set_nlink`, twice). Since 4.6; here from 4.8 on.
    pub async fn recycled<M: Machine>(&self, m: &M) {
        self.access(m, Access::Atomic, RemoveCount::BesideOwner).await;
        self.access(m, Access::Atomic, RemoveCount::BesideOwner).await;
    }

    /// A new dentry gets its operations (`s_d_op`, `__d_alloc`).
    pub async fn d_alloc<M: Machine>(&self, m: &M) {
        self.access(m, Access::Read, RemoveCount::BesideOperations).await;
    }

    /// Permissions are asked by them (`i_uid_into_vfsuid`, `generic_permission`).
    pub async fn permission<M: Machine>(&self, m: &M) {
        self.access(m, Access::Read, RemoveCount::BesidePermission).await;
    }

    async fn access<M: Machine>(&self, m: &M, access: Access, since: RemoveCount) {
        if self.rule >= since {
            m.touch(self.line, access);
            m.settle().await;
        }
    }
}
