//! XFS as the VFS calls it: each operation with the locks of the VFS around what XFS does under them (`transactions.rs`).
//!
//! Order and times are those of function traces of a 6.18 kernel.

mod attributes;
mod costs;
pub mod file_io;
pub mod fsync;
pub mod inactive;
pub mod inodegc;
pub mod preallocate;
pub mod release;
mod transactions;
pub mod walk;

use super::mount::Xfs;
use super::structures::groups::NoSpace;
use crate::filesystems::calls::new_pages;
use crate::filesystems::{initial_files, Attribute, DirId, File, Filesystem, Io, LaidOut, PlainCall, Renaming};
use crate::kernel::xfs::Inactivation;
use crate::waist::Machine;
use crate::waist::{Access, Account, Side};
pub(super) use costs::OperationCosts;

impl<M: Machine> Filesystem<M> for Xfs {
    async fn mkdir(&self, m: &M, parent: DirId, name: &[u8]) -> Result<DirId, NoSpace> {
        let (c, (before, after)) = (&self.costs.mkdir, self.sb.calls.mkdir());
        m.at("mkdir");
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let parent = self.directory(parent);
        m.lock(parent.i_rwsem, Side::Write).await;
        m.run(Account::System, c.walk.saturating_sub(before)).await; // the trace has no event at the lock
        self.lookup(m, &parent, name).await;
        let dir = self.xfs_mkdir(m, &parent, name).await?;
        m.run(Account::System, c.exit.saturating_sub(after)).await;
        m.unlock(parent.i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, after).await;
        Ok(dir)
    }

    async fn rmdir(&self, m: &M, parent: DirId, name: &[u8], dir: DirId) {
        m.at("rmdir");
        let victim = File { inode: self.directory(dir).slot, written: false, writable: false };
        self.remove(m, parent, name, victim, Some(dir)).await;
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
        let c = &self.costs.create;
        m.at("create");
        m.run(Account::System, c.walk).await;
        self.sb.start_write(m).await;
        let d = self.directory(dir);
        m.lock(d.i_rwsem, Side::Write).await;
        let lookup = self.sb.calls.dcache.look_up(m, dir, name);
        m.run(Account::System, c.lookup).await;
        self.lookup(m, &d, name).await;
        self.sb.calls.dcache.looked_up(m, lookup);
        let slot = self.xfs_create(m, &d, name).await?;
        self.sb.calls.files.made_dentry(m, slot);
        m.run(Account::System, c.tail).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, c.open).await;
        Ok(File { inode: slot, written: false, writable: true })
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
        self.sb.calls.append(m, c.attr + c.delalloc + c.copy, size, bytes).await;
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
        m.at("unlink");
        self.remove(m, dir, name, file, None).await;
    }

    async fn rename(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File) -> Result<(), NoSpace> {
        let (before, under, after) = self.sb.rename();
        m.at("rename");
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let (old, new) = (self.directory(dir), self.directory(names.into));
        let inode = self.inodes.inode(file.inode);
        self.sb.calls.files.found(m, file.inode);
        self.sb.lock_rename(m, new.i_rwsem, old.i_rwsem).await;
        m.lock(inode.iolock, Side::Write).await;
        let done = self.xfs_rename(m, (&old, &new), names, inode, under).await;
        self.sb.d_move(m).await;
        m.unlock(inode.iolock, Side::Write).await;
        self.sb.unlock_rename(m, new.i_rwsem, old.i_rwsem).await;
        self.sb.end_write(m).await;
        m.run(Account::System, after).await;
        done
    }

    async fn stat(&self, m: &M, file: &File) {
        self.sb.calls.stat(m, file).await;
    }

    async fn stat_directory(&self, m: &M, dir: DirId) {
        self.sb.calls.stat_directory(m, dir).await;
    }

    async fn fstat(&self, m: &M, file: &File) {
        self.sb.calls.fstat(m, file).await;
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

    async fn plain(&self, m: &M, call: PlainCall) {
        self.sb.calls.plain(m, call).await;
    }
}

impl Xfs {
    /// `vfs_unlink`, or `vfs_rmdir` of a directory: parent and victim are locked, then the inode is evicted; a directory's under the
    /// parent's lock (`d_delete`), a file's when that is released (`do_unlinkat` has a reference until then).
    async fn remove<M: Machine>(&self, m: &M, dir: DirId, name: &[u8], file: File, removed: Option<DirId>) {
        let (c, is_directory) = (&self.costs.unlink, removed.is_some());
        let (before, after) = if is_directory { self.sb.calls.rmdir() } else { (c.walk, c.exit) };
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let d = self.directory(dir);
        m.lock(d.i_rwsem, Side::Write).await;
        m.run(Account::System, c.lookup).await;
        let inode = self.inodes.inode(file.inode);
        self.sb.calls.files.found(m, file.inode);
        m.lock(inode.iolock, Side::Write).await; // the victim
        self.xfs_remove(m, &d, name, inode, removed).await;
        m.unlock(inode.iolock, Side::Write).await;
        if is_directory {
            self.evict(m, file).await;
        }
        m.run(Account::System, c.tail).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        if !is_directory {
            self.storage.writeback.forget(m, file.inode).await;
            self.evict(m, file).await;
        }
        self.sb.end_write(m).await;
        m.run(Account::System, after).await;
    }

    /// The last reference goes: pages are dropped, what security modules know of the inode goes to RCU (`inode_free_by_rcu`), the
    /// inode is queued for this CPU's worker.
    async fn evict<M: Machine>(&self, m: &M, file: File) {
        let c = &self.costs.unlink;
        let pages = if file.written { c.evict_pages_and_all.saturating_sub(c.evict_all) } else { 0 };
        let rest = self.sb.inodes.pass(m, None, c.evict + pages + c.queue).await;
        m.run(Account::System, rest).await;
        m.call_rcu(1, c.callback);
        self.inodes.set_need_inactive(file.inode);
        let gc = match self.inactivation {
            Inactivation::Task => return self.inactive(m, file.inode, file.written).await,
            Inactivation::PerCpu => &self.inodegc[m.cpu() as usize],
            Inactivation::PerGroup => &self.inodegc[self.group_number(self.inodes.inode(file.inode).ino)],
        };
        if let Some(flushed) = gc.queue(m, file.inode, file.written) {
            m.wchan("xfs_inodegc_queue");
            m.wait_for(flushed).await;
        }
    }
}
