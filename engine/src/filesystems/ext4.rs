//! ext4: one directory lock, short spinlocks per block group, jbd2 handles, and everything done in the calling task (no
//! background freeing). Phases and times are those of event traces of a 6.18 kernel.

pub mod file_io;

use crate::cost_table;
use super::costs::Costs;
use super::vfs::SuperBlock;
use super::{initial_files, DirId, File, Filesystem, Io, LaidOut, NoSpace, PlainCall, Renaming, BLOCK};
use crate::devices::BlockDevice;
use crate::machine::{Access, Account, LineId, LockId, Side, TaskId, Time};
use crate::waist::Machine;
use file_io::{FileIo, Rules};
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
    write: ["tmp_short.enter_write", "tmp_short.ext4_da_write_begin", "tmp_short.ext4_ext_map_blocks_enter", "tmp_short.ext4_ext_map_blocks_exit", "tmp_short.ext4_da_reserve_space", "tmp_short.ext4_da_write_end", "tmp_short.exit_write"],
    close: ["tmp_short.enter_close", "tmp_short.exit_close"],
});

cost_table!(FsyncCosts {
    writepages: ["wfsync.writepages"],
    commit_lock: ["wfsync.commit_lock"],
    commit_end: ["wfsync.commit_end"],
    exit: ["wfsync.exit"],
});

cost_table!(UnlinkCosts {
    walk: ["cu_short.enter_unlinkat", "unlinkat.before_i_rwsem"],
    lookup: ["unlinkat.under_i_rwsem"],
    find_entry: ["cu_short.ext4_journal_start_inode", "cu_short.jbd2_handle_start_2"],
    delete_entry: ["cu_short.ext4_mark_inode_dirty_5", "cu_short.ext4_mark_inode_dirty_6"],
    stop: ["cu_short.jbd2_handle_stop_2", "cu_short.ext4_unlink_exit"],
    tail: ["unlinkat.i_rwsem_tail"],
    evict_start: ["unlinkat.after_i_rwsem", "cu_short.ext4_evict_inode", "cu_short.ext4_begin_ordered_truncate", "cu_short.ext4_journal_start_inode_2", "cu_short.jbd2_handle_start_3"],
    evict_pages: ["tmp_short.ext4_invalidate_folio", "tmp_short.ext4_release_folio", "tmp_short.ext4_journal_start_inode_2", "tmp_short.ext4_da_release_space"],
    orphan: ["cu_short.ext4_mark_inode_dirty_7", "cu_short.ext4_mark_inode_dirty_8"],
    free_inode: ["cu_short.ext4_free_inode", "cu_short.ext4_discard_preallocations_2"],
    evict_stop: ["cu_short.jbd2_handle_stop_3"],
    exit: ["cu_short.exit_unlinkat"],
});

/// Names that fit one 4 KiB block of a linear directory before it becomes an htree: a 12-byte name takes 20 bytes of entry.
const LINEAR_NAMES: u32 = 190;
/// Inodes a block group of the default `mkfs.ext4` layout (one inode for 16 KiB in 128 MiB groups).
const INODES_PER_GROUP: u64 = 8192;
/// A block group: what one 4 KiB bitmap block can describe.
const GROUP_BYTES: u64 = 128 << 20;

#[derive(Clone, Copy)]
struct Group {
    lock: LockId,
    lines: LineId,
}

struct Directory {
    i_rwsem: LockId,
    line: LineId,
    group: u32,
    names: Cell<u32>,
}

/// The journal as handles meet it.
struct Journal {
    /// `j_state_lock` and the counters of the running transaction.
    line: LineId,
    updates: Cell<u32>,
    locked: Cell<bool>,
    waiting: RefCell<Vec<TaskId>>,
    committer: Cell<Option<TaskId>>,
    /// Who waits for the next commit to be on disk (`jbd2_log_wait_commit`).
    syncers: RefCell<Vec<LockId>>,
    storage: Rc<BlockDevice>,
    timer_armed: Cell<bool>,
    /// Whether there is a journal at all: without, handles cost nothing and meet nowhere.
    on: bool,
}

impl Journal {
    /// `jbd2_journal_start`: waits while the running transaction is being locked for commit.
    async fn start<M: Machine>(&self, m: &M) {
        if !self.on {
            return;
        }
        m.touch(self.line, Access::Write);
        while self.locked.get() {
            self.waiting.borrow_mut().push(m.task());
            m.park().await;
        }
        self.updates.set(self.updates.get() + 1);
    }

    /// `jbd2_journal_stop`: the last handle of a locked transaction wakes the committer.
    fn stop<M: Machine>(&self, m: &M) {
        if !self.on {
            return;
        }
        m.touch(self.line, Access::Write);
        self.updates.set(self.updates.get() - 1);
        if self.locked.get() && self.updates.get() == 0 {
            if let Some(committer) = self.committer.get() {
                m.wake(committer);
            }
        }
    }

    /// Waits until all handles stopped so far are on disk (`jbd2_complete_transaction`).
    async fn sync<M: Machine>(&self, m: &M) {
        if !self.on {
            return;
        }
        let done = m.new_completion();
        self.syncers.borrow_mut().push(done);
        if let Some(committer) = self.committer.get() {
            m.wake(committer);
        }
        m.wait_for(done).await;
        m.drop_completion(done);
    }

    /// `kjournald2`: when asked to, or after `interval` ticks, locks the running transaction, waits for its handles, lets new
    /// ones go on, writes the log, and tells who waits for it.
    async fn commit<M: Machine>(&self, m: &M, interval: u64, c: &FsyncCosts) {
        self.committer.set(Some(m.task()));
        if self.syncers.borrow().is_empty() {
            if !self.timer_armed.replace(true) {
                m.wake_at_tick(m.task(), interval);
            }
            m.park().await;
            self.timer_armed.set(!self.syncers.borrow().is_empty()); // asked for, or the timer has fired
        }
        self.locked.set(true);
        while self.updates.get() > 0 {
            m.park().await;
        }
        let synced = std::mem::take(&mut *self.syncers.borrow_mut());
        m.run(Account::System, c.commit_lock).await;
        self.locked.set(false);
        for task in std::mem::take(&mut *self.waiting.borrow_mut()) {
            m.wake(task);
        }
        self.storage.write_ordered(m, BLOCK).await;
        m.run(Account::System, c.commit_end).await;
        for done in synced {
            m.complete(done).await;
        }
    }
}

/// How it is made and mounted.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// It has a journal.
    pub journal: bool,
    /// How files are written.
    pub rules: Rules,
}

/// A mounted ext4.
pub struct Ext4 {
    sb: SuperBlock,
    create: CreateCosts,
    htree: HtreeCosts,
    write: WriteCosts,
    unlink: UnlinkCosts,
    fsync: FsyncCosts,
    journal: Journal,
    io: FileIo,
    groups: Vec<Group>,
    /// `s_orphan_lock` and the list head.
    orphan: (LockId, LineId),
    directories: RefCell<Vec<Directory>>,
    directory_lines: u32,
    files: RefCell<Files>,
}

/// Files that exist: which group, which victim lock.
#[derive(Default)]
struct Files {
    slots: Vec<(u32, LockId)>,
    free: Vec<u32>,
}

impl Ext4 {
    /// A fresh filesystem of `size` bytes with its root directory.
    pub fn new<M: Machine>(m: &M, size: u64, device: Rc<BlockDevice>, options: Options, costs: &Costs<'_>) -> Result<Self, String> {
        let lines = |name: &str| costs.number(name).map(|n| n as u32);
        let group_lines = lines("ext4_bitmap.struct")? + lines("ext4_bitmap.data")?
            + lines("ext4_group_desc.struct")? + lines("ext4_group_desc.data")?
            + lines("ext4_group_info.struct")?;
        let group_class = m.class("ext4.group lock", "ext4.group_spin");
        let group = |_| Group { lock: m.new_lock(group_class), lines: m.new_line(group_lines) };
        let fs = Self {
            sb: SuperBlock::new(m, costs)?,
            create: CreateCosts::new(costs)?,
            htree: HtreeCosts::new(costs)?,
            write: WriteCosts::new(costs)?,
            unlink: UnlinkCosts::new(costs)?,
            fsync: FsyncCosts::new(costs)?,
            journal: Journal {
                line: m.new_line(lines("jbd2_handle.journal")? + lines("jbd2_handle.transaction")?),
                updates: Cell::new(0),
                locked: Cell::new(false),
                waiting: RefCell::default(),
                committer: Cell::new(None),
                syncers: RefCell::default(),
                storage: device,
                timer_armed: Cell::new(false),
                on: options.journal,
            },
            io: FileIo::new(options.rules, costs)?,
            groups: (0..size.div_ceil(GROUP_BYTES).max(1)).map(group).collect(),
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
        loop {
            fs.journal.commit(&m, interval, &fs.fsync).await;
        }
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
        let g = self.groups[group as usize % self.groups.len()];
        m.lock(g.lock, Side::Write).await;
        m.touch(g.lines, Access::Write);
        m.unlock(g.lock, Side::Write).await;
        m.run(Account::System, time).await;
    }

    /// `ext4_orphan_add`, `ext4_orphan_del`.
    async fn move_orphan<M: Machine>(&self, m: &M, time: Time) {
        m.lock(self.orphan.0, Side::Write).await;
        m.touch(self.orphan.1, Access::Write);
        m.run(Account::System, time).await;
        m.unlock(self.orphan.0, Side::Write).await;
    }

    fn new_file<M: Machine>(&self, m: &M, group: u32) -> u32 {
        let lock = self.sb.new_file(m);
        let mut files = self.files.borrow_mut();
        match files.free.pop() {
            Some(slot) => {
                files.slots[slot as usize] = (group, lock);
                slot
            }
            None => {
                files.slots.push((group, lock));
                (files.slots.len() - 1) as u32
            }
        }
    }

    fn drop_file<M: Machine>(&self, m: &M, slot: u32) {
        let mut files = self.files.borrow_mut();
        m.drop_lock(files.slots[slot as usize].1);
        files.free.push(slot);
    }

    fn i_rwsem(&self, file: &File) -> LockId {
        self.files.borrow().slots[file.inode as usize].1
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

impl<M: Machine> Filesystem<M> for Ext4 {
    async fn mkdir(&self, m: &M, _: &[u8]) -> Result<DirId, NoSpace> {
        let group = self.group_of_new_directory();
        Ok(self.new_directory(m, group))
    }

    fn fill(&self, dirs: &[DirId], files: u64, name_length: usize) -> Result<(), NoSpace> {
        initial_files(dirs, 0..files, name_length).for_each(|(dir, _)| self.count_names(dir, 1));
        Ok(())
    }

    async fn create(&self, m: &M, dir: DirId, _: &[u8]) -> Result<File, NoSpace> {
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
        self.journal.start(m).await;
        self.with_group(m, group, c.find_group + c.new_inode).await;
        let inode = self.new_file(m, group);
        let add_entry = if htree { self.htree.add_entry } else { c.add_entry };
        let rest = self.sb.inodes.pass(m, Some(u64::from(inode)), add_entry).await;
        m.run(Account::System, rest).await;
        self.count_names(dir, 1);
        m.run(Account::System, c.stop + c.tail).await;
        self.journal.stop(m);
        m.unlock(i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, c.open).await;
        Ok(File { inode, written: false })
    }

    async fn open(&self, m: &M, _: DirId, file: &File) {
        m.at("open");
        self.sb.calls.touch_dentry(m, file);
        m.run(Account::System, self.create.walk + self.create.open).await;
    }

    async fn write(&self, m: &M, file: &mut File, bytes: u32) {
        m.at("write");
        let lock = self.i_rwsem(file);
        m.lock(lock, Side::Write).await;
        self.sb.calls.append(m, self.write.write, bytes).await;
        m.unlock(lock, Side::Write).await;
        file.written = true;
    }

    async fn overwrite(&self, m: &M, file: &File, bytes: u32) {
        m.at("write");
        let lock = self.i_rwsem(file);
        m.lock(lock, Side::Write).await;
        self.sb.calls.overwrite(m, file, bytes).await;
        m.unlock(lock, Side::Write).await;
    }

    async fn read(&self, m: &M, file: &File, bytes: u32) {
        self.sb.calls.read(m, file, bytes).await;
    }

    async fn close(&self, m: &M, file: &File) {
        m.at("close");
        self.sb.calls.touch_dentry(m, file);
        m.run(Account::System, if file.written { self.write.close } else { self.create.close }).await;
    }

    async fn fsync(&self, m: &M, file: &File) {
        let c = &self.fsync;
        m.at("fsync");
        if !self.write_back(m, file).await {
            self.journal.start(m).await;
            m.run(Account::System, c.writepages).await;
            self.journal.stop(m);
            self.journal.storage.write(m, BLOCK).await;
        }
        self.journal.sync(m).await;
        m.run(Account::System, c.exit).await;
    }

    async fn lay_out(&self, m: &M, dir: DirId, name: &[u8], laid: LaidOut) -> Result<File, NoSpace> {
        let file = self.create(m, dir, name).await?;
        let i_rwsem = self.files.borrow().slots[file.inode as usize].1;
        self.io.open(m, file.inode, i_rwsem, laid);
        Ok(file)
    }

    async fn read_at(&self, m: &M, file: &File, io: Io) {
        self.read_file(m, file, io).await;
    }

    async fn write_at(&self, m: &M, file: &File, io: Io) {
        self.write_file(m, file, io).await;
    }

    async fn unlink(&self, m: &M, dir: DirId, _: &[u8], file: File) {
        let c = &self.unlink;
        m.at("unlink");
        m.run(Account::System, c.walk).await;
        self.sb.start_write(m).await;
        let (i_rwsem, line, _, names) = self.directory(dir);
        let htree = names > LINEAR_NAMES;
        let (group, victim) = self.files.borrow().slots[file.inode as usize];
        m.lock(i_rwsem, Side::Write).await;
        m.touch(line, Access::Write);
        m.run(Account::System, c.lookup).await;
        m.lock(victim, Side::Write).await;
        self.journal.start(m).await;
        let (find, delete) = if htree { (self.htree.find_entry, self.htree.delete_entry) } else { (c.find_entry, c.delete_entry) };
        m.run(Account::System, find).await;
        self.move_orphan(m, delete).await;
        self.count_names(dir, -1);
        m.run(Account::System, c.stop).await;
        self.journal.stop(m);
        m.unlock(victim, Side::Write).await;
        m.run(Account::System, c.tail).await;
        m.unlock(i_rwsem, Side::Write).await;
        self.evict(m, group, file).await;
        self.sb.end_write(m).await;
        m.run(Account::System, c.exit).await;
    }

    async fn rename(&self, m: &M, dir: DirId, _: Renaming<'_>, file: &File) -> Result<(), NoSpace> {
        let (before, under, after) = self.sb.calls.rename();
        m.at("rename");
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let ((i_rwsem, line, _, names), victim) = (self.directory(dir), self.i_rwsem(file));
        m.lock(i_rwsem, Side::Write).await;
        m.lock(victim, Side::Write).await;
        m.touch(line, Access::Write);
        self.journal.start(m).await;
        m.run(Account::System, under + if names > LINEAR_NAMES { self.htree.rename(&self.create, &self.unlink) } else { 0 }).await;
        self.journal.stop(m);
        m.unlock(victim, Side::Write).await;
        m.unlock(i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, after).await;
        Ok(())
    }

    async fn stat(&self, m: &M, file: &File) {
        self.sb.calls.stat(m, file).await;
    }

    async fn set_times(&self, m: &M, file: &File) {
        m.at("utimes");
        let (before, under) = self.sb.calls.setattr();
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let i_rwsem = self.i_rwsem(file);
        m.lock(i_rwsem, Side::Write).await;
        self.journal.start(m).await;
        m.run(Account::System, under).await;
        self.journal.stop(m);
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
        self.journal.start(m).await;
        self.move_orphan(m, c.orphan).await;
        self.with_group(m, group, c.free_inode).await;
        let rest = self.sb.inodes.pass(m, Some(u64::from(file.inode)), c.evict_stop).await;
        m.run(Account::System, rest).await;
        self.journal.stop(m);
        self.drop_file(m, file.inode);
    }
}
