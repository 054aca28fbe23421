//! Whether the log has an inode (`inode_logged`). Memory says so only while the inode stays there, so kernels from 5.3 to 5.17 take many for logged that are
//! not: of new files that no fsync has logged yet, each unlink and rename goes to the log in vain. Since 5.18 the log is asked.

use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::btrfs::tree::search::Intent;
use crate::filesystems::DirId;
use crate::kernel::btrfs::InodeLogged;
use crate::waist::Machine;

impl Btrfs {
    /// Of a file.
    pub(super) async fn file_is_logged<M: Machine>(&self, m: &M, slot: u32) -> bool {
        let transid = self.transid();
        if self.data(slot).is_logged(transid) {
            return true;
        }
        match self.fsync.inode_logged {
            InodeLogged::Remembered => false,
            InodeLogged::Assumed | InodeLogged::AssumedIfNever => self.data(slot).may_be_logged(transid),
            InodeLogged::Searched => {
                self.ask_for_file(m, slot).await;
                false
            }
        }
    }

    /// Of a directory.
    pub(super) async fn directory_is_in_log<M: Machine>(&self, m: &M, dir: DirId) -> bool {
        if self.new_and_logged(dir).1 {
            return true;
        }
        match self.fsync.inode_logged {
            InodeLogged::Remembered => false,
            InodeLogged::Assumed => self.directory_may_be_logged(dir, false),
            InodeLogged::AssumedIfNever => self.directory_may_be_logged(dir, true),
            InodeLogged::Searched => {
                self.ask_for_directory(m, dir).await;
                false
            }
        }
    }

    /// The log is asked for a file that was never logged, in vain, as no inode leaves memory and comes back within a transaction here.
    pub(super) async fn ask_for_file<M: Machine>(&self, m: &M, slot: u32) {
        let known = self.data(slot).note_logged_before(self.transid());
        self.ask_log(m, self.file(slot).ino, known).await;
    }

    /// And for a directory.
    pub(super) async fn ask_for_directory<M: Machine>(&self, m: &M, dir: DirId) {
        let known = self.note_directory_logged_before(dir);
        self.ask_log(m, self.directory(dir).ino, known).await;
    }

    async fn ask_log<M: Machine>(&self, m: &M, ino: u64, known: bool) {
        let log = &self.fs_root(ino).log;
        if self.fsync.inode_logged == InodeLogged::Searched && !known && log.exists() {
            let locked = log.root.locked(m);
            let ops = locked.ops().blocking();
            let (mut path, _) = ops.search_slot(items::inode_key(ino), Intent::Read).await;
            ops.release_path(&mut path).await;
        }
    }
}
