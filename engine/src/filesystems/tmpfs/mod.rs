//! tmpfs: the floor. A directory's `i_rwsem`, the superblock's inode list, and memory.

mod offsets;
mod sb_info;

use super::by_slot::FreeSlots;
use super::costs::Costs;
use super::fs_type::FsType;
use super::inodes::listed;
use super::ledger::Ledger;
use super::names::namei::InodeOperations;
use super::open_files::read_write::{self, FileOperations};
use super::vfs::{SuperBlock, SuperOperations, INODE_CALLBACKS};
use super::{initial_files, Attribute, Audit, DirId, File, InitialNames, Io, Mounted, NoSpace, Renaming, BLOCK};
use crate::cost_table;
use crate::kernel::vfs::CountsListed;
use crate::waist::Machine;
use crate::waist::{Access, Account, LineId, LockId, Side, Time};
use offsets::Offsets;
use sb_info::SbInfo;
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
    evict: ["cu.evict"],
    evict_written: ["tmp.evict"],
    freed: ["cu.softirq"],
    freed_written: ["tmp.softirq"],
    exit: ["cu.unlinkat_after_i_rwsem"],
    mkdir: ["mkdir.under_i_rwsem"],
    rmdir: ["rmdir.under_i_rwsem"],
    evict_directory: ["rmdir.evict"],
    add_page: ["call.append_page"],
    copy_page: ["call.overwrite_page"],
});

/// Callbacks of RCU of what is unlinked: the inode's, and the dentry's, which tmpfs does not keep (`always_delete_dentry`).
const FREED: u64 = INODE_CALLBACKS + 1;

#[derive(Clone, Copy)]
struct Directory {
    i_rwsem: LockId,
    /// `i_size` and the times.
    line: LineId,
    i_version: LineId,
    names: u32,
    links: u32,
}

#[derive(Clone, Copy)]
struct Inode {
    i_rwsem: LockId,
    /// Bytes, which all have their page.
    size: u64,
}

/// `statfs` adds up `used_blocks` (`shmem_statfs`).
const TMPFS: FsType =
    FsType { name: "tmpfs", statfs_counters: 1, encrypts: false, in_memory: true, large_folios: None };

/// A mounted tmpfs.
pub struct Tmpfs {
    sb: SuperBlock,
    costs: TmpfsCosts,
    info: SbInfo,
    offsets: Offsets,
    directory_lines: u32,
    counts_versions: bool,
    counts_listed: CountsListed,
    directories: RefCell<Vec<Directory>>,
    free_directories: RefCell<Vec<DirId>>,
    files: RefCell<Vec<Inode>>,
    /// Inodes whose memory was freed and not used again: a new file takes one of them before a new slab.
    free: RefCell<FreeSlots>,
}

impl Tmpfs {
    /// An empty tmpfs with its root directory.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let fs = Self {
            sb: SuperBlock::new(m, &TMPFS, costs)?,
            costs: TmpfsCosts::new(costs)?,
            info: SbInfo::new(m),
            offsets: Offsets::new(costs)?,
            directory_lines: costs.number("tmpfs_dir_inode.struct")? as u32,
            counts_versions: costs.rules().tmpfs_i_version,
            counts_listed: costs.rules().tmpfs_counts_listed,
            directories: RefCell::default(),
            free_directories: RefCell::default(),
            files: RefCell::default(),
            free: RefCell::default(),
        };
        fs.new_directory(m);
        Ok(fs)
    }

    fn new_directory<M: Machine>(&self, m: &M) -> DirId {
        if let Some(free) = self.free_directories.borrow_mut().pop() {
            return free;
        }
        let (i_rwsem, line, i_version) = (
            self.sb.new_directory(m),
            m.new_line("tmpfs.directory", self.directory_lines),
            m.new_line("vfs.i_version", 1),
        );
        let mut directories = self.directories.borrow_mut();
        directories.push(Directory { i_rwsem, line, i_version, names: 0, links: 2 });
        (directories.len() - 1) as DirId
    }

    fn directory(&self, dir: DirId) -> Directory {
        self.directories.borrow()[dir as usize]
    }

    /// A name has come or gone: size, times, and the version, by compare-and-exchange (`inode_maybe_inc_iversion`).
    fn changed<M: Machine>(&self, m: &M, dir: DirId, change: i32) {
        let Directory { line, i_version, .. } = self.directory(dir);
        m.touch(line, Access::Write);
        if self.counts_versions {
            m.touch(i_version, Access::Read);
            m.touch(i_version, Access::Atomic);
        }
        self.count_names(dir, change);
    }

    fn count_names(&self, dir: DirId, change: i32) {
        let names = &mut self.directories.borrow_mut()[dir as usize].names;
        *names = names.saturating_add_signed(change);
    }

    /// `inc_nlink`, `drop_nlink` of a directory that another one is made in or removed from.
    fn count_links(&self, dir: DirId, change: i32) {
        let links = &mut self.directories.borrow_mut()[dir as usize].links;
        *links = links.saturating_add_signed(change);
    }

    /// A file's slot, and whether its memory was used before.
    fn new_file<M: Machine>(&self, m: &M) -> (u32, bool) {
        let mut files = self.files.borrow_mut();
        let new = Inode { i_rwsem: self.sb.new_file(m), size: 0 };
        match self.free.borrow_mut().pop(m.cpu()) {
            Some(slot) => {
                files[slot as usize] = new;
                (slot, true)
            }
            None => {
                files.push(new);
                ((files.len() - 1) as u32, false)
            }
        }
    }

    fn i_rwsem(&self, file: &File) -> LockId {
        self.files.borrow()[file.inode as usize].i_rwsem
    }

    /// A file becomes longer; how long it was.
    fn grow(&self, file: &File, bytes: u32) -> u64 {
        let size = &mut self.files.borrow_mut()[file.inode as usize].size;
        *size += u64::from(bytes);
        *size - u64::from(bytes)
    }

    /// So many bytes at a file's end go; returns how many pages that are.
    fn shorten(&self, file: &File, bytes: u64) -> u64 {
        let size = &mut self.files.borrow_mut()[file.inode as usize].size;
        let before = size.div_ceil(u64::from(BLOCK));
        *size = size.saturating_sub(bytes);
        before - size.div_ceil(u64::from(BLOCK))
    }

    /// What giving back the first of so many pages takes, with all that is done once.
    fn first_dropped(&self, pages: u64) -> Time {
        let c = &self.costs;
        if pages > 0 {
            self.sb.calls.without_lru(c.evict_written.saturating_sub(c.evict))
        } else {
            0
        }
    }
}

impl Audit for Tmpfs {
    fn audit(&self, ledger: &Ledger) -> Result<(), String> {
        let counted = |dir| (self.directory(dir).names, self.directory(dir).links);
        ledger.compare_counts(counted, self.files.borrow().len(), &self.free.borrow().all())
    }
}

impl Mounted for Tmpfs {
    fn super_block(&self) -> &SuperBlock {
        &self.sb
    }
}

impl<M: Machine> InodeOperations<M> for Tmpfs {
    fn directory_lock(&self, dir: DirId) -> LockId {
        self.directory(dir).i_rwsem
    }

    fn file_lock(&self, file: &File) -> LockId {
        self.i_rwsem(file)
    }

    fn create_times(&self) -> (Time, Time) {
        (self.costs.open_walk, self.costs.open)
    }

    fn unlink_times(&self) -> (Time, Time) {
        (self.costs.unlink_walk, self.costs.exit)
    }

    async fn create(&self, m: &M, dir: DirId, name: &[u8]) -> Result<u32, NoSpace> {
        let c = &self.costs;
        let lookup = self.sb.calls.dcache.look_up(m, dir, name);
        let (inode, recycled) = self.new_file(m);
        self.sb.calls.made(m, inode, (dir, name));
        self.info.count_inode(m).await;
        let rest = self
            .sb
            .inodes
            .enter(m, listed::file(inode), None, if recycled { c.make } else { c.make_from_new_slab })
            .await;
        self.sb.calls.dcache.looked_up(m, lookup);
        let offset = self.offsets.add(m, dir, listed::file(inode));
        self.changed(m, dir, 1);
        // the time with new slabs is that of a directory that grows
        m.run(Account::System, rest + if recycled { offset } else { 0 }).await;
        Ok(inode)
    }

    /// `shmem_mkdir`: as a file, and another link of the parent.
    async fn mkdir(&self, m: &M, parent: DirId, _: &[u8]) -> Result<DirId, NoSpace> {
        let dir = self.new_directory(m);
        self.info.count_inode(m).await;
        let rest = self.sb.inodes.enter(m, listed::directory(dir), None, self.costs.mkdir).await;
        let offset = self.offsets.add(m, parent, listed::directory(dir));
        self.changed(m, parent, 1);
        m.run(Account::System, rest + offset).await;
        self.count_links(parent, 1);
        Ok(dir)
    }

    async fn look_up_inode(&self, _: &M, _: DirId, _: &[u8], _: &File) {}

    async fn look_up(&self, _: &M, _: DirId) {}

    /// `simple_lookup`.
    async fn look_up_free(&self, _: &M, _: DirId, _: &[u8], time: Time) -> Time {
        time
    }

    /// `shmem_link`: the name counts as an inode (`shmem_reserve_inode`).
    async fn link(&self, m: &M, dir: DirId, _: &[u8], _: &File, time: Time) -> Result<(), NoSpace> {
        self.info.count_inode(m).await;
        let offset = self.offsets.add(m, dir, listed::OTHERS);
        self.changed(m, dir, 1);
        m.run(Account::System, time + offset).await;
        Ok(())
    }

    async fn unlink(&self, m: &M, dir: DirId, _: &[u8], file: &File, last: bool) {
        if !last {
            self.info.count_inode(m).await;
            self.sb.free_dentry(m);
        }
        let offset = self.offsets.remove(m, dir, if last { listed::file(file.inode) } else { listed::OTHERS });
        self.changed(m, dir, -1);
        m.run(Account::System, self.costs.remove + offset).await;
    }

    /// `shmem_rmdir`.
    async fn rmdir(&self, m: &M, parent: DirId, _: &[u8], dir: DirId) {
        let offset = self.offsets.remove(m, parent, listed::directory(dir));
        self.changed(m, parent, -1);
        m.run(Account::System, self.costs.rmdir + offset).await;
        self.count_links(parent, -1);
    }

    async fn rename(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File, time: Time) -> Result<(), NoSpace> {
        let name = listed::file(file.inode);
        let offsets = self.offsets.remove(m, dir, name) + self.offsets.add(m, names.into, name);
        self.changed(m, dir, -1);
        self.changed(m, names.into, 1);
        m.run(Account::System, time + offsets).await;
        Ok(())
    }

    async fn evict_file(&self, m: &M, _: DirId, file: File) {
        let c = &self.costs;
        self.sb.calls.files.evicted(m, file.inode);
        self.info.count_inode(m).await;
        let first = self.first_dropped(self.shorten(&file, u64::MAX));
        let rest = self.sb.inodes.leave(m, listed::file(file.inode), None, c.evict + first).await;
        m.run(Account::System, rest).await;
        m.call_rcu(FREED, if file.written { c.freed_written } else { c.freed });
        m.drop_lock(self.i_rwsem(&file));
        self.free.borrow_mut().push(m.cpu(), file.inode);
    }

    async fn evict_directory(&self, m: &M, _: DirId, dir: DirId) {
        self.info.count_inode(m).await;
        let rest = self.sb.inodes.leave(m, listed::directory(dir), None, self.costs.evict_directory).await;
        m.run(Account::System, rest).await;
        m.call_rcu(FREED, self.costs.freed);
        self.free_directories.borrow_mut().push(dir);
    }
}

impl<M: Machine> SuperOperations<M> for Tmpfs {
    fn fill(&self, dirs: &[DirId], files: u64, names: InitialNames) -> Result<(), NoSpace> {
        initial_files(dirs, 0..files, names).for_each(|(dir, _)| self.count_names(dir, 1));
        Ok(())
    }

    /// There is no other place for it.
    fn leaves_memory(&self, _: &File) {}

    async fn walk(&self, m: &M, _: DirId, _: u32) {
        m.give_up("all inodes of tmpfs are in memory");
    }
}

impl<M: Machine> FileOperations<M> for Tmpfs {
    async fn release(&self, m: &M, _: &File) {
        m.run(Account::System, self.costs.close).await;
    }

    fn new_page_time(&self) -> Time {
        self.costs.write
    }

    async fn write_begin(&self, _: &M, file: &File, bytes: u32, grows: bool) -> u64 {
        self.grow(file, if grows { bytes } else { 0 })
    }

    /// Since Linux 6.6 with `O_DIRECT` too: the page cache is all there is.
    async fn write_at(&self, m: &M, file: &File, io: Io) {
        read_write::overwrite_protected(self, m, file, (io.offset, io.bytes)).await;
    }

    /// `noop_fsync`.
    async fn fsync(&self, _: &M, _: &File, _: bool) {}

    /// The same.
    async fn fsync_directory(&self, _: &M, _: DirId, _: bool) {}

    /// `shmem_file_llseek`.
    fn seek_lock(&self, file: &File) -> (LockId, Side) {
        (self.i_rwsem(file), Side::Write)
    }

    /// `shmem_setattr` to a smaller size: `shmem_truncate_range`.
    async fn set_size(&self, m: &M, file: &File, less: Option<u32>) {
        let (calls, pages) = (&self.sb.calls, self.shorten(file, less.map_or(u64::MAX, u64::from)));
        m.run(Account::System, calls.setattr().1 + self.first_dropped(pages)).await;
        calls.drop_folios(m, file, pages, calls.dropping(pages.saturating_sub(1))).await;
    }

    async fn setattr(&self, m: &M, _: &File, _: Attribute, time: Time) {
        m.run(Account::System, time).await;
    }

    /// `shmem_fallocate`: page by page, as a write, but nothing is copied.
    async fn fallocate(&self, m: &M, file: &File, bytes: u32) -> Result<(), NoSpace> {
        let (c, pages) = (&self.costs, u64::from(bytes.div_ceil(BLOCK)));
        m.run(Account::System, c.add_page.saturating_sub(c.copy_page) * pages).await;
        self.grow(file, bytes);
        Ok(())
    }

    async fn fiemap(&self, m: &M, _: &File) {
        m.give_up("tmpfs has no fiemap");
    }

    fn names(&self, dir: DirId) -> u32 {
        self.directory(dir).names
    }

    async fn iterate(&self, m: &M, dir: DirId, _: u32, time: Time) {
        m.touch(self.directory(dir).line, Access::Read);
        let (calls, each) = (&self.sb.calls, self.sb.calls.readdir_name());
        let children = if self.counts_listed == CountsListed::None { Vec::new() } else { calls.children(dir) };
        m.run(Account::System, time.saturating_sub(each * children.len() as Time)).await;
        for child in children {
            m.run(Account::System, each).await;
            calls.count_child(m, dir, child, self.counts_listed).await;
        }
    }
}
