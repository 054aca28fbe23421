//! System calls that are the same on every filesystem but for their time: those that only read, and calls on one open file.
//! What users of one file share are its dentry and the reference count of its pages' folio.

mod open;
mod pages;

use super::by_slot::BySlot;
use super::cached::InCore;
use super::costs::Costs;
use super::fs_type::FsType;
use super::names::dcache::Dcache;
use super::names::dentry::Dentries;
use super::names::parents::Children;
use super::names::removal::KillCosts;
use super::names::rename_lock::RenameLock;
use super::open_files::apparmor::Label;
use super::open_files::file_locks::{FileLocks, Request};
use super::open_files::open_file::OpenFiles;
use super::pages::data_pages::DataPages;
use super::pages::folio_words::FolioWords;
use super::pages::folios::Folios;
use super::percpu_counters::StatfsSums;
use super::{DirId, File};
use crate::cost_table;
use crate::kernel::vfs::FstatCall;
use crate::lru::Lru;
use crate::waist::Machine;
use crate::waist::{Account, LineId, Time};
pub use pages::new_pages;
use std::rc::Rc;

cost_table!(CallCosts {
    open_walk: ["call.open_walk"],
    open_rest: ["call.open_rest"],
    stat: ["call.stat"],
    lookup: ["call.lookup"],
    stat_missing: ["call.stat_missing"],
    fstat: ["call.fstat"],
    empty_path: ["call.empty_path"],
    lseek: ["call.lseek"],
    seek_hole: ["call.seek_hole"],
    statfs: ["call.statfs"],
    statfs_cpu: ["call.statfs_cpu"],
    lock_range: ["call.lock_range"],
    unlock_range: ["call.unlock_range"],
    posix_lock: ["call.posix_lock_under_flc_lock"],
    readdir: ["call.readdir"],
    readdir_name: ["call.readdir_name"],
    read: ["call.read"],
    overwrite: ["call.overwrite"],
    drop_folio: ["call.drop_folio"],
    setattr_before: ["call.setattr_before_i_rwsem"],
    setattr: ["call.setattr_under_i_rwsem"],
    chown: ["call.chown"],
    rename_before: ["call.rename_before_i_rwsem"],
    rename: ["call.rename_under_i_rwsem"],
    rename_after: ["call.rename_after_i_rwsem"],
    link_before: ["call.link_before_i_rwsem"],
    link: ["call.link_under_i_rwsem"],
    link_after: ["call.link_after_i_rwsem"],
    mkdir_before: ["call.mkdir_before_i_rwsem"],
    mkdir_after: ["call.mkdir_after_i_rwsem"],
    mkdir_exists_before: ["call.mkdir_exists_before_i_rwsem"],
    mkdir_exists: ["call.mkdir_exists_under_i_rwsem"],
    mkdir_exists_after: ["call.mkdir_exists_after_i_rwsem"],
    write_nothing: ["call.write_nothing"],
    rmdir_before: ["call.rmdir_before_i_rwsem"],
    rmdir_after: ["call.rmdir_after_i_rwsem"],
});

/// Names that fit the 32 KiB buffer of the C library, in entries of 32 bytes: names of 5 to 12 characters.
const BUFFER: u32 = 1024;

/// The times of these calls on one filesystem, and the lines that all users of a file write.
pub struct Calls {
    costs: CallCosts,
    /// Of dentries that go; none where their time is that of the filesystem's own steps.
    pub(super) kill: Option<KillCosts>,
    fstat: FstatCall,
    creat_looks_first: bool,
    open_consumes_path: bool,
    /// Inodes and dentries.
    pub files: InCore,
    pub(super) dentries: Dentries,
    /// `/`, if opens that create count references of it.
    pub(super) root: Option<Dentries>,
    /// Names that are looked up, and unused dentries.
    pub dcache: Dcache,
    /// The lock of dentries that are moved.
    pub rename_lock: RenameLock,
    /// Those of directories, and their lists of children.
    pub(super) directories: Dentries,
    pub(super) children: Children,
    /// Who opens a file looks whether its directory is encrypted, with a reference of it.
    pub(super) asks_directory: bool,
    /// The directory of the files of those tasks whose directory somebody watches, and whether the task has been there.
    watched: BySlot<(DirId, bool)>,
    /// Tasks whose files have lost their names while they are open.
    nameless: BySlot<()>,
    /// Lines of `i_writecount`, of files that were opened again for writing.
    writers: BySlot<LineId>,
    folio_words: FolioWords,
    folios: Folios,
    /// Pages of data in the caches.
    pub pages: DataPages,
    /// Open files that tasks share.
    pub open_files: OpenFiles,
    /// AppArmor's label of open files.
    pub(super) label: Label,
    /// Locks of ranges of files.
    locks: FileLocks,
    summed: StatfsSums,
    /// The lists of pages; by file, its folios that are new since it was laid out.
    lru: Rc<Lru>,
    pub(super) written: BySlot<u64>,
    /// Reads are those of `filemap_read`. Files that are in memory only have their own, whose pages are on other lists.
    reads_mark: bool,
}

impl Calls {
    /// From the cost tables; the error names what is missing.
    pub fn new<M: Machine>(m: &M, fs: &FsType, costs: &Costs<'_>) -> Result<Self, String> {
        let (dentries, directories) = (Dentries::new(m, costs), Dentries::new(m, costs));
        let root = costs.rules().creat_counts_root.then(|| Dentries::new(m, costs));
        let (files, dcache) = (InCore::new(costs, fs)?, Dcache::new(m, fs, costs));
        let rename_lock = RenameLock::new(m, costs)?;
        let asks_directory = fs.encrypts && costs.rules().open_counts_directory;
        let (lru, fstat, creat_looks_first) = (costs.lru(), costs.rules().fstat, costs.rules().creat_looks_first);
        let (rules, children) = (costs.rules(), Children::new(costs.rules()));
        let kill = if fs.in_memory { None } else { Some(KillCosts::new(costs)?) };
        let (costs, folios) = (CallCosts::new(costs)?, Folios::new(fs, costs)?);
        let (folio_words, written) = (FolioWords::new(m, fs), BySlot::default());
        let (writers, pages) = (BySlot::default(), DataPages::default());
        let (open_files, locks) = (OpenFiles::new(&rules), FileLocks::new(m, &rules, costs.posix_lock));
        let (label, summed) = (Label::new(m, &rules), StatfsSums::new(m, fs.statfs_counters));
        Ok(Self {
            costs,
            kill,
            fstat,
            creat_looks_first,
            open_consumes_path: rules.open_consumes_path,
            files,
            dentries,
            root,
            dcache,
            rename_lock,
            directories,
            children,
            asks_directory,
            watched: BySlot::default(),
            nameless: BySlot::default(),
            writers,
            folio_words,
            folios,
            pages,
            open_files,
            label,
            locks,
            summed,
            lru,
            written,
            reads_mark: !fs.in_memory,
        })
    }

    /// What a `stat` of a name that does not exist takes until the name is looked up, and after. The walk to it is that of any `stat`.
    pub fn stat_missing(&self) -> (Time, Time) {
        let walk = self.costs.stat.saturating_sub(self.costs.fstat).min(self.costs.stat_missing);
        (walk, self.costs.stat_missing - walk)
    }

    /// `statfs`, but for what only this filesystem does.
    pub async fn statfs<M: Machine>(&self, m: &M) {
        m.at("statfs");
        self.rename_lock.path_init(m).await;
        m.run(Account::System, self.costs.statfs).await;
        self.summed.sum(m, self.costs.statfs_cpu * Time::from(m.cpus())).await;
    }

    /// `fcntl(F_SETLK)`, or `F_SETLKW`. Of what it takes, `apart` is done elsewhere.
    pub async fn lock_range<M: Machine>(&self, m: &M, file: &File, request: Request, apart: Time) {
        let set = request.set;
        let (site, time) = if set { ("lock", self.costs.lock_range) } else { ("unlock", self.costs.unlock_range) };
        m.at(site);
        self.locks.set_lock(m, file.inode, request, time.saturating_sub(apart)).await;
    }

    /// `stat` of a name that exists and is cached.
    pub async fn stat<M: Machine>(&self, m: &M, file: &File) {
        m.at("stat");
        self.files.found(m, file.inode);
        self.stat_one(m, &self.dentries, file).await;
    }

    /// The same of a directory.
    pub async fn stat_directory<M: Machine>(&self, m: &M, dir: DirId) {
        m.at("stat");
        self.stat_one(m, &self.directories, &File { inode: dir, written: false, writable: false }).await;
    }

    async fn stat_one<M: Machine>(&self, m: &M, dentries: &Dentries, file: &File) {
        let c = &self.costs;
        self.rename_lock.path_init(m).await;
        dentries.walk(m, file);
        m.run(Account::System, c.stat.saturating_sub(c.fstat)).await;
        dentries.get(m, file).await;
        m.run(Account::System, c.fstat.min(c.stat)).await;
        dentries.put(m, file).await;
    }

    /// `fstat`.
    pub async fn fstat<M: Machine>(&self, m: &M, file: &File) {
        m.at("fstat");
        self.files.held(m, file.inode);
        if self.fstat == FstatCall::Descriptor {
            return m.run(Account::System, self.costs.fstat).await;
        }
        self.rename_lock.path_init(m).await;
        let part = self.costs.fstat / 3; // the call's entry, vfs_getattr, cp_new_stat and exit: how they divide it was not measured
        m.run(Account::System, self.costs.empty_path + part).await;
        self.dentries.get(m, file).await;
        m.run(Account::System, part).await;
        self.dentries.put(m, file).await;
        m.run(Account::System, self.costs.fstat - 2 * part).await;
    }

    /// Names, and times under the directory's `i_rwsem`, of the calls that list so many names: each fills a buffer, with the lock anew
    /// (`iterate_dir`). The first has the time to open and close the directory.
    pub fn readdir(&self, names: u32) -> impl Iterator<Item = (u32, Time)> {
        let (once, name) = (self.costs.readdir, self.costs.readdir_name);
        let of = move |first: u32| {
            let here = (names - first).min(BUFFER);
            (here, name * Time::from(here) + if first == 0 { once } else { 0 })
        };
        (0..names.max(1)).step_by(BUFFER as usize).map(of)
    }

    /// What of a walk is for the name, where an `open` with `O_CREAT` looks that up with the directory locked; else nothing.
    pub fn locked_lookup(&self) -> Option<Time> {
        (!self.creat_looks_first).then_some(self.costs.lookup)
    }

    /// Time to find a name whose dentry is in memory.
    pub fn lookup(&self) -> Time {
        self.costs.lookup
    }

    /// Time of one name of a listing.
    pub fn readdir_name(&self) -> Time {
        self.costs.readdir_name
    }

    /// Time of a call on an open file until it takes a lock.
    pub fn enter(&self) -> Time {
        self.costs.fstat
    }

    /// Time of `utimes` before and under the file's `i_rwsem`.
    pub fn setattr(&self) -> (Time, Time) {
        (self.costs.setattr_before, self.costs.setattr)
    }

    /// Time of an `lseek` that only sets the position.
    pub fn lseek(&self) -> Time {
        self.costs.lseek
    }

    /// Time of `lseek(SEEK_HOLE)` before and under the lock: what it has more than one that looks at nothing is under it.
    pub fn seek_hole(&self) -> (Time, Time) {
        let before = self.costs.lseek.min(self.costs.seek_hole);
        (before, self.costs.seek_hole - before)
    }

    /// What a `chown` takes more, under the file's `i_rwsem`.
    pub fn chown(&self) -> Time {
        self.costs.chown
    }

    /// Time of a rename before, under and after the directory's `i_rwsem`.
    pub fn rename(&self) -> (Time, Time, Time) {
        (self.costs.rename_before, self.costs.rename, self.costs.rename_after)
    }

    /// Time of a `link` before, under and after the directory's `i_rwsem`.
    pub fn link(&self) -> (Time, Time, Time) {
        (self.costs.link_before, self.costs.link, self.costs.link_after)
    }

    /// Time of `mkdir` before and after the parent's `i_rwsem`.
    pub fn mkdir(&self) -> (Time, Time) {
        (self.costs.mkdir_before, self.costs.mkdir_after)
    }

    /// Time of `mkdir` of a name that exists before, under and after the parent's `i_rwsem`.
    pub fn mkdir_exists(&self) -> (Time, Time, Time) {
        (self.costs.mkdir_exists_before, self.costs.mkdir_exists, self.costs.mkdir_exists_after)
    }

    /// `write` of no bytes (`generic_write_checks`). What it takes has the file's own `i_rwsem` in it, which ext4 and btrfs lock first.
    pub async fn write_nothing<M: Machine>(&self, m: &M) {
        m.at("write");
        m.run(Account::System, self.costs.write_nothing).await;
    }

    /// Time of `rmdir` before and after the parent's `i_rwsem`.
    pub fn rmdir(&self) -> (Time, Time) {
        (self.costs.rmdir_before, self.costs.rmdir_after)
    }
}
