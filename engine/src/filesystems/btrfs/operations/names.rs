//! What btrfs does to names under the locks of the VFS: `inode_operations` of directories (`fs/btrfs/inode.c`).

use super::super::mount::{Btrfs, Inode};
use super::super::names::Name;
use super::super::tree::items;
use crate::filesystems::names::namei::InodeOperations;
use crate::filesystems::vfs::SuperBlock;
use crate::filesystems::{DirId, File, Mounted, NoSpace, Renaming, ROOT};
use crate::kernel::btrfs::RenamePin;
use crate::waist::Machine;
use crate::waist::{Access, Account, LockId, Time};

impl Mounted for Btrfs {
    fn super_block(&self) -> &SuperBlock {
        &self.sb
    }
}

impl<M: Machine> InodeOperations<M> for Btrfs {
    fn directory_lock(&self, dir: DirId) -> LockId {
        self.directory(dir).i_rwsem
    }

    fn file_lock(&self, file: &File) -> LockId {
        self.file(file.inode).i_rwsem
    }

    fn create_times(&self) -> (Time, Time) {
        (self.costs.create.walk, self.costs.create.open)
    }

    fn unlink_times(&self) -> (Time, Time) {
        (self.costs.unlink.walk, self.costs.unlink.exit)
    }

    async fn create(&self, m: &M, dir: DirId, name: &[u8]) -> Result<u32, NoSpace> {
        let slot = self.new_slot();
        let (ino, index) = self.new_inode(m, dir, name, Some(slot)).await?;
        let entry = items::dir_item(self.directory(dir).ino, name).key;
        self.add_file(slot, Inode { ino, dir, index, entry, i_rwsem: self.sb.new_file(m) });
        Ok(slot)
    }

    async fn mkdir(&self, m: &M, parent: DirId, name: &[u8]) -> Result<DirId, NoSpace> {
        if self.subvolumes && parent == ROOT {
            return Ok(self.create_subvolume(m, parent, name).await);
        }
        let (ino, index) = self.new_inode(m, parent, name, None).await?;
        Ok(self.add_directory(m, ino, index))
    }

    async fn look_up_inode(&self, m: &M, dir: DirId, name: &[u8], file: &File) {
        self.look_up_cold(m, dir, name, file.inode).await;
    }

    async fn look_up(&self, m: &M, dir: DirId) {
        m.touch(self.directory(dir).line, Access::Write);
        m.run(Account::System, self.costs.unlink.lookup).await;
    }

    async fn look_up_free(&self, m: &M, dir: DirId, name: &[u8], time: Time) -> Time {
        let (c, d) = (&self.costs.create, self.directory(dir));
        m.touch(d.line, Access::Write);
        self.look_up_name(m, dir, name).await;
        time.saturating_sub(c.lookup)
    }

    async fn link(&self, m: &M, dir: DirId, name: &[u8], file: &File, time: Time) -> Result<(), NoSpace> {
        m.run(Account::System, time).await;
        self.link_inode(m, dir, name, file.inode).await;
        Ok(())
    }

    async fn unlink(&self, m: &M, dir: DirId, name: &[u8], file: &File, last: bool) {
        let (d, inode) = (self.directory(dir), self.named(file.inode, dir, name));
        match last {
            true => self.unlink_inode(m, d, name, &inode, file.inode).await,
            false => self.unlink_link(m, d, name, &inode, file.inode).await,
        }
    }

    async fn rmdir(&self, m: &M, parent: DirId, name: &[u8], dir: DirId) {
        let (d, victim) = (self.directory(parent), self.directory(dir));
        let inode = self.inode_of_directory(parent, name, victim);
        self.rmdir_inode(m, d, name, &inode).await;
    }

    async fn rename(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File, time: Time) -> Result<(), NoSpace> {
        let (old, new) = (self.directory(dir), self.directory(names.into));
        let inode = self.named(file.inode, dir, names.from);
        m.touch(old.line, Access::Write);
        if names.into != dir {
            m.touch(new.line, Access::Write);
        }
        let [lookup, collision, start, searches @ .., end] = self.costs.rename.of(time);
        for before in [lookup, collision] {
            m.run(Account::System, before).await;
            self.read_item(m, items::dir_item(new.ino, names.to).key, self.costs.create.read_leaf).await;
        }
        m.run(
            Account::System,
            start.saturating_sub(self.transaction.reservations.reserve_time + self.transaction.join_time),
        )
        .await;
        let handle = self.start_transaction(m).await;
        let pin = self.fsync.rename_pin;
        let log = &self.fs_root(inode.ino).log;
        if pin == RenamePin::First {
            log.pin_for_rename(m, self.fsync.pin_locks_log).await;
        }
        self.extend(m, items::inode_ref(inode.ino, new.ino, names.to), self.costs.rename_ref).await;
        if pin == RenamePin::Inserted {
            log.pin_for_rename(m, self.fsync.pin_locks_log).await;
        }
        if names.into != dir {
            self.record_rename(m, file.inode, dir).await;
        }
        if self.fsync.rename_unlogs {
            self.unlink_in_log(m, file.inode, inode).await;
        }
        self.lose_name(file.inode, &inode, false);
        let index = self.rename_inode(m, (old, new), names, &inode, searches).await;
        let entry = items::dir_item(new.ino, names.to).key;
        self.set_name(file.inode, inode.name(), Name { dir: names.into, index, entry });
        let name = self.log_new_name(m, file.inode, Some(inode)).await;
        if pin != RenamePin::Joined {
            log.end(m).await;
        }
        m.run(Account::System, end.saturating_sub(self.transaction.reservations.release_time)).await;
        self.end_rename(m, handle, file.inode, name).await;
        if self.fsync.rename_balances {
            self.btree_balance_dirty(m).await;
        }
        Ok(())
    }

    async fn evict_file(&self, m: &M, dir: DirId, file: File) {
        let inode = self.file(file.inode);
        m.at("evict");
        self.sb.calls.files.evicted(m, file.inode);
        self.storage.writeback.forget(m, file.inode).await;
        self.forget_dirty(file.inode);
        self.ordered.wait_for_file(m, file.inode).await; // they hold the inode
        let pages = file.written && self.data(file.inode).has_pages();
        let extents = self.data(file.inode).drop_extents();
        let d = (!self.names.had_several(file.inode)).then(|| self.directory(dir));
        self.evict(m, d, &inode, pages, &extents).await;
        self.drop_file(m, file.inode);
    }

    async fn evict_directory(&self, m: &M, parent: DirId, dir: DirId) {
        m.at("evict");
        self.commit_delayed_directory(m, dir).await;
        let inode = self.inode_of_directory(parent, b"", self.directory(dir));
        self.evict(m, Some(self.directory(parent)), &inode, false, &[]).await;
        self.drop_directory(dir);
    }
}
