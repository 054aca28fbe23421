//! What ext4 does to open files under the locks of the VFS (`fs/ext4/file.c`, `fs/ext4/inode.c`), and as a whole.

use super::Ext4;
use crate::filesystems::inodes::listed;
use crate::filesystems::inodes::times::Timed;
use crate::filesystems::open_files::read_write::FileOperations;
use crate::filesystems::pages::dirty::Wanted;
use crate::filesystems::pages::mapping::{self, Submitted};
use crate::filesystems::vfs::SuperOperations;
use crate::filesystems::{initial_files, Attribute, DirId, File, InitialNames, Io, LaidOut, NoSpace};
use crate::waist::Machine;
use crate::waist::{Access, Account, LockId, Side, Time};
use crate::writeback::Flushed;

impl<M: Machine> SuperOperations<M> for Ext4 {
    fn fill(&self, dirs: &[DirId], files: u64, names: InitialNames) -> Result<(), NoSpace> {
        for (dir, name) in initial_files(dirs, 0..files, names) {
            let group = self.group_of_new_file(dir).ok_or(NoSpace)?;
            self.tables.filled(self.ialloc.fill(group).ok_or(NoSpace)?);
            self.enter_name(dir, &name);
        }
        dirs.iter().for_each(|&dir| self.was_filled(dir));
        Ok(())
    }

    fn fill_up(&self, free: u64) -> Result<(), NoSpace> {
        self.leave_free(free)
    }

    async fn lay_out(&self, m: &M, file: &File, laid: LaidOut) {
        let pages = self.io.open(m, file.inode, self.i_rwsem(file), laid);
        self.fsync.dirty.lay_out(file.inode, pages.clone());
        self.storage.memory.lay_out(&pages);
    }

    async fn sync_fs(&self, m: &M) {
        mapping::sync_inodes(self, m, &self.fsync.dirty).await;
    }

    async fn start_sync(&self, m: &M) {
        let latest = self.journal.latest(m).await;
        self.journal.start_commit_of(m, latest).await;
    }

    async fn write_inodes(&self, m: &M) -> Submitted {
        mapping::submit_inodes(self, m, &self.fsync.dirty).await
    }

    async fn wait_inodes(&self, m: &M, written: Submitted) {
        mapping::wait_inodes(self, m, written).await;
    }

    async fn end_sync(&self, m: &M) {
        self.sync_journal(m).await;
    }

    fn leaves_memory(&self, file: &File) {
        self.sb.leaves_memory(file, listed::file(file.inode), true);
    }

    async fn walk(&self, m: &M, dir: DirId, nth: u32) {
        self.walk_to(m, dir, nth).await;
    }
}

impl<M: Machine> FileOperations<M> for Ext4 {
    /// `ext4_truncate`, which is called also where the size does not change (`ext4_setattr`).
    fn opened_truncating(&self, file: &File) {
        self.files.borrow_mut().slots[file.inode as usize].truncated = true;
    }

    async fn release(&self, m: &M, file: &File) {
        if std::mem::take(&mut self.files.borrow_mut().slots[file.inode as usize].truncated) {
            self.flush(m, file.inode).await; // auto_da_alloc: who replaces a file finds it on disk
        }
        if file.writable {
            self.discard_preallocations(m, file.inode).await;
        }
        m.run(Account::System, if file.written { self.write.close } else { self.create.close }).await;
    }

    fn new_page_time(&self) -> Time {
        self.write.write.saturating_sub(self.map.reserving())
    }

    async fn write_begin(&self, m: &M, file: &File, bytes: u32, grows: bool) -> u64 {
        self.update_times(m, file.inode).await;
        let size = self.fsync.dirty.size(file.inode);
        if grows {
            self.mark_dirty(file.inode);
            self.fsync.dirty.append(file.inode, bytes);
        } else {
            self.fsync.dirty.overwrite(file.inode, bytes);
        }
        self.journal_write(m, file.inode, bytes, grows).await;
        if grows && !self.allocates_now(m, file.inode, size, bytes).await {
            self.delay_blocks(m, file.inode, size, bytes).await;
        }
        size
    }

    async fn write_end(&self, m: &M, file: &File, _: u64, _: u32) {
        self.dirtied(m, file.inode).await;
    }

    async fn update_atime(&self, m: &M, inode: Timed) {
        let time = self.sb.calls.setattr().1;
        match inode {
            Timed::File(slot) => {
                self.mark_times_dirty(slot);
                self.change_inode(m, slot, time).await;
            }
            Timed::Directory(dir) => self.change_directory(m, dir, time).await,
        }
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

    async fn fsync_directory(&self, m: &M, dir: DirId, data_only: bool) {
        self.sync_directory(m, dir, data_only).await;
    }

    async fn fsync_range(&self, m: &M, file: &File, (offset, bytes): (u64, u32)) {
        self.sync_file(m, file.inode, Wanted::Range(offset, bytes), false).await;
    }

    async fn set_size(&self, m: &M, file: &File, less: Option<u32>) {
        self.truncate_file(m, file, less).await;
    }

    async fn setattr(&self, m: &M, file: &File, attribute: Attribute, time: Time) {
        self.change_attribute(m, file.inode, attribute, time).await;
    }

    async fn fallocate(&self, m: &M, file: &File, bytes: u32) -> Result<(), NoSpace> {
        self.alloc_file_blocks(m, file.inode, bytes).await
    }

    async fn fiemap(&self, m: &M, file: &File) {
        self.list_extents(m, file.inode).await;
    }

    /// `ext4_llseek`.
    fn seek_lock(&self, file: &File) -> (LockId, Side) {
        (self.i_rwsem(file), Side::Read)
    }

    fn names(&self, dir: DirId) -> u32 {
        self.directory(dir).2
    }

    async fn iterate(&self, m: &M, dir: DirId, _: u32, time: Time) {
        m.touch(self.directory(dir).1, Access::Read);
        m.run(Account::System, time).await;
    }
}
