//! A mounted XFS: its structures, and the locks and lines of its parts.

use super::inode::InodeTable;
use super::log::buffer::{Buffer, Place};
use super::log::clusters::Clusters;
use super::log::{Item, Log};
use super::operations::file_io::{FileIo, Rules};
use super::operations::fsync::Fsync;
use super::operations::inactive::{self, Inactive, Worker};
use super::operations::inodegc::{InodeGc, Limits};
use super::operations::preallocate::Preallocate;
use super::operations::release::Release;
use super::operations::walk::Walk;
use super::operations::OperationCosts;
use super::structures::directory::DirForm;
use super::structures::geometry::{Geometry, FINOBT_ROOT, INOBT_ROOT, INOPBLOG};
use super::structures::layout::{self, Layout, ROOT};
use super::structures::touch::{BlockKind, Touches};
use crate::devices::BlockDevice;
use crate::filesystems::costs::Costs;
use crate::filesystems::vfs::SuperBlock;
use crate::filesystems::DirId;
use crate::kernel::xfs::{Inactivation, UnlinkedList};
use crate::machine::{ClassId, CpuId, LineId, LockId, Time};
use crate::waist::{Host, Life, Machine, Placement};
use std::cell::RefCell;
use std::rc::Rc;

/// Names and roles of an inode's locks.
const INODE_CLASSES: [(&str, &str); 3] =
    [("xfs.IOLOCK", "xfs.iolock"), ("xfs.ILOCK (file)", "xfs.ilock"), ("xfs.i_flags_lock", "xfs.i_flags_lock")];

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
            agi: Buffer::new(m, classes[0], agi, at(agno, 0)),
            agf: Buffer::new(m, classes[1], agi, at(agno, 0)),
            inobt: Buffer::new(m, classes[2], btree, at(agno, INOBT_ROOT)),
            finobt: Buffer::new(m, classes[3], btree, at(agno, FINOBT_ROOT)),
        };
        Ok((0..geometry.agcount).map(group).collect())
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

/// A directory: its inode's locks, and one buffer of each kind of block.
#[derive(Clone, Copy, Debug)]
pub(super) struct XfsDirectory {
    pub id: layout::DirId,
    pub ino: u64,
    pub i_rwsem: LockId,
    pub ilock: LockId,
    pub line: LineId,
    cluster: Buffer,
    da_node: Buffer,
    leafn: Buffer,
    freeindex: Buffer,
    data: Buffer,
}

impl XfsDirectory {
    /// Its inode as transactions log it.
    pub fn item(&self) -> Item {
        Item::Inode { line: self.line, cluster: self.cluster }
    }

    /// The buffers that adding or removing a name locks, in the kernel's order, by the directory's form.
    pub fn buffers(&self, form: DirForm) -> arrayvec::ArrayVec<Buffer, 4> {
        match form {
            DirForm::Short => arrayvec::ArrayVec::new(),
            DirForm::Block => [self.data].into_iter().collect(),
            DirForm::Leaf => [self.leafn, self.data].into_iter().collect(),
            DirForm::Node => [self.da_node, self.leafn, self.freeindex, self.data].into_iter().collect(),
        }
    }
}

/// A mounted XFS.
pub struct Xfs {
    pub(super) layout: RefCell<Layout>,
    pub(super) costs: OperationCosts,
    pub(super) inactive: Inactive,
    pub(super) walk: Walk,
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
    pub(super) inode_lines: u32,
    pub(super) inodegc: Vec<InodeGc>,
    pub(super) inactivation: Inactivation,
    pub(super) iunlink: UnlinkedList,
    pub(super) clusters: Clusters,
    groups: Vec<AllocationGroup>,
    directories: RefCell<Vec<XfsDirectory>>,
    footprints: Footprints,
}

/// Cache lines that a transaction writes, by object.
struct Footprints {
    dir_leaf: u32,
    dir_data: u32,
    dir_free: u32,
    dir_inode: u32,
    buffer: u32,
}

impl Footprints {
    fn new(costs: &Costs<'_>) -> Result<Self, String> {
        let lines = |name: &str| costs.number(name).map(|n| n as u32);
        let buffer = lines("xfs_buffer.struct")? + lines("xfs_buffer.log_item")? + lines("xfs_buffer.log_vector")?;
        Ok(Self {
            buffer,
            dir_leaf: buffer + lines("xfs_dir_leaf.data")?,
            dir_data: buffer + lines("xfs_dir_data.data")?,
            dir_free: buffer + lines("xfs_dir_free.data")?,
            dir_inode: lines("xfs_dir_inode.struct")? + lines("xfs_dir_inode.log_item")?,
        })
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
        let (footprints, tick) = (Footprints::new(costs)?, rules.tick);
        let count = |name: &str| costs.number(name).map(|n| n as u32);
        let inactivation = costs.rules().inodegc;
        let lists = inodegc_lists(inactivation, geometry.agcount, m.cpus());
        let classes = AllocationGroup::classes(m);
        let log_size = u64::from(geometry.logblocks) * u64::from(crate::filesystems::BLOCK);
        let fs = Self {
            layout: RefCell::new(Layout::new(geometry)),
            costs: OperationCosts::new(costs)?,
            inactive: Inactive::new(costs)?,
            walk: Walk::new(costs)?,
            sb: SuperBlock::new(m, costs)?,
            log: Log::new(m, log_size, device.clone(), costs)?,
            storage: device,
            io: FileIo::new(m, rules, costs)?,
            sync: Fsync::new(m, tick, costs)?,
            preallocate: Preallocate::new(costs)?,
            release: Release::new(costs)?,
            inodes: InodeTable::default(),
            inode_classes: INODE_CLASSES.map(|(name, role)| m.class(name, role)),
            inode_lines: footprints.dir_inode,
            inodegc: inactive::lists(lists, Limits::new(costs)?),
            inactivation,
            iunlink: costs.rules().iunlink,
            clusters: Clusters::new(m, footprints.buffer + count("xfs_inode_cluster.data")?, geometry.agblocks),
            groups: AllocationGroup::all(m, geometry, classes, footprints.buffer, costs)?,
            directories: RefCell::default(),
            footprints,
        };
        fs.new_directory(m, ROOT, geometry.root_ino());
        Ok(fs)
    }

    /// Starts its kernel threads: inodegc workers, those of the log and of fsync, and who writes metadata in place.
    pub fn start<H: Host>(self: &Rc<Self>, host: &mut H, tick: Time) {
        for (list, gc) in self.inodegc.iter().enumerate() {
            let bound = self.inactivation == Inactivation::PerCpu;
            let placement = if bound { Placement::Pinned(list as CpuId) } else { Placement::Anywhere };
            let worker = Worker { fs: self.clone(), list };
            gc.set_worker(host.spawn(placement, Life::Background, |m| worker.run(m)));
        }
        for _ in 0..self.log.checkpoints.workers() {
            let fs = self.clone();
            host.spawn(Placement::Anywhere, Life::Background, move |m| Self::push_worker(m, fs));
        }
        for cpu in 0..host.setup(|m| m.cpus()) {
            let (log, conversions, buffers) = (self.clone(), self.clone(), self.clone());
            host.spawn(Placement::Pinned(cpu), Life::Background, move |m| Self::log_ender(m, log, cpu));
            host.spawn(Placement::Pinned(cpu), Life::Background, move |m| Self::conversion_worker(m, conversions, cpu));
            host.spawn(Placement::Pinned(cpu), Life::Background, move |m| Self::buffer_worker(m, buffers, cpu));
        }
        let fs = self.clone();
        host.spawn(Placement::Anywhere, Life::Background, move |m| Self::xfsaild(m, fs, tick));
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

    pub(super) fn new_directory<M: Machine>(&self, m: &M, id: layout::DirId, ino: u64) -> DirId {
        let f = &self.footprints;
        let block = m.class("xfs.directory block", "xfs.buffer");
        let (agno, agino) = self.layout.borrow().geometry().split_ino(ino);
        let near = |nth: u32| Place {
            block: self.layout.borrow().geometry().linear(agno, (agino >> INOPBLOG) + nth),
            blocks: 1,
        };
        let directory = XfsDirectory {
            id,
            ino,
            i_rwsem: self.sb.new_directory(m),
            ilock: m.new_lock(m.class("xfs.ILOCK (directory)", "xfs.ilock")),
            line: m.new_line(f.dir_inode),
            cluster: self.clusters.of(m, agno, agino),
            da_node: Buffer::new(m, block, f.buffer, near(1)),
            leafn: Buffer::new(m, block, f.dir_leaf, near(2)),
            freeindex: Buffer::new(m, block, f.dir_free, near(3)),
            data: Buffer::new(m, block, f.dir_data, near(4)),
        };
        let mut directories = self.directories.borrow_mut();
        directories.push(directory);
        (directories.len() - 1) as DirId
    }

    /// The buffer of a directory's data block stands for a new one from now on, the last that an operation touched.
    pub(super) fn renew_data_block(&self, d: &mut XfsDirectory, touched: &Touches) {
        self.log.ail.borrow_mut().renew(d.data.lines);
        let Some((_, fsblock)) =
            touched.iter().filter(|(kind, _)| matches!(kind, BlockKind::DirBlock | BlockKind::DirData)).last()
        else {
            return;
        };
        let (agno, agbno) = self.layout.borrow().geometry().split_fsblock(fsblock);
        d.data.place.block = self.layout.borrow().geometry().linear(agno, agbno);
    }
}

/// How many lists of unlinked inodes wait for a worker.
fn inodegc_lists(inactivation: Inactivation, groups: u32, cpus: CpuId) -> usize {
    match inactivation {
        Inactivation::Task => 0,
        Inactivation::PerGroup => groups as usize,
        Inactivation::PerCpu => cpus as usize,
    }
}
