//! How kernels differ besides the algorithms of their locks: what one lock guards, and who does the work.

use std::collections::BTreeMap;

/// One of all, or many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// One for the whole mount or machine.
    Global,
    /// One for each chain or CPU.
    Split,
}

/// What a commit into XFS's CIL takes `xc_cil_lock` for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cil {
    /// Space counters and the list of items.
    Global,
    /// The list of items; counters are per CPU.
    PerCpuCounters,
    /// Busy extents only; lists are per CPU too.
    PerCpuLists,
    /// Nothing.
    PerCpu,
}

/// How many checkpoints of XFS are written at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CilPush {
    /// One after the other (before 5.15).
    Serial,
    /// Up to four.
    Pipelined,
}

/// Who frees unlinked XFS inodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inactivation {
    /// The task that unlinked them (before 5.14).
    Task,
    /// A worker for each allocation group, on any CPU.
    PerGroup,
    /// A worker for each CPU, bound to it.
    PerCpu,
}

/// What `tree_log_mutex`, which a commit of btrfs holds until its superblocks are written, keeps from being done meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeLogMutex {
    /// The first fsync of the next transaction may not begin a log (before 5.11).
    LogStart,
    /// A log's superblock may not be written.
    LogSuper,
}

/// When an fsync of btrfs commits the whole transaction because a rename has taken a name away that the log does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FullCommit {
    /// A directory above the file lost the name since the last commit that is over; and while such a commit is on its way, every
    /// fsync makes another (before 5.11).
    SinceCommitted,
    /// A directory above the file lost the name in the running transaction (5.11).
    Running,
    /// The directory is itself to be logged, for the file was renamed too (since 5.12).
    Directory,
}

/// What an fsync of btrfs that logs only what has changed waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsyncWait {
    /// Until the trees know of the data, as any other (before 5.10).
    Ordered,
    /// Until the data are written.
    Writeback,
}

/// How direct writes of data with checksums are done on btrfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectWrite {
    /// From the caller's pages (before 6.15).
    Direct,
    /// Through the page cache.
    Buffered,
}

/// When a commit of btrfs that has to wait for the one before keeps out who starts a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitStart {
    /// At once (before 6.7).
    AtOnce,
    /// When that one is over.
    AfterPrevious,
}

/// How btrfs puts checksums into the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogCsums {
    /// Those of the same range are deleted before, under a lock of the range (before 5.9).
    Replace,
    /// They are inserted; others can be there only if extents are shared.
    Insert,
}

/// How btrfs logs an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogInode {
    /// Without looking whether the log has it: a new one is deleted before, another is inserted. What is copied is copied under
    /// the lock of the subvolume's leaf (before 5.16).
    LeafHeld,
    /// After looking, and still under the leaf's lock.
    Known,
    /// From a clone of the leaf (since 6.2).
    LeafCloned,
}

/// How a btrfs search makes the locks of its path spinning again when it need no longer sleep (`btrfs_clear_path_blocking`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathClearing {
    /// One after the other, from the root down (to 3.15).
    InPlace,
    /// The same, after those that spin were made blocking as well, since fair rwlocks would deadlock otherwise (3.16 to 4.19).
    BlockingFirst,
    /// Not at all: what is blocking stays so (since 4.20).
    Never,
}

/// When XFS changes the pointers of its unlinked lists that lie in inodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnlinkedList {
    /// At once, in the inodes' buffers (before 6.0).
    OnDisk,
    /// In memory, and in the buffers at commit.
    InMemory,
}

/// When btrfs begins to do what is delayed for the room that it holds reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataReclaim {
    /// When there is none left (before 5.12).
    OnDemand,
    /// When half of it is promised.
    Preemptive,
}

/// When btrfs asks whether an extent that it is to write in place is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NocowCheck {
    /// With the leaf of the file's extent locked (before 5.11).
    PathHeld,
    /// After it is unlocked.
    PathReleased,
}

/// The designs of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Designs {
    /// `inode_hash_lock`.
    pub inode_hash: Spread,
    /// `s_inode_list_lock`.
    pub inode_list: Spread,
    /// `xc_cil_lock`.
    pub cil: Cil,
    /// `xlog_cil_push_work`.
    pub cil_push: CilPush,
    /// `xfs_inodegc`.
    pub inodegc: Inactivation,
    /// `xfs_iunlink`.
    pub iunlink: UnlinkedList,
    /// `run_delalloc_nocow`.
    pub nocow_check: NocowCheck,
    /// `need_preemptive_reclaim`.
    pub reclaim: MetadataReclaim,
    /// `btrfs_clear_path_blocking`.
    pub path_clearing: PathClearing,
    /// `tree_log_mutex`.
    pub tree_log_mutex: TreeLogMutex,
    /// `btrfs_record_unlink_dir`.
    pub full_commit: FullCommit,
    /// `btrfs_sync_file`.
    pub fsync_wait: FsyncWait,
    /// `btrfs_direct_write`.
    pub direct_write: DirectWrite,
    /// `btrfs_commit_transaction`.
    pub commit_start: CommitStart,
    /// `log_csums`.
    pub log_csums: LogCsums,
    /// `btrfs_log_inode`.
    pub log_inode: LogInode,
}

impl Designs {
    /// From a kernel's `designs`; those of Linux 6.12 where it says nothing. The error names the role.
    pub fn new(given: &BTreeMap<String, String>) -> Result<Self, String> {
        let mut designs =
            Self {
                inode_hash: Spread::Global,
                inode_list: Spread::Global,
                cil: Cil::PerCpu,
                cil_push: CilPush::Pipelined,
                inodegc: Inactivation::PerCpu,
                iunlink: UnlinkedList::InMemory,
                nocow_check: NocowCheck::PathReleased,
                reclaim: MetadataReclaim::Preemptive,
                path_clearing: PathClearing::Never,
                tree_log_mutex: TreeLogMutex::LogSuper,
                full_commit: FullCommit::Directory,
                fsync_wait: FsyncWait::Writeback,
                direct_write: DirectWrite::Direct,
                commit_start: CommitStart::AfterPrevious,
                log_csums: LogCsums::Insert,
                log_inode: LogInode::LeafCloned,
            };
        for (role, design) in given {
            match role.as_str() {
                "vfs.inode_hash" => {
                    designs.inode_hash = choose(role, design, &[("global", Spread::Global), ("per-chain", Spread::Split)])?;
                }
                "vfs.inode_list" => {
                    designs.inode_list = choose(role, design, &[("global", Spread::Global), ("per-cpu", Spread::Split)])?;
                }
                "xfs.cil" => {
                    let steps = [
                        ("global", Cil::Global),
                        ("per-cpu-counters", Cil::PerCpuCounters),
                        ("per-cpu-lists", Cil::PerCpuLists),
                        ("per-cpu", Cil::PerCpu),
                    ];
                    designs.cil = choose(role, design, &steps)?;
                }
                "xfs.cil_push" => {
                    let how = [("serial", CilPush::Serial), ("pipelined", CilPush::Pipelined)];
                    designs.cil_push = choose(role, design, &how)?;
                }
                "xfs.inodegc" => {
                    let who = [
                        ("task", Inactivation::Task),
                        ("per-group", Inactivation::PerGroup),
                        ("per-cpu", Inactivation::PerCpu),
                    ];
                    designs.inodegc = choose(role, design, &who)?;
                }
                "xfs.iunlink" => {
                    let when = [("on-disk", UnlinkedList::OnDisk), ("in-memory", UnlinkedList::InMemory)];
                    designs.iunlink = choose(role, design, &when)?;
                }
                "btrfs.nocow_check" => {
                    let when = [("path-held", NocowCheck::PathHeld), ("path-released", NocowCheck::PathReleased)];
                    designs.nocow_check = choose(role, design, &when)?;
                }
                "btrfs.reclaim" => {
                    let when = [("on-demand", MetadataReclaim::OnDemand), ("preemptive", MetadataReclaim::Preemptive)];
                    designs.reclaim = choose(role, design, &when)?;
                }
                "btrfs.path_clearing" => {
                    let how = [
                        ("in-place", PathClearing::InPlace),
                        ("blocking-first", PathClearing::BlockingFirst),
                        ("never", PathClearing::Never),
                    ];
                    designs.path_clearing = choose(role, design, &how)?;
                }
                "btrfs.tree_log_mutex" => {
                    let what = [("log-start", TreeLogMutex::LogStart), ("log-super", TreeLogMutex::LogSuper)];
                    designs.tree_log_mutex = choose(role, design, &what)?;
                }
                "btrfs.full_commit" => {
                    let when = [
                        ("since-committed", FullCommit::SinceCommitted),
                        ("running", FullCommit::Running),
                        ("directory", FullCommit::Directory),
                    ];
                    designs.full_commit = choose(role, design, &when)?;
                }
                "btrfs.fsync_wait" => {
                    let what = [("ordered", FsyncWait::Ordered), ("writeback", FsyncWait::Writeback)];
                    designs.fsync_wait = choose(role, design, &what)?;
                }
                "btrfs.direct_write" => {
                    let how = [("direct", DirectWrite::Direct), ("buffered", DirectWrite::Buffered)];
                    designs.direct_write = choose(role, design, &how)?;
                }
                "btrfs.commit_start" => {
                    let when = [("at-once", CommitStart::AtOnce), ("after-previous", CommitStart::AfterPrevious)];
                    designs.commit_start = choose(role, design, &when)?;
                }
                "btrfs.log_csums" => {
                    designs.log_csums = choose(role, design, &[("replace", LogCsums::Replace), ("insert", LogCsums::Insert)])?;
                }
                "btrfs.log_inode" => {
                    let how = [
                        ("leaf-held", LogInode::LeafHeld),
                        ("known", LogInode::Known),
                        ("leaf-cloned", LogInode::LeafCloned),
                    ];
                    designs.log_inode = choose(role, design, &how)?;
                }
                _ => return Err(format!("kernel.designs: unknown role '{role}'")),
            }
        }
        Ok(designs)
    }
}

fn choose<D: Copy>(role: &str, design: &str, known: &[(&str, D)]) -> Result<D, String> {
    let names = || known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = known.iter().find(|(name, _)| *name == design);
    found.map(|(_, d)| *d).ok_or_else(|| format!("kernel.designs.{role}: unknown '{design}'; known: {}", names()))
}
