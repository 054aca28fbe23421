//! A mounted btrfs: its trees, directories and files, and the lines that all operations share.

use super::block_io::TreeBlocks;
use super::data::direct::Direct;
use super::data::ordered::OrderedExtents;
use super::data::sums::SumWorkers;
use super::data::FileData;
use super::entries::Entries;
use super::fs_root::{is_root_directory, FsRoot};
use super::grown::{grown, ELSEWHERE};
use super::log::fsync::Fsync;
use super::log::roots::LogRoots;
use super::log::LogTree;
use super::names::{Name, Names};
use super::open_inodes::OpenInodes;
use super::operations::walk::{Reading, Walked};
use super::operations::OperationCosts;
use super::root::{self, Root};
use super::root_times::RootTimes;
use super::space::delalloc::{Delalloc, WasDirty};
use super::space::delayed_refs::DelayedRefs;
use super::space::extents::Extents;
use super::space::laid_out::SpaceTrees;
use super::space::outstanding::Outstanding;
use super::space::Space;
use super::subvolume::{Dir, Subvolume};
use super::transaction::btree_inode::BtreeInode;
use super::transaction::commit::Commits;
use super::transaction::delayed::DelayedRoot;
use super::transaction::reclaim::Reclaim;
use super::transaction::worker::Workers;
use super::transaction::Transaction;
use super::tree::items;
use super::tree::key::{Key, FIRST_FREE_OBJECTID};
use super::tree::search::Rules;
use super::tree::Tree;
use crate::devices::BlockDevice;
use crate::filesystems::by_slot::BySlot;
use crate::filesystems::costs::Costs;
use crate::filesystems::fs_type::FsType;
use crate::filesystems::vfs::SuperBlock;
use crate::filesystems::{Audit, DirId, InitialNames};
use crate::kernel::btrfs::{DirtyInode, NocowCheck, SpaceCache};
use crate::waist::time::from_ns;
use crate::waist::Machine;
use crate::waist::{LineId, LockId, Time};
use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;

/// A directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Directory {
    pub ino: u64,
    /// Its place in its parent's `DIR_INDEX` items.
    pub index: u64,
    pub i_rwsem: LockId,
    /// Mutex of its delayed node.
    pub delayed: LockId,
    /// `log_mutex` of its inode.
    pub log_mutex: LockId,
    pub line: LineId,
}

/// A file that exists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inode {
    pub ino: u64,
    /// Its directory.
    pub dir: DirId,
    /// Its place in its directory's `DIR_INDEX` items.
    pub index: u64,
    /// The key of its entry by hash there.
    pub entry: Key,
    pub i_rwsem: LockId,
}

impl Inode {
    /// One of its names.
    pub fn name(&self) -> Name {
        Name { dir: self.dir, index: self.index, entry: self.entry }
    }

    /// The same one by another of its names.
    pub fn by(self, Name { dir, index, entry }: Name) -> Self {
        Self { dir, index, entry, ..self }
    }
}

/// What kernels do differently.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// How they lock trees.
    pub rules: Rules,
    /// Whether a new file's inode is written once more, as a delayed item (before 5.19).
    pub delays_new_inodes: bool,
    /// Mounted with `nodatacow`: what has an extent is written in place.
    pub nodatacow: bool,
    /// The directories count as made in the running transaction.
    pub new_directories: bool,
    /// Those in the root are subvolumes.
    pub subvolumes: bool,
}

/// What it is mounted on.
pub struct Disk {
    /// Its size in bytes.
    pub size: u64,
    /// The device, if the run has one.
    pub device: Rc<BlockDevice>,
}

/// `statfs` adds up its space_infos (`btrfs_statfs`).
const BTRFS: FsType =
    FsType { name: "btrfs", statfs_counters: 0, encrypts: false, in_memory: false, large_folios: None };

/// A mounted btrfs.
pub struct Btrfs {
    /// Subvolumes by number.
    pub(super) fs_roots: RefCell<Vec<Rc<FsRoot>>>,
    pub(super) log_roots: Rc<LogRoots>,
    pub(super) storage: Rc<BlockDevice>,
    pub(super) blocks: Rc<TreeBlocks>,
    pub(super) fsync: Fsync,
    pub(super) extents: Extents,
    pub(super) ordered: OrderedExtents,
    pub(super) sums: SumWorkers,
    pub(super) direct: Direct,
    pub(super) reclaim: Reclaim,
    pub(super) outstanding: Outstanding,
    pub(super) commits: Commits,
    pub(super) btree_inode: BtreeInode,
    pub(super) transaction: Transaction,
    pub(super) delayed: RefCell<DelayedRoot>,
    pub(super) delayed_line: LineId,
    pub(super) workers: Workers,
    pub(super) delays_new_inodes: bool,
    pub(super) nodatacow: bool,
    new_directories: bool,
    pub(super) nocow_check: NocowCheck,
    pub(super) dirty_inode: DirtyInode,
    /// A small write through the page cache ends as a change of trees does.
    pub(super) writes_balance_trees: bool,
    pub(super) costs: OperationCosts,
    pub(super) walked: Walked,
    pub(super) reading: Reading,
    pub(super) sb: SuperBlock,
    /// Directories that are made in the root before the tasks start are subvolumes.
    pub(super) subvolumes: bool,
    pub(super) directories: RefCell<Vec<Entries>>,
    free_directories: RefCell<Vec<DirId>>,
    /// By directory, the number of the first file that was there before the run began, and by how much that of each next is larger: as many
    /// tasks as that made them by turns.
    initial_inodes: BySlot<(u64, u64)>,
    directory_lines: u32,
    files: RefCell<Vec<Inode>>,
    /// Names of files that have or had several.
    pub(super) names: Names,
    data: RefCell<Vec<FileData>>,
    free_files: RefCell<Vec<u32>>,
    /// Slots that were ever given to a file.
    slots: Cell<u32>,
    commit_interval: Time,
}

impl Btrfs {
    /// A fresh filesystem, mounted.
    pub fn new<M: Machine>(m: &M, kernel: Kernel, disk: Disk, costs: &Costs<'_>) -> Result<Self, String> {
        let rules = kernel.rules;
        let count = |name: &str| costs.number(name).map(|n| n as u32);
        let (tree, trees, space) = made_by_mkfs(disk.size, costs.rules().space_cache, costs.rules().size_classes);
        let before = tree.transid - 1;
        let pools = disk.device.pools.clone();
        let most = (m.cpus() + 2).min(count("workers_max")?); // `thread_pool_size`
        let queues = (&pools, most);
        let refs = Rc::new(DelayedRefs::new(m, space, costs)?);
        let (referenced, fleeting) = (root::Space::Referenced(refs.clone()), root::Space::Fleeting(refs.clone()));
        let transaction = Transaction::new(m, before, costs)?;
        let delalloc = Delalloc::new(m, costs)?;
        let blocks = Rc::new(TreeBlocks::new(disk.size, costs)?);
        let operations = OperationCosts::new(costs)?.without(&transaction, &delalloc);
        // The timed writes went over one page again and again.
        let overwritten = delalloc.time(&transaction.reservations, WasDirty { range: true, others: false });
        let roots = Root::new(m, "log root", Tree::new(), fleeting.clone(), rules, costs)?;
        let log_roots = Rc::new(LogRoots::new(m, roots, (disk.device.clone(), blocks.clone()), costs)?);
        let log_rules = Rules { joins_last_csums: costs.rules().log_joins_last_csums, ..rules };
        let log = Root::new(m, "log", Tree::new(), fleeting, log_rules, costs)?;
        let log = LogTree::new(m, 0, log, log_roots.clone());
        let root = Root::new(m, "fs", tree, referenced, rules, costs)?;
        let inodes = (OpenInodes::new(m, costs)?, delalloc);
        let first = FsRoot::new(m, 0, root, log, (inodes, RootTimes::new(m, costs)?));
        let held = first.open_inodes.held();
        let fs = Self {
            fs_roots: RefCell::new(vec![Rc::new(first)]),
            log_roots,
            storage: disk.device,
            blocks,
            extents: Extents::new(m, trees, refs, rules, (&pools, costs))?,
            ordered: OrderedExtents::new(m, queues, costs)?,
            sums: SumWorkers::new(m, queues, costs)?,
            direct: Direct::new(costs)?,
            reclaim: Reclaim::new(&costs.rules()),
            outstanding: Outstanding::default(),
            commits: Commits::new(costs)?,
            btree_inode: BtreeInode::new(costs.rules().btree_writepages),
            fsync: Fsync::new(costs)?,
            transaction,
            delayed: RefCell::default(),
            delayed_line: m.new_line("btrfs.delayed_root", count("btrfs_delayed.root")?),
            workers: Workers::new(m, &pools, most),
            delays_new_inodes: kernel.delays_new_inodes,
            nodatacow: kernel.nodatacow,
            new_directories: kernel.new_directories,
            nocow_check: costs.rules().nocow_check,
            dirty_inode: costs.rules().dirty_inode,
            writes_balance_trees: costs.rules().writes_balance_trees,
            costs: operations,
            walked: Walked::default(),
            reading: Reading::default(),
            sb: SuperBlock::new(m, &BTRFS, costs)?.overwriting_apart(overwritten),
            subvolumes: kernel.subvolumes,
            directories: RefCell::default(),
            free_directories: RefCell::default(),
            initial_inodes: BySlot::default(),
            directory_lines: count("btrfs_dir_inode.struct")?,
            files: RefCell::default(),
            names: Names::default(),
            data: RefCell::default(),
            free_files: RefCell::default(),
            slots: Cell::default(),
            commit_interval: from_ns(costs.number("commit_interval")?),
        };
        fs.storage.memory.register(fs.sb.shrinker(costs, true, vec![held])?);
        fs.add_directory(m, FIRST_FREE_OBJECTID, 0);
        Ok(fs)
    }

    /// Time between two commits that nobody asked for.
    pub fn commit_interval(&self) -> Time {
        self.commit_interval
    }

    /// A new directory, at this place of its parent's index. Who was removed leaves its locks to the next.
    pub(super) fn add_directory<M: Machine>(&self, m: &M, ino: u64, index: u64) -> DirId {
        if let Some(free) = self.free_directories.borrow_mut().pop() {
            self.delayed.borrow_mut().reuse_directory(free, ino);
            let left = &mut self.directories.borrow_mut()[free as usize];
            *left = Entries::new(Directory { ino, index, ..left.directory }, self.transid());
            return free;
        }
        self.delayed.borrow_mut().add_directory(ino);
        let directory = Directory {
            ino,
            index,
            i_rwsem: self.sb.new_directory(m),
            delayed: m.new_lock(m.class("btrfs.delayed_node", "btrfs.delayed_node")),
            log_mutex: m.new_lock(m.class("btrfs.directory log_mutex", "btrfs.log_mutex")),
            line: m.new_line("btrfs.directory", self.directory_lines),
        };
        let mut directories = self.directories.borrow_mut();
        let made = if self.new_directories && !is_root_directory(ino) { self.transid() } else { 0 };
        directories.push(Entries::new(directory, made));
        (directories.len() - 1) as DirId
    }

    /// A directory that was removed is gone.
    pub(super) fn drop_directory(&self, dir: DirId) {
        self.free_directories.borrow_mut().push(dir);
    }

    pub(super) fn directory(&self, dir: DirId) -> Directory {
        self.directories.borrow()[dir as usize].directory
    }

    /// Files that are there when the run begins, written by the transaction that runs, their delayed refs run. Blocks that were
    /// there stay where they are.
    pub(super) fn fill_with(&self, dirs: &[DirId], files: u64, names: InitialNames) {
        assert_eq!(self.under_way(), None, "the trees are replaced past all locks");
        for fs_root in self.fs_roots.borrow().iter() {
            self.fill_subvolume(fs_root, dirs, files, names);
        }
    }

    /// The part of them that lies in directories of a subvolume.
    fn fill_subvolume(&self, fs_root: &Rc<FsRoot>, dirs: &[DirId], files: u64, names: InitialNames) {
        let mut directories = self.directories.borrow_mut();
        let within = |dir: &DirId| {
            let ino = directories[*dir as usize].directory.ino;
            Rc::ptr_eq(&self.fs_root(ino), fs_root)
        };
        let all: Vec<DirId> = (0..directories.len() as DirId).filter(within).collect();
        let place = |dir: &DirId| all.binary_search(dir).map_or(ELSEWHERE, |place| place as DirId);
        let places: Vec<DirId> = dirs.iter().map(place).collect();
        if places.iter().all(|&place| place == ELSEWHERE) {
            return;
        }
        let known = |&dir: &DirId| {
            let entries = &directories[dir as usize];
            Dir { ino: entries.directory.ino, next_index: entries.next_index }
        };
        let filled: Vec<DirId> = dirs.iter().copied().filter(|dir| place(dir) != ELSEWHERE).collect();
        let (each, names_each) = (dirs.len() / names.makers, files / dirs.len() as u64);
        let makers = filled.len().div_ceil(each) as u64;
        for (nth, &dir) in filled.iter().enumerate() {
            let (maker, before) = ((nth / each) as u64, (nth % each) as u64 * names_each);
            self.initial_inodes.put(dir, (fs_root.next_ino.get() + before * makers + maker, makers));
        }
        let tree = fs_root.root.tree.borrow().clone();
        let begin = Subvolume::of(tree, all.iter().map(known).collect(), fs_root.next_ino.get());
        let full = grown(begin, &places, files, names);
        for (&dir, grown) in all.iter().zip(&full.dirs) {
            let directory = &mut directories[dir as usize];
            directory.names += (grown.next_index - directory.next_index) as u32;
            directory.next_index = grown.next_index;
        }
        fs_root.open_inodes.add(full.next_ino - fs_root.next_ino.replace(full.next_ino));
        let mut tree = full.into_tree();
        tree.take_places(&fs_root.root.tree.borrow());
        self.extents.lay_out(&mut tree);
        *fs_root.root.tree.borrow_mut() = tree;
        fs_root.root.was_grown();
    }

    /// `btrfs_set_inode_index`.
    pub(super) fn next_index(&self, dir: DirId) -> u64 {
        let transid = self.transid();
        let entries = &mut self.directories.borrow_mut()[dir as usize];
        if entries.unlogged.1 != transid {
            entries.unlogged = (entries.next_index, transid);
            entries.first_new = entries.next_index;
        }
        entries.next_index += 1;
        entries.next_index - 1
    }

    pub(super) fn names_in(&self, dir: DirId) -> u32 {
        self.directories.borrow()[dir as usize].names
    }

    pub(super) fn count_names(&self, dir: DirId, change: i32) {
        self.directory_changed(dir);
        let names = &mut self.directories.borrow_mut()[dir as usize].names;
        *names = names.saturating_add_signed(change);
    }

    /// A file by the name that it has in a directory.
    pub(super) fn named(&self, slot: u32, dir: DirId, name: &[u8]) -> Inode {
        let (inode, entry) = (self.file(slot), items::dir_item(self.directory(dir).ino, name).key);
        self.names.find(slot, dir, entry).map_or(inode, |other| inode.by(other))
    }

    /// One of a file's names is another now.
    pub(super) fn set_name(&self, slot: u32, old: Name, new: Name) {
        self.note_new_name(new.dir, slot);
        if !self.names.replace(slot, old, Some(new)) {
            let file = &mut self.files.borrow_mut()[slot as usize];
            *file = file.by(new);
        }
    }

    /// A file that keeps another name loses this one.
    pub(super) fn drop_name(&self, slot: u32, old: Name) {
        if !self.names.replace(slot, old, None) {
            let file = &mut self.files.borrow_mut()[slot as usize];
            *file = file.by(self.names.pop(slot).expect("it has another"));
        }
    }

    /// The number of the `nth` file that was in a directory before the run began.
    pub(super) fn inode_of(&self, dir: DirId, nth: u32) -> u64 {
        let (first, step) = self.initial_inodes.get(dir).unwrap_or((FIRST_FREE_OBJECTID, 1));
        first + u64::from(nth % self.names_in(dir).max(1)) * step
    }

    /// A slot for a file that is about to be made.
    pub(super) fn new_slot(&self) -> u32 {
        self.free_files.borrow_mut().pop().unwrap_or_else(|| {
            self.slots.set(self.slots.get() + 1);
            self.slots.get() - 1
        })
    }

    /// The file in a slot is there. Slots before it may be those of files that are still being made.
    pub(super) fn add_file(&self, slot: u32, inode: Inode) {
        self.note_new_name(inode.dir, slot);
        let (mut files, mut data) = (self.files.borrow_mut(), self.data.borrow_mut());
        let (new, slot) = (FileData::new(self.transid()), slot as usize);
        if files.len() <= slot {
            files.resize(slot + 1, inode);
            data.resize(slot + 1, FileData::default());
        }
        (files[slot], data[slot]) = (inode, new);
    }

    /// The number of the running transaction.
    pub(super) fn transid(&self) -> u64 {
        self.fs_roots.borrow()[0].root.tree.borrow().transid
    }

    pub(super) fn data(&self, slot: u32) -> RefMut<'_, FileData> {
        RefMut::map(self.data.borrow_mut(), |data| &mut data[slot as usize])
    }

    pub(super) fn file(&self, slot: u32) -> Inode {
        self.files.borrow()[slot as usize]
    }

    /// All that there are or were.
    pub(super) fn slots(&self) -> std::ops::Range<u32> {
        0..self.files.borrow().len() as u32
    }

    pub(super) fn drop_file<M: Machine>(&self, m: &M, slot: u32) {
        m.drop_lock(self.file(slot).i_rwsem);
        self.names.forget(slot);
        self.free_files.borrow_mut().push(slot);
    }
}

/// The trees of an empty filesystem, and its space.
fn made_by_mkfs(bytes: u64, kept: SpaceCache, by_size: bool) -> (Tree, SpaceTrees, Space) {
    let mut tree = Tree::new();
    tree.insert_items(tree.root(), 0, &items::root_directory(FIRST_FREE_OBJECTID));
    let space = RefCell::new(Space::new(bytes).with_size_classes(by_size));
    let trees = SpaceTrees::new(&space, &mut tree, kept);
    tree.was_written();
    tree.transid += 1; // mkfs wrote the first block
    (tree, trees, space.into_inner())
}
