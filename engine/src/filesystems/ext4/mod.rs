//! ext4: one directory lock, short spinlocks per block group, jbd2 handles, and everything done in the calling task (no
//! background freeing). Phases and times are those of event traces of a 6.18 kernel.

mod attributes;
mod costs;
mod direct;
mod directory;
mod dirhash;
mod enospc;
mod file;
pub mod file_io;
mod fsync;
mod group_locks;
mod ialloc;
mod inode;
mod inode_table;
mod journal;
mod known_buffers;
mod linear;
mod map_blocks;
mod mballoc;
mod mkdir;
mod names;
mod orphan;
mod preallocate;
mod sb_info;
mod unjournaled;
mod walk;
mod walk_order;

use super::cached::Looks;
use super::costs::Costs;
use super::fs_type::FsType;
use super::ledger::Ledger;
use super::vfs::SuperBlock;
use super::Audit;
use crate::devices::BlockDevice;
use crate::waist::Machine;
use crate::waist::Time;
use attributes::Attributes;
use costs::{CreateCosts, HtreeCosts, MkdirCosts, UnlinkCosts, WriteCosts};
use directory::Directories;
use dirhash::{half_md4, Seed};
use file_io::FileIo;
use fsync::Fsync;
use group_locks::{Descriptors, FlexGroups, GroupLocks};
use ialloc::{Home, Ialloc};
use inode::{Files, GroupLines};
use inode_table::{Beside, InodeTable};
use journal::Journal;
use linear::EntryCosts;
use map_blocks::MapBlocks;
use mballoc::Mballoc;
use orphan::Orphans;
use preallocate::Preallocate;
use sb_info::SbInfo;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use unjournaled::{shorten_unless, Unjournaled};
use walk::Walk;

/// A block group: what one 4 KiB bitmap block can describe.
const GROUP_BYTES: u64 = 128 << 20;

/// How it is made and mounted.
#[derive(Clone, Debug)]
pub struct Options {
    /// It has a journal.
    pub journal: bool,
    /// Bytes for each inode.
    pub inode_ratio: u64,
    /// It has an orphan file.
    pub orphan_file: bool,
    /// `s_hash_seed`; zeros are no seed.
    pub hash_seed: [u32; 4],
    /// The directory of the root in which those of the loads are made; the root when absent.
    pub below: Option<String>,
    /// Length of a tick, in which an inode's times change once.
    pub tick: Time,
}

/// `statfs` adds up `s_freeclusters_counter`, `s_dirtyclusters_counter` and `s_freeinodes_counter` (`ext4_statfs`).
const EXT4: FsType = FsType {
    name: "ext4",
    statfs_counters: 3,
    encrypts: true,
    in_memory: false,
    large_folios: Some(|rules| rules.ext4_large_folios),
};

/// A mounted ext4.
pub struct Ext4 {
    sb: SuperBlock,
    create: CreateCosts,
    htree: HtreeCosts,
    entry: EntryCosts,
    write: WriteCosts,
    unlink: UnlinkCosts,
    mkdir: MkdirCosts,
    fsync: Fsync,
    journal: Journal,
    unjournaled: Unjournaled,
    storage: Rc<BlockDevice>,
    io: FileIo,
    map: MapBlocks,
    groups: Vec<GroupLines>,
    locks: GroupLocks,
    flexes: FlexGroups,
    mballoc: Mballoc,
    preallocate: Preallocate,
    attributes: Attributes,
    ialloc: Ialloc,
    seed: Seed,
    below: Option<Home>,
    tables: InodeTable,
    info: SbInfo,
    walk: Walk,
    orphans: Orphans,
    directories: RefCell<Directories>,
    directory_lines: u32,
    /// What a search for a name looks at.
    leaf: Looks,
    /// Who deletes a name writes all of its record.
    wipes_entries: bool,
    files: RefCell<Files>,
    /// Blocks of all groups.
    blocks: u64,
    /// Other files have been given most of it, so that all blocks count.
    filled: Cell<bool>,
}

impl Ext4 {
    /// A fresh filesystem of `size` bytes with its root directory.
    pub fn new<M: Machine>(
        m: &M,
        size: u64,
        device: Rc<BlockDevice>,
        options: Options,
        costs: &Costs<'_>,
    ) -> Result<Self, String> {
        let lines = |name: &str| costs.number(name).map(|n| n as u32);
        let count = size.div_ceil(GROUP_BYTES).max(1);
        let locks = GroupLocks::new(m, count);
        let flexes = FlexGroups::new(m, count, &locks);
        let groups = (0..count).map(|_| GroupLines::new(m, costs)).collect::<Result<Vec<_>, _>>()?;
        let descriptors = Descriptors::new(groups.iter().map(|lines| lines.descriptor));
        let mballoc = Mballoc::new(m, size, (locks.clone(), descriptors.clone(), flexes.clone()), costs)?;
        let orphans = Orphans::new(m, options.orphan_file, costs)?;
        let journal = Journal::new(m, options.journal, size, orphans.lock(), device.clone(), costs)?;
        let (clusters, by_flex) = (mballoc.free_by_flex(&journal), costs.rules().directories_by_flex);
        let ialloc = Ialloc::new(count as u32, GROUP_BYTES, options.inode_ratio, clusters, by_flex);
        let (root, seed) = (ialloc.root(), options.hash_seed);
        let below = options.below.map(|name| ialloc.fill_directory(half_md4(seed, name.as_bytes()))).transpose()?;
        let sb = SuperBlock::new(m, &EXT4, costs)?;
        let flags = costs.rules().shutdown_checks.then(|| orphans.lock());
        let beside = Beside {
            owner: sb.line,
            flags,
            device: journal.device(),
            extra: mballoc.md_lock(),
            descriptors,
            inodes_per_group: ialloc.per_group(),
            journal: options.journal,
            transaction: journal.transaction(),
        };
        let (mut create, mut unlink) = (CreateCosts::new(costs)?, UnlinkCosts::new(costs)?);
        let mut htree = HtreeCosts::new(costs)?;
        shorten_unless(options.journal, &mut create, &mut unlink, &mut htree, costs)?;
        let fs = Self {
            sb,
            create,
            htree,
            entry: EntryCosts::new(costs)?,
            write: WriteCosts::new(costs)?,
            unlink,
            mkdir: MkdirCosts::new(costs)?,
            fsync: Fsync::new(m, options.tick, &device.pools, costs)?,
            journal,
            unjournaled: Unjournaled::new(options.journal, costs)?,
            storage: device,
            io: FileIo::new(m, costs)?,
            map: MapBlocks::new(m, costs)?,
            groups,
            preallocate: Preallocate::new(costs)?,
            attributes: Attributes::new(costs)?,
            mballoc,
            ialloc,
            seed,
            below,
            locks,
            flexes,
            tables: InodeTable::new(m, beside, costs)?,
            info: SbInfo::new(m, costs),
            orphans,
            walk: Walk::new(costs)?,
            directories: RefCell::default(),
            wipes_entries: costs.rules().wipes_entries,
            leaf: Looks::at(lines("ext4_buffer.index")?, lines("ext4_leaf.search")?),
            directory_lines: lines("ext4_dir_inode.struct")? + lines("ext4_dir_block.data")?,
            files: RefCell::default(),
            blocks: size / u64::from(super::BLOCK),
            filled: Cell::default(),
        };
        fs.storage.memory.register(fs.sb.shrinker(costs, true, Vec::new())?);
        fs.add_directory(m, root, None);
        Ok(fs)
    }

    /// The program of the journal thread; `interval` in ticks.
    pub async fn journal_thread<M: Machine>(m: M, fs: Rc<Self>, interval: u64) {
        m.at("jbd2");
        fs.journal.thread(&m, interval, |transaction| fs.mballoc.process_freed_data(&m, transaction)).await;
    }
}

impl Audit for Ext4 {
    fn under_way(&self) -> Option<&'static str> {
        (!self.storage.writeback.at_rest()).then_some("writeback")
    }

    fn audit(&self, ledger: &Ledger) -> Result<(), String> {
        let (files, directories) = (self.files.borrow(), self.directories.borrow().made());
        let free = files.free.all();
        self.mballoc.audit(directories)?;
        self.ialloc.audit((files.slots.len() - free.len()) as u32, directories)?;
        self.orphans.audit()?;
        let should = ledger.links();
        let links = |dir| if self.links(dir) == 1 { should[&dir] } else { self.links(dir) };
        ledger.compare_counts(|dir| (self.directory(dir).2, links(dir)), files.slots.len(), &free)
    }
}
