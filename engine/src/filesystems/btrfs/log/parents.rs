//! The directories of a file that got or lost one of several names in the transaction, or moved into another directory. Who syncs it has them logged, lest the log keeps an
//! entry of which it does not know the reference (`btrfs_log_all_parents`, since 4.3; `log_all_new_ancestors`).

use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::DirId;
use crate::waist::Machine;

impl Btrfs {
    /// The directories of a file's names, each once.
    pub(super) fn directories_of(&self, slot: u32) -> impl Iterator<Item = DirId> {
        let mut directories = self.names.directories(slot);
        directories.push(self.file(slot).dir);
        directories.sort_unstable();
        directories.dedup();
        directories.into_iter()
    }

    /// All of them that the log does not have, found by a search for the references.
    pub(super) async fn log_parents<M: Machine>(&self, m: &M, slot: u32) {
        let ino = self.file(slot).ino;
        if self.fsync.logs_parents {
            self.read_item(m, items::inode_ref(ino, 0, b"").key, 0).await;
            for dir in self.directories_of(slot) {
                if !self.new_and_logged(dir).1 {
                    let in_tree = self.log_directory(m, dir).await;
                    self.log_new_dentries(m, dir, in_tree).await;
                }
            }
        }
        self.read_item(m, items::inode_ref(ino, 0, b"").key, 0).await;
        for dir in self.directories_of(slot) {
            self.log_new_ancestor(m, dir).await;
        }
    }
}
