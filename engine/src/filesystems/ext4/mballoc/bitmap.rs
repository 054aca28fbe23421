//! Which blocks of a group are free for the allocator: the bitmap in memory of `fs/ext4/mballoc.c`, which its buddy describes.

/// Blocks of a group: what one 4 KiB bitmap block can describe.
pub const GROUP_BLOCKS: u32 = 32768;
/// Blocks at the start of a group that `mkfs` has used: two bitmaps, and a table of 8,192 inodes of 256 bytes.
const METADATA: u32 = 514;
const BITS: u32 = 64;
/// The largest buddy has so many blocks as two to this.
const MOST_ORDER: u32 = 13;
/// Pieces that are long enough after which the best of them is taken (`s_mb_min_to_scan`).
const ENOUGH: u32 = 10;

/// What a search has looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    pub pieces: u32,
    pub words: u32,
}

/// The blocks of one group; a set bit is a block in use.
#[derive(Clone, Debug)]
pub struct Bitmap {
    /// Empty until somebody changes it.
    words: Vec<u64>,
    blocks: u32,
    free: u32,
    /// No word before this one has a free block.
    first: usize,
}

impl Bitmap {
    /// A fresh group of so many blocks.
    pub fn new(blocks: u32) -> Self {
        Self { words: Vec::new(), blocks, free: blocks.saturating_sub(METADATA), first: 0 }
    }

    /// Blocks that can be taken.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Blocks that files could have.
    pub fn capacity(&self) -> u32 {
        self.blocks.saturating_sub(METADATA)
    }

    /// Takes the first free run of so many blocks; a power of two is aligned, as buddies are (`ext4_mb_simple_scan_group`).
    pub fn take(&mut self, count: u32) -> Option<u32> {
        if count == 0 || count > self.free {
            return None;
        }
        self.materialise();
        let aligned = count.is_power_of_two() && count <= BITS;
        let start = if aligned { self.first_aligned(count) } else { self.first_run(count) }?;
        self.set(start, count, true);
        while self.first < self.words.len() && self.words[self.first] == u64::MAX {
            self.first += 1;
        }
        Some(start)
    }

    /// What the search for so many blocks looks at (`ext4_mb_complex_scan_group`): pieces of free runs, which are buddies, until one is
    /// just so long or enough are long enough, and words of bits up to the end of the run at each.
    pub fn scan(&mut self, count: u32) -> Scan {
        self.materialise();
        let mut scan = Scan::default();
        let mut block = self.next(self.first as u32 * BITS, false);
        let mut end = block;
        while block < self.blocks {
            if block == end {
                end = self.next(block, true);
            }
            scan.words += (end - block).div_ceil(BITS);
            if end - block < count {
                block = self.next(end, false);
                end = block;
                continue;
            }
            let buddy = block.trailing_zeros().min((end - block).ilog2()).min(MOST_ORDER);
            let piece = (1 << buddy).max(count);
            scan.pieces += 1;
            if piece == count || scan.pieces > ENOUGH {
                break;
            }
            block += piece;
            if block == end {
                block = self.next(end, false);
                end = block;
            }
        }
        scan
    }

    /// The first block from this one on that is used, or that is not.
    fn next(&self, from: u32, used: bool) -> u32 {
        let mut block = from;
        while block < self.blocks {
            let word = self.words[(block / BITS) as usize];
            let left = (if used { word } else { !word }) >> (block % BITS);
            if left != 0 {
                return (block + left.trailing_zeros()).min(self.blocks);
            }
            block = (block / BITS + 1) * BITS;
        }
        self.blocks
    }

    /// Takes the first free run that there is, of at most so many blocks (`CR_ANY_FREE`): its start and length.
    pub fn take_any(&mut self, most: u32) -> Option<(u32, u32)> {
        self.materialise();
        let start = (self.first as u32 * BITS..self.blocks).find(|&block| !self.is_used(block))?;
        let count = (start..self.blocks).take(most as usize).take_while(|&block| !self.is_used(block)).count() as u32;
        self.set(start, count, true);
        Some((start, count))
    }

    /// Takes the first so many free blocks, in any runs; how many there were.
    pub fn take_all(&mut self, count: u32) -> u32 {
        let mut left = count;
        while left > 0 && self.free > 0 {
            let Some((_, taken)) = self.take_any(left) else { break };
            left -= taken;
        }
        count - left
    }

    /// Gives blocks back.
    pub fn release(&mut self, start: u32, count: u32) {
        self.set(start, count, false);
        self.first = self.first.min((start / BITS) as usize);
    }

    fn materialise(&mut self) {
        if self.words.is_empty() {
            self.words = vec![0; self.blocks.div_ceil(BITS) as usize];
            let free = self.free;
            self.set(0, self.blocks - free, true);
            let behind = self.words.len() as u32 * BITS - self.blocks;
            if let (Some(last), true) = (self.words.last_mut(), behind > 0) {
                *last |= u64::MAX << (BITS - behind);
            }
            self.free = free;
        }
    }

    fn is_used(&self, block: u32) -> bool {
        self.words[(block / BITS) as usize] & (1 << (block % BITS)) != 0
    }

    fn first_aligned(&self, count: u32) -> Option<u32> {
        let starts = (0..BITS).step_by(count as usize).fold(0, |starts, bit| starts | 1_u64 << bit);
        (self.first..self.words.len()).find_map(|place| {
            let (mut runs, mut length) = (!self.words[place], 1);
            while length < count {
                runs &= runs >> length;
                length *= 2;
            }
            let runs = runs & starts;
            (runs != 0).then(|| place as u32 * BITS + runs.trailing_zeros())
        })
    }

    fn first_run(&self, count: u32) -> Option<u32> {
        let mut run = 0;
        for block in self.first as u32 * BITS..self.blocks {
            run = if self.is_used(block) { 0 } else { run + 1 };
            if run == count {
                return Some(block + 1 - count);
            }
        }
        None
    }

    fn set(&mut self, start: u32, count: u32, used: bool) {
        for block in start..start + count {
            debug_assert!(self.is_used(block) != used, "block {block} was so already");
            self.words[(block / BITS) as usize] ^= 1 << (block % BITS);
        }
        self.free = if used { self.free.saturating_sub(count) } else { self.free + count };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_power_of_two_are_aligned_and_follow_each_other() {
        let mut group = Bitmap::new(GROUP_BLOCKS);
        assert_eq!((group.take(2), group.take(2), group.take(1)), (Some(514), Some(516), Some(518)));
        assert_eq!(group.take(2), Some(520));
        assert_eq!(group.take(3), Some(522));
        assert_eq!(group.take(64), Some(576));
        assert_eq!(group.free(), GROUP_BLOCKS - METADATA - 2 - 2 - 1 - 2 - 3 - 64);
    }

    #[test]
    fn an_even_place_has_no_piece_of_one_block_so_that_larger_ones_are_looked_at() {
        let mut group = Bitmap::new(1024);
        let odd_and_even = [group.scan(1), group.take(1).map(|_| group.scan(1)).unwrap_or_default()];
        // free are 514 to 1023: pieces at 514, 516, 520, 528, 544, 576, 640 and 768, each with the words up to 1023
        assert_eq!(odd_and_even, [Scan { pieces: 8, words: 57 }, Scan { pieces: 1, words: 8 }]);
        assert_eq!(group.scan(1024), Scan { pieces: 0, words: 8 });
    }

    #[test]
    fn what_is_given_back_is_taken_first() {
        let mut group = Bitmap::new(1024);
        let all: Vec<u32> = std::iter::from_fn(|| group.take(2)).collect();
        assert_eq!((all.len(), group.free(), group.take(1)), (255, 0, None));
        group.release(all[7], 2);
        assert_eq!((group.take(4), group.take(2)), (None, Some(all[7])));
    }

    #[test]
    fn whoever_takes_anything_gets_the_first_piece() {
        let mut group = Bitmap::new(600);
        assert_eq!(group.capacity(), 86);
        assert_eq!(group.take(80), Some(514));
        assert_eq!((group.take(7), group.take_any(7), group.take_any(1)), (None, Some((594, 6)), None));
    }
}
