//! XFS as the VFS calls it: each operation with the locks of the VFS around what XFS does under them (`transactions.rs`).
//!
//! Order and times are those of function traces of a 6.18 kernel.

mod attributes;
mod costs;
pub mod file_io;
pub mod fsync;
pub mod inactive;
pub mod inodegc;
mod names;
pub mod preallocate;
pub mod release;
mod transactions;
pub mod walk;

use super::mount::Xfs;
use super::structures::groups::NoSpace;
use crate::filesystems::calls::new_pages;
use crate::filesystems::namei;
use crate::filesystems::{initial_files, Attribute, DirId, File, Filesystem, Io, LaidOut, Renaming};
use crate::waist::Machine;
use crate::waist::{Access, Account, Side};
pub(super) use costs::OperationCosts;

impl<M: Machine> Filesystem<M> for Xfs {
    async fn mkdir(&self, m: &M, parent: DirId, name: &[u8]) -> Result<DirId, NoSpace> {
        namei::mkdir(self, m, parent, name).await
    }

    async fn rmdir(&self, m: &M, parent: DirId, name: &[u8], dir: DirId) {
        namei::rmdir(self, m, parent, name, dir).await;
    }

    fn fill(&self, dirs: &[DirId], files: u64, name_length: usize) -> Result<(), NoSpace> {
        let mut layout = self.layout.borrow_mut();
        for (dir, name) in initial_files(dirs, 0..files, name_length) {
            let created = layout.create(self.directory(dir).id, &name)?;
            self.contents.fill(&created.inode.touches);
            self.contents.fill(&created.dir.touches);
        }
        Ok(())
    }

    async fn create(&self, m: &M, dir: DirId, name: &[u8]) -> Result<File, NoSpace> {
        namei::create(self, m, dir, name).await
    }

    async fn open(&self, m: &M, _: DirId, file: &File) {
        let (walk, whole) = (self.costs.create.walk, self.costs.open.open);
        self.sb.calls.open(m, file, walk.min(whole), whole.saturating_sub(walk)).await;
    }

    async fn write(&self, m: &M, file: &mut File, bytes: u32) {
        m.at("write");
        self.sb.calls.files.held(m, file.inode);
        let (c, inode) = (&self.costs.write, self.inodes.inode(file.inode));
        let size = self.sync.dirty.size(file.inode);
        let of_new_page = |time| if new_pages(size, bytes) > 0 { time } else { 0 };
        m.run(Account::System, of_new_page(c.start)).await;
        m.lock(inode.iolock, Side::Write).await;
        inode.peek(m).await;
        self.update_times(m, file.inode).await;
        inode.ilock(m).await;
        inode.iunlock(m).await;
        self.sync.dirty.append(file.inode, bytes);
        self.inodes.set_sized(file.inode);
        self.sb.calls.append(m, file, c.attr + c.delalloc + c.copy, size, bytes).await;
        self.dirtied(m, file.inode).await;
        m.unlock(inode.iolock, Side::Write).await;
        m.run(Account::System, of_new_page(c.end)).await;
        file.written = true;
    }

    async fn overwrite(&self, m: &M, file: &File, bytes: u32) {
        m.at("write");
        let inode = self.inodes.inode(file.inode);
        m.lock(inode.iolock, Side::Write).await;
        self.update_times(m, file.inode).await;
        inode.peek(m).await; // xfs_bmbt_to_iomap
        self.sync.dirty.overwrite(file.inode, bytes);
        self.sb.calls.overwrite(m, file, bytes).await;
        self.dirtied(m, file.inode).await;
        m.unlock(inode.iolock, Side::Write).await;
    }

    async fn read(&self, m: &M, file: &File, bytes: u32) {
        m.at("read");
        let inode = self.inodes.inode(file.inode);
        m.lock(inode.iolock, Side::Read).await;
        self.sb.calls.read(m, file, bytes).await;
        m.unlock(inode.iolock, Side::Read).await;
    }

    async fn lay_out(&self, m: &M, dir: DirId, name: &[u8], laid: LaidOut) -> Result<File, NoSpace> {
        let file = self.create(m, dir, name).await?;
        let pages = self.io.open(m, file.inode, self.inodes.inode(file.inode), laid);
        self.storage.memory.lay_out(&pages);
        self.inodes.set_sized(file.inode);
        Ok(file)
    }

    async fn read_at(&self, m: &M, file: &File, io: Io) {
        self.read_file(m, file, io).await;
    }

    async fn write_at(&self, m: &M, file: &File, io: Io) {
        self.write_file(m, file, io).await;
    }

    async fn close(&self, m: &M, file: &File) {
        m.at("close");
        self.sb.calls.files.closed(m, file.inode);
        self.release(m, file).await;
        self.sb.calls.put(m, file).await;
    }

    async fn fsync(&self, m: &M, file: &File) {
        self.sync_file(m, file.inode).await;
    }

    async fn fallocate(&self, m: &M, file: &File, bytes: u32) -> Result<(), NoSpace> {
        self.preallocate(m, file, bytes).await
    }

    async fn truncate(&self, m: &M, file: &File) {
        self.truncate_file(m, file).await;
    }

    async fn shorten(&self, m: &M, file: &File, bytes: u32) {
        self.shorten_file(m, file, bytes).await;
    }

    async fn unlink(&self, m: &M, dir: DirId, name: &[u8], file: File) {
        namei::unlink(self, m, dir, name, file).await;
    }

    async fn rename(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File) -> Result<(), NoSpace> {
        namei::rename(self, m, dir, names, file).await
    }

    async fn set_attribute(&self, m: &M, file: &File, attribute: Attribute) {
        self.setattr(m, file, attribute).await;
    }

    async fn fiemap(&self, m: &M, file: &File) {
        self.list_extents(m, file).await;
    }

    async fn walk(&self, m: &M, dir: DirId, nth: u32) {
        self.walk_to(m, dir, nth).await;
    }

    async fn readdir(&self, m: &M, dir: DirId) {
        let d = self.directory(dir);
        m.at("readdir");
        let names = self.layout.borrow().dir(d.id).names();
        for time in self.sb.calls.readdir(names) {
            m.lock(d.i_rwsem, Side::Read).await;
            m.lock(d.ilock, Side::Read).await;
            m.touch(d.line, Access::Read);
            m.run(Account::System, time).await;
            m.unlock(d.ilock, Side::Read).await;
            m.unlock(d.i_rwsem, Side::Read).await;
        }
    }
}
