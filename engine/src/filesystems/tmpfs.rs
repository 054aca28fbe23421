//! tmpfs: the floor. A directory's `i_rwsem`, the superblock's inode list, and memory.

use super::costs::Costs;
use super::ledger::Ledger;
use super::vfs::SuperBlock;
use super::{initial_files, Audit, DirId, File, Filesystem, Io, NoSpace, PlainCall, Renaming};
use crate::cost_table;
use crate::machine::{Access, Account, LineId, LockId, Side};
use crate::waist::Machine;
use std::cell::RefCell;

cost_table!(TmpfsCosts {
    open_walk: ["cu.openat_before_i_rwsem"],
    make: ["cu.openat_under_i_rwsem"],
    make_from_new_slab: ["create.openat_under_i_rwsem"],
    open: ["cu.openat_after_i_rwsem"],
    close: ["cu.close"],
    write: ["tmp.write"],
    unlink_walk: ["cu.unlinkat_before_i_rwsem"],
    remove: ["cu.unlinkat_under_i_rwsem"],
    evict: ["cu.evict", "cu.softirq"],
    evict_written: ["tmp.evict", "tmp.softirq"],
    exit: ["cu.unlinkat_after_i_rwsem"],
});

#[derive(Clone, Copy)]
struct Directory {
    i_rwsem: LockId,
    line: LineId,
    names: u32,
}

/// A mounted tmpfs.
pub struct Tmpfs {
    sb: SuperBlock,
    costs: TmpfsCosts,
    directory_lines: u32,
    directories: RefCell<Vec<Directory>>,
    /// `i_rwsem` of each file.
    files: RefCell<Vec<LockId>>,
    /// Inodes whose memory was freed and not used again: a new file takes one of them before a new slab.
    free: RefCell<Vec<u32>>,
}

impl Tmpfs {
    /// An empty tmpfs with its root directory.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let fs = Self {
            sb: SuperBlock::new(m, costs)?,
            costs: TmpfsCosts::new(costs)?,
            directory_lines: costs.number("vfs_dir.dentry")? as u32,
            directories: RefCell::default(),
            files: RefCell::default(),
            free: RefCell::default(),
        };
        fs.new_directory(m);
        Ok(fs)
    }

    fn new_directory<M: Machine>(&self, m: &M) -> DirId {
        let directory =
            Directory { i_rwsem: self.sb.new_directory(m), line: m.new_line(self.directory_lines), names: 0 };
        self.directories.borrow_mut().push(directory);
        (self.directories.borrow().len() - 1) as DirId
    }

    fn directory(&self, dir: DirId) -> Directory {
        self.directories.borrow()[dir as usize]
    }

    fn count_names(&self, dir: DirId, change: i32) {
        let names = &mut self.directories.borrow_mut()[dir as usize].names;
        *names = names.saturating_add_signed(change);
    }

    /// A file's slot, and whether its memory was used before.
    fn new_file<M: Machine>(&self, m: &M) -> (u32, bool) {
        let mut files = self.files.borrow_mut();
        let lock = self.sb.new_file(m);
        match self.free.borrow_mut().pop() {
            Some(slot) => {
                files[slot as usize] = lock;
                (slot, true)
            }
            None => {
                files.push(lock);
                ((files.len() - 1) as u32, false)
            }
        }
    }

    fn i_rwsem(&self, file: &File) -> LockId {
        self.files.borrow()[file.inode as usize]
    }
}

impl Audit for Tmpfs {
    fn audit(&self, ledger: &Ledger) -> Result<(), String> {
        ledger.compare_counts(|dir| self.directory(dir).names, self.files.borrow().len(), &self.free.borrow())
    }
}

impl<M: Machine> Filesystem<M> for Tmpfs {
    async fn mkdir(&self, m: &M, _: &[u8]) -> Result<DirId, NoSpace> {
        Ok(self.new_directory(m))
    }

    fn fill(&self, dirs: &[DirId], files: u64, name_length: usize) -> Result<(), NoSpace> {
        initial_files(dirs, 0..files, name_length).for_each(|(dir, _)| self.count_names(dir, 1));
        Ok(())
    }

    async fn create(&self, m: &M, dir: DirId, _: &[u8]) -> Result<File, NoSpace> {
        let c = &self.costs;
        m.at("create");
        m.run(Account::System, c.open_walk).await;
        self.sb.start_write(m).await;
        let d = self.directory(dir);
        m.lock(d.i_rwsem, Side::Write).await;
        m.touch(d.line, Access::Write);
        let (inode, recycled) = self.new_file(m);
        self.count_names(dir, 1);
        let rest = self.sb.inodes.pass(m, None, if recycled { c.make } else { c.make_from_new_slab }).await;
        m.run(Account::System, rest).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, c.open).await;
        Ok(File { inode, written: false, writable: true })
    }

    async fn open(&self, m: &M, _: DirId, file: &File) {
        self.sb.calls.open(m, file, self.costs.open_walk, self.costs.open).await;
    }

    async fn write(&self, m: &M, file: &mut File, bytes: u32) {
        m.at("write");
        let i_rwsem = self.i_rwsem(file);
        m.lock(i_rwsem, Side::Write).await;
        self.sb.calls.append(m, self.costs.write, bytes).await;
        m.unlock(i_rwsem, Side::Write).await;
        file.written = true;
    }

    async fn overwrite(&self, m: &M, file: &File, bytes: u32) {
        m.at("write");
        let i_rwsem = self.i_rwsem(file);
        m.lock(i_rwsem, Side::Write).await;
        self.sb.calls.overwrite(m, file, bytes).await;
        m.unlock(i_rwsem, Side::Write).await;
    }

    /// Since Linux 6.6 with `O_DIRECT` too: the page cache is all there is.
    async fn write_at(&self, m: &M, file: &File, io: Io) {
        self.overwrite(m, file, io.bytes).await;
    }

    async fn read(&self, m: &M, file: &File, bytes: u32) {
        self.sb.calls.read(m, file, bytes).await;
    }

    async fn close(&self, m: &M, file: &File) {
        m.at("close");
        m.run(Account::System, self.costs.close).await;
        self.sb.calls.put(m, file).await;
    }

    async fn fsync(&self, _: &M, _: &File) {}

    async fn unlink(&self, m: &M, dir: DirId, _: &[u8], file: File) {
        let c = &self.costs;
        m.at("unlink");
        m.run(Account::System, c.unlink_walk).await;
        self.sb.start_write(m).await;
        let d = self.directory(dir);
        m.lock(d.i_rwsem, Side::Write).await;
        m.touch(d.line, Access::Write);
        let victim = self.i_rwsem(&file);
        m.lock(victim, Side::Write).await;
        m.run(Account::System, c.remove).await;
        self.count_names(dir, -1);
        m.unlock(victim, Side::Write).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        let rest = self.sb.inodes.pass(m, None, if file.written { c.evict_written } else { c.evict }).await;
        m.run(Account::System, rest).await;
        m.drop_lock(victim);
        self.free.borrow_mut().push(file.inode);
        self.sb.end_write(m).await;
        m.run(Account::System, c.exit).await;
    }
    async fn rename(&self, m: &M, dir: DirId, _: Renaming<'_>, file: &File) -> Result<(), NoSpace> {
        let (before, under, after) = self.sb.calls.rename();
        m.at("rename");
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let (d, i_rwsem) = (self.directory(dir), self.i_rwsem(file));
        m.lock(d.i_rwsem, Side::Write).await;
        m.lock(i_rwsem, Side::Write).await;
        m.touch(d.line, Access::Write);
        m.run(Account::System, under).await;
        m.unlock(i_rwsem, Side::Write).await;
        m.unlock(d.i_rwsem, Side::Write).await;
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
        self.sb.utimes(m, self.i_rwsem(file), async |time| m.run(Account::System, time).await).await;
    }

    async fn readdir(&self, m: &M, dir: DirId) {
        let d = self.directory(dir);
        m.at("readdir");
        m.lock(d.i_rwsem, Side::Read).await;
        m.touch(d.line, Access::Read);
        m.run(Account::System, self.sb.calls.readdir(d.names)).await;
        m.unlock(d.i_rwsem, Side::Read).await;
    }

    async fn plain(&self, m: &M, call: PlainCall) {
        self.sb.calls.plain(m, call).await;
    }
}
