//! An inode's attributes and its extents: `xfs_setattr_nonsize`, `xfs_vn_fiemap`.

use crate::filesystems::xfs::log::grant::TR_ICHANGE;
use crate::filesystems::xfs::log::Logged;
use crate::filesystems::xfs::mount::Xfs;
use crate::filesystems::File;
use crate::waist::Machine;
use crate::waist::{Account, Side, Time};

impl Xfs {
    /// `xfs_setattr_nonsize`: times, mode and owner alike.
    pub(super) async fn setattr_nonsize<M: Machine>(&self, m: &M, file: &File, time: Time) {
        let inode = self.inodes.inode(file.inode);
        let ticket = self.log.reserve(m, TR_ICHANGE).await;
        inode.ilock(m).await;
        self.log.commit(m, Logged::items([inode.item()])).await;
        m.run(Account::System, time).await;
        self.log.committed(m, ticket).await;
        inode.iunlock(m).await;
    }

    /// `xfs_vn_fiemap`: the ILOCK shared for each extent.
    pub(super) async fn list_extents<M: Machine>(&self, m: &M, file: &File) {
        let inode = self.inodes.inode(file.inode);
        let extents = self.layout.borrow().file_extents(inode.ino).len();
        for _ in 0..=extents {
            m.lock(inode.ilock, Side::Read).await;
            m.run(Account::System, self.preallocate.look()).await;
            m.unlock(inode.ilock, Side::Read).await;
        }
    }
}
