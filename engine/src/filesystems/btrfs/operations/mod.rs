//! btrfs as the VFS calls it: each operation with the locks of the VFS around what btrfs does under them (`inode.rs`).
//!
//! Order and times are those of event traces of a 6.18 kernel.

mod attributes;
mod costs;
mod inode;
mod names;
pub(super) mod walk;

use super::data::FileData;
use super::mount::Btrfs;
use super::tree::items;
use crate::filesystems::namei;
use crate::filesystems::{Attribute, DirId, File, Filesystem, Io, LaidOut, NoSpace, Renaming};
use crate::waist::Machine;
use crate::waist::{Access, Account, Side};
pub(super) use costs::OperationCosts;

impl<M: Machine> Filesystem<M> for Btrfs {
    async fn mkdir(&self, m: &M, parent: DirId, name: &[u8]) -> Result<DirId, NoSpace> {
        namei::mkdir(self, m, parent, name).await
    }

    async fn rmdir(&self, m: &M, parent: DirId, name: &[u8], dir: DirId) {
        namei::rmdir(self, m, parent, name, dir).await;
    }

    fn fill(&self, dirs: &[DirId], files: u64, name_length: usize) -> Result<(), NoSpace> {
        self.fill_with(dirs, files, name_length);
        Ok(())
    }

    async fn create(&self, m: &M, dir: DirId, name: &[u8]) -> Result<File, NoSpace> {
        namei::create(self, m, dir, name).await
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
        self.sb.calls.append(m, file, self.costs.write.write, end, bytes).await;
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
        namei::unlink(self, m, dir, name, file).await;
    }

    async fn truncate(&self, m: &M, file: &File) {
        self.truncate_file(m, file).await;
    }

    async fn rename(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File) -> Result<(), NoSpace> {
        namei::rename(self, m, dir, names, file).await
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
}
