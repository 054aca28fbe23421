//! What ext4 does to names under the locks of the VFS (`fs/ext4/namei.c`).

use super::journal::credits;
use super::Ext4;
use crate::filesystems::inodes::listed;
use crate::filesystems::names::namei::InodeOperations;
use crate::filesystems::vfs::SuperBlock;
use crate::filesystems::{DirId, File, Mounted, NoSpace, Renaming};
use crate::waist::Machine;
use crate::waist::{Access, Account, LockId, Time};

impl Mounted for Ext4 {
    fn super_block(&self) -> &SuperBlock {
        &self.sb
    }
}

impl<M: Machine> InodeOperations<M> for Ext4 {
    fn directory_lock(&self, dir: DirId) -> LockId {
        self.directory(dir).0
    }

    fn file_lock(&self, file: &File) -> LockId {
        self.i_rwsem(file)
    }

    fn create_times(&self) -> (Time, Time) {
        (self.create.walk, self.create.open)
    }

    fn unlink_times(&self) -> (Time, Time) {
        (self.unlink.walk, self.unlink.exit)
    }

    /// `ext4_lookup` and `ext4_create`.
    async fn create(&self, m: &M, dir: DirId, name: &[u8]) -> Result<u32, NoSpace> {
        let c = &self.create;
        m.touch(self.directory(dir).1, Access::Write);
        let lookup = self.sb.calls.look_up(m, dir, name);
        self.find_leaf(m, dir, name).await;
        m.run(Account::System, self.lookup_time(dir, name)).await;
        self.sb.calls.dcache.looked_up(m, lookup);
        let handle = self.journal.start(m, credits::CREATE).await;
        let Some(number) = self.new_inode(m, || self.group_of_new_file(dir)).await else {
            self.journal.stop(m, handle, &[]).await;
            return Err(NoSpace);
        };
        let inode = self.new_file(m, number);
        self.sb.calls.made(m, inode, (dir, name));
        let rest =
            self.sb.inodes.enter(m, listed::file(inode), Some(u64::from(inode)), self.add_entry_time(dir, name)).await;
        self.info.next_generation(m).await;
        self.info.count_lookup(m);
        m.run(Account::System, rest / 2).await;
        self.write_entry(m, dir, name);
        self.enter_name(dir, name);
        self.mark_directory_dirty(m, dir, rest - rest / 2).await;
        m.run(Account::System, c.tail).await;
        let changed = [self.name_blocks(dir, name), self.group_blocks(self.ialloc.group_of(number))].concat();
        self.stop_after(m, handle, inode, &changed, c.stop).await;
        self.entered(inode, dir);
        Ok(inode)
    }

    async fn mkdir(&self, m: &M, parent: DirId, name: &[u8]) -> Result<DirId, NoSpace> {
        self.make_directory(m, parent, name).await
    }

    async fn look_up_inode(&self, m: &M, dir: DirId, name: &[u8], file: &File) {
        self.look_up_cold(m, dir, name, file.inode).await;
    }

    async fn look_up(&self, m: &M, dir: DirId) {
        m.touch(self.directory(dir).1, Access::Write);
        m.run(Account::System, self.unlink.lookup).await;
    }

    async fn look_up_free(&self, m: &M, dir: DirId, name: &[u8], time: Time) -> Time {
        m.touch(self.directory(dir).1, Access::Write);
        self.find_leaf(m, dir, name).await;
        let lookup = self.lookup_time(dir, name);
        m.run(Account::System, lookup).await;
        time.saturating_sub(self.create.lookup)
    }

    /// `ext4_link`: the name in, and the inode changed, in one handle.
    async fn link(&self, m: &M, dir: DirId, name: &[u8], file: &File, time: Time) -> Result<(), NoSpace> {
        let handle = self.journal.start(m, credits::LINK).await;
        self.info.count_lookup(m);
        let add_entry = self.add_entry_time(dir, name).saturating_sub(self.create.add_entry);
        m.run(Account::System, (time + add_entry).saturating_sub(self.unjournaled.less.link)).await;
        let changed = self.name_blocks(dir, name);
        self.write_entry(m, dir, name);
        self.enter_name(dir, name);
        self.mark_directory_dirty(m, dir, 0).await;
        self.stop_attributes(m, handle, file.inode, &changed, 0).await;
        self.entered(file.inode, dir);
        Ok(())
    }

    /// `ext4_unlink`; who keeps a name is no orphan.
    async fn unlink(&self, m: &M, dir: DirId, name: &[u8], file: &File, last: bool) {
        let (find, delete) = self.delete_times(dir, name);
        let handle = self.journal.start(m, credits::UNLINK).await;
        self.find_leaf(m, dir, name).await;
        m.run(Account::System, find).await;
        let orphan = if last {
            self.mark_directory_dirty(m, dir, delete / 2).await;
            self.add_orphan(m, self.number_of(file), delete - delete / 2).await
        } else {
            let orphan = self.unlink.delete_entry.saturating_sub(self.unlink.drop_link);
            self.mark_directory_dirty(m, dir, delete.saturating_sub(orphan)).await;
            None
        };
        self.delete_entry(m, dir, name);
        self.leave_name(dir, name);
        let [directory, leaf] = self.name_blocks(dir, name);
        let changed = [&[directory, leaf], orphan.as_slice()].concat();
        self.stop_attributes(m, handle, file.inode, &changed, self.unlink.stop).await;
    }

    async fn rmdir(&self, m: &M, parent: DirId, name: &[u8], dir: DirId) {
        self.remove_directory(m, parent, name, dir).await;
    }

    async fn removed(&self, m: &M) {
        m.run(Account::System, self.unlink.tail).await;
    }

    /// `ext4_rename`: the new name in, the old one out, in one handle.
    async fn rename(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File, time: Time) -> Result<(), NoSpace> {
        m.touch(self.directory(dir).1, Access::Write);
        if names.into != dir {
            m.touch(self.directory(names.into).1, Access::Write);
        }
        self.search_leaf(m, dir, names.from);
        self.search_leaf(m, names.into, names.to);
        let handle = self.journal.start(m, credits::RENAME).await;
        let time = (time + self.rename_time(dir, &names)).saturating_sub(self.unjournaled.less.rename);
        let part = time / 4; // each time that an inode is marked dirty
        let changed = [self.name_blocks(dir, names.from), self.name_blocks(names.into, names.to)].concat();
        m.run(Account::System, time - 3 * part).await;
        self.write_entry(m, names.into, names.to);
        self.enter_name(names.into, names.to);
        self.mark_directory_dirty(m, names.into, part).await;
        self.delete_entry(m, dir, names.from);
        self.leave_name(dir, names.from);
        self.mark_directory_dirty(m, dir, part).await;
        self.stop_attributes(m, handle, file.inode, &changed, part).await;
        self.entered(file.inode, names.into);
        Ok(())
    }

    async fn evict_file(&self, m: &M, _: DirId, file: File) {
        self.storage.writeback.forget(m, file.inode).await;
        self.evict(m, self.number_of(&file), file).await;
    }

    async fn evict_directory(&self, m: &M, _: DirId, dir: DirId) {
        self.free_directory(m, dir).await;
    }
}

/// What names take in a directory of one block and in an htree.
impl Ext4 {
    pub(super) fn is_htree(&self, dir: DirId) -> bool {
        self.directories.borrow().of(dir).is_htree()
    }

    /// `ext4_add_entry`: the name of a file is new in a directory.
    fn entered(&self, slot: u32, dir: DirId) {
        self.files.borrow_mut().slots[slot as usize].new_entry = Some(dir);
    }

    /// To find that a name is not there.
    pub(super) fn lookup_time(&self, dir: DirId, name: &[u8]) -> Time {
        let longer = if self.is_htree(dir) {
            self.htree.lookup.saturating_sub(self.htree.lookup_linear)
        } else {
            self.search_time(dir, name)
        };
        self.sb.calls.lookup_free(dir, name, self.create.lookup + longer)
    }

    pub(super) fn add_entry_time(&self, dir: DirId, name: &[u8]) -> Time {
        if self.is_htree(dir) {
            self.htree.add_entry
        } else {
            self.create.add_entry + self.room_time(dir, name)
        }
    }

    /// Times to find an entry and to delete it.
    pub(super) fn delete_times(&self, dir: DirId, name: &[u8]) -> (Time, Time) {
        if self.is_htree(dir) {
            (self.htree.find_entry, self.htree.delete_entry)
        } else {
            (
                self.unlink.find_entry + self.search_time(dir, name),
                self.unlink.delete_entry + self.delete_time(dir, name),
            )
        }
    }

    /// What a rename takes longer than in a directory without other names: the new name is found to be missing, by the lookup and again
    /// by `ext4_rename`, and enters; the old one is found and deleted.
    fn rename_time(&self, old: DirId, names: &Renaming<'_>) -> Time {
        let (enter, leave) = self.htree.rename(&self.create, &self.unlink);
        let (new, to, from) = (names.into, names.to, names.from);
        let enter = if self.is_htree(new) { enter } else { 2 * self.search_time(new, to) + self.room_time(new, to) };
        let leave = if self.is_htree(old) { leave } else { self.search_time(old, from) + self.delete_time(old, from) };
        enter + leave
    }
}
