//! tmpfs: the floor. A directory's `i_rwsem`, the superblock's inode list, and memory.

use crate::cost_table;
use super::costs::Costs;
use super::vfs::SuperBlock;
use super::{DirId, File, Filesystem, NoSpace};
use crate::machine::{Access, Account, LineId, LockId, Side, Time};
use crate::waist::Machine;
use std::cell::{Cell, RefCell};

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
}

/// A mounted tmpfs.
pub struct Tmpfs {
    sb: SuperBlock,
    costs: TmpfsCosts,
    directory_lines: u32,
    directories: RefCell<Vec<Directory>>,
    /// Inodes whose memory was freed and not used again: a new file takes one of them before a new slab.
    free: Cell<u64>,
    next: Cell<u32>,
}

impl Tmpfs {
    /// An empty tmpfs with its root directory.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let fs = Self {
            sb: SuperBlock::new(m, costs.number("vfs_sb.inode_list")? as u32),
            costs: TmpfsCosts::new(costs)?,
            directory_lines: costs.number("vfs_dir.dentry")? as u32,
            directories: RefCell::default(),
            free: Cell::new(0),
            next: Cell::new(0),
        };
        fs.new_directory(m);
        Ok(fs)
    }

    fn new_directory<M: Machine>(&self, m: &M) -> DirId {
        let directory = Directory { i_rwsem: self.sb.new_directory(m), line: m.new_line(self.directory_lines) };
        self.directories.borrow_mut().push(directory);
        (self.directories.borrow().len() - 1) as DirId
    }

    fn directory(&self, dir: DirId) -> Directory {
        self.directories.borrow()[dir as usize]
    }
}

impl<M: Machine> Filesystem<M> for Tmpfs {
    async fn mkdir(&self, m: &M, _: &[u8]) -> Result<DirId, NoSpace> {
        Ok(self.new_directory(m))
    }

    async fn create(&self, m: &M, dir: DirId, _: &[u8]) -> Result<File, NoSpace> {
        let c = &self.costs;
        m.at("create");
        m.run(Account::System, c.open_walk).await;
        self.sb.start_write(m).await;
        let d = self.directory(dir);
        m.lock(d.i_rwsem, Side::Write).await;
        m.touch(d.line, Access::Write);
        self.sb.list_inode(m);
        let recycled = self.free.get() > 0;
        self.free.set(self.free.get().saturating_sub(1));
        m.run(Account::System, if recycled { c.make } else { c.make_from_new_slab }).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, c.open).await;
        self.next.set(self.next.get().wrapping_add(1));
        Ok(File { inode: self.next.get(), written: false })
    }

    async fn open(&self, m: &M, _: DirId, _: &File) {
        m.run(Account::System, self.costs.open_walk + self.costs.open).await;
    }

    async fn write(&self, m: &M, file: &mut File, bytes: u32) {
        m.run(Account::System, self.costs.write * Time::from(bytes.div_ceil(4096).max(1))).await;
        file.written = true;
    }

    async fn read(&self, m: &M, _: &File, bytes: u32) {
        m.run(Account::System, self.costs.write * Time::from(bytes.div_ceil(4096).max(1))).await;
    }

    async fn close(&self, m: &M, _: &File) {
        m.run(Account::System, self.costs.close).await;
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
        m.run(Account::System, c.remove).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        self.sb.list_inode(m);
        self.free.set(self.free.get() + 1);
        m.run(Account::System, if file.written { c.evict_written } else { c.evict }).await;
        self.sb.end_write(m).await;
        m.run(Account::System, c.exit).await;
    }
}
