//! What XFS does to open files under the locks of the VFS (`fs/xfs/xfs_file.c`, `fs/xfs/xfs_iops.c`), and as a whole.

use super::super::mount::Xfs;
use crate::filesystems::calls::new_pages;
use crate::filesystems::inodes::listed;
use crate::filesystems::inodes::times::Timed;
use crate::filesystems::open_files::read_write::{self, FileOperations};
use crate::filesystems::pages::dirty::Wanted;
use crate::filesystems::pages::mapping::{self, Submitted};
use crate::filesystems::vfs::SuperOperations;
use crate::filesystems::{initial_files, Attribute, DirId, File, InitialNames, Io, LaidOut, NoSpace};
use crate::waist::Machine;
use crate::waist::{Access, LockId, Side, Time};
use crate::writeback::Flushed;

impl<M: Machine> SuperOperations<M> for Xfs {
    fn fill(&self, dirs: &[DirId], files: u64, names: InitialNames) -> Result<(), NoSpace> {
        for (dir, name) in initial_files(dirs, 0..files, names) {
            let created = self.layout.borrow_mut().create(self.directory(dir).id, &name)?;
            let touches = [&created.inode.touches, &created.dir.touches];
            touches.into_iter().for_each(|touches| self.contents.fill(touches));
            self.fill_buffers(created.inode.ino, touches);
        }
        Ok(())
    }

    fn fill_up(&self, free: u64) -> Result<(), NoSpace> {
        self.leave_free(free)
    }

    async fn lay_out(&self, m: &M, file: &File, laid: LaidOut) {
        let pages = self.io.open(m, file.inode, self.inodes.inode(file.inode), laid);
        self.sync.dirty.lay_out(file.inode, pages.clone());
        self.storage.memory.lay_out(&pages);
        self.inodes.set_sized(file.inode);
    }

    async fn statfs(&self, m: &M) {
        self.hurry_inodegc(m).await;
    }

    async fn sync_fs(&self, m: &M) {
        mapping::sync_inodes(self, m, &self.sync.dirty).await;
        self.force_log(m).await;
    }

    async fn write_inodes(&self, m: &M) -> Submitted {
        mapping::submit_inodes(self, m, &self.sync.dirty).await
    }

    async fn wait_inodes(&self, m: &M, written: Submitted) {
        mapping::wait_inodes(self, m, written).await;
    }

    async fn end_sync(&self, m: &M) {
        self.force_log(m).await;
    }

    async fn bulkstat(&self, m: &M, who: u32) {
        self.bulkstat_next(m, who).await;
    }

    /// Inodes are written in place too, and off the AIL (`xfs_ail_push_all_sync`).
    async fn settle(&self, m: &M) {
        SuperOperations::sync_fs(self, m).await;
        self.empty_ail(m).await;
    }

    fn leaves_memory(&self, file: &File) {
        self.sb.leaves_memory(file, listed::file(file.inode), false);
    }

    async fn walk(&self, m: &M, dir: DirId, nth: u32) {
        self.walk_to(m, dir, nth).await;
    }
}

impl<M: Machine> FileOperations<M> for Xfs {
    async fn release(&self, m: &M, file: &File) {
        self.release_file(m, file).await;
    }

    fn append_times(&self, file: &File, bytes: u32) -> Option<(Time, Time)> {
        let adds = new_pages(self.sync.dirty.size(file.inode), bytes) > 0;
        Some(if adds { (self.costs.write.start, self.costs.write.end) } else { (0, 0) })
    }

    fn new_page_time(&self) -> Time {
        let c = &self.costs.write;
        c.attr + c.delalloc + c.copy
    }

    async fn write_begin(&self, m: &M, file: &File, bytes: u32, grows: bool) -> u64 {
        let inode = self.inodes.inode(file.inode);
        if grows {
            self.reserve_delalloc(m, new_pages(self.sync.dirty.size(file.inode), bytes)).await;
            inode.peek(m).await;
            self.update_times(m, file.inode).await;
            inode.ilock(m).await;
            inode.iunlock(m).await;
            self.inodes.set_sized(file.inode);
            let size = self.sync.dirty.size(file.inode);
            self.sync.dirty.append(file.inode, bytes);
            return size;
        }
        self.update_times(m, file.inode).await;
        inode.peek(m).await; // xfs_bmbt_to_iomap
        self.sync.dirty.overwrite(file.inode, bytes);
        self.sync.dirty.size(file.inode)
    }

    async fn write_end(&self, m: &M, file: &File, _: u64, _: u32) {
        self.dirtied(m, file.inode).await;
    }

    /// `xfs_file_buffered_read`.
    async fn read(&self, m: &M, file: &File, place: (u64, u32)) {
        m.at("read");
        let inode = self.inodes.inode(file.inode);
        m.lock(inode.iolock, Side::Read).await;
        read_write::read_cached(self, m, file, place).await;
        m.unlock(inode.iolock, Side::Read).await;
    }

    fn look_at_times(&self, m: &M, inode: Timed) {
        let Timed::File(slot) = inode else { return };
        if self.looks_beside_iolock {
            m.touch_beside(self.inodes.inode(slot).iolock, Access::Read);
        }
    }

    async fn update_atime(&self, m: &M, inode: Timed) {
        let slot = match inode {
            Timed::File(slot) => slot,
            Timed::Directory(dir) => self.directory(dir).slot,
        };
        self.log_times(m, &self.inodes.inode(slot)).await;
    }

    async fn read_at(&self, m: &M, file: &File, io: Io) {
        self.read_file(m, file, io).await;
    }

    async fn write_at(&self, m: &M, file: &File, io: Io) {
        self.write_file(m, file, io).await;
    }

    async fn fsync(&self, m: &M, file: &File, data_only: bool) {
        self.sync_file(m, file.inode, Wanted::All, data_only).await;
    }

    /// `xfs_dir_fsync`, which forces the log whichever it is.
    async fn fsync_directory(&self, m: &M, dir: DirId, _: bool) {
        self.sync_directory(m, dir).await;
    }

    async fn fsync_range(&self, m: &M, file: &File, (offset, bytes): (u64, u32)) {
        self.sync_file(m, file.inode, Wanted::Range(offset, bytes), false).await;
    }

    async fn set_size(&self, m: &M, file: &File, less: Option<u32>) {
        match less {
            None => self.truncate_file(m, file).await,
            Some(bytes) => self.shorten_file(m, file.inode, bytes).await,
        }
    }

    async fn setattr(&self, m: &M, file: &File, _: Attribute, time: Time) {
        self.setattr_nonsize(m, file, time).await;
    }

    async fn fallocate(&self, m: &M, file: &File, bytes: u32) -> Result<(), NoSpace> {
        self.preallocate(m, file.inode, bytes).await
    }

    async fn fiemap(&self, m: &M, file: &File) {
        self.list_extents(m, file).await;
    }

    /// `xfs_seek_iomap_begin`.
    fn seek_lock(&self, file: &File) -> (LockId, Side) {
        (self.inodes.inode(file.inode).ilock, Side::Read)
    }

    fn names(&self, dir: DirId) -> u32 {
        self.layout.borrow().dir(self.directory(dir).id).names()
    }

    async fn iterate(&self, m: &M, dir: DirId, names: u32, time: Time) {
        self.list_names(m, dir, names, time).await;
    }
}
