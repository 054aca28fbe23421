//! fsync: the data go to the device or into the tree, the inode's items into the log, and one task writes the log for all who came
//! before (`btrfs_sync_file`, `btrfs_log_inode` and `log_one_extent` of Linux 5.9 to 6.18).
//!
//! A new file is logged in full, its items copied from the subvolume's tree together; of others the inode and the extents just
//! written. Left out: extended attributes but for looking for them, and the completion of ordered extents by workers (the syncing
//! task does it).

use crate::cost_table;
use crate::filesystems::btrfs::data::{Extent, Placed};
use crate::filesystems::btrfs::mount::{Btrfs, Inode};
use crate::filesystems::btrfs::transaction::delayed::Batch;
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::btrfs::tree::key::{Item, ItemKind, Key};
use crate::filesystems::btrfs::tree::search::Intent;
use crate::filesystems::{DirId, File, BLOCK};
use crate::kernel::btrfs::{FsyncWait, FullCommit, LogCsums, LogInode, NocowCheck};
use crate::machine::{Account, LockId, Side, Time};
use crate::waist::Machine;

cost_table!(FsyncCosts {
    writepages: ["wfsync.reserve_extent", "wfsync.ordered_extent_add", "wfsync.get_extent", "wfsync.submit"],
    write_inline: ["wfsync.get_extent"],
    page: ["writeback_page"],
    item: ["wfsync.log_item"],
    range: ["extent_io"],
    clone: ["copy"],
    exit: ["wfsync.exit"],
});

/// What an fsync has submitted.
struct Writeback {
    /// What has got a new place.
    extents: Vec<Extent>,
    /// Completed when it is on the device.
    written: Vec<LockId>,
    /// Pages that this is.
    pages: u64,
}

/// Times of an fsync, and how kernels differ in it.
pub struct Fsync {
    costs: FsyncCosts,
    csums: LogCsums,
    inode: LogInode,
    full_commit: FullCommit,
    wait: FsyncWait,
}

impl Fsync {
    pub(crate) fn new(costs: &crate::filesystems::costs::Costs<'_>) -> Result<Self, String> {
        let rules = costs.rules();
        Ok(Self {
            costs: FsyncCosts::new(costs)?,
            csums: rules.log_csums,
            inode: rules.log_inode,
            full_commit: rules.full_commit,
            wait: rules.fsync_wait,
        })
    }
}

impl Btrfs {
    /// `btrfs_sync_file`.
    pub(crate) async fn sync_file<M: Machine>(&self, m: &M, file: &File) {
        m.at("fsync");
        let inode = self.file(file.inode);
        let writeback = self.write_back(m, file.inode, inode).await;
        m.lock(inode.i_rwsem, Side::Write).await;
        self.wait_for_data(m, file.inode, &writeback).await;
        if !self.data(file.inode).needs_log(self.transid(), self.transaction.committed()) {
            return m.unlock(inode.i_rwsem, Side::Write).await;
        }
        let handle = self.start_transaction(m).await;
        let mine = self.fill_log(m, file.inode, inode, &writeback.extents).await;
        m.unlock(inode.i_rwsem, Side::Write).await;
        let synced = match mine {
            Some(mine) => self.log.sync(m, mine, || self.needs_full_commit()).await,
            None => false,
        };
        if synced {
            self.transaction.end(m, handle).await;
        } else {
            self.commit_for_fsync(m, handle).await;
        }
        m.run(Account::System, self.fsync.costs.exit).await;
    }

    /// `btrfs_log_inode_parent`: the number of the log transaction that has the file. None if the transaction must be committed.
    async fn fill_log<M: Machine>(&self, m: &M, slot: u32, inode: Inode, written: &[Extent]) -> Option<u64> {
        if self.fsync.full_commit == FullCommit::SinceCommitted && self.transaction.full_commit_under_way() {
            return None;
        }
        if self.lost_name(m, slot, inode.dir).await {
            self.transaction.set_full_commit(self.transid());
            return None;
        }
        let is_new = self.data(slot).is_new();
        let mine = self.log.start(m, || self.needs_full_commit()).await?;
        self.log_inode(m, slot, inode, written).await;
        if is_new {
            self.log_new_ancestor(m, inode.dir).await;
        }
        self.log.end(m).await;
        Some(mine)
    }

    /// `btrfs_need_log_full_commit`. New block groups are in no log either (`btrfs_make_block_group`).
    fn needs_full_commit(&self) -> bool {
        self.transaction.needs_full_commit(self.transid()) || self.extents.refs.space.borrow().has_new_group()
    }

    /// Whether the log would need a name that a directory has lost, by the kernel's rule.
    async fn lost_name<M: Machine>(&self, m: &M, slot: u32, dir: DirId) -> bool {
        let before = match self.fsync.full_commit {
            FullCommit::SinceCommitted => self.transaction.committed(),
            FullCommit::Running => self.transid() - 1,
            FullCommit::Directory => {
                let logs_directory = self.data(slot).renamed() == self.transid();
                return logs_directory && self.last_unlink(dir) == self.transid();
            }
        };
        self.data(slot).named() > before && self.parent_lost_name(m, dir, before).await
    }

    /// `check_parent_dirs_for_sync`: whether the directory of a file or one above it has lost a name that the log does not know since
    /// that transaction, which is asked under their mutexes.
    async fn parent_lost_name<M: Machine>(&self, m: &M, dir: DirId, before: u64) -> bool {
        for dir in [dir, 0] {
            let mutex = self.directory(dir).log_mutex;
            m.lock(mutex, Side::Write).await;
            let lost = self.last_unlink(dir) > before;
            m.unlock(mutex, Side::Write).await;
            if lost {
                return true;
            }
        }
        false
    }

    /// `btrfs_record_unlink_dir` of a rename: a directory loses a name; if the log has the file it will have the new name too.
    pub(crate) async fn record_rename<M: Machine>(&self, m: &M, slot: u32, dir: DirId) {
        let transid = self.transid();
        let is_logged = self.data(slot).is_logged(transid) || self.new_and_logged(dir).1;
        if !is_logged {
            let mutex = self.directory(dir).log_mutex;
            m.lock(mutex, Side::Write).await;
            self.record_unlink(dir);
            m.unlock(mutex, Side::Write).await;
        }
        self.data(slot).rename(transid);
    }

    /// `btrfs_log_new_name`: what the log has of a renamed file gets the new name.
    pub(crate) async fn log_new_name<M: Machine>(&self, m: &M, slot: u32, ino: u64) {
        if !self.data(slot).is_logged(self.transid()) {
            return;
        }
        if self.log.start(m, || self.needs_full_commit()).await.is_some() {
            self.drop_items(m, ino).await;
            self.copy_items(m, ino, &[]).await;
            self.log.end(m).await;
        }
    }

    /// `btrfs_del_inode_ref_in_log`: a name that is lost is taken out of the log, if that has the file.
    pub(crate) async fn unlink_in_log<M: Machine>(&self, m: &M, slot: u32, inode: Inode) {
        if self.data(slot).is_logged(self.transid()) && self.log.join(m).await {
            self.log_change(m, items::inode_ref(inode.ino, self.directory(inode.dir).ino, b"").key, Intent::Delete)
                .await;
            self.log.end(m).await;
        }
    }

    /// `log_new_ancestors_fast`: if the directory of a new file was made in this transaction as well, all that is delayed for it is
    /// committed, and its inode and name are logged. Before kernels looked, they did it again with each file.
    async fn log_new_ancestor<M: Machine>(&self, m: &M, dir: DirId) {
        let (is_new, logged) = self.new_and_logged(dir);
        if !is_new || (logged && self.fsync.inode > LogInode::LeafHeld) {
            return;
        }
        let directory = self.directory(dir);
        while self.commit_directory_batch(m, dir).await {}
        m.lock(directory.log_mutex, Side::Write).await;
        self.drop_items(m, directory.ino).await;
        self.copy_items(m, directory.ino, &[]).await;
        self.read_item(m, items::inode_key(directory.ino), 0).await; // extended attributes
        m.unlock(directory.log_mutex, Side::Write).await;
        self.set_logged(dir);
    }

    /// `drop_objectid_items`: what the log has of an inode.
    async fn drop_items<M: Machine>(&self, m: &M, ino: u64) {
        let locked = self.log.root.locked(m);
        let ops = locked.ops().blocking();
        let (mut path, found) = ops.search_slot(items::inode_key(ino), Intent::Delete).await;
        if found {
            let keys = [items::inode_key(ino), items::inode_ref(ino, 0, b"").key].into_iter();
            let run = ops.run_of_keys(&path, keys);
            ops.del_items(&mut path, run).await;
        }
        ops.release_path(&mut path).await;
    }

    /// `btrfs_writepages`: what was written in memory is submitted, as extents, or goes into the tree at once.
    async fn write_back<M: Machine>(&self, m: &M, slot: u32, inode: Inode) -> Writeback {
        let (c, wb) = (&self.fsync.costs, &self.log.storage.writeback);
        let mut extents = self.data(slot).write_back(inode.ino);
        let mut written = Vec::new();
        wb.note(slot, 0);
        let bytes: u64 = extents.iter().map(|extent| extent.bytes).sum();
        if extents.is_empty() {
            extents.extend(self.data(slot).take_flushed(self.transaction.committed()));
            return Writeback { extents, written, pages: 0 };
        }
        if bytes == 0 {
            m.run(Account::System, c.write_inline).await;
            self.write_inline(m, slot, extents[0].item).await;
            return Writeback { extents, written, pages: 0 };
        }
        let pages = bytes / u64::from(BLOCK);
        wb.begin(pages);
        m.run(Account::System, self.writeback_time(pages)).await;
        extents = self.submit_extents(m, slot, inode.ino, extents, &mut written).await;
        extents.extend(self.data(slot).take_flushed(self.transaction.committed()));
        Writeback { extents, written, pages }
    }

    /// Submits what is to be written; adds what completes when it is, and returns what has got a new place.
    pub(crate) async fn submit_extents<M: Machine>(
        &self,
        m: &M,
        slot: u32,
        ino: u64,
        mut extents: Vec<Extent>,
        written: &mut Vec<LockId>,
    ) -> Vec<Extent> {
        let in_place: Vec<bool> =
            extents.iter().map(|extent| self.nodatacow && self.data(slot).extent_of(extent.offset).is_some()).collect();
        if self.nodatacow {
            for place in self.places_of(slot, &extents) {
                self.check_nocow(m, ino, place).await;
            }
        }
        for (extent, &in_place) in extents.iter_mut().zip(&in_place) {
            self.ordered.wait_for_range(m, slot, extent.offset, extent.bytes).await;
            written.push(self.submit_ordered(m, slot, extent, in_place).await);
        }
        let mut known = in_place.iter();
        extents.retain(|_| known.next() == Some(&false)); // the others stay where they are
        extents
    }

    /// CPU time to write back so many pages that follow each other.
    pub(crate) fn writeback_time(&self, pages: u64) -> Time {
        self.fsync.costs.writepages + self.fsync.costs.page * (pages - 1)
    }

    /// `cow_file_range_inline`.
    pub(crate) async fn write_inline<M: Machine>(&self, m: &M, slot: u32, item: Item) {
        let handle = self.transaction.join(m).await;
        let locked = self.fs_root.locked(m);
        let ops = locked.ops();
        let mut path = ops.replace_extent(item).await;
        m.run(Account::System, self.fs_root.after_search(self.fsync.costs.item)).await;
        ops.release_path(&mut path).await;
        self.data(slot).change(self.transid());
        self.transaction.end(m, handle).await;
    }

    /// An fsync that has to log all of a file waits until the trees know its extents, others for the writeback.
    async fn wait_for_data<M: Machine>(&self, m: &M, slot: u32, writeback: &Writeback) {
        for &written in &writeback.written {
            m.wchan("btrfs_wait_ordered_extents");
            m.wait_for(written).await;
            m.drop_completion(written);
        }
        self.log.storage.writeback.end(writeback.pages);
        self.log.storage.writeback.wait_for_pages(m, slot).await;
        if self.data(slot).is_new() || self.fsync.wait == FsyncWait::Ordered {
            self.ordered.wait_for_file(m, slot).await;
        }
    }

    /// The extents in which what is written lies already.
    fn places_of(&self, slot: u32, written: &[Extent]) -> Vec<Placed> {
        let data = self.data(slot);
        written.iter().filter_map(|extent| data.extent_of(extent.offset)).collect()
    }

    /// `run_delalloc_nocow`: looks the extent up, and whether somebody shares it.
    pub(crate) async fn check_nocow<M: Machine>(&self, m: &M, ino: u64, extent: Placed) {
        let locked = self.fs_root.locked(m);
        let ops = locked.ops();
        let (mut path, _) = ops.search_slot(Key::new(ino, ItemKind::ExtentData, extent.offset), Intent::Read).await;
        if self.nocow_check == NocowCheck::PathReleased {
            ops.release_path(&mut path).await;
        }
        self.extents.look_for_other_refs(m, extent.place).await;
        self.extents.look_for_csums(m, extent.place).await;
        ops.release_path(&mut path).await;
    }

    /// `btrfs_log_inode`.
    async fn log_inode<M: Machine>(&self, m: &M, slot: u32, inode: Inode, written: &[Extent]) {
        let looks = self.fsync.inode > LogInode::LeafHeld;
        if !looks {
            self.commit_delayed_inode(m, inode.ino).await;
        }
        let is_new = self.data(slot).is_new();
        if is_new {
            if !looks {
                self.log_change(m, Key::new(inode.ino, ItemKind::ExtentData, u64::MAX), Intent::Delete).await;
            }
            let extents = self.data(slot).items(inode.ino);
            self.copy_items(m, inode.ino, &extents).await;
            self.read_item(m, items::inode_key(inode.ino), 0).await; // extended attributes
        } else if looks {
            self.log_change(m, items::inode_key(inode.ino), Intent::Update).await;
        } else {
            self.log_insertion(m, &[items::inode(inode.ino)]).await;
            self.read_item(m, items::inode_key(inode.ino), 0).await;
        }
        for extent in written {
            if extent.bytes > 0 && !self.nodatacow {
                self.log_csums(m, extent.place, extent.bytes, is_new).await; // others have them from the ordered extent
            }
            if !is_new {
                self.log_extent(m, extent.item).await;
            }
        }
        self.data(slot).log(self.transid());
    }

    /// `btrfs_commit_inode_delayed_inode`: the inode's update is not left to the workers.
    async fn commit_delayed_inode<M: Machine>(&self, m: &M, ino: u64) {
        let waits = self.delayed.borrow_mut().take_file(ino);
        self.fs_root.locked(m).ops().commit_batch(Batch::Inode(items::inode_key(ino))).await;
        if waits {
            self.finish_delayed(m, 1).await;
        }
    }

    /// The search of `btrfs_search_forward` and `copy_items`: from the subvolume's leaf into the log's.
    async fn copy_items<M: Machine>(&self, m: &M, ino: u64, extents: &[Item]) {
        let mut copied = vec![items::inode(ino), items::inode_ref(ino, 0, b"")];
        copied.extend(extents);
        let locked = self.fs_root.locked(m);
        let ops = locked.ops();
        let (mut path, _) = ops.search_slot(items::inode_key(ino), Intent::Read).await;
        if self.fsync.inode == LogInode::LeafCloned {
            m.run(Account::System, self.fsync.costs.clone).await;
            ops.release_path(&mut path).await;
        }
        for items in copied.chunks(MOST_ITEMS) {
            self.log_insertion(m, items).await;
        }
        ops.release_path(&mut path).await;
    }

    /// `log_csums`: as whole checksum items, that is without joining them to those of the extent before.
    async fn log_csums<M: Machine>(&self, m: &M, first: u64, bytes: u64, look: bool) {
        let blocks = bytes.div_ceil(u64::from(BLOCK));
        if look {
            self.extents.look_for_csums(m, first).await;
        }
        for done in (0..blocks).step_by(MOST_CSUMS as usize) {
            let csums = items::csums(first + done * u64::from(BLOCK), (blocks - done).min(MOST_CSUMS));
            if self.fsync.csums == LogCsums::Replace {
                self.take_csum_range(m).await;
                self.log_change(m, csums.key, Intent::Delete).await;
            }
            self.log_change(m, csums.key, Intent::Update).await; // is there an item to extend?
            let locked = self.log.root.locked(m);
            let ops = locked.ops();
            let (mut path, _) = ops.insert_items(&[csums]).await;
            m.run(Account::System, self.log.root.after_insertion(self.fsync.costs.item)).await;
            ops.release_path(&mut path).await;
            if self.fsync.csums == LogCsums::Replace {
                self.take_csum_range(m).await;
            }
        }
    }

    /// `lock_extent_bits` and `unlock_extent_cached` of a range that nobody else wants: its tree's spinlock.
    async fn take_csum_range<M: Machine>(&self, m: &M) {
        m.lock(self.log.csum_range, Side::Write).await;
        m.run(Account::System, self.fsync.costs.range).await;
        m.unlock(self.log.csum_range, Side::Write).await;
    }

    /// A search of the log for a change at a key, which may be in vain.
    async fn log_change<M: Machine>(&self, m: &M, key: Key, intent: Intent) {
        let locked = self.log.root.locked(m);
        let ops = locked.ops().blocking();
        let (mut path, _) = ops.search_slot(key, intent).await;
        let time: Time = if intent == Intent::Update { self.fsync.costs.item } else { 0 };
        m.run(Account::System, self.log.root.after_search(time)).await;
        ops.release_path(&mut path).await;
    }

    async fn log_insertion<M: Machine>(&self, m: &M, items: &[Item]) {
        let locked = self.log.root.locked(m);
        let ops = locked.ops().blocking();
        let (mut path, _) = ops.insert_items(items).await;
        m.run(Account::System, self.log.root.after_insertion(self.fsync.costs.item)).await;
        ops.release_path(&mut path).await;
    }

    async fn log_extent<M: Machine>(&self, m: &M, extent: Item) {
        let locked = self.log.root.locked(m);
        let ops = locked.ops().blocking();
        let mut path = ops.replace_extent(extent).await;
        m.run(Account::System, self.log.root.after_search(self.fsync.costs.item)).await;
        ops.release_path(&mut path).await;
    }
}

/// Most items that are copied into the log together; a leaf has room for more of an extent's.
const MOST_ITEMS: usize = 100;
/// Checksums that a leaf has room for.
const MOST_CSUMS: u64 = 4000;
