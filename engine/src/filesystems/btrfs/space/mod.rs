//! Where blocks and data lie: block groups, and the free space in them as it is in memory (`fs/btrfs/block-group.c`,
//! `free-space-cache.c`). An allocation takes the next free extent that is large enough, beginning where the last ended.
//!
//! Not modelled: bitmaps of free space, the fine rules of clusters, block groups that become empty.

pub mod cache_files;
mod csum_blocks;
pub mod csums;
pub mod delalloc;
pub mod delayed_refs;
pub mod extents;
pub mod free_space;
pub mod laid_out;
pub mod outstanding;
pub mod reservations;
pub mod room;
pub mod runs;
mod size_classes;

use super::tree::key::NODE_SIZE;
use runs::{fill_holes, tiles};
use size_classes::SizeClass;
use std::collections::BTreeMap;
use std::ops::Range;

/// What a block group is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Tree blocks.
    Metadata,
    /// Contents of files.
    Data,
}

/// A block group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its first byte in the logical address space.
    pub start: u64,
    /// Its size.
    pub bytes: u64,
    /// What it is for.
    pub purpose: Purpose,
    /// The sizes of data that are to lie here, from the first on.
    class: Option<SizeClass>,
    /// Its use has changed since the last commit.
    dirty: bool,
}

impl Group {
    /// The byte behind it.
    pub fn end(&self) -> u64 {
        self.start + self.bytes
    }
}

/// What must be in use.
pub struct Usage {
    /// First byte and size.
    pub used: Vec<(u64, u64)>,
    /// How many blocks of trees that are not known.
    pub others: usize,
}

/// Free extents of block groups of one purpose, and where the last allocation ended.
#[derive(Clone, Debug, Default)]
struct Free {
    extents: BTreeMap<u64, u64>,
    cursor: u64,
}

/// The space of a filesystem.
#[derive(Clone, Debug)]
pub struct Space {
    groups: Vec<Group>,
    metadata: Free,
    data: Free,
    /// Where the last allocation of each size of data ended, if sizes lie apart.
    cursors: Option<[u64; SizeClass::ALL]>,
    /// Given back in this transaction; free when it is committed.
    pinned: Vec<(u64, u64)>,
    /// The same of the transaction that is on its way to the disk.
    committing: Vec<(u64, u64)>,
    /// Bytes of metadata among either, and in use.
    pinned_bytes: u64,
    committing_bytes: u64,
    used: u64,
    /// How many block groups have their items.
    known: usize,
    group_bytes: [u64; 2],
    room: u64,
    /// No data lay behind this place so far.
    unwritten: u64,
    /// Tree blocks of other files, where a scenario says how much is free.
    ballast: Vec<u64>,
    /// Something was needed where there was no room: the kernel aborts the transaction.
    overdrawn: bool,
}

/// `mkfs.btrfs` begins with block groups of 8 MiB for data and for the chunk tree, behind the first superblock.
const FIRST: u64 = 13 << 20;
const SMALL: u64 = 8 << 20;
/// From this size on filesystems have larger block groups of metadata (`calc_chunk_size`).
const LARGE_FILESYSTEM: u64 = 50 << 30;

impl Space {
    /// The space that `mkfs` leaves on a device of this size: a group for data, one for the chunk tree, one for metadata. All
    /// metadata is stored twice.
    pub fn new(size: u64) -> Self {
        let metadata = if size > LARGE_FILESYSTEM { 1 << 30 } else { 256 << 20 };
        let data = (size / 10).min(1 << 30);
        let mut space = Self {
            groups: Vec::new(),
            metadata: Free::default(),
            data: Free::default(),
            cursors: None,
            pinned: Vec::new(),
            pinned_bytes: 0,
            committing: Vec::new(),
            committing_bytes: 0,
            used: 0,
            known: 0,
            group_bytes: [metadata, data],
            room: size,
            unwritten: FIRST,
            ballast: Vec::new(),
            overdrawn: false,
        };
        space.add_group(FIRST, SMALL, Purpose::Data);
        space.add_group(FIRST + 2 * SMALL, metadata.min(size / 10), Purpose::Metadata);
        space
    }

    /// Bytes of all block groups of metadata.
    pub fn metadata_bytes(&self) -> u64 {
        self.groups.iter().filter(|group| group.purpose == Purpose::Metadata).map(|group| group.bytes).sum()
    }

    /// Bytes of metadata in use.
    pub fn metadata_used(&self) -> u64 {
        self.used
    }

    /// Bytes of metadata that were given back and are not free yet.
    pub fn pinned_bytes(&self) -> u64 {
        self.pinned_bytes + self.committing_bytes
    }

    /// Compares it with what is used.
    pub fn audit(&self, usage: &Usage) -> Result<(), String> {
        let mut others = 0;
        for group in &self.groups {
            let mut runs = self.runs_in(group, usage);
            others += fill_holes(&mut runs, group.start, group.end());
            tiles(runs, group.start, group.end()).map_err(|e| format!("in memory: {e}"))?;
            self.audit_joined(group)?;
        }
        if others != usage.others {
            return Err(format!("in memory: {others} blocks are nobody's, {} of mkfs should be", usage.others));
        }
        let metadata = |run: &&(u64, u64)| self.group(run.0).purpose == Purpose::Metadata;
        let bytes_of = |runs: &[(u64, u64)]| runs.iter().filter(metadata).map(|run| run.1).sum::<u64>();
        let used = bytes_of(&usage.used) + others as u64 * u64::from(NODE_SIZE);
        let pinned = bytes_of(&self.pinned) + bytes_of(&self.committing);
        if (used, pinned) == (self.used, self.pinned_bytes()) {
            return Ok(());
        }
        Err(format!(
            "in memory: {} bytes of metadata count as used and {} as given back, {used} and {pinned} are",
            self.used,
            self.pinned_bytes()
        ))
    }

    /// Extents of free space that touch are one.
    fn audit_joined(&self, group: &Group) -> Result<(), String> {
        let free = if group.purpose == Purpose::Metadata { &self.metadata } else { &self.data };
        let mut end = 0;
        for (&place, &bytes) in free.extents.range(group.start..group.end()) {
            if place == end {
                return Err(format!("in memory: free space ends and begins at {place}"));
            }
            end = place + bytes;
        }
        Ok(())
    }

    /// What lies in a block group: first byte, size, and what it is.
    fn runs_in(&self, group: &Group, usage: &Usage) -> Vec<(u64, u64, &'static str)> {
        let inside = group.start..group.end();
        let free = if group.purpose == Purpose::Metadata { &self.metadata } else { &self.data };
        let free = free.extents.range(inside.clone()).map(|(&place, &bytes)| (place, bytes, "free space"));
        let used = usage.used.iter().map(|&(place, bytes)| (place, bytes, "an extent"));
        let pinned =
            self.pinned.iter().chain(&self.committing).map(|&(place, bytes)| (place, bytes, "what was given back"));
        used.chain(pinned).filter(|run| inside.contains(&run.0)).chain(free).collect()
    }

    /// Takes a place for a tree block (`find_free_extent`).
    pub fn allocate_block(&mut self) -> u64 {
        self.allocate(Purpose::Metadata, u64::from(NODE_SIZE))
    }

    /// Takes a place for data.
    pub fn allocate_data(&mut self, bytes: u64) -> u64 {
        self.allocate(Purpose::Data, bytes)
    }

    /// How many bytes before `end` no data were written to so far. From now on there are.
    pub fn take_unwritten(&mut self, end: u64) -> u64 {
        let written = end.saturating_sub(self.unwritten);
        self.unwritten += written;
        written
    }

    fn allocate(&mut self, purpose: Purpose, bytes: u64) -> u64 {
        let place = self.take(purpose, bytes).unwrap_or_else(|| {
            self.make_group(purpose, bytes);
            self.take(purpose, bytes).expect("a new block group has room")
        });
        self.group_of(place).dirty = true;
        if purpose == Purpose::Metadata {
            self.used += bytes;
        }
        place
    }

    /// Gives space back: at the commit, or at once if nobody could have seen it (`btrfs_pin_extent`, `btrfs_add_free_space`).
    pub fn give_back(&mut self, place: u64, bytes: u64, at_once: bool) {
        let group = self.group_of(place);
        let metadata = if group.purpose == Purpose::Metadata { bytes } else { 0 };
        group.dirty = true;
        self.used -= metadata;
        if at_once {
            self.make_free(place, bytes);
        } else {
            self.pinned_bytes += metadata;
            self.pinned.push((place, bytes));
        }
    }

    /// A transaction is being committed: what is pinned from now on belongs to the next.
    pub fn begin_commit(&mut self) {
        self.committing.append(&mut self.pinned);
        self.committing_bytes += std::mem::take(&mut self.pinned_bytes);
    }

    /// `btrfs_finish_extent_commit`: what the committed transaction has pinned is free. Returns how many extents that was, neighbours
    /// together.
    pub fn unpin(&mut self) -> u64 {
        let mut pinned = std::mem::take(&mut self.committing);
        pinned.sort_unstable();
        let (mut extents, mut end) = (0, 0);
        for (place, bytes) in pinned.drain(..) {
            extents += u64::from(place != end);
            end = place + bytes;
            self.make_free(place, bytes);
        }
        self.committing = pinned; // keeps its memory
        self.committing_bytes = 0;
        extents
    }

    /// Block groups that have been made since the last call.
    pub fn take_new_group(&mut self) -> Option<Group> {
        let new = self.groups.get(self.known).copied();
        self.known += usize::from(new.is_some());
        new
    }

    /// Whether there are block groups that have no items yet.
    pub fn has_new_group(&self) -> bool {
        self.known < self.groups.len()
    }

    /// A block group whose use has changed since the last call; from now on it has not.
    pub fn take_dirty_group(&mut self) -> Option<Group> {
        let dirty = self.groups.iter_mut().find(|group| group.dirty)?;
        dirty.dirty = false;
        Some(*dirty)
    }

    /// All of them.
    pub fn take_dirty_groups(&mut self) -> Vec<Group> {
        std::iter::from_fn(|| self.take_dirty_group()).collect()
    }

    /// What did not find its items: its use is to be written again.
    pub fn put_back_dirty(&mut self, group: Group) {
        self.group_of(group.start).dirty = true;
    }

    /// The block group in which a byte lies.
    pub fn group(&self, place: u64) -> Group {
        self.groups[self.index(place)]
    }

    fn group_of(&mut self, place: u64) -> &mut Group {
        let index = self.index(place);
        &mut self.groups[index]
    }

    fn index(&self, place: u64) -> usize {
        self.groups.partition_point(|group| group.start <= place) - 1
    }

    fn free(&mut self, purpose: Purpose) -> &mut Free {
        match purpose {
            Purpose::Metadata => &mut self.metadata,
            Purpose::Data => &mut self.data,
        }
    }

    fn add_group(&mut self, start: u64, bytes: u64, purpose: Purpose) {
        self.room = self.room.saturating_sub(bytes * purpose.copies());
        self.groups.push(Group { start, bytes, purpose, class: None, dirty: true });
        self.free(purpose).extents.insert(start, bytes);
    }

    fn make_free(&mut self, place: u64, bytes: u64) {
        let group = self.group(place);
        self.free(group.purpose).add(group, place, bytes);
    }
}

impl Free {
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let behind = self.first_fit(self.cursor..u64::MAX, bytes);
        let start = behind.or_else(|| self.first_fit(0..self.cursor, bytes))?;
        self.cut(start, bytes);
        self.cursor = start + bytes;
        Some(start)
    }

    fn first_fit(&self, places: Range<u64>, bytes: u64) -> Option<u64> {
        self.extents.range(places).find(|(_, &len)| len >= bytes).map(|(&start, _)| start)
    }

    /// Takes the first bytes of an extent.
    fn cut(&mut self, start: u64, bytes: u64) {
        let len = self.extents.remove(&start).unwrap_or(bytes);
        if len > bytes {
            self.extents.insert(start + bytes, len - bytes);
        }
    }

    /// Extents of one group that touch are one.
    fn add(&mut self, group: Group, place: u64, bytes: u64) {
        let (mut start, mut end) = (place, place + bytes);
        if let Some((&left, &len)) = self.extents.range(group.start..place).next_back() {
            if left + len == start {
                start = left;
            }
        }
        if end < group.end() {
            if let Some(len) = self.extents.remove(&end) {
                end += len;
            }
        }
        self.extents.insert(start, end - start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = NODE_SIZE as u64;

    #[test]
    fn blocks_lie_one_behind_the_other_in_the_group_that_mkfs_makes() {
        let mut space = Space::new(8 << 30);
        let places: Vec<u64> = (0..3).map(|_| space.allocate_block()).collect();
        assert_eq!(places, [30_408_704, 30_408_704 + BLOCK, 30_408_704 + 2 * BLOCK]); // as dump-tree prints them
        assert_eq!(space.group(places[2]).bytes, 256 << 20);
    }

    #[test]
    fn what_is_given_back_is_free_after_the_commit_only() {
        let mut space = Space::new(8 << 30);
        let all = (256 << 20) / BLOCK;
        let first = space.allocate_block();
        (1..all).for_each(|_| _ = space.allocate_block());
        space.give_back(first, BLOCK, false);
        space.unpin(); // the commit before this one
        let elsewhere = space.allocate_block();
        assert_ne!(space.group(elsewhere), space.group(first), "the group is full, so there is a second");
        space.begin_commit();
        space.unpin();
        let rest = (256 << 20) / BLOCK - 1;
        (0..rest).for_each(|_| _ = space.allocate_block());
        assert_eq!(space.allocate_block(), first);
    }

    #[test]
    fn neighbours_become_one_extent_again() {
        let mut space = Space::new(8 << 30);
        let places: Vec<u64> = (0..4).map(|_| space.allocate_block()).collect();
        for i in [0, 2, 1, 3] {
            space.give_back(places[i], BLOCK, true);
        }
        let group = space.group(places[0]);
        assert_eq!(space.metadata.extents, BTreeMap::from([(group.start, group.bytes)]));
    }

    #[test]
    fn new_and_dirty_groups_are_told_once() {
        let mut space = Space::new(1 << 40);
        let new: Vec<Group> = std::iter::from_fn(|| space.take_new_group()).collect();
        assert_eq!(new.iter().map(|group| group.bytes).collect::<Vec<_>>(), [8 << 20, 1 << 30]);
        while space.take_dirty_group().is_some() {}
        space.allocate_data(4096);
        assert_eq!(space.take_dirty_group().map(|group| group.purpose), Some(Purpose::Data));
        assert_eq!((space.take_dirty_group(), space.take_new_group()), (None, None));
    }
}
