//! A mounted XFS: its structures, and the locks and lines of its parts.

use super::buffer_hash::BufferHash;
use super::contents::Contents;
use super::directory_buffers::DirectoryBuffers;
use super::inode::{Inode, InodeParts, InodeTable, Number};
use super::log::buffer::{Buffer, Place};
use super::log::clusters::Clusters;
use super::log::grant::Naming;
use super::log::{IclogSize, Item, Log};
use super::operations::bulkstat::Bulkstat;
use super::operations::file_io::{FileIo, Rules};
use super::operations::fsync::Fsync;
use super::operations::inactive::{self, Inactive, Worker};
use super::operations::inodegc::{InodeGc, Limits, WorkQueue};
use super::operations::parents::Parents;
use super::operations::preallocate::Preallocate;
use super::operations::release::Release;
use super::operations::walk::Walk;
use super::operations::{Debug, OperationCosts};
use super::structures::geometry::{Geometry, BLOCK_SIZE, FINOBT_ROOT, INOBT_ROOT, INODES_PER_CHUNK};
use super::structures::layout::{self, Layout, ROOT};
use super::structures::touch::chunks;
use crate::devices::BlockDevice;
use crate::filesystems::costs::Costs;
use crate::filesystems::fs_type::FsType;
use crate::filesystems::log_area::LogArea;
use crate::filesystems::percpu_counters::ComparedCounter;
use crate::filesystems::vfs::SuperBlock;
use crate::filesystems::DirId;
use crate::kernel::vfs::Atime;
use crate::kernel::xfs::{Inactivation, IolockLine, StatfsInodegc, UnlinkedList};
use crate::waist::time::from_ns;
use crate::waist::{ClassId, CpuId, LineId, LockId, Time};
use crate::waist::{Host, Machine, Placement, SpawnKind};
use crate::workqueue::Works;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

/// Names and roles of an inode's locks.
const INODE_CLASSES: [(&str, &str); 3] =
    [("xfs.IOLOCK", "xfs.iolock"), ("xfs.ILOCK (file)", "xfs.ilock"), ("xfs.i_flags_lock", "xfs.i_flags_lock")];
/// The same for a directory's.
const DIRECTORY_CLASSES: [(&str, &str); 3] = [
    ("vfs.i_rwsem (directory)", "vfs.i_rwsem"),
    ("xfs.ILOCK (directory)", "xfs.ilock"),
    ("xfs.i_flags_lock", "xfs.i_flags_lock"),
];

/// Bytes of the AGI that hold counts, and where the buckets of unlinked lists begin (`struct xfs_agi`); bytes of the AGF's fields.
const AGI_COUNTS: Range<usize> = 0..40;
const AGI_BUCKETS: usize = 40;
const AGF_FIELDS: Range<usize> = 0..128;
/// Bytes of the header and of a record of a tree of inodes (`XFS_INOBT_BLOCK_LEN` with CRCs, `struct xfs_inobt_rec`).
const INOBT_HEADER: usize = 56;
const INOBT_RECORD: usize = 16;

/// The buffers of one allocation group that transactions lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct AllocationGroup {
    pub agi: Buffer,
    pub agf: Buffer,
    pub inobt: Buffer,
    pub finobt: Buffer,
}

impl AllocationGroup {
    /// The classes of its buffers, in the order of its fields.
    fn classes<M: Machine>(m: &M) -> [ClassId; 4] {
        ["xfs.AGI", "xfs.AGF", "xfs.inobt", "xfs.finobt"].map(|name| m.class(name, "xfs.buffer"))
    }

    /// All groups of a filesystem.
    fn all<M: Machine>(
        m: &M,
        geometry: &Geometry,
        classes: [ClassId; 4],
        buffer: u32,
        costs: &Costs<'_>,
    ) -> Result<Vec<Self>, String> {
        let count = |name: &str| costs.number(name).map(|n| n as u32);
        let agi = buffer + count("xfs_agi.data_create")?;
        let btree = buffer + count("xfs_inobt.data")?;
        let at = |agno: u32, agbno: u32| Place { block: geometry.linear(agno, agbno), blocks: 1 };
        let group = |agno| Self {
            agi: Buffer::new(m, classes[0], agi, at(agno, 0)).logging(chunks(AGI_COUNTS).map()),
            agf: Buffer::new(m, classes[1], agi, at(agno, 0)).logging(chunks(AGF_FIELDS).map()),
            inobt: Buffer::new(m, classes[2], btree, at(agno, INOBT_ROOT)),
            finobt: Buffer::new(m, classes[3], btree, at(agno, FINOBT_ROOT)),
        };
        Ok((0..geometry.agcount).map(group).collect())
    }

    /// The AGI, of which the bucket of this inode's unlinked list is logged, too (`xfs_iunlink_update_bucket`).
    pub(super) fn agi_of_unlinked(&self, agino: u32) -> Buffer {
        let bucket = AGI_BUCKETS + 4 * (agino as usize % 64);
        self.agi.logging(chunks(bucket..bucket + 4).map())
    }

    /// Both trees of inodes, of which the record of this one's chunk is logged (`xfs_btree_log_recs`). Records are taken to be as many as
    /// there could be before it.
    pub(super) fn records_of(&self, agino: u32) -> [Buffer; 2] {
        let nth = (agino / INODES_PER_CHUNK) as usize % ((BLOCK_SIZE as usize - INOBT_HEADER) / INOBT_RECORD);
        let record = INOBT_HEADER + INOBT_RECORD * nth;
        [self.finobt, self.inobt].map(|tree| tree.logging(chunks(record..record + INOBT_RECORD).map()))
    }

    /// The AGI and both trees of inodes, in the order of an allocation.
    pub(super) async fn lock_inode_trees<M: Machine>(&self, m: &M) {
        self.agi.lock(m).await;
        self.finobt.lock(m).await;
        self.inobt.lock(m).await;
    }

    /// They are released at commit.
    pub(super) async fn unlock_inode_trees<M: Machine>(&self, m: &M) {
        self.agi.unlock(m).await;
        self.finobt.unlock(m).await;
        self.inobt.unlock(m).await;
    }
}

/// A directory: its inode's locks.
#[derive(Clone, Copy, Debug)]
pub(super) struct XfsDirectory {
    pub id: layout::DirId,
    /// Its inode in core.
    pub slot: u32,
    pub ino: u64,
    pub i_rwsem: LockId,
    pub ilock: LockId,
    pub line: LineId,
    cluster: Buffer,
}

impl XfsDirectory {
    /// Its inode as transactions log it.
    pub fn item(&self) -> Item {
        Item::Inode { line: self.line, cluster: self.cluster, times_only: false }
    }
}

/// `statfs` adds up `m_icount`, `m_ifree` and `m_fdblocks` (`xfs_fs_statfs`).
const XFS: FsType = FsType {
    name: "xfs",
    statfs_counters: 3,
    encrypts: false,
    in_memory: false,
    large_folios: Some(|rules| rules.xfs_large_folios),
};

/// A mounted XFS.
pub struct Xfs {
    pub(super) layout: RefCell<Layout>,
    pub(super) costs: OperationCosts,
    pub(super) debug: Debug,
    pub(super) inactive: Inactive,
    pub(super) parents: Parents,
    pub(super) walk: Walk,
    pub(super) bulkstat: Bulkstat,
    pub(super) sb: SuperBlock,
    pub(super) log: Log,
    pub(super) storage: Rc<BlockDevice>,
    pub(super) io: FileIo,
    pub(super) sync: Fsync,
    pub(super) preallocate: Preallocate,
    /// Closing files.
    pub(super) release: Release,
    pub(super) inodes: InodeTable,
    pub(super) inode_classes: [ClassId; 3],
    pub(super) directory_classes: [ClassId; 3],
    pub(super) inode_lines: u32,
    pub(super) inodegc: Vec<InodeGc>,
    /// Who reads looks at a time in the line of the IOLOCK (`relatime_need_update`).
    pub(super) looks_beside_iolock: bool,
    /// Where a `statfs` waits for them.
    pub(super) inodegc_queue: Option<WorkQueue>,
    pub(super) inactivation: Inactivation,
    pub(super) unlinked: UnlinkedList,
    /// `m_ifree`, where it is compared with zero.
    free_inodes: Option<ComparedCounter>,
    pub(super) clusters: Clusters,
    /// What the other blocks contain.
    pub(super) contents: Contents,
    /// Which of them have a buffer.
    pub(super) buffers: BufferHash,
    groups: Vec<AllocationGroup>,
    directories: RefCell<Vec<XfsDirectory>>,
    pub(super) directory_buffers: DirectoryBuffers,
    free_directories: RefCell<Vec<DirId>>,
    /// `m_agirotor`, of which each new directory takes the next value.
    pub(super) rotor: LineId,
    /// Other files have been given most of it, so that all blocks count.
    pub(super) filled: Cell<bool>,
}

/// Cache lines that a transaction writes, by object.
struct Footprints {
    dir_inode: u32,
    buffer: u32,
}

impl Footprints {
    fn new(costs: &Costs<'_>) -> Result<Self, String> {
        let lines = |name: &str| costs.number(name).map(|n| n as u32);
        let buffer = lines("xfs_buffer.struct")? + lines("xfs_buffer.log_item")? + lines("xfs_buffer.log_vector")?;
        Ok(Self { buffer, dir_inode: lines("xfs_dir_inode.struct")? + lines("xfs_dir_inode.log_item")? })
    }
}

impl Xfs {
    /// A fresh filesystem of the given geometry, mounted; its threads are started by [`Xfs::start`].
    pub fn new<M: Machine>(
        m: &M,
        geometry: &Geometry,
        device: Rc<BlockDevice>,
        rules: Rules,
        costs: &Costs<'_>,
    ) -> Result<Self, String> {
        let (footprints, tick, iclogs) =
            (Footprints::new(costs)?, rules.tick, IclogSize::new(rules.logbsize, rules.log_su));
        let buffers = BufferHash::new(m, geometry, costs.rules().buffer_hash, rules.rehash);
        let count = |name: &str| costs.number(name).map(|n| n as u32);
        let inactivation = costs.rules().inodegc;
        let lists = inodegc_lists(inactivation, geometry.agcount, m.cpus());
        let classes = AllocationGroup::classes(m);
        let layout = Layout::new(geometry);
        let forks = costs.rules().attribute_forks || geometry.parent;
        let layout = if forks { layout } else { layout.without_attributes() };
        let names = Naming { dir: geometry.dir, parent: geometry.parent };
        let bytes = |blocks: u64| blocks * u64::from(crate::filesystems::BLOCK);
        // mkfs.xfs puts it into the group in the middle.
        let before = u64::from(geometry.agcount / 2) * u64::from(geometry.agblocks);
        let area = LogArea::new(bytes(before), bytes(u64::from(geometry.logblocks)));
        let (sb, part_time) = (SuperBlock::new(m, &XFS, costs)?, costs.sum(&["ifree_sum_cpu"])?);
        let fs = Self {
            layout: RefCell::new(layout),
            costs: OperationCosts::new(costs)?,
            debug: Debug::new(costs)?,
            inactive: Inactive::new(forks, costs)?,
            parents: Parents::new(geometry.parent, costs)?,
            walk: Walk::new(costs)?,
            bulkstat: Bulkstat::new(costs)?,
            log: Log::new(m, (area, iclogs), names, (sb.line, device.clone()), costs)?,
            sb,
            storage: device,
            io: FileIo::new(m, rules, costs)?,
            sync: Fsync::new(m, tick, (geometry.agcount, geometry.agblocks), costs)?,
            preallocate: Preallocate::new(costs)?,
            release: Release::new(costs)?,
            inodes: InodeTable::new(costs.rules().recycle_waits.then_some(from_ns(costs.number("rcu.grace_period")?))),
            inode_classes: INODE_CLASSES.map(|(name, role)| m.class(name, role)),
            directory_classes: DIRECTORY_CLASSES.map(|(name, role)| m.class(name, role)),
            inode_lines: footprints.dir_inode,
            inodegc: inactive::lists(lists, Limits::new(costs)?.of(inactivation)),
            looks_beside_iolock: costs.rules().iolock_line == IolockLine::WithCtime
                && costs.rules().atime == Atime::Relatime,
            inodegc_queue: (costs.rules().statfs_inodegc == StatfsInodegc::Flush).then(|| WorkQueue::new(m)),
            inactivation,
            unlinked: costs.rules().iunlink,
            free_inodes: costs.rules().ifree_compare.then(|| ComparedCounter::new(m, part_time)),
            clusters: Clusters::new(
                m,
                footprints.buffer + count("xfs_inode_cluster.data")?,
                geometry.agblocks,
                costs.sum(&["iunlink.region"])?,
            ),
            contents: Contents::new(geometry, costs)?,
            buffers,
            groups: AllocationGroup::all(m, geometry, classes, footprints.buffer, costs)?,
            directories: RefCell::default(),
            directory_buffers: DirectoryBuffers::new(m, geometry, footprints.buffer, costs)?,
            free_directories: RefCell::default(),
            rotor: m.new_line("xfs.m_agirotor", 1),
            filled: Cell::default(),
        };
        fs.storage.memory.register(fs.sb.shrinker(costs, false, Vec::new())?); // inode_fake_hash
        let number = fs.number(geometry.root_ino());
        let slot = fs.inodes.of_mkfs(m, fs.inode_parts(m, number, fs.directory_classes), number);
        fs.new_directory(ROOT, slot);
        Ok(fs)
    }

    /// Starts its kernel threads: inodegc workers, those of the log and of fsync, who writes metadata in place, and who makes tables
    /// of buffers larger.
    pub fn start<H: Host>(self: &Rc<Self>, host: &mut H, tick: Time) {
        for (list, gc) in self.inodegc.iter().enumerate() {
            let bound = self.inactivation == Inactivation::PerCpu;
            let placement = if bound { Placement::Pinned(list as CpuId) } else { Placement::Anywhere };
            let worker = Worker { fs: self.clone(), list };
            gc.set_worker(host.spawn(placement, SpawnKind::Background, |m| worker.run(m)));
        }
        self.storage.pools.start(host, self);
        for cpu in 0..host.setup(|m| m.cpus()) {
            let (log, conversions, buffers) = (self.clone(), self.clone(), self.clone());
            host.spawn(Placement::Pinned(cpu), SpawnKind::Background, move |m| Self::log_ender(m, log, cpu));
            host.spawn(Placement::Pinned(cpu), SpawnKind::Background, move |m| {
                Self::conversion_worker(m, conversions, cpu)
            });
            host.spawn(Placement::Pinned(cpu), SpawnKind::Background, move |m| Self::buffer_worker(m, buffers, cpu));
        }
        let fs = self.clone();
        host.spawn(Placement::Anywhere, SpawnKind::Background, move |m| Self::xfsaild(m, fs, tick));
        let cpus = if self.buffers.grows() { host.setup(|m| m.cpus()) } else { 0 };
        for cpu in 0..cpus {
            let fs = self.clone();
            host.spawn(Placement::Pinned(cpu), SpawnKind::Background, move |m| Self::rehash_worker(m, fs, cpu));
        }
    }

    /// `xfs_mod_ifree` of a transaction that takes or frees an inode, as it commits, with its locks held.
    pub(super) async fn mod_ifree<M: Machine>(&self, m: &M) {
        if let Some(counter) = &self.free_inodes {
            let free = self.layout.borrow().free_inodes();
            counter.change(m, free).await;
        }
    }

    pub(super) fn directory(&self, dir: DirId) -> XfsDirectory {
        self.directories.borrow()[dir as usize]
    }

    pub(super) fn group_number(&self, ino: u64) -> usize {
        self.layout.borrow().geometry().split_ino(ino).0 as usize
    }

    pub(super) fn group(&self, agno: u32) -> AllocationGroup {
        self.groups[agno as usize]
    }

    pub(super) fn group_of(&self, ino: u64) -> AllocationGroup {
        self.groups[self.group_number(ino)]
    }

    /// The parts of an inode number.
    pub(super) fn number(&self, ino: u64) -> Number {
        let (agno, agino) = self.layout.borrow().geometry().split_ino(ino);
        Number { agno, agino, ino }
    }

    /// What an inode in core of these classes is made of.
    pub(super) fn inode_parts<M: Machine>(&self, m: &M, number: Number, classes: [ClassId; 3]) -> InodeParts {
        let [iolock, ilock, flags_lock] = classes;
        let cluster = self.clusters.of(m, number.agno, number.agino);
        InodeParts { iolock, ilock, flags_lock, lines: self.inode_lines, cluster }
    }

    /// A directory whose inode is in this slot.
    pub(super) fn new_directory(&self, id: layout::DirId, slot: u32) -> DirId {
        let left = self.free_directories.borrow_mut().pop();
        let Inode { ino, iolock: i_rwsem, ilock, line, cluster, .. } = self.inodes.inode(slot);
        let new = XfsDirectory { id, slot, ino, i_rwsem, ilock, line, cluster };
        let mut directories = self.directories.borrow_mut();
        match left {
            Some(left) => directories[left as usize] = new,
            None => directories.push(new),
        }
        left.unwrap_or(directories.len() as DirId - 1)
    }

    /// A directory loses its name.
    pub(super) fn drop_directory(&self, parent: &XfsDirectory, dir: DirId) {
        self.layout.borrow_mut().drop_directory(parent.id, self.directory(dir).id);
    }

    /// A directory without a name is gone; its number may be that of another.
    pub(super) fn free_directory(&self, dir: DirId) {
        self.free_directories.borrow_mut().push(dir);
    }
}

/// How many lists of unlinked inodes wait for a worker.
fn inodegc_lists(inactivation: Inactivation, groups: u32, cpus: CpuId) -> usize {
    match inactivation {
        Inactivation::Task => 0,
        Inactivation::PerMount => 1,
        Inactivation::PerGroup => groups as usize,
        Inactivation::PerCpu => cpus as usize,
    }
}

impl Works for Xfs {
    async fn act<M: Machine>(&self, m: &M, work: LockId) {
        if self.log.checkpoints.is_for(work) {
            return self.push_cil(m).await;
        }
        self.storage.act(m, work).await;
    }
}
