//! What XFS does to names under the locks of the VFS: `inode_operations` of directories (`fs/xfs/xfs_iops.c`) around the transactions.

use super::super::mount::Xfs;
use crate::filesystems::inodes::listed;
use crate::filesystems::names::namei::InodeOperations;
use crate::filesystems::vfs::SuperBlock;
use crate::filesystems::{DirId, File, Mounted, NoSpace, Renaming};
use crate::kernel::xfs::Inactivation;
use crate::waist::Machine;
use crate::waist::{Account, LockId, Time};

impl Mounted for Xfs {
    fn super_block(&self) -> &SuperBlock {
        &self.sb
    }
}

impl<M: Machine> InodeOperations<M> for Xfs {
    fn directory_lock(&self, dir: DirId) -> LockId {
        self.directory(dir).i_rwsem
    }

    fn file_lock(&self, file: &File) -> LockId {
        self.inodes.inode(file.inode).iolock
    }

    fn create_times(&self) -> (Time, Time) {
        (self.costs.create.walk, self.costs.create.open)
    }

    fn unlink_times(&self) -> (Time, Time) {
        (self.costs.unlink.walk, self.costs.unlink.exit)
    }

    fn slot_of(&self, dir: DirId) -> Option<u32> {
        Some(self.directory(dir).slot)
    }

    async fn create(&self, m: &M, dir: DirId, name: &[u8]) -> Result<u32, NoSpace> {
        let (c, d) = (&self.costs.create, self.directory(dir));
        let lookup = self.sb.calls.look_up(m, dir, name);
        m.run(Account::System, self.sb.calls.lookup_free(dir, name, c.lookup)).await;
        self.look_up_name(m, dir, name).await;
        self.sb.calls.dcache.looked_up(m, lookup);
        let slot = self.xfs_create(m, &d, name).await?;
        self.sb.calls.made_dentry(m, slot, (dir, name));
        m.run(Account::System, c.tail).await;
        Ok(slot)
    }

    async fn mkdir(&self, m: &M, parent: DirId, name: &[u8]) -> Result<DirId, NoSpace> {
        let (c, (before, after)) = (&self.costs.mkdir, self.sb.calls.mkdir());
        m.run(Account::System, c.walk.saturating_sub(before)).await; // the trace has no event at the lock
        self.look_up_name(m, parent, name).await;
        let parent = self.directory(parent);
        let dir = self.xfs_mkdir(m, &parent, name).await?;
        m.run(Account::System, c.exit.saturating_sub(after)).await;
        Ok(dir)
    }

    async fn look_up_inode(&self, m: &M, dir: DirId, _: &[u8], file: &File) {
        self.look_up_cold(m, dir, file.inode).await;
    }

    async fn look_up(&self, m: &M, _: DirId) {
        m.run(Account::System, self.costs.unlink.lookup).await;
    }

    async fn look_up_free(&self, m: &M, dir: DirId, name: &[u8], time: Time) -> Time {
        let c = &self.costs.create;
        m.run(Account::System, self.sb.calls.lookup_free(dir, name, c.lookup)).await;
        self.look_up_name(m, dir, name).await;
        time.saturating_sub(c.lookup + c.lookup_end)
    }

    async fn link(&self, m: &M, dir: DirId, name: &[u8], file: &File, time: Time) -> Result<(), NoSpace> {
        self.xfs_link(m, &self.directory(dir), name, self.inodes.inode(file.inode), time).await
    }

    async fn unlink(&self, m: &M, dir: DirId, name: &[u8], file: &File, last: bool) {
        let (d, inode) = (self.directory(dir), self.inodes.inode(file.inode));
        match last {
            true => self.xfs_remove(m, &d, name, inode, None).await,
            false => self.xfs_remove_link(m, &d, name, inode).await,
        }
    }

    async fn rmdir(&self, m: &M, parent: DirId, name: &[u8], dir: DirId) {
        let inode = self.inodes.inode(self.directory(dir).slot);
        self.xfs_remove(m, &self.directory(parent), name, inode, Some(dir)).await;
    }

    async fn removed(&self, m: &M) {
        m.run(Account::System, self.costs.unlink.tail).await;
    }

    async fn rename(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File, time: Time) -> Result<(), NoSpace> {
        let (old, new) = (self.directory(dir), self.directory(names.into));
        self.xfs_rename(m, (&old, &new), names, self.inodes.inode(file.inode), time).await
    }

    async fn evict_file(&self, m: &M, _: DirId, file: File) {
        self.storage.writeback.forget(m, file.inode).await;
        self.evict(m, file).await;
    }

    async fn evict_directory(&self, m: &M, _: DirId, dir: DirId) {
        self.evict(m, File { inode: self.directory(dir).slot, written: false, writable: false }).await;
        self.free_directory(dir);
    }
}

impl Xfs {
    /// The last reference goes: pages are dropped, what security modules know of the inode goes to RCU (`inode_free_by_rcu`), the
    /// inode is queued for this CPU's worker.
    async fn evict<M: Machine>(&self, m: &M, file: File) {
        let c = &self.costs.unlink;
        let pages = c.evict_pages_and_all.saturating_sub(c.evict_all);
        let pages = if file.written { self.sb.calls.without_lru(pages) } else { 0 };
        let rest = self.sb.inodes.leave(m, listed::file(file.inode), None, c.evict + pages + c.queue).await;
        m.run(Account::System, rest).await;
        m.call_rcu(1, c.callback);
        self.inodes.set_need_inactive(m, file.inode);
        let gc = match self.inactivation {
            Inactivation::Task => return self.inactive(m, file.inode, file.written).await,
            Inactivation::PerMount => &self.inodegc[0],
            Inactivation::PerCpu => &self.inodegc[m.cpu() as usize],
            Inactivation::PerGroup => &self.inodegc[self.group_number(self.inodes.inode(file.inode).ino)],
        };
        if let Some(flushed) = gc.queue(m, file.inode, file.written, self.hurries_inodegc()) {
            m.wchan("xfs_inodegc_queue");
            m.wait_for(flushed).await;
        }
    }
}
