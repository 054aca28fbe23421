//! What btrfs does to open files under the locks of the VFS (`fs/btrfs/file.c`, `fs/btrfs/inode.c`), and as a whole.

use super::super::block_io::PAGES;
use super::super::mount::Btrfs;
use super::super::tree::items;
use crate::filesystems::inodes::times::Timed;
use crate::filesystems::open_files::read_write::{self, FileOperations};
use crate::filesystems::pages::mapping::Submitted;
use crate::filesystems::vfs::SuperOperations;
use crate::filesystems::{Attribute, DirId, File, InitialNames, Io, LaidOut, NoSpace, BLOCK};
use crate::waist::Machine;
use crate::waist::{Account, LockId, Side, Time};
use crate::writeback::Flushed;

impl<M: Machine> SuperOperations<M> for Btrfs {
    fn fill(&self, dirs: &[DirId], files: u64, names: InitialNames) -> Result<(), NoSpace> {
        self.fill_with(dirs, files, names);
        Ok(())
    }

    /// So many bytes are free in block groups of metadata beside the global reserve, and at least as many in those of data.
    fn fill_up(&self, free: u64) -> Result<(), NoSpace> {
        let full = self.extents.fill_up(free + self.global_reserve_size(), free);
        full.then_some(()).ok_or(NoSpace)
    }

    async fn lay_out(&self, m: &M, file: &File, laid: LaidOut) {
        let data = self.laid_out(laid);
        let ino = self.file(file.inode).ino;
        let handle = self.start_transaction(m).await;
        for extent in data.items(ino) {
            self.insert(m, &[extent], 0).await;
        }
        for fs_root in &*self.fs_roots.borrow() {
            fs_root.root.tree.borrow_mut().was_laid_out();
        }
        self.end_transaction(m, handle).await;
        *self.data(file.inode) = data;
    }

    async fn sync_fs(&self, m: &M) {
        for slot in self.slots().filter(|&slot| self.dirty_pages(slot) > 0) {
            self.write_and_wait(m, slot, self.file(slot)).await;
        }
        let handle = self.start_transaction(m).await;
        self.commit_for_fsync(m, handle).await;
    }

    /// Files one after the other, each waited for, and tree blocks.
    async fn write_inodes(&self, m: &M) -> Submitted {
        let wb = &self.storage.writeback;
        for slot in self.slots().filter(|&slot| self.dirty_pages(slot) > 0 && !wb.is_going(slot)) {
            wb.begins_sync(slot);
            self.write_and_wait(m, slot, self.file(slot)).await;
            wb.ends_sync(m, slot);
        }
        self.sync_blocks(m).await;
        Submitted::default()
    }

    async fn wait_inodes(&self, m: &M, _: Submitted) {
        self.storage.writeback.wait_for_all(m).await;
    }

    /// `btrfs_sync_fs`: the running transaction is committed, if there is one (`btrfs_attach_transaction_barrier`).
    async fn end_sync(&self, m: &M) {
        if !self.transaction.has_run() {
            return self.transaction.wait_for_commit(m, self.transid() - 1, false).await;
        }
        let handle = self.transaction.join(m).await;
        self.commit_for_fsync(m, handle).await;
    }

    fn has_walked(&self, dir: DirId, nth: u32) {
        self.walked_before(dir, nth);
    }

    fn leaves_memory(&self, file: &File) {
        let ino = self.file(file.inode).ino;
        self.sb.leaves_memory(file, self.listed(ino), true);
        self.fs_root(ino).open_inodes.leaves_memory();
    }

    /// `btrfs_statfs`: the global reserve counts as used.
    async fn statfs(&self, m: &M) {
        self.transaction.reservations.look_at_global_reserve(m).await;
    }

    async fn walk(&self, m: &M, dir: DirId, nth: u32) {
        self.walk_to(m, dir, nth).await;
    }
}

impl<M: Machine> FileOperations<M> for Btrfs {
    async fn release(&self, m: &M, file: &File) {
        m.run(Account::System, if file.written { self.costs.write.close } else { self.costs.create.close }).await;
    }

    fn new_page_time(&self) -> Time {
        self.costs.write.write
    }

    async fn write_begin(&self, m: &M, file: &File, bytes: u32, _: bool) -> u64 {
        self.reclaim_if_needed(m);
        self.reserve_data(m, u64::from(bytes)).await;
        self.reserve_extent(m).await;
        self.outstanding.promise();
        let delalloc = &self.fs_root(self.file(file.inode).ino).delalloc;
        delalloc.reserve(m, &self.transaction.reservations).await;
        self.data(file.inode).size()
    }

    async fn write_end(&self, m: &M, file: &File, offset: u64, bytes: u32) {
        self.get_pages(m, file.inode, (offset, bytes)).await;
        let was = self.data(file.inode).was_dirty(offset, u64::from(bytes));
        let fs_root = self.fs_root(self.file(file.inode).ino);
        if fs_root.delalloc.finds_new_bytes && self.data(file.inode).lacks_map(offset, was) {
            // btrfs_find_new_delalloc_bytes
            let page = offset - offset % u64::from(BLOCK);
            self.read_item(m, items::extent(self.file(file.inode).ino, page).key, 0).await;
        }
        fs_root.delalloc.dirty(m, &self.transaction.reservations, was).await;
        self.data(file.inode).write(offset, u64::from(bytes), self.transid());
        self.written_in_memory(file.inode);
        self.dirtied(m, file.inode).await;
        if self.writes_balance_trees && u64::from(bytes) <= u64::from(BLOCK) * PAGES {
            self.btree_balance_dirty(m).await;
        }
    }

    async fn read_at(&self, m: &M, file: &File, io: Io) {
        if io.direct {
            self.direct_read(m, file, io).await;
            return read_write::touch_atime(self, m, Timed::File(file.inode)).await;
        }
        read_write::read_cached(self, m, file, (io.offset, io.bytes)).await;
    }

    async fn update_atime(&self, m: &M, inode: Timed) {
        self.dirty_inode(m, inode, self.sb.calls.setattr().1).await;
    }

    async fn write_at(&self, m: &M, file: &File, io: Io) {
        if io.direct {
            return self.direct_write(m, file, io).await;
        }
        read_write::overwrite_protected(self, m, file, (io.offset, io.bytes)).await;
    }

    /// `btrfs_sync_file`, which logs the inode whichever it is.
    async fn fsync(&self, m: &M, file: &File, _: bool) {
        self.sync_file(m, file).await;
    }

    async fn fsync_directory(&self, m: &M, dir: DirId, _: bool) {
        self.sync_directory(m, dir).await;
    }

    /// `btrfs_file_llseek`, which finds that a file without holes has none, since 6.2 (`find_desired_extent`).
    fn seek_lock(&self, file: &File) -> (LockId, Side) {
        (self.file(file.inode).i_rwsem, Side::Read)
    }

    async fn set_size(&self, m: &M, file: &File, less: Option<u32>) {
        match less {
            None => self.truncate_file(m, file).await,
            Some(_) => m.give_up("btrfs truncates to nothing only here"),
        }
    }

    /// `btrfs_setattr`: times, mode and owner alike.
    async fn setattr(&self, m: &M, file: &File, _: Attribute, time: Time) {
        self.dirty_inode(m, Timed::File(file.inode), time).await;
    }

    async fn fallocate(&self, m: &M, _: &File, _: u32) -> Result<(), NoSpace> {
        m.give_up("btrfs has no fallocate here");
        Err(NoSpace)
    }

    async fn clone_range(&self, m: &M, from: &File, to: &File) {
        self.clone_file(m, from.inode, to.inode).await;
    }

    async fn fiemap(&self, m: &M, file: &File) {
        self.list_extents(m, file).await;
    }

    fn names(&self, dir: DirId) -> u32 {
        self.names_in(dir)
    }

    /// `i_rwsem` to take the delayed items (`btrfs_readdir_get_delayed_items`).
    async fn open_directory(&self, m: &M, dir: DirId) {
        let d = self.directory(dir);
        m.lock(d.i_rwsem, Side::Write).await;
        m.lock(d.delayed, Side::Write).await;
        m.unlock(d.delayed, Side::Write).await;
        m.unlock(d.i_rwsem, Side::Write).await;
    }

    async fn iterate(&self, m: &M, dir: DirId, names: u32, time: Time) {
        self.list_names(m, dir, names, time).await;
    }
}
