//! ext4: one directory lock, short spinlocks per block group, jbd2 handles, and everything done in the calling task (no
//! background freeing). Phases and times are those of event traces of a 6.18 kernel.

pub mod file_io;
mod fsync;
mod group_locks;
mod journal;
mod mballoc;
mod preallocate;

use super::costs::Costs;
use super::ledger::Ledger;
use super::vfs::SuperBlock;
use super::{initial_files, Audit, DirId, File, Filesystem, Io, LaidOut, NoSpace, PlainCall, Renaming};
use crate::cost_table;
use crate::devices::BlockDevice;
use crate::machine::{Access, Account, LineId, LockId, Side, Time};
use crate::waist::Machine;
use file_io::FileIo;
use fsync::Fsync;
use group_locks::GroupLocks;
use journal::{credits, Block, Handle, Journal};
use mballoc::Mballoc;
use preallocate::Preallocate;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

cost_table!(CreateCosts {
    walk: ["openat.before_i_rwsem"],
    lookup: ["openat.under_i_rwsem"],
    find_group: ["cu_short.ext4_journal_start_sb", "cu_short.jbd2_handle_start"],
    new_inode: ["cu_short.ext4_mark_inode_dirty", "cu_short.ext4_mark_inode_dirty_2", "cu_short.ext4_allocate_inode"],
    add_entry: ["cu_short.ext4_mark_inode_dirty_3", "cu_short.ext4_mark_inode_dirty_4"],
    stop: ["cu_short.jbd2_handle_stop"],
    tail: ["openat.i_rwsem_tail"],
    open: ["openat.after_i_rwsem"],
    close: ["cu_short.enter_close", "cu_short.ext4_discard_preallocations", "cu_short.exit_close"],
});

cost_table!(HtreeCosts {
    lookup: ["cu_htree.ext4_request_inode"],
    lookup_linear: ["cu_short.ext4_request_inode"],
    add_entry: ["cu_htree.ext4_mark_inode_dirty_3", "cu_htree.ext4_mark_inode_dirty_4"],
    find_entry: ["cu_htree.ext4_journal_start_inode"],
    delete_entry: ["cu_htree.ext4_mark_inode_dirty_5", "cu_htree.ext4_mark_inode_dirty_6"],
});

impl HtreeCosts {
    /// What a rename takes longer in an htree directory: the lookup and insertion of a new name, the removal of the old.
    fn rename(&self, create: &CreateCosts, unlink: &UnlinkCosts) -> Time {
        let htree = self.lookup + self.add_entry + self.find_entry + self.delete_entry;
        htree.saturating_sub(self.lookup_linear + create.add_entry + unlink.find_entry + unlink.delete_entry)
    }
}

cost_table!(WriteCosts {
    write: [
        "tmp_short.enter_write",
        "tmp_short.ext4_da_write_begin",
        "tmp_short.ext4_ext_map_blocks_enter",
        "tmp_short.ext4_ext_map_blocks_exit",
        "tmp_short.ext4_da_reserve_space",
        "tmp_short.ext4_da_write_end",
        "tmp_short.exit_write"
    ],
    close: ["tmp_short.enter_close", "tmp_short.exit_close"],
});

cost_table!(UnlinkCosts {
    walk: ["cu_short.enter_unlinkat", "unlinkat.before_i_rwsem"],
    lookup: ["unlinkat.under_i_rwsem"],
    find_entry: ["cu_short.ext4_journal_start_inode", "cu_short.jbd2_handle_start_2"],
    delete_entry: ["cu_short.ext4_mark_inode_dirty_5", "cu_short.ext4_mark_inode_dirty_6"],
    stop: ["cu_short.jbd2_handle_stop_2", "cu_short.ext4_unlink_exit"],
    tail: ["unlinkat.i_rwsem_tail"],
    evict_start: [
        "unlinkat.after_i_rwsem",
        "cu_short.ext4_evict_inode",
        "cu_short.ext4_begin_ordered_truncate",
        "cu_short.ext4_journal_start_inode_2",
        "cu_short.jbd2_handle_start_3"
    ],
    evict_pages: [
        "tmp_short.ext4_invalidate_folio",
        "tmp_short.ext4_release_folio",
        "tmp_short.ext4_journal_start_inode_2",
        "tmp_short.ext4_da_release_space"
    ],
    orphan: ["cu_short.ext4_mark_inode_dirty_7", "cu_short.ext4_mark_inode_dirty_8"],
    free_inode: ["cu_short.ext4_free_inode", "cu_short.ext4_discard_preallocations_2"],
    evict_stop: ["cu_short.jbd2_handle_stop_3"],
    exit: ["cu_short.exit_unlinkat"],
});

/// Names that fit one 4 KiB block of a linear directory before it becomes an htree: a 12-byte name takes 20 bytes of entry.
const LINEAR_NAMES: u32 = 190;
/// Inodes a block group of the default `mkfs.ext4` layout (one inode for 16 KiB in 128 MiB groups).
const INODES_PER_GROUP: u64 = 8192;
/// Inodes of 256 bytes in a block of the inode table.
const INODES_PER_BLOCK: u32 = 16;
/// Group descriptors of 64 bytes in a block.
const DESCRIPTORS: u32 = 64;
/// Names in a leaf of an htree: blocks that split in the middle and are filled at random are ln 2 full, of 204 entries of 20 bytes.
const NAMES_PER_LEAF: u32 = 140;
/// A block group: what one 4 KiB bitmap block can describe.
const GROUP_BYTES: u64 = 128 << 20;

struct Directory {
    i_rwsem: LockId,
    line: LineId,
    group: u32,
    names: Cell<u32>,
}

/// A name's place among the leaves of an htree (FNV-1a; any hash that spreads names will do).
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

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
    /// `s_orphan_lock` and the list head.
    orphan: (LockId, LineId),
    directories: RefCell<Vec<Directory>>,
    directory_lines: u32,
    files: RefCell<Files>,
}

/// Files that exist.
#[derive(Default)]
struct Files {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Slot {
    group: u32,
    i_rwsem: LockId,
    /// The transaction that last changed the inode (`i_sync_tid`), and the tick in which its times last changed.
    transaction: u64,
    changed: Time,
    /// It was truncated to nothing and has not been closed since (`EXT4_STATE_DA_ALLOC_CLOSE`).
    truncated: bool,
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

    fn new_directory<M: Machine>(&self, m: &M, group: u32) -> DirId {
        let i_rwsem = self.sb.new_directory(m);
        let line = m.new_line(self.directory_lines);
        self.directories.borrow_mut().push(Directory { i_rwsem, line, group, names: Cell::new(0) });
        (self.directories.borrow().len() - 1) as DirId
    }

    /// Directories made in the root spread over the groups, as Orlov's allocator does with top-level directories (taken in
    /// turn here); files stay in their directory's group while it has free inodes.
    fn group_of_new_directory(&self) -> u32 {
        (self.directories.borrow().len() % self.groups.len()) as u32
    }

    async fn with_group<M: Machine>(&self, m: &M, group: u32, time: Time) {
        let group = group % self.groups.len() as u32;
        self.locks.lock(m, group).await;
        m.touch(self.groups[group as usize], Access::Write);
        self.locks.unlock(m, group).await;
        m.run(Account::System, time).await;
    }

    /// The bitmap and the descriptor of a group.
    fn group_blocks(&self, group: u32) -> [Block; 2] {
        let group = group % self.groups.len() as u32;
        [Block::Bitmap(group), Block::Descriptors(group / DESCRIPTORS)]
    }

    /// The same for blocks.
    fn block_bitmap(&self, group: u32) -> [Block; 2] {
        [Block::Allocated(group), Block::Descriptors(group / DESCRIPTORS)]
    }

    /// A directory's inode, and the leaf in which a name is.
    fn name_blocks(&self, dir: DirId, name: &[u8]) -> [Block; 2] {
        let names = self.directories.borrow()[dir as usize].names.get();
        let leaves = if names > LINEAR_NAMES { names.div_ceil(NAMES_PER_LEAF) } else { 1 };
        [Block::Directory(dir), Block::Leaf(dir, hash(name) % leaves)]
    }

    /// `ext4_orphan_add`, `ext4_orphan_del`.
    async fn move_orphan<M: Machine>(&self, m: &M, time: Time) {
        m.lock(self.orphan.0, Side::Write).await;
        m.touch(self.orphan.1, Access::Write);
        m.run(Account::System, time).await;
        m.unlock(self.orphan.0, Side::Write).await;
    }

    fn new_file<M: Machine>(&self, m: &M, group: u32) -> u32 {
        let slot = Slot {
            group,
            i_rwsem: self.sb.new_file(m),
            transaction: 0,
            changed: m.now() / self.fsync.tick,
            truncated: false,
        };
        let mut files = self.files.borrow_mut();
        match files.free.pop() {
            Some(free) => {
                files.slots[free as usize] = slot;
                free
            }
            None => {
                files.slots.push(slot);
                (files.slots.len() - 1) as u32
            }
        }
    }

    fn drop_file<M: Machine>(&self, m: &M, slot: u32) {
        let mut files = self.files.borrow_mut();
        m.drop_lock(files.slots[slot as usize].i_rwsem);
        files.free.push(slot);
        self.fsync.dirty.forget(slot);
    }

    fn i_rwsem(&self, file: &File) -> LockId {
        self.files.borrow().slots[file.inode as usize].i_rwsem
    }

    /// The end of a handle that has changed a file's inode, and these blocks.
    async fn stop<M: Machine>(&self, m: &M, handle: Handle, slot: u32, changed: &[Block]) {
        let transaction =
            self.journal.stop(m, handle, &[&[Block::Inodes(slot / INODES_PER_BLOCK)], changed].concat()).await;
        self.files.borrow_mut().slots[slot as usize].transaction = transaction;
    }

    fn directory(&self, dir: DirId) -> (LockId, LineId, u32, u32) {
        let d = &self.directories.borrow()[dir as usize];
        (d.i_rwsem, d.line, d.group + (u64::from(d.names.get()) / INODES_PER_GROUP) as u32, d.names.get())
    }

    fn count_names(&self, dir: DirId, change: i32) {
        let names = &self.directories.borrow()[dir as usize].names;
        names.set(names.get().saturating_add_signed(change));
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
        self.fsync.dirty.append(file.inode, bytes);
        self.sb.calls.append(m, self.write.write, bytes).await;
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
        let (before, under, after) = self.sb.calls.rename();
        m.at("rename");
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let ((i_rwsem, line, _, count), victim) = (self.directory(dir), self.i_rwsem(file));
        m.lock(i_rwsem, Side::Write).await;
        m.lock(victim, Side::Write).await;
        m.touch(line, Access::Write);
        let handle = self.journal.start(m, credits::RENAME).await;
        m.run(
            Account::System,
            under + if count > LINEAR_NAMES { self.htree.rename(&self.create, &self.unlink) } else { 0 },
        )
        .await;
        let changed = [self.name_blocks(dir, names.from), self.name_blocks(dir, names.to)].concat();
        self.stop(m, handle, file.inode, &changed).await;
        m.unlock(victim, Side::Write).await;
        m.unlock(i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, after).await;
        Ok(())
    }

    async fn stat(&self, m: &M, file: &File) {
        self.sb.calls.stat(m, file).await;
    }

    async fn fstat(&self, m: &M, file: &File) {
        self.sb.calls.fstat(m, file).await;
    }

    async fn set_times(&self, m: &M, file: &File) {
        m.at("utimes");
        let (before, under) = self.sb.calls.setattr();
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let i_rwsem = self.i_rwsem(file);
        m.lock(i_rwsem, Side::Write).await;
        let handle = self.journal.start(m, credits::INODE).await;
        m.run(Account::System, under).await;
        self.stop(m, handle, file.inode, &[]).await;
        m.unlock(i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
    }

    async fn readdir(&self, m: &M, dir: DirId) {
        let (i_rwsem, line, _, names) = self.directory(dir);
        m.at("readdir");
        m.lock(i_rwsem, Side::Read).await;
        m.touch(line, Access::Read);
        m.run(Account::System, self.sb.calls.readdir(names)).await;
        m.unlock(i_rwsem, Side::Read).await;
    }

    async fn plain(&self, m: &M, call: PlainCall) {
        self.sb.calls.plain(m, call).await;
    }
}

impl Ext4 {
    /// `ext4_evict_inode`, in the unlinking task: truncate, off the orphan list, free the inode.
    async fn evict<M: Machine>(&self, m: &M, group: u32, file: File) {
        let c = &self.unlink;
        m.run(Account::System, c.evict_start + if file.written { c.evict_pages } else { 0 }).await;
        let handle = self.journal.start(m, credits::EVICT).await;
        let freed = self.free_file_blocks(m, file.inode, handle.transaction()).await;
        self.move_orphan(m, c.orphan).await;
        self.with_group(m, group, c.free_inode).await;
        let rest = self.sb.inodes.pass(m, Some(u64::from(file.inode)), c.evict_stop).await;
        m.run(Account::System, rest).await;
        let [bitmap, descriptors] = self.group_blocks(group);
        self.stop(m, handle, file.inode, &[&freed[..], &[bitmap, descriptors]].concat()).await;
        self.drop_file(m, file.inode);
    }
}
