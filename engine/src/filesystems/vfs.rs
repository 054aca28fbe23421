//! The layer above every filesystem: freeze protection, the directory's `i_rwsem`, the victim's, the inode cache, renames.

use super::calls::Calls;
use super::costs::Costs;
use super::fs_type::FsType;
use super::inodes::cold::Cold;
use super::inodes::inode_cache::InodeCache;
use super::inodes::inode_list::InodeLists;
use super::inodes::links::Links;
use super::inodes::listed::Entry;
use super::inodes::super_line::SuperLine;
use super::inodes::times::Times;
use super::open_files::thread_group::ThreadGroups;
use super::pages::mapping::Submitted;
use super::sync::SyncLocks;
use super::{DirId, File, InitialNames, LaidOut, Mounted, NoSpace};
use crate::memory::{Held, Shrinker};
use crate::waist::Machine;
use crate::waist::{ClassId, LockId, Side, Time};

/// Callbacks of RCU of an inode that goes: its memory (`i_callback`) and what security modules know of it (`inode_free_by_rcu`).
pub const INODE_CALLBACKS: u64 = 2;

/// What all filesystems of one mount share.
pub struct SuperBlock {
    /// `sb_start_write`: a percpu-rwsem taken shared by every operation that writes.
    pub freeze: LockId,
    /// What unlinking tasks write in it.
    pub line: SuperLine,
    /// The hash table and the list of inodes.
    pub inodes: InodeCache,
    /// Those whose labels wait for a policy of SELinux.
    isec: Option<InodeLists>,
    /// Files that are not in memory.
    pub cold: Cold,
    /// How many names files have.
    pub links: Links,
    /// When inodes were changed and read.
    pub times: Times,
    /// `s_vfs_rename_mutex`.
    rename_mutex: LockId,
    d_free: Time,
    file_callback: bool,
    i_rwsem: ClassId,
    directory_i_rwsem: ClassId,
    /// The calls that need little of the filesystem.
    pub calls: Calls,
    /// Of `syncfs`.
    pub sync: SyncLocks,
    /// Tasks that are threads of one process.
    pub thread_groups: ThreadGroups,
}

impl SuperBlock {
    /// Makes the locks of a mount of this type; the error names a cost that is missing.
    pub fn new<M: Machine>(m: &M, fs: &FsType, costs: &Costs<'_>) -> Result<Self, String> {
        let freeze = m.class("vfs.freeze", "vfs.freeze");
        Ok(Self {
            freeze: m.new_lock(freeze),
            line: SuperLine::new(m, costs),
            inodes: InodeCache::new(m, fs, costs)?,
            isec: InodeLists::of_selinux(m, costs)?,
            cold: Cold::default(),
            links: Links::default(),
            times: Times::new(costs),
            rename_mutex: m.new_lock(m.class("vfs.s_vfs_rename_mutex", "vfs.s_vfs_rename_mutex")),
            d_free: costs.sum(&["d_free"])?,
            file_callback: costs.rules().file_callback,
            i_rwsem: m.class("vfs.i_rwsem (file)", "vfs.i_rwsem"),
            directory_i_rwsem: m.class("vfs.i_rwsem (directory)", "vfs.i_rwsem"),
            calls: Calls::new(m, fs, costs)?,
            sync: SyncLocks::default(),
            thread_groups: ThreadGroups::default(),
        })
    }

    /// The same one of a filesystem that charges this of each write over cached pages by itself.
    pub fn overwriting_apart(mut self, time: Time) -> Self {
        self.calls.overwrite_apart(time);
        self
    }

    /// A file leaves memory before the run begins: its inode, by its entry in the list, where `hashed` in the hash table too, and its dentry.
    pub fn leaves_memory(&self, file: &File, entry: Entry, hashed: bool) {
        self.cold.leaves(file.inode);
        self.inodes.leaves_memory(entry, hashed);
        self.isec.iter().for_each(|isec| isec.leaves_memory(entry));
        self.calls.leaves_memory(file.inode);
    }

    /// Gives back inodes that nobody uses, each with what all filesystems take and what this one does.
    pub fn shrinker(&self, costs: &Costs<'_>, hashed: bool, held: Vec<Held>) -> Result<Shrinker, String> {
        let isec = self.isec.as_ref().map(InodeLists::held);
        let all = self.inodes.held(hashed).into_iter().chain(isec).chain(held).collect();
        Shrinker::new(costs, self.calls.dcache.lists(), all)
    }

    /// An inode has a dentry (`d_instantiate`, `d_splice_alias`; `inode_doinit_with_dentry`).
    pub async fn instantiate<M: Machine>(&self, m: &M, inode: Entry) {
        if let Some(isec) = &self.isec {
            isec.add(m, inode).await;
        }
    }

    /// An inode goes (`__destroy_inode`; `inode_free_security`).
    pub async fn destroy_inode<M: Machine>(&self, m: &M, inode: Entry) {
        if let Some(isec) = &self.isec {
            isec.remove(m, inode).await;
        }
        self.line.destroyed(m).await;
    }

    /// `i_rwsem` of a new directory.
    pub fn new_directory<M: Machine>(&self, m: &M) -> LockId {
        m.new_lock(self.directory_i_rwsem)
    }

    /// `i_rwsem` of a new file.
    pub fn new_file<M: Machine>(&self, m: &M) -> LockId {
        m.new_lock(self.i_rwsem)
    }

    /// `lock_rename` of the directories of the new and the old name.
    pub async fn lock_rename<M: Machine>(&self, m: &M, new: LockId, old: LockId) {
        if new != old {
            m.lock(self.rename_mutex, Side::Write).await;
            m.lock(new, Side::Write).await;
        }
        m.lock(old, Side::Write).await;
    }

    /// `unlock_rename`.
    pub async fn unlock_rename<M: Machine>(&self, m: &M, new: LockId, old: LockId) {
        m.unlock(new, Side::Write).await;
        if new != old {
            m.unlock(old, Side::Write).await;
            m.unlock(self.rename_mutex, Side::Write).await;
        }
    }

    /// The times of a rename before, under and after the directories' `i_rwsem`, less that of `d_move`.
    pub fn rename(&self) -> (Time, Time, Time) {
        let (before, under, after) = self.calls.rename();
        (before, under.saturating_sub(self.calls.rename_lock.d_move_time()), after)
    }

    /// What is left of the time of an `open` for a task that has its time at the table apart.
    pub fn rest_of_open<M: Machine>(&self, m: &M, rest: Time) -> Time {
        self.thread_groups.get(m.task()).map_or(rest, |group| group.files.without(rest))
    }

    /// `d_move`: the dentry is moved under the `rename_lock` of the whole kernel, before the directories are unlocked. That of the new
    /// name, which nobody finds any more, goes with its last reference (`__d_free`).
    pub async fn d_move<M: Machine>(&self, m: &M, from: DirId, to: DirId, slot: u32) {
        self.calls.rename_lock.d_move(m, self.calls.move_dentry(m, from, to, slot)).await;
        self.calls.dentry_kill(m, from).await;
        self.free_dentry(m);
    }

    /// `__d_free`.
    pub fn free_dentry<M: Machine>(&self, m: &M) {
        self.free_dentries(m, 1);
    }

    /// The same of so many.
    pub fn free_dentries<M: Machine>(&self, m: &M, count: u64) {
        m.call_rcu(count, self.d_free * count);
    }

    /// `file_free`, at the end of `__fput`: as `__d_free`, one `kmem_cache_free` (`file_free_rcu`).
    pub fn free_file<M: Machine>(&self, m: &M) {
        if self.file_callback {
            m.call_rcu(1, self.d_free);
        }
    }

    /// `mnt_want_write`.
    pub async fn start_write<M: Machine>(&self, m: &M) {
        m.lock(self.freeze, Side::Read).await;
        self.line.want_write(m).await;
    }

    /// `mnt_drop_write`.
    pub async fn end_write<M: Machine>(&self, m: &M) {
        m.unlock(self.freeze, Side::Read).await;
    }
}

/// What a filesystem does as a whole (`struct super_operations`), and what is there of it before a run begins.
pub(crate) trait SuperOperations<M: Machine>: Mounted {
    /// [`super::initial_files`] that are there before the run begins.
    fn fill(&self, dirs: &[DirId], files: u64, names: InitialNames) -> Result<(), NoSpace>;
    /// Other files take all room but for so many bytes that a new file could have; an error where there is less. Takes no time.
    fn fill_up(&self, _free: u64) -> Result<(), NoSpace> {
        Ok(())
    }
    /// A new file gets all its blocks. Nobody waits for a device.
    async fn lay_out(&self, _m: &M, _file: &File, _laid: LaidOut) {}
    /// `sync`: dirty pages are written (`sync_inodes_sb`), and what else the filesystem has to (`sync_fs`). By default nothing depends on it.
    async fn sync_fs(&self, _m: &M) {}
    /// What `syncfs` begins before it writes inodes (`sync_fs` without waiting).
    async fn start_sync(&self, _m: &M) {}
    /// Submits what is dirty of all files (`writeback_sb_inodes`).
    async fn write_inodes(&self, _m: &M) -> Submitted {
        Submitted::default()
    }
    /// Waits for it, and for what the flusher has under way.
    async fn wait_inodes(&self, _m: &M, _written: Submitted) {}
    /// What `syncfs` ends with (`sync_fs`, and `sync_blockdev`).
    async fn end_sync(&self, _m: &M) {}
    /// `ioctl(XFS_IOC_BULKSTAT)`: the next inode of a walk by number.
    async fn bulkstat(&self, m: &M, _who: u32) {
        m.give_up("this filesystem has no bulkstat");
    }
    /// A walk has come so far in a directory when the run begins.
    fn has_walked(&self, _dir: DirId, _nth: u32) {}
    /// All that is in memory of a filesystem is on disk, and may go.
    async fn settle(&self, m: &M) {
        self.sync_fs(m).await;
    }
    /// A file leaves memory, as after `drop_caches`, when it has settled.
    fn leaves_memory(&self, file: &File);
    /// What `statfs` does besides counting.
    async fn statfs(&self, _m: &M) {}
    /// A step of a walk through a directory whose inodes are not in memory: its part of `getdents`, and `stat` of the `nth` file.
    async fn walk(&self, m: &M, dir: DirId, nth: u32);
}
