//! Blocks of what is written back: files take them from pieces that were allocated for more than was asked for
//! (`ext4_mb_use_preallocated`, `ext4_mb_normalize_request`; 6.12).
//!
//! A file of up to 16 blocks takes from the piece of its CPU (`s_locality_groups`), a larger one from a piece of its own that ends
//! where it is predicted to end: at the next power of two. The next piece is taken right behind the file's last block if that is
//! free, else where the search ends. Where pieces lie is told by a place in each group that goes on: they are not taken from the
//! blocks that `fallocate` knows, and nothing is given back.

use super::{Mballoc, GROUP_BLOCKS, STREAM_BLOCKS};
use crate::filesystems::BLOCK;
use crate::kernel::ext4::BusyGroups;
use crate::waist::{Account, Machine, Time};
use std::cell::RefCell;

/// Blocks of a CPU's piece (`s_mb_group_prealloc`).
const LOCALITY_BLOCKS: u64 = 512;
/// Entries that fit into an inode (`i_data`).
const IN_INODE: u32 = 4;
/// Files of up to so many blocks end at a power of two; larger ones have pieces of twice as many.
const PREDICTED: u64 = 256;

/// Blocks next to each other that nobody else takes.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    group: u32,
    start: u32,
    left: u32,
}

impl Piece {
    /// The byte of the device where it begins.
    fn place(self) -> u64 {
        (u64::from(self.group) * u64::from(GROUP_BLOCKS) + u64::from(self.start)) * u64::from(BLOCK)
    }
}

/// What is known of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    blocks: u64,
    piece: Piece,
    /// Where its last block ends: group, and place in it.
    end: (u32, u32),
    /// Runs of blocks next to each other.
    runs: u32,
    /// Its extents have a block of their own.
    leaf: bool,
}

impl Written {
    /// So many blocks at the beginning of a piece are the file's next ones. Those not written yet are an extent of their own.
    fn add(&mut self, piece: Piece, blocks: u32) {
        self.runs += u32::from(self.blocks == 0 || self.end != (piece.group, piece.start));
        self.leaf |= self.runs + u32::from(self.blocks > 0) > IN_INODE;
        (self.blocks, self.end) = (self.blocks + u64::from(blocks), (piece.group, piece.start + blocks));
    }
}

/// Pieces of files and of CPUs.
#[derive(Debug)]
pub(super) struct WrittenBack {
    files: RefCell<Vec<Written>>,
    cpus: RefCell<Vec<Piece>>,
    /// Where the next piece of each group begins.
    next: RefCell<Vec<u32>>,
}

impl WrittenBack {
    /// Nothing was written.
    pub fn new(cpus: u32, groups: usize) -> Self {
        let cpus = RefCell::new(vec![Piece::default(); cpus as usize]);
        Self { files: RefCell::default(), cpus, next: RefCell::new(vec![0; groups]) }
    }

    fn file(&self, slot: u32) -> Written {
        self.files.borrow().get(slot as usize).copied().unwrap_or_default()
    }

    fn set(&self, slot: u32, file: Written) {
        let (mut files, slot) = (self.files.borrow_mut(), slot as usize);
        if files.len() <= slot {
            files.resize(slot + 1, Written::default());
        }
        files[slot] = file;
    }

    /// Takes a piece in a group, if it has one of this length at that place, or anywhere.
    fn take(&self, group: u32, length: u32, at: Option<u32>) -> Option<Piece> {
        let next = &mut self.next.borrow_mut()[group as usize];
        let start = at.unwrap_or(*next);
        let fits = start == *next && start + length <= GROUP_BLOCKS;
        fits.then(|| {
            *next = start + length;
            Piece { group, start, left: length }
        })
    }
}

/// Blocks of the piece for a file that has so many blocks and gets more, of which the last is at `end`.
fn length(blocks: u64, end: u64) -> u64 {
    let until = if end <= PREDICTED { end.next_power_of_two().max(4) } else { end.next_multiple_of(2 * PREDICTED) };
    until - blocks
}

impl Mballoc {
    /// Allocates the next blocks of a file, whose inode's blocks are looked for in `near`, and marks them. Returns where on the device the
    /// first one is, and the groups of all.
    pub async fn write_back<M: Machine>(&self, m: &M, slot: u32, near: u32, blocks: u64) -> (u64, Vec<u32>) {
        let (mut left, mut groups, mut place) = (blocks, Vec::new(), None);
        let end = self.written.file(slot).blocks + blocks;
        while left > 0 {
            let (piece, taken) = self.next_of_piece(m, slot, near, end, left).await;
            place.get_or_insert(piece.place());
            self.mark_diskspace_used(m, piece.group).await;
            left -= u64::from(taken);
            if !groups.contains(&piece.group) {
                groups.push(piece.group);
            }
        }
        (place.unwrap_or_default(), groups)
    }

    /// The next blocks of a file's piece or its CPU's, and how many they are.
    async fn next_of_piece<M: Machine>(&self, m: &M, slot: u32, near: u32, end: u64, most: u64) -> (Piece, u32) {
        let (cpu, local) = (m.cpu() as usize, end <= STREAM_BLOCKS);
        let mut file = self.written.file(slot);
        let mut piece = if local { self.written.cpus.borrow()[cpu] } else { file.piece };
        if piece.left == 0 {
            let behind = (file.blocks > 0 && !local).then_some(file.end);
            let length = if local { LOCALITY_BLOCKS } else { length(file.blocks, end) };
            piece = self.new_piece(m, slot, near, length as u32, behind, local).await;
        }
        let taken = piece.left.min(most as u32);
        file.add(piece, taken);
        let rest = Piece { start: piece.start + taken, left: piece.left - taken, ..piece };
        if local {
            self.written.cpus.borrow_mut()[cpu] = rest;
        } else {
            file.piece = rest;
        }
        self.written.set(slot, file);
        (piece, taken)
    }

    /// `ext4_mb_find_by_goal`, then `ext4_mb_regular_allocator`.
    async fn new_piece<M: Machine>(
        &self,
        m: &M,
        slot: u32,
        near: u32,
        length: u32,
        behind: Option<(u32, u32)>,
        local: bool,
    ) -> Piece {
        if let Some((group, place)) = behind {
            if let Some(piece) = self.search_piece(m, group, length, Some(place), false).await {
                return piece;
            }
        }
        // Before there is a last one: groups whose buddy is not in memory yet are passed over (`ext4_mb_good_group_nolock`).
        let goal = match if local { 0 } else { self.goal(m, slot).await } {
            0 => near,
            last => last,
        };
        self.prefetch(m, goal).await;
        for skip in [self.busy == BusyGroups::Skip, false] {
            for group in self.from(goal) {
                if let Some(piece) = self.search_piece(m, group, length, None, skip).await {
                    if !local {
                        self.set_goal(m, slot, group).await;
                    }
                    self.end_prefetch(m, goal).await;
                    return piece;
                }
            }
        }
        self.written.next.borrow_mut()[goal as usize] = 0; // all are full: what was there is taken to be gone
        Piece { group: goal, start: 0, left: length }
    }

    /// Looks into a group with its lock, unless that is busy and is passed over.
    async fn search_piece<M: Machine>(
        &self,
        m: &M,
        group: u32,
        length: u32,
        at: Option<u32>,
        skip: bool,
    ) -> Option<Piece> {
        let lines = self.lines(m, group);
        self.load_buddy(m, lines).await;
        if !skip {
            self.locks.lock(m, group).await;
        } else if !self.locks.try_lock(m, group) {
            return None;
        }
        self.beside(m).await; // ext4_mb_good_group, mb_find_buddy
        self.write_buddy(m, lines);
        let found = self.written.take(group, length, at);
        if found.is_some() {
            m.run(Account::System, self.costs.mark_used).await;
        }
        self.locks.unlock(m, group).await;
        found
    }

    /// Whether a file has blocks (`i_blocks`).
    pub fn has_blocks(&self, slot: u32) -> bool {
        self.blocks(slot) > 0 || self.written.file(slot).blocks > 0
    }

    /// Whether the extents of a file have a block of their own (`ext4_ext_grow_indepth`).
    pub fn has_leaf(&self, slot: u32) -> bool {
        self.written.file(slot).leaf
    }

    /// The file has no blocks any more.
    pub fn forget_written(&self, slot: u32) {
        self.written.set(slot, Written::default());
    }

    /// CPU time of marking blocks, which is part of what an allocation takes.
    pub fn marking(&self) -> Time {
        self.costs.write_access + self.costs.mark_diskspace + self.costs.dirty_metadata
    }
}

#[cfg(test)]
mod tests {
    use super::{length, Piece, Written, WrittenBack};

    fn at(group: u32, start: u32) -> Piece {
        Piece { group, start, left: 16 }
    }

    #[test]
    fn four_runs_and_an_unwritten_block_do_not_fit_into_an_inode() {
        let mut file = Written::default();
        for group in 0..3 {
            file.add(at(group, 0), 16);
        }
        file.add(at(2, 16), 16); // right behind the last
        assert_eq!((file.runs, file.leaf), (3, false));
        file.add(at(7, 0), 1);
        assert!(file.leaf);
    }

    #[test]
    fn a_piece_ends_where_the_file_is_predicted_to_end() {
        assert_eq!([length(0, 1), length(16, 17), length(32, 33), length(0, 5)], [4, 16, 32, 8]);
        assert_eq!([length(256, 257), length(512, 513)], [256, 512]);
    }

    #[test]
    fn a_piece_is_right_behind_another_only_if_nobody_was_faster() {
        let written = WrittenBack::new(1, 2);
        let first = written.take(1, 16, None).expect("an empty group");
        assert_eq!(written.take(1, 32, Some(first.start + 16)).map(|piece| piece.start), Some(16));
        written.take(1, 16, None).expect("there is room");
        assert!(written.take(1, 64, Some(48)).is_none());
    }
}
