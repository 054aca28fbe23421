//! `syncfs` (`fs/sync.c`, `fs/fs-writeback.c` of Linux 6.12): what is dirty of a filesystem goes to the device. `sync` does the same of each that
//! is mounted.
//!
//! `sync_inodes_sb` has the flusher write all dirty pages and waits for it, with `wb_switch_rwsem` exclusive (recalled: since 5.0; before, the
//! works of those who sync follow each other in the flusher's list, which is as well one after the other). Here who syncs writes the pages
//! himself. Then `wait_sb_inodes` waits for the device, under the superblock's `s_sync_lock` (since 4.3). The filesystem is asked twice: to
//! begin, before that, and to wait (`sync_fs`). `s_umount` is held shared all the while.

use super::vfs::SuperOperations;
use crate::waist::{Account, LockId, Machine, Side};
use std::cell::Cell;

/// What those who sync meet in.
#[derive(Default)]
pub struct SyncLocks(Cell<Option<[LockId; 3]>>);

impl SyncLocks {
    /// `s_umount`, `wb_switch_rwsem` and `s_sync_lock`, made by the first who syncs.
    fn of<M: Machine>(&self, m: &M) -> [LockId; 3] {
        let classes = [
            ("vfs.s_umount", "vfs.s_umount"),
            ("vfs.wb_switch_rwsem", "vfs.wb_switch_rwsem"),
            ("vfs.s_sync_lock", "vfs.s_sync_lock"),
        ];
        let new = || classes.map(|(name, role)| m.new_lock(m.class(name, role)));
        let locks = self.0.get().unwrap_or_else(new);
        self.0.set(Some(locks));
        locks
    }
}

/// `syncfs`.
pub(crate) async fn syncfs<M: Machine, F: SuperOperations<M>>(fs: &F, m: &M) {
    let sb = fs.super_block();
    m.at("sync");
    let [umount, switch, waits] = sb.sync.of(m);
    m.run(Account::System, sb.calls.enter()).await;
    m.lock(umount, Side::Read).await;
    if !sb.calls.dcache.keeps_none() {
        fs.start_sync(m).await;
        m.lock(switch, Side::Write).await;
        let written = fs.write_inodes(m).await;
        m.unlock(switch, Side::Write).await;
        m.lock(waits, Side::Write).await;
        fs.wait_inodes(m, written).await;
        m.unlock(waits, Side::Write).await;
        fs.end_sync(m).await;
    }
    m.unlock(umount, Side::Read).await;
}
