//! ext4: one directory lock, short spinlocks per block group, jbd2 handles, and everything done in the calling task (no
//! background freeing). Phases and times are those of event traces of a 6.18 kernel.

mod attributes;
mod costs;
mod directory;
pub mod file_io;
mod fsync;
mod group_locks;
mod inode;
mod journal;
mod mballoc;
mod preallocate;
mod rename;

use super::costs::Costs;
use super::ledger::Ledger;
use super::vfs::SuperBlock;
use super::{initial_files, Attribute, Audit, DirId, File, Filesystem, Io, LaidOut, NoSpace, PlainCall, Renaming};
use crate::devices::BlockDevice;
use crate::machine::{Access, Account, LineId, LockId, Side, Time};
use crate::waist::Machine;
use attributes::Attributes;
use costs::{CreateCosts, HtreeCosts, UnlinkCosts, WriteCosts};
use directory::{Directory, LINEAR_NAMES};
use file_io::FileIo;
use fsync::Fsync;
use group_locks::GroupLocks;
use inode::{Files, Slot};
use journal::{credits, Block, Journal};
use mballoc::Mballoc;
use preallocate::Preallocate;
use std::cell::RefCell;
use std::rc::Rc;

/// A block group: what one 4 KiB bitmap block can describe.
const GROUP_BYTES: u64 = 128 << 20;

/// How it is made and mounted.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// It has a journal.
    pub journal: bool,
    /// Length of a tick, in which an inode's times change once.
    pub tick: Time,
}

/// A mounted ext4.
pub struct Ext4 {
    sb: SuperBlock,
    create: CreateCosts,
    htree: HtreeCosts,
    write: WriteCosts,
    unlink: UnlinkCosts,
    fsync: Fsync,
    journal: Journal,
    storage: Rc<BlockDevice>,
    io: FileIo,
    /// What creating and unlinking write of each group.
    groups: Vec<LineId>,
    locks: GroupLocks,
    mballoc: Mballoc,
    preallocate: Preallocate,
    attributes: Attributes,
    /// `s_orphan_lock` and the list head.
    orphan: (LockId, LineId),
    directories: RefCell<Vec<Directory>>,
    directory_lines: u32,
    files: RefCell<Files>,
}

impl Ext4 {
    /// A fresh filesystem of `size` bytes with its root directory.
    pub fn new<M: Machine>(
        m: &M,
        size: u64,
        device: Rc<BlockDevice>,
        options: Options,
        costs: &Costs<'_>,
    ) -> Result<Self, String> {
        let lines = |name: &str| costs.number(name).map(|n| n as u32);
        let group_lines = lines("ext4_bitmap.struct")?
            + lines("ext4_bitmap.data")?
            + lines("ext4_group_desc.struct")?
            + lines("ext4_group_desc.data")?
            + lines("ext4_group_info.struct")?;
        let count = size.div_ceil(GROUP_BYTES).max(1);
        let locks = GroupLocks::new(m, count);
        let fs = Self {
            sb: SuperBlock::new(m, costs)?,
            create: CreateCosts::new(costs)?,
            htree: HtreeCosts::new(costs)?,
            write: WriteCosts::new(costs)?,
            unlink: UnlinkCosts::new(costs)?,
            fsync: Fsync::new(m, options.tick, costs)?,
            journal: Journal::new(m, options.journal, size, device.clone(), costs)?,
            storage: device,
            io: FileIo::new(m, costs)?,
            groups: (0..count).map(|_| m.new_line(group_lines)).collect(),
            preallocate: Preallocate::new(costs)?,
            attributes: Attributes::new(costs)?,
            mballoc: Mballoc::new(m, size, locks.clone(), costs)?,
            locks,
            orphan: (m.new_lock(m.class("ext4.orphan lock", "ext4.orphan")), m.new_line(lines("ext4_orphan.list")?)),
            directories: RefCell::default(),
            directory_lines: lines("ext4_dir_inode.struct")? + lines("ext4_dir_block.data")?,
            files: RefCell::default(),
        };
        fs.new_directory(m, 0);
        Ok(fs)
    }

    /// The program of the journal thread; `interval` in ticks.
    pub async fn journal_thread<M: Machine>(m: M, fs: Rc<Self>, interval: u64) {
        m.at("jbd2");
        fs.journal.thread(&m, interval, |transaction| fs.mballoc.process_freed_data(&m, transaction)).await;
    }
}

impl Audit for Ext4 {
    fn under_way(&self) -> Option<&'static str> {
        (!self.storage.writeback.at_rest()).then_some("writeback")
    }

    fn audit(&self, ledger: &Ledger) -> Result<(), String> {
        self.mballoc.audit()?;
        let files = self.files.borrow();
        ledger.compare_counts(|dir| self.directory(dir).3, files.slots.len(), &files.free)
    }
}

impl<M: Machine> Filesystem<M> for Ext4 {
    async fn mkdir(&self, m: &M, _: &[u8]) -> Result<DirId, NoSpace> {
        let group = self.group_of_new_directory();
        Ok(self.new_directory(m, group))
    }

    fn fill(&self, dirs: &[DirId], files: u64, name_length: usize) -> Result<(), NoSpace> {
        initial_files(dirs, 0..files, name_length).for_each(|(dir, _)| self.count_names(dir, 1));
        Ok(())
    }

    async fn create(&self, m: &M, dir: DirId, name: &[u8]) -> Result<File, NoSpace> {
        let c = &self.create;
        m.at("create");
        m.run(Account::System, c.walk).await;
        self.sb.start_write(m).await;
        let (i_rwsem, line, group, names) = self.directory(dir);
        let htree = names > LINEAR_NAMES;
        m.lock(i_rwsem, Side::Write).await;
        m.touch(line, Access::Write);
        let search = if htree { self.htree.lookup.saturating_sub(self.htree.lookup_linear) } else { 0 };
        m.run(Account::System, c.lookup + search).await;
        let handle = self.journal.start(m, credits::CREATE).await;
        self.with_group(m, group, c.find_group + c.new_inode).await;
        let inode = self.new_file(m, group);
        let add_entry = if htree { self.htree.add_entry } else { c.add_entry };
        let rest = self.sb.inodes.pass(m, Some(u64::from(inode)), add_entry).await;
        m.run(Account::System, rest).await;
        self.count_names(dir, 1);
        m.run(Account::System, c.stop + c.tail).await;
        let changed = [self.name_blocks(dir, name), self.group_blocks(group)].concat();
        self.stop(m, handle, inode, &changed).await;
        m.unlock(i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, c.open).await;
        Ok(File { inode, written: false, writable: true })
    }

    async fn open(&self, m: &M, _: DirId, file: &File) {
        self.sb.calls.open(m, file, self.create.walk, self.create.open).await;
    }

    /// `ext4_truncate`, which is called also where the size does not change (`ext4_setattr`).
    async fn open_truncating(&self, m: &M, dir: DirId, file: &File) {
        self.open(m, dir, file).await;
        self.files.borrow_mut().slots[file.inode as usize].truncated = true;
    }

    async fn write(&self, m: &M, file: &mut File, bytes: u32) {
        m.at("write");
        let lock = self.i_rwsem(file);
        m.lock(lock, Side::Write).await;
        self.update_times(m, file.inode).await;
        let size = self.fsync.dirty.size(file.inode);
        self.fsync.dirty.append(file.inode, bytes);
        self.journal_write(m, file.inode, bytes, true).await;
        self.sb.calls.append(m, self.write.write, size, bytes).await;
        self.dirtied(m, file.inode).await;
        m.unlock(lock, Side::Write).await;
        file.written = true;
    }

    async fn overwrite(&self, m: &M, file: &File, bytes: u32) {
        m.at("write");
        let lock = self.i_rwsem(file);
        m.lock(lock, Side::Write).await;
        self.update_times(m, file.inode).await;
        self.fsync.dirty.overwrite(file.inode, bytes);
        self.journal_write(m, file.inode, bytes, false).await;
        self.sb.calls.overwrite(m, file, bytes).await;
        self.dirtied(m, file.inode).await;
        m.unlock(lock, Side::Write).await;
    }

    async fn read(&self, m: &M, file: &File, bytes: u32) {
        self.sb.calls.read(m, file, bytes).await;
    }

    async fn close(&self, m: &M, file: &File) {
        m.at("close");
        if std::mem::take(&mut self.files.borrow_mut().slots[file.inode as usize].truncated) {
            self.flush(m, file.inode).await; // auto_da_alloc: who replaces a file finds it on disk
        }
        m.run(Account::System, if file.written { self.write.close } else { self.create.close }).await;
        self.sb.calls.put(m, file).await;
    }

    async fn fsync(&self, m: &M, file: &File) {
        self.sync_file(m, file.inode).await;
    }

    async fn lay_out(&self, m: &M, dir: DirId, name: &[u8], laid: LaidOut) -> Result<File, NoSpace> {
        let file = self.create(m, dir, name).await?;
        let i_rwsem = self.i_rwsem(&file);
        let pages = self.io.open(m, file.inode, i_rwsem, laid);
        self.storage.memory.lay_out(&pages);
        Ok(file)
    }

    async fn read_at(&self, m: &M, file: &File, io: Io) {
        self.read_file(m, file, io).await;
    }

    async fn write_at(&self, m: &M, file: &File, io: Io) {
        self.write_file(m, file, io).await;
    }

    async fn fallocate(&self, m: &M, file: &File, bytes: u32) -> Result<(), NoSpace> {
        self.preallocate(m, file, bytes).await
    }

    async fn truncate(&self, m: &M, file: &File) {
        self.truncate_file(m, file).await;
    }

    async fn unlink(&self, m: &M, dir: DirId, name: &[u8], file: File) {
        let c = &self.unlink;
        m.at("unlink");
        m.run(Account::System, c.walk).await;
        self.sb.start_write(m).await;
        let (i_rwsem, line, _, names) = self.directory(dir);
        let htree = names > LINEAR_NAMES;
        let Slot { group, i_rwsem: victim, .. } = self.files.borrow().slots[file.inode as usize];
        m.lock(i_rwsem, Side::Write).await;
        m.touch(line, Access::Write);
        m.run(Account::System, c.lookup).await;
        m.lock(victim, Side::Write).await;
        let handle = self.journal.start(m, credits::UNLINK).await;
        let (find, delete) =
            if htree { (self.htree.find_entry, self.htree.delete_entry) } else { (c.find_entry, c.delete_entry) };
        m.run(Account::System, find).await;
        self.move_orphan(m, delete).await;
        self.count_names(dir, -1);
        m.run(Account::System, c.stop).await;
        let [directory, leaf] = self.name_blocks(dir, name);
        self.stop(m, handle, file.inode, &[directory, leaf, Block::Superblock]).await;
        m.unlock(victim, Side::Write).await;
        m.run(Account::System, c.tail).await;
        m.unlock(i_rwsem, Side::Write).await;
        self.storage.writeback.forget(m, file.inode).await;
        self.evict(m, group, file).await;
        self.sb.end_write(m).await;
        m.run(Account::System, c.exit).await;
    }

    async fn rename(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File) -> Result<(), NoSpace> {
        self.rename_file(m, dir, names, file).await;
        Ok(())
    }

    async fn stat(&self, m: &M, file: &File) {
        self.sb.calls.stat(m, file).await;
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

    async fn readdir(&self, m: &M, dir: DirId) {
        let (i_rwsem, line, _, names) = self.directory(dir);
        m.at("readdir");
        for time in self.sb.calls.readdir(names) {
            m.lock(i_rwsem, Side::Read).await;
            m.touch(line, Access::Read);
            m.run(Account::System, time).await;
            m.unlock(i_rwsem, Side::Read).await;
        }
    }

    async fn plain(&self, m: &M, call: PlainCall) {
        self.sb.calls.plain(m, call).await;
    }
}
