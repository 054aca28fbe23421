//! btrfs as the VFS calls it: each operation with the locks of the VFS around what btrfs does under them (`inode.rs`).
//!
//! Order and times are those of event traces of a 6.18 kernel.

mod attributes;
mod costs;
mod inode;
pub(super) mod walk;

use super::data::FileData;
use super::mount::{Btrfs, Inode};
use super::tree::items;
use crate::filesystems::{Attribute, DirId, File, Filesystem, Io, LaidOut, NoSpace, PlainCall, Renaming};
use crate::waist::Machine;
use crate::waist::{Access, Account, Side};
pub(super) use costs::OperationCosts;

impl<M: Machine> Filesystem<M> for Btrfs {
    async fn mkdir(&self, m: &M, parent: DirId, name: &[u8]) -> Result<DirId, NoSpace> {
        let (before, after) = self.sb.calls.mkdir();
        m.at("mkdir");
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let d = self.directory(parent);
        m.lock(d.i_rwsem, Side::Write).await;
        let (ino, index) = self.new_inode(m, parent, d, name).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, after).await;
        Ok(self.add_directory(m, ino, index))
    }

    async fn rmdir(&self, m: &M, parent: DirId, name: &[u8], dir: DirId) {
        let (c, (before, after)) = (&self.costs.unlink, self.sb.calls.rmdir());
        m.at("rmdir");
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let (d, victim) = (self.directory(parent), self.directory(dir));
        m.lock(d.i_rwsem, Side::Write).await;
        m.touch(d.line, Access::Write);
        m.run(Account::System, c.lookup).await;
        m.lock(victim.i_rwsem, Side::Write).await;
        let entry = items::dir_item(d.ino, name).key;
        let inode = Inode { ino: victim.ino, dir: parent, index: victim.index, entry, i_rwsem: victim.i_rwsem };
        self.rmdir_inode(m, d, name, &inode).await;
        m.unlock(victim.i_rwsem, Side::Write).await;
        m.at("evict"); // d_delete
        self.commit_delayed_directory(m, dir).await;
        self.evict(m, d, &inode, false, &[]).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, after).await;
        self.drop_directory(dir);
    }

    fn fill(&self, dirs: &[DirId], files: u64, name_length: usize) -> Result<(), NoSpace> {
        self.fill_with(dirs, files, name_length);
        Ok(())
    }

    async fn create(&self, m: &M, dir: DirId, name: &[u8]) -> Result<File, NoSpace> {
        m.at("create");
        m.run(Account::System, self.costs.create.walk).await;
        self.sb.start_write(m).await;
        let d = self.directory(dir);
        m.lock(d.i_rwsem, Side::Write).await;
        let (ino, index) = self.new_inode(m, dir, d, name).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, self.costs.create.open).await;
        let entry = items::dir_item(d.ino, name).key;
        let inode = Inode { ino, dir, index, entry, i_rwsem: self.sb.new_file(m) };
        let slot = self.add_file(inode);
        self.sb.calls.files.unlisted(slot);
        Ok(File { inode: slot, written: false, writable: true })
    }

    async fn open(&self, m: &M, _: DirId, file: &File) {
        self.sb.calls.open(m, file, self.costs.create.walk, self.costs.create.open).await;
    }

    async fn write(&self, m: &M, file: &mut File, bytes: u32) {
        m.at("write");
        self.sb.calls.files.held(m, file.inode);
        let lock = self.file(file.inode).i_rwsem;
        m.lock(lock, Side::Write).await;
        self.reclaim_if_needed(m); // btrfs_delalloc_reserve_metadata
        let end = self.data(file.inode).size();
        self.sb.calls.append(m, self.costs.write.write, end, bytes).await;
        self.data(file.inode).write(end, u64::from(bytes), self.transid());
        self.dirtied(m, file.inode).await;
        m.unlock(lock, Side::Write).await;
        file.written = true;
    }

    async fn lay_out(&self, m: &M, dir: DirId, name: &[u8], laid: LaidOut) -> Result<File, NoSpace> {
        let file = self.create(m, dir, name).await?;
        let data =
            FileData::on_disk(laid.bytes, laid.extents, |bytes| self.extents.lay_out_data(bytes, !self.nodatacow));
        let ino = self.file(file.inode).ino;
        let handle = self.start_transaction(m).await;
        for extent in data.items(ino) {
            self.insert(m, &[extent], 0).await;
        }
        self.transaction.end(m, handle).await;
        *self.data(file.inode) = data;
        Ok(file)
    }

    async fn read_at(&self, m: &M, file: &File, io: Io) {
        if io.direct {
            return self.direct_read(m, file, io).await;
        }
        self.sb.calls.read(m, file, io.bytes).await;
    }

    async fn write_at(&self, m: &M, file: &File, io: Io) {
        if io.direct {
            return self.direct_write(m, file, io).await;
        }
        m.at("write");
        let lock = self.file(file.inode).i_rwsem;
        m.lock(lock, Side::Write).await;
        self.reclaim_if_needed(m);
        self.sb.calls.overwrite(m, file, io.bytes).await;
        self.data(file.inode).write(io.offset, u64::from(io.bytes), self.transid());
        self.dirtied(m, file.inode).await;
        m.unlock(lock, Side::Write).await;
    }

    async fn overwrite(&self, m: &M, file: &File, bytes: u32) {
        m.at("write");
        let lock = self.file(file.inode).i_rwsem;
        m.lock(lock, Side::Write).await;
        self.reclaim_if_needed(m);
        self.sb.calls.overwrite(m, file, bytes).await;
        self.data(file.inode).write(0, u64::from(bytes), self.transid());
        self.dirtied(m, file.inode).await;
        m.unlock(lock, Side::Write).await;
    }

    async fn read(&self, m: &M, file: &File, bytes: u32) {
        self.sb.calls.read(m, file, bytes).await;
    }

    async fn close(&self, m: &M, file: &File) {
        m.at("close");
        self.sb.calls.files.closed(m, file.inode);
        m.run(Account::System, if file.written { self.costs.write.close } else { self.costs.create.close }).await;
        self.sb.calls.put(m, file).await;
    }

    async fn fsync(&self, m: &M, file: &File) {
        self.sync_file(m, file).await;
    }

    async fn unlink(&self, m: &M, dir: DirId, name: &[u8], file: File) {
        let c = &self.costs.unlink;
        m.at("unlink");
        m.run(Account::System, c.walk).await;
        self.sb.start_write(m).await;
        let (d, inode) = (self.directory(dir), self.file(file.inode));
        m.lock(d.i_rwsem, Side::Write).await;
        m.touch(d.line, Access::Write);
        m.run(Account::System, c.lookup).await;
        self.sb.calls.files.found(m, file.inode);
        m.lock(inode.i_rwsem, Side::Write).await;
        self.unlink_inode(m, d, name, &inode, file.inode).await;
        m.unlock(inode.i_rwsem, Side::Write).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        m.at("evict");
        self.sb.calls.files.whole_inode(m, file.inode);
        self.log.storage.writeback.forget(m, file.inode).await;
        self.ordered.wait_for_file(m, file.inode).await; // they hold the inode
        let extents = self.data(file.inode).drop_extents();
        self.evict(m, d, &inode, file.written, &extents).await;
        self.sb.end_write(m).await;
        m.run(Account::System, c.exit).await;
        self.drop_file(m, file.inode);
    }

    async fn truncate(&self, m: &M, file: &File) {
        self.truncate_file(m, file).await;
    }

    async fn rename(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File) -> Result<(), NoSpace> {
        let (before, under, after) = self.sb.rename();
        m.at("rename");
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let (old, new, inode) = (self.directory(dir), self.directory(names.into), self.file(file.inode));
        self.sb.calls.files.found(m, file.inode);
        self.sb.lock_rename(m, new.i_rwsem, old.i_rwsem).await;
        m.lock(inode.i_rwsem, Side::Write).await;
        m.touch(old.line, Access::Write);
        if names.into != dir {
            m.touch(new.line, Access::Write);
        }
        for _lookup_and_collision in 0..2 {
            self.read_item(m, items::dir_item(new.ino, names.to).key, self.costs.create.read_leaf).await;
        }
        m.run(Account::System, under).await;
        let handle = self.start_transaction(m).await;
        self.log.pin(m);
        if names.into != dir {
            self.record_rename(m, file.inode, dir).await;
        }
        self.unlink_in_log(m, file.inode, inode).await;
        self.lose_name(file.inode, &inode, false);
        let index = self.rename_inode(m, (old, new), names, &inode).await;
        self.set_name(file.inode, names.into, index, items::dir_item(new.ino, names.to).key);
        let name = self.log_new_name(m, file.inode, dir).await;
        self.log.end(m).await;
        self.end_rename(m, handle, name).await;
        self.balance_delayed_items(m).await;
        self.sb.d_move(m).await;
        m.unlock(inode.i_rwsem, Side::Write).await;
        self.sb.unlock_rename(m, new.i_rwsem, old.i_rwsem).await;
        self.sb.end_write(m).await;
        m.run(Account::System, after).await;
        Ok(())
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

    async fn sync_all(&self, m: &M) {
        let handle = self.start_transaction(m).await;
        self.commit_for_fsync(m, handle).await;
    }

    async fn fiemap(&self, m: &M, file: &File) {
        self.list_extents(m, file).await;
    }

    async fn readdir(&self, m: &M, dir: DirId) {
        let d = self.directory(dir);
        m.at("readdir");
        m.lock(d.i_rwsem, Side::Write).await; // to take the delayed items (btrfs_readdir_get_delayed_items)
        m.lock(d.delayed, Side::Write).await;
        m.unlock(d.delayed, Side::Write).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        let key = items::dir_index(d.ino, items::DIR_START_INDEX, b"").key;
        for time in self.sb.calls.readdir(self.names(dir)) {
            m.lock(d.i_rwsem, Side::Read).await;
            m.touch(d.line, Access::Read);
            self.read_item(m, key, time).await;
            m.unlock(d.i_rwsem, Side::Read).await;
        }
    }

    async fn walk(&self, m: &M, dir: DirId, nth: u32) {
        self.walk_to(m, dir, nth).await;
    }

    async fn plain(&self, m: &M, call: PlainCall) {
        self.sb.calls.plain(m, call).await;
    }
}
