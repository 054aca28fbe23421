//! Extended attributes (`btrfs_log_all_xattrs`): who logs an inode searches the subvolume for its own. No file here has any, and since 5.11 an
//! inode in memory remembers that (`BTRFS_INODE_NO_XATTRS`).

use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::DirId;
use crate::waist::Machine;

impl Btrfs {
    /// Of a file.
    pub(super) async fn log_xattrs<M: Machine>(&self, m: &M, slot: u32, ino: u64) {
        let known = self.data(slot).remember_no_xattrs();
        self.search_xattrs(m, ino, known).await;
    }

    /// Of a directory.
    pub(super) async fn log_directory_xattrs<M: Machine>(&self, m: &M, dir: DirId) {
        let known = self.remember_no_xattrs(dir);
        self.search_xattrs(m, self.directory(dir).ino, known).await;
    }

    async fn search_xattrs<M: Machine>(&self, m: &M, ino: u64, known: bool) {
        if !(known && self.fsync.remembers_no_xattrs) {
            self.read_item(m, items::inode_key(ino), 0).await;
        }
    }
}
