//! ext4: one directory lock, short spinlocks per block group, jbd2 handles, and everything done in the calling task (no
//! background freeing). Phases and times are those of event traces of a 6.18 kernel.

mod attributes;
mod costs;
mod directory;
mod dirhash;
pub mod file_io;
mod fsync;
mod group_locks;
mod ialloc;
mod inode;
mod inode_table;
mod journal;
mod mballoc;
mod mkdir;
mod names;
mod orphan;
mod preallocate;
mod sb_info;
mod walk;

use super::cached::Looks;
use super::costs::Costs;
use super::ledger::Ledger;
use super::namei;
use super::vfs::SuperBlock;
use super::{initial_files, Attribute, Audit, DirId, File, Filesystem, Io, LaidOut, NoSpace, Renaming};
use crate::devices::BlockDevice;
use crate::waist::Machine;
use crate::waist::{Access, Account, Side, Time};
use attributes::Attributes;
use costs::{CreateCosts, HtreeCosts, MkdirCosts, UnlinkCosts, WriteCosts};
use directory::Directories;
use dirhash::{half_md4, Seed};
use file_io::FileIo;
use fsync::Fsync;
use group_locks::GroupLocks;
use ialloc::{Home, Ialloc};
use inode::{Files, GroupLines};
use inode_table::InodeTable;
use journal::Journal;
use mballoc::Mballoc;
use orphan::Orphans;
use preallocate::Preallocate;
use sb_info::SbInfo;
use std::cell::RefCell;
use std::rc::Rc;
use walk::Walk;

/// A block group: what one 4 KiB bitmap block can describe.
const GROUP_BYTES: u64 = 128 << 20;

/// How it is made and mounted.
#[derive(Clone, Debug)]
pub struct Options {
    /// It has a journal.
    pub journal: bool,
    /// Bytes for each inode.
    pub inode_ratio: u64,
    /// It has an orphan file.
    pub orphan_file: bool,
    /// `s_hash_seed`; zeros are no seed.
    pub hash_seed: [u32; 4],
    /// The directory of the root in which those of the loads are made; the root when absent.
    pub below: Option<String>,
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
    mkdir: MkdirCosts,
    fsync: Fsync,
    journal: Journal,
    storage: Rc<BlockDevice>,
    io: FileIo,
    groups: Vec<GroupLines>,
    locks: GroupLocks,
    mballoc: Mballoc,
    preallocate: Preallocate,
    attributes: Attributes,
    ialloc: Ialloc,
    seed: Seed,
    below: Option<Home>,
    tables: InodeTable,
    info: SbInfo,
    walk: Walk,
    orphans: Orphans,
    directories: RefCell<Directories>,
    directory_lines: u32,
    /// What a search for a name looks at.
    leaf: Looks,
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
        let count = size.div_ceil(GROUP_BYTES).max(1);
        let locks = GroupLocks::new(m, count);
        let mballoc = Mballoc::new(m, size, locks.clone(), costs)?;
        let journal = Journal::new(m, options.journal, size, device.clone(), costs)?;
        let ialloc = Ialloc::new(count as u32, GROUP_BYTES, options.inode_ratio, mballoc.free_by_flex(&journal));
        let (root, seed) = (ialloc.root(), options.hash_seed);
        let below = options.below.map(|name| ialloc.fill_directory(half_md4(seed, name.as_bytes()))).transpose()?;
        let fs = Self {
            sb: SuperBlock::new(m, "ext4", costs)?,
            create: CreateCosts::new(costs)?,
            htree: HtreeCosts::new(costs)?,
            write: WriteCosts::new(costs)?,
            unlink: UnlinkCosts::new(costs)?,
            mkdir: MkdirCosts::new(costs)?,
            fsync: Fsync::new(m, options.tick, costs)?,
            journal,
            storage: device,
            io: FileIo::new(m, costs)?,
            groups: (0..count).map(|_| GroupLines::new(m, costs)).collect::<Result<_, _>>()?,
            preallocate: Preallocate::new(costs)?,
            attributes: Attributes::new(costs)?,
            mballoc,
            ialloc,
            seed,
            below,
            locks,
            tables: InodeTable::new(m, costs)?,
            info: SbInfo::new(m, count, costs),
            orphans: Orphans::new(m, options.orphan_file, costs)?,
            walk: Walk::new(costs)?,
            directories: RefCell::default(),
            leaf: Looks::at(lines("ext4_buffer.index")?, lines("ext4_leaf.search")?),
            directory_lines: lines("ext4_dir_inode.struct")? + lines("ext4_dir_block.data")?,
            files: RefCell::default(),
        };
        fs.add_directory(m, root, None);
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
        let (files, directories) = (self.files.borrow(), self.directories.borrow().made());
        self.mballoc.audit(directories)?;
        self.ialloc.audit((files.slots.len() - files.free.len()) as u32, directories)?;
        self.orphans.audit()?;
        let links = |dir| if self.links(dir) == 1 { ledger.links(dir) } else { self.links(dir) };
        ledger.compare_counts(|dir| (self.directory(dir).2, links(dir)), files.slots.len(), &files.free)
    }
}

impl<M: Machine> Filesystem<M> for Ext4 {
    async fn mkdir(&self, m: &M, parent: DirId, name: &[u8]) -> Result<DirId, NoSpace> {
        namei::mkdir(self, m, parent, name).await
    }

    async fn rmdir(&self, m: &M, parent: DirId, name: &[u8], dir: DirId) {
        namei::rmdir(self, m, parent, name, dir).await;
    }

    fn fill(&self, dirs: &[DirId], files: u64, name_length: usize) -> Result<(), NoSpace> {
        for (dir, _) in initial_files(dirs, 0..files, name_length) {
            let group = self.group_of_new_file(dir).ok_or(NoSpace)?;
            self.tables.filled(self.ialloc.fill(group).ok_or(NoSpace)?);
            self.count_names(dir, 1);
        }
        dirs.iter().for_each(|&dir| self.was_filled(dir));
        Ok(())
    }

    async fn create(&self, m: &M, dir: DirId, name: &[u8]) -> Result<File, NoSpace> {
        namei::create(self, m, dir, name).await
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
        self.sb.calls.files.held(m, file.inode);
        let lock = self.i_rwsem(file);
        m.lock(lock, Side::Write).await;
        self.update_times(m, file.inode).await;
        let size = self.fsync.dirty.size(file.inode);
        self.fsync.dirty.append(file.inode, bytes);
        self.journal_write(m, file.inode, bytes, true).await;
        self.sb.calls.append(m, file, self.write.write, size, bytes).await;
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
        self.sb.calls.files.closed(m, file.inode);
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
        self.truncate_file(m, file, None).await;
    }

    async fn shorten(&self, m: &M, file: &File, bytes: u32) {
        self.truncate_file(m, file, Some(bytes)).await;
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

    async fn readdir(&self, m: &M, dir: DirId) {
        let (i_rwsem, line, names) = self.directory(dir);
        m.at("readdir");
        for time in self.sb.calls.readdir(names) {
            m.lock(i_rwsem, Side::Read).await;
            m.touch(line, Access::Read);
            m.run(Account::System, time).await;
            m.unlock(i_rwsem, Side::Read).await;
        }
    }

    async fn walk(&self, m: &M, dir: DirId, nth: u32) {
        self.walk_to(m, dir, nth).await;
    }
}
