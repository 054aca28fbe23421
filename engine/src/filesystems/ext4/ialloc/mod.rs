//! Which inodes are free, and where new ones go (`fs/ext4/ialloc.c`): directories of the root spread over flex groups, files go
//! to the first group with free inodes in the flex group of their directory, and take its lowest free number.

mod group;
#[cfg(test)]
mod tests;

use group::Inodes;
use std::cell::{Cell, RefCell};

/// The most inodes of a block group: what one block of bitmap has bits for.
const MOST: u64 = 32768;
/// Groups of a flex group (`mkfs.ext4 -G`).
pub(super) const FLEX: u32 = 16;
/// Inodes of 256 bytes in a block of the inode table.
pub(super) const INODES_PER_BLOCK: u32 = 16;
/// Inodes that a fresh filesystem has: the reserved ones and lost+found.
const RESERVED: u32 = 11;
/// Allocations of a CPU that the counter of free inodes does not know yet (`percpu_counter_batch`).
const BATCH: u32 = 32;
/// Blocks of a group.
const GROUP_BLOCKS: u64 = 32768;

/// Where a directory's inode is, and where its last new inode went (`i_last_alloc_group`).
#[derive(Clone, Debug)]
pub(super) struct Home {
    group: u32,
    last: Cell<Option<u32>>,
}

/// All inodes of a filesystem. They are numbered from 0; the kernel's `i_ino` is one more.
#[derive(Debug)]
pub(super) struct Ialloc {
    /// Inodes of a group.
    per_group: u32,
    groups: RefCell<Vec<Inodes>>,
    /// Directories by flex group.
    directories: RefCell<Vec<u32>>,
    /// Blocks that are free for files when the filesystem is made, by flex group.
    clusters: Vec<u64>,
    /// How many more directories than the average a flex group may have (`max_dirs`).
    more_directories: u32,
    /// The second of the last search.
    second: Cell<u64>,
    /// Inodes of files and directories that nobody asks for.
    filled: Cell<u32>,
    /// Those of them that are directories.
    filled_directories: Cell<u32>,
}

impl Ialloc {
    /// A fresh filesystem of groups of so many bytes, with an inode for each `ratio` bytes (`mkfs.ext4 -i`) and so many blocks for
    /// files in each flex group. How many more directories than the average a flex group may have is that of a single group, or
    /// (`by_flex`) that times its groups.
    pub fn new(groups: u32, group_bytes: u64, ratio: u64, clusters: Vec<u64>, by_flex: bool) -> Self {
        let per_group = (group_bytes / ratio).clamp(1, MOST).next_multiple_of(u64::from(INODES_PER_BLOCK)) as u32;
        let all = (0..groups).map(|group| Inodes::new(if group == 0 { RESERVED } else { 0 }, per_group)).collect();
        let directories = RefCell::new(vec![0; groups.div_ceil(FLEX) as usize]);
        Self {
            per_group,
            groups: RefCell::new(all),
            directories,
            clusters,
            more_directories: per_group / 16 * if by_flex { FLEX } else { 1 },
            second: Cell::new(0),
            filled: Cell::new(0),
            filled_directories: Cell::new(0),
        }
    }

    /// The group of an inode.
    pub fn group_of(&self, inode: u32) -> u32 {
        inode / self.per_group
    }

    /// Inodes of a group.
    pub fn per_group(&self) -> u32 {
        self.per_group
    }

    fn flexes(&self) -> u32 {
        self.clusters.len() as u32
    }

    fn groups_of(&self, flex: u32) -> std::ops::Range<u32> {
        flex * FLEX..((flex + 1) * FLEX).min(self.groups.borrow().len() as u32)
    }

    fn free_of(&self, flex: u32) -> u32 {
        let groups = self.groups.borrow();
        self.groups_of(flex).map(|group| groups[group as usize].free()).sum()
    }

    fn first_free(&self, flex: u32) -> Option<u32> {
        let groups = self.groups.borrow();
        self.groups_of(flex).find(|&group| groups[group as usize].free() > 0)
    }

    /// What the counter of free inodes says, shared among so many.
    fn average_free(&self, among: u32) -> u32 {
        let all = self.per_group * self.groups.borrow().len() as u32;
        let used = self.used() - RESERVED;
        (all - RESERVED - used / BATCH * BATCH) / among
    }

    /// The root directory.
    pub fn root(&self) -> Home {
        Home { group: 0, last: Cell::new(None) }
    }

    /// `find_group_orlov`: the group for a directory, of a hash of its name if it is to be in the root.
    pub fn group_of_new_directory(&self, parent: &Home, spread: Option<u32>) -> Option<u32> {
        let found = spread.map_or_else(|| self.near(parent), |hash| self.apart(hash));
        let group = found.and_then(|flex| self.first_free(flex)).or_else(|| self.fallback(parent))?;
        parent.last.set(Some(group));
        Some(group)
    }

    /// An inode is a directory's now (`ext4_claim_inode`), or none's any more (`ext4_free_inode`).
    pub fn count_directory(&self, inode: u32, change: i32) {
        let directories = &mut self.directories.borrow_mut()[(self.group_of(inode) / FLEX) as usize];
        *directories = directories.saturating_add_signed(change);
    }

    /// A directory whose inode this is.
    pub fn home(&self, inode: u32) -> Home {
        Home { group: self.group_of(inode), last: Cell::new(None) }
    }

    /// Of the flex groups with no fewer free inodes and blocks than the average, the one with the fewest directories; the hash says
    /// where the search begins.
    fn apart(&self, hash: u32) -> Option<u32> {
        let flexes = self.flexes();
        let clusters = self.clusters.iter().sum::<u64>() / u64::from(flexes);
        let inodes = self.average_free(flexes);
        let good = |flex: &u32| {
            let free = self.free_of(*flex);
            free > 0 && free >= inodes && self.clusters[*flex as usize] >= clusters
        };
        let from_hash = (0..flexes).map(|i| (hash % flexes + i) % flexes);
        from_hash.filter(good).min_by_key(|&flex| self.directories.borrow()[flex as usize])
    }

    /// The first flex group from the parent's last one on that has not many more directories than the others, and not many fewer free
    /// inodes and blocks.
    fn near(&self, parent: &Home) -> Option<u32> {
        let flexes = self.flexes();
        let directories = self.directories.borrow();
        let most = directories.iter().sum::<u32>() / flexes + self.more_directories;
        let inodes = self.average_free(flexes).saturating_sub(self.per_group * FLEX / 4).max(1);
        let clusters =
            (self.clusters.iter().sum::<u64>() / u64::from(flexes)).saturating_sub(GROUP_BLOCKS * u64::from(FLEX) / 4);
        let from = parent.last.get().unwrap_or(parent.group) / FLEX;
        (0..flexes).map(|i| (from + i) % flexes).find(|&flex| {
            let blocks = self.clusters[flex as usize];
            directories[flex as usize] < most && self.free_of(flex) >= inodes && blocks >= clusters
        })
    }

    /// Where no flex group is good: the first group from the parent's on with no fewer free inodes than the average, or with any.
    fn fallback(&self, parent: &Home) -> Option<u32> {
        let groups = self.groups.borrow();
        let count = groups.len() as u32;
        let average = self.average_free(count);
        let from_parent = || (0..count).map(|i| (parent.group + i) % count);
        let first = |least| from_parent().find(|&group| groups[group as usize].free() >= least);
        first(average.max(1)).or_else(|| first(1))
    }

    /// `find_group_other`: the group of a new file in a directory.
    pub fn group_of_new_file(&self, dir: &Home) -> Option<u32> {
        let near = self.first_free(dir.group / FLEX);
        let group = near.or_else(|| self.first_free(dir.last.get()? / FLEX)).or_else(|| self.any_group(dir.group))?;
        dir.last.set(Some(group));
        Some(group)
    }

    /// `find_group_orlov` where a flex group is full: the first after it with a quarter of its inodes less than the average free,
    /// or with any.
    fn any_group(&self, from: u32) -> Option<u32> {
        let least = self.average_free(self.flexes()).saturating_sub(self.per_group * FLEX / 4).max(1);
        let flexes = (0..self.flexes()).map(|i| (from / FLEX + i) % self.flexes());
        let good = flexes.clone().find(|&flex| self.free_of(flex) >= least);
        good.and_then(|flex| self.first_free(flex)).or_else(|| flexes.clone().find_map(|flex| self.first_free(flex)))
    }

    /// The lowest free inode of a group, or the next one after an inode of it.
    pub fn find(&self, group: u32, after: Option<u32>) -> Option<u32> {
        let from = after.map_or(0, |inode| inode % self.per_group + 1);
        Some(group * self.per_group + self.groups.borrow()[group as usize].find(from)?)
    }

    /// Without a journal: inodes that were freed before this second are not taken again as long as there are others.
    pub fn turn(&self, second: u64) {
        if self.second.replace(second) != second {
            for group in self.groups.borrow_mut().iter_mut() {
                group.avoid_freed();
            }
        }
    }

    /// How many inodes are passed by on the way to what `find` finds, and in which blocks of the table these are.
    pub fn passed(&self, group: u32, after: Option<u32>) -> (u32, Vec<u32>) {
        let (first, from) = (group * self.per_group, after.map_or(0, |inode| inode % self.per_group + 1));
        let (mut count, mut blocks) = (0, Vec::new());
        for inode in self.groups.borrow()[group as usize].passed(from) {
            count += 1;
            let block = (first + inode) / INODES_PER_BLOCK;
            if blocks.last() != Some(&block) {
                blocks.push(block);
            }
        }
        (count, blocks)
    }

    /// Takes an inode if it is free; if not, the next one of its group if the caller goes `on`.
    pub fn take(&self, inode: u32, on: bool) -> Option<u32> {
        let (group, wanted) = (self.group_of(inode), inode % self.per_group);
        let all = &mut self.groups.borrow_mut()[group as usize];
        if !on && all.find(wanted) != Some(wanted) {
            return None;
        }
        Some(group * self.per_group + all.take(wanted)?)
    }

    /// Takes the lowest free inode of a group.
    pub fn take_first(&self, group: u32) -> Option<u32> {
        self.take(self.find(group, None)?, true)
    }

    /// Frees an inode.
    pub fn free(&self, inode: u32) {
        let new = self.groups.borrow_mut()[self.group_of(inode) as usize].give_back(inode % self.per_group);
        debug_assert!(new, "inode {inode} was free");
    }

    /// Whether no other inode of its block is in use.
    pub fn alone_in_block(&self, inode: u32) -> bool {
        let groups = self.groups.borrow();
        let (group, inode) = (&groups[self.group_of(inode) as usize], inode % self.per_group);
        let first = inode / INODES_PER_BLOCK * INODES_PER_BLOCK;
        (first..first + INODES_PER_BLOCK).all(|other| other == inode || !group.uses(other))
    }

    /// Takes one for a file that nobody ever asks for again.
    pub fn fill(&self, group: u32) -> Option<u32> {
        self.filled.set(self.filled.get() + 1);
        self.take_first(group)
    }

    /// A directory of the root that is no load's; an error where there is no room.
    pub fn fill_directory(&self, hash: u32) -> Result<Home, String> {
        let group = self.group_of_new_directory(&self.root(), Some(hash));
        let inode = group.and_then(|group| self.fill(group)).ok_or("filesystem.size: ext4 has no inode for 'below'")?;
        self.count_directory(inode, 1);
        self.filled_directories.set(self.filled_directories.get() + 1);
        Ok(self.home(inode))
    }

    fn used(&self) -> u32 {
        self.groups.borrow().iter().map(|group| self.per_group - group.free()).sum()
    }

    /// The error says what differs: inodes in use are those of a fresh filesystem, of what was filled in, and of so many files and
    /// directories besides; flex groups count these directories.
    pub fn audit(&self, files: u32, directories: u32) -> Result<(), String> {
        let (used, needed) = (self.used(), RESERVED + self.filled.get() + files + directories);
        if used != needed {
            return Err(format!("{used} inodes are in use by the bitmaps, {needed} should be"));
        }
        match self.directories.borrow().iter().sum::<u32>() - self.filled_directories.get() {
            counted if counted == directories => Ok(()),
            counted => Err(format!("flex groups count {counted} directories, {directories} should be there")),
        }
    }
}
