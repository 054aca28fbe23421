//! The allocator of blocks (`fs/ext4/mballoc.c`): where a request begins to search, which locks it takes, and what becomes of
//! freed blocks.
//!
//! A request searches groups in their order from a goal (`mb_optimize_scan=0`; since 6.17 nearly so with it too): that of its
//! inode, or for a file of more than 16 blocks where the last such request ended. It finds blocks under the group's lock in memory,
//! and takes the lock again to mark them in the bitmap on disk (`ext4_mb_mark_diskspace_used`). Freed blocks are listed under
//! `s_md_lock` and come back when the commit is done. Requests of `fallocate` are not made longer; those of writeback are (`written`).

mod bitmap;
mod freed;
mod programs;
mod written;

use super::group_locks::{Descriptors, FlexGroups, GroupLocks};
use super::ialloc::FLEX;
use super::journal::Journal;
use crate::cost_table;
use crate::filesystems::costs::Costs;
use crate::filesystems::inodes::listed::Pointers;
use crate::filesystems::NoSpace;
use crate::kernel::ext4::{BusyGroups, FreedExtents, StreamGoal};
use crate::waist::Machine;
use crate::waist::{Access, Account, CachedId, LineId, LockId, Side, Time};
use bitmap::{Bitmap, GROUP_BLOCKS};
pub(super) use freed::Extent;
use freed::{Freed, Inserted};
use std::cell::{Cell, RefCell};
use written::WrittenBack;

cost_table!(MballocCosts {
    load: ["mballoc.load_buddy"],
    mark_used: ["mballoc.mark_used"],
    piece: ["mballoc.scan_piece"],
    word: ["mballoc.scan_word"],
    write_access: ["mballoc.get_write_access"],
    mark_diskspace: ["mballoc.mark_diskspace"],
    dirty_metadata: ["mballoc.dirty_metadata"],
    free: ["mballoc.free_blocks"],
    free_in_buddy: ["mballoc.free_in_buddy"],
});

/// Files with more blocks share goals (`s_mb_stream_request`).
const STREAM_BLOCKS: u64 = 16;
/// From so many on, a power of two is looked for in the buddies alone (`s_mb_order2_reqs`).
const SIMPLE: u32 = 2;
/// Folios of a group in the buddy cache, where pages are as large as blocks.
const FOLIOS: u32 = 2;
const LINE_BYTES: u32 = 64;
/// Goals of 4 bytes in a cache line.
const GOALS_PER_LINE: usize = 16;

/// What requests for blocks of one group write.
#[derive(Clone, Copy)]
struct Lines {
    /// Its buddy, and the rest of its description in memory.
    buddy: LineId,
    /// The first line of that (`struct ext4_group_info`): `bb_state`, `bb_free_root`, `bb_free`.
    info: LineId,
    /// Counts of references of the two folios that have bitmap and buddy.
    folios: LineId,
    /// Buffer and journal heads of its bitmap and descriptor.
    heads: LineId,
    /// `b_count` and `b_private` of the bitmap's buffer.
    count: LineId,
    /// The contents of the bitmap.
    bitmap: LineId,
    /// All of them, and their bytes.
    memory: CachedId,
    bytes: u32,
}

/// All blocks of a filesystem.
pub(super) struct Mballoc {
    costs: MballocCosts,
    busy: BusyGroups,
    measures: bool,
    prefetches: bool,
    frees_apart: bool,
    stream: StreamGoal,
    listed: FreedExtents,
    groups: RefCell<Vec<Bitmap>>,
    /// By group, made when first used, and how many lines each has.
    lines: RefCell<Vec<Option<Lines>>>,
    spans: [u32; 3],
    /// `ext4_group_lock_ptr`: groups share locks.
    locks: GroupLocks,
    descriptors: Descriptors,
    flexes: FlexGroups,
    goals: Vec<Cell<u32>>,
    goal_lines: Vec<LineId>,
    md_lock: LockId,
    /// `s_freed_data_list` and `s_mb_free_pending`, in the line behind that of `s_md_lock`.
    freed_line: LineId,
    freed: RefCell<Freed>,
    /// Lines of `struct ext4_free_data`, with an entry's place in the tree and in the list.
    entries: Pointers,
    written: WrittenBack,
    /// Blocks that files have, by slot, in their order.
    files: RefCell<Vec<Vec<Extent>>>,
    /// Blocks that are other files', where a scenario says how much is free.
    others: Cell<u64>,
    /// Blocks that files have here.
    given: Cell<u64>,
}

impl Mballoc {
    /// A fresh filesystem of so many bytes, whose groups have these locks, descriptors and counts.
    pub fn new<M: Machine>(
        m: &M,
        bytes: u64,
        (locks, descriptors, flexes): (GroupLocks, Descriptors, FlexGroups),
        costs: &Costs<'_>,
    ) -> Result<Self, String> {
        let lines = |name: &str| costs.number(name).map(|n| n as u32);
        let heads = lines("ext4_bitmap.struct")? + lines("ext4_group_desc.struct")?;
        let data = lines("ext4_bitmap.data")?;
        let blocks = bytes / u64::from(crate::filesystems::BLOCK);
        let sizes = (0..blocks.div_ceil(u64::from(GROUP_BLOCKS)).max(1))
            .map(|group| u64::from(GROUP_BLOCKS).min(blocks.saturating_sub(group * u64::from(GROUP_BLOCKS))) as u32);
        let groups: Vec<_> = sizes.map(Bitmap::new).collect();
        let rules = costs.rules();
        let goals = match rules.stream_goal {
            StreamGoal::Locked | StreamGoal::Single => 1,
            StreamGoal::Several => (m.cpus() as usize).min(groups.len().div_ceil(4)), // s_mb_nr_global_goals
        };
        Ok(Self {
            costs: MballocCosts::new(costs)?,
            busy: rules.busy_groups,
            measures: rules.measures_runs,
            prefetches: rules.prefetches_groups,
            frees_apart: rules.frees_apart,
            stream: rules.stream_goal,
            listed: rules.freed_extents,
            written: WrittenBack::new(m.cpus(), groups.len()),
            lines: RefCell::new(vec![None; groups.len()]),
            groups: RefCell::new(groups),
            spans: [lines("ext4_buddy.data")? + lines("ext4_group_info.struct")? - 1, heads, data],
            locks,
            descriptors,
            flexes,
            goals: vec![Cell::new(0); goals],
            goal_lines: (0..goals.div_ceil(GOALS_PER_LINE)).map(|_| m.new_line("ext4.s_mb_last_groups", 1)).collect(),
            md_lock: m.new_lock(m.class("ext4.s_md_lock", "ext4.s_md_lock")),
            freed_line: m.new_line("ext4.s_mb_free_pending", 1),
            freed: RefCell::default(),
            entries: Pointers::of_list(rules.debug_list),
            files: RefCell::default(),
            others: Cell::default(),
            given: Cell::default(),
        })
    }

    /// Blocks of each flex group that files can have, without those of the journal, which lies in the middle (`mke2fs`).
    pub fn free_by_flex(&self, journal: &Journal) -> Vec<u64> {
        let groups = self.groups.borrow();
        let middle = groups.len() / 2 / FLEX as usize;
        let free = groups.chunks(FLEX as usize).map(|flex| flex.iter().map(|group| u64::from(group.free())).sum());
        let left =
            |(flex, free): (usize, u64)| free.saturating_sub(if flex == middle { journal.log_blocks() } else { 0 });
        free.enumerate().map(left).collect()
    }

    /// `s_md_lock`, in whose line others are read (`beside`).
    pub fn md_lock(&self) -> LockId {
        self.md_lock
    }

    /// Blocks that can be taken (`s_freeclusters_counter`, of which those of files that were written back are not taken here).
    pub fn free(&self) -> u64 {
        self.groups.borrow().iter().map(|group| u64::from(group.free())).sum()
    }

    /// Blocks that files have: those that were allocated at once, not those of data that were written back.
    pub fn given(&self) -> u64 {
        self.given.get()
    }

    /// Other files take so many blocks, of each group in proportion.
    pub fn give_others(&self, blocks: u64) {
        let (all, mut left) = (self.free(), blocks);
        for group in self.groups.borrow_mut().iter_mut() {
            let share = (u64::from(group.free()) * blocks).div_ceil(all.max(1)).min(left);
            left -= u64::from(group.take_all(share as u32));
        }
        self.others.set(self.others.get() + blocks - left);
    }

    fn group_count(&self) -> u32 {
        self.lines.borrow().len() as u32
    }

    fn lines<M: Machine>(&self, m: &M, group: u32) -> Lines {
        let [buddy, heads, bitmap] = self.spans;
        let new = || {
            let spans = [buddy, 1, FOLIOS, heads - 1, 1, bitmap];
            let [buddy, info, folios, heads, count, bitmap] = spans.map(|lines| m.new_line("ext4.buddy", lines));
            let memory = m.new_block(buddy..bitmap + 1, None);
            Lines { buddy, info, folios, heads, count, bitmap, memory, bytes: spans.iter().sum::<u32>() * LINE_BYTES }
        };
        *self.lines.borrow_mut()[group as usize].get_or_insert_with(new)
    }

    /// Blocks of a file.
    pub fn blocks(&self, slot: u32) -> u64 {
        self.files.borrow().get(slot as usize).map_or(0, |extents| extents.iter().map(|e| u64::from(e.count)).sum())
    }

    /// Extents of a file.
    pub fn extents(&self, slot: u32) -> u64 {
        self.files.borrow().get(slot as usize).map_or(0, |extents| extents.len() as u64)
    }

    /// Puts an extent behind a file's last (`ext4_ext_insert_extent`).
    pub fn append(&self, slot: u32, extent: Extent) {
        self.given.set(self.given.get() + u64::from(extent.count));
        let (mut files, slot) = (self.files.borrow_mut(), slot as usize);
        if files.len() <= slot {
            files.resize_with(slot + 1, Vec::new);
        }
        match files[slot].last_mut() {
            Some(last) if last.group == extent.group && last.end() == extent.start => last.count += extent.count,
            _ => files[slot].push(extent),
        }
    }

    /// Takes so many blocks from the end of a file, or all that it has; in their order.
    pub fn take(&self, slot: u32, mut blocks: u64) -> Vec<Extent> {
        let mut files = self.files.borrow_mut();
        let Some(extents) = files.get_mut(slot as usize) else { return Vec::new() };
        let mut taken = Vec::new();
        while let Some(last) = extents.last_mut().filter(|_| blocks > 0) {
            let count = u64::from(last.count).min(blocks) as u32;
            (last.count, blocks) = (last.count - count, blocks - u64::from(count));
            self.given.set(self.given.get() - u64::from(count));
            taken.push(Extent { group: last.group, start: last.end(), count });
            if last.count == 0 {
                extents.pop();
            }
        }
        taken.reverse();
        taken
    }

    /// Whether there are freed blocks that nobody can have yet (`s_mb_free_pending`).
    pub fn awaits_commit(&self) -> bool {
        self.freed.borrow().blocks() > 0
    }

    /// The error says what differs: blocks that are free, freed, a file's or one of so many directories' are all that there could be.
    pub fn audit(&self, directories: u32) -> Result<(), String> {
        let groups = self.groups.borrow();
        let capacity: u64 = groups.iter().map(|group| u64::from(group.capacity())).sum();
        let free: u64 = groups.iter().map(|group| u64::from(group.free())).sum();
        let used: u64 = (0..self.files.borrow().len() as u32).map(|slot| self.blocks(slot)).sum();
        let freed = self.freed.borrow().blocks();
        if free + used + freed + u64::from(directories) + self.others.get() == capacity {
            return Ok(());
        }
        Err(format!(
            "{free} blocks are free, {used} are of files, {directories} of directories and {freed} wait for a commit: together \
             not {capacity}"
        ))
    }
}
