//! The hash index of a directory: the name hash and a sorted block of entries, some of them stale.

use std::ops::Range;

/// The hash of a name (`xfs_da_hashname`).
pub fn name_hash(name: &[u8]) -> u32 {
    let fold = |hash: u32, part: &[u8]| {
        let bits = 7 * part.len() as u32;
        part.iter().fold(0, |sum, &byte| (sum << 7) ^ u32::from(byte)) ^ hash.rotate_left(bits)
    };
    name.chunks(4).fold(0, fold)
}

/// A hash and the place of its entry; a place of 0 marks a stale one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashEntry {
    /// Hash of the name.
    pub hash: u32,
    /// Data block and offset, divided by 8 (`xfs_dir2_dataptr_t`).
    pub address: u32,
}

/// `XFS_DIR2_NULL_DATAPTR`.
const STALE: u32 = 0;
/// Bits of the offset in a block of 64 KiB, the largest: smaller blocks are numbered as if they lay that far apart.
const ADDRESS_BITS: u32 = 13;

impl HashEntry {
    /// The entry for a name with this hash at `offset` of data block `block`.
    pub fn new(hash: u32, block: usize, offset: usize) -> Self {
        Self { hash, address: (block as u32) << ADDRESS_BITS | (offset as u32) >> 3 }
    }

    /// Data block and offset, unless it is stale.
    pub fn place(&self) -> Option<(usize, usize)> {
        let offset = (self.address & ((1 << ADDRESS_BITS) - 1)) << 3;
        (self.address != STALE).then_some(((self.address >> ADDRESS_BITS) as usize, offset as usize))
    }
}

/// Entries in the order of their hashes. A removed one stays as stale until its place is needed.
#[derive(Clone, Debug, Default)]
pub struct HashEntries {
    entries: Vec<HashEntry>,
    stale: usize,
}

impl HashEntries {
    /// All entries, stale ones too.
    pub fn all(&self) -> &[HashEntry] {
        &self.entries
    }

    /// Number of entries, stale ones too.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry, not even a stale one.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of stale entries.
    pub fn stale(&self) -> usize {
        self.stale
    }

    /// Number of entries that stand for a name.
    pub fn live(&self) -> usize {
        self.len() - self.stale
    }

    /// Index of the first entry whose hash is not below `hash` (`xfs_dir2_leaf_search_hash`).
    pub fn search(&self, hash: u32) -> usize {
        self.entries.partition_point(|entry| entry.hash < hash)
    }

    /// The greatest hash, 0 if there is no entry (`xfs_dir2_leaf_lasthash`).
    pub fn last_hash(&self) -> u32 {
        self.entries.last().map_or(0, |entry| entry.hash)
    }

    /// Live entries with this hash from `index` on, with their indexes.
    pub fn same_hash(&self, index: usize, hash: u32) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        self.entries[index..]
            .iter()
            .take_while(move |entry| entry.hash == hash)
            .enumerate()
            .filter_map(move |(i, entry)| entry.place().map(|(block, offset)| (index + i, block, offset)))
    }

    /// Inserts at `index`; the nearest stale entry makes room if there is one (`xfs_dir3_leaf_find_entry`). Returns the entries that have
    /// moved or changed, which are logged.
    pub fn insert(&mut self, index: usize, entry: HashEntry) -> Range<usize> {
        if self.stale == 0 {
            self.entries.insert(index, entry);
            return index..self.entries.len();
        }
        let (low, high) = self.stale_around(index);
        self.stale -= 1;
        match (low, high) {
            (Some(low), high) if high.is_none_or(|high| index - low - 1 < high - index) => {
                self.entries.copy_within(low + 1..index, low);
                self.entries[index - 1] = entry;
                low..index
            }
            (_, high) => {
                let high = high.expect("there is a stale entry");
                self.entries.copy_within(index..high, index + 1);
                self.entries[index] = entry;
                index..high + 1
            }
        }
    }

    /// Appends in hash order while an index is built.
    pub fn sort_in(&mut self, entry: HashEntry) {
        let index = self.entries.partition_point(|other| (other.hash, other.address) < (entry.hash, entry.address));
        self.entries.insert(index, entry);
    }

    /// Makes the entry at `index` stale.
    pub fn kill(&mut self, index: usize) {
        self.entries[index].address = STALE;
        self.stale += 1;
    }

    /// Drops all stale entries (`xfs_dir3_leaf_compact`).
    pub fn compact(&mut self) {
        self.entries.retain(|entry| entry.address != STALE);
        self.stale = 0;
    }

    /// Drops all stale entries but the one nearest to `index`, and returns where `index` is then
    /// (`xfs_dir3_leaf_compact_x1`).
    pub fn compact_but_one(&mut self, index: usize) -> usize {
        let keep = match self.stale_around(index) {
            (Some(low), Some(high)) if index - low > high - index => high,
            (Some(low), _) => low,
            (None, high) => high.expect("there is a stale entry"),
        };
        let before = (0..index).filter(|&i| self.entries[i].address == STALE && i != keep).count();
        let mut i = 0;
        self.entries.retain(|entry| {
            i += 1;
            entry.address != STALE || i - 1 == keep
        });
        self.stale = 1;
        index - before
    }

    /// Moves everything from `at` on to a new block.
    pub fn split_off(&mut self, at: usize) -> Self {
        let entries = self.entries.split_off(at);
        let stale = entries.iter().filter(|entry| entry.address == STALE).count();
        self.stale -= stale;
        Self { entries, stale }
    }

    /// Takes the entries of another block, which are all above or all below.
    pub fn absorb(&mut self, mut other: Self) {
        if other.entries.is_empty() {
            return;
        }
        let below = self
            .entries
            .first()
            .is_some_and(|first| other.entries[0].hash < first.hash || other.last_hash() < self.last_hash());
        if below {
            std::mem::swap(self, &mut other);
        }
        self.entries.append(&mut other.entries);
        self.stale += other.stale;
    }

    fn stale_around(&self, index: usize) -> (Option<usize>, Option<usize>) {
        let is_stale = |i: &usize| self.entries[*i].address == STALE;
        ((0..index).rev().find(is_stale), (index..self.len()).find(is_stale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_the_kernel() {
        assert_eq!(name_hash(b"."), 0x2e);
        assert_eq!(name_hash(b".."), 0x172e);
        assert_ne!(name_hash(b"f0000000"), name_hash(b"f0000001"));
    }

    #[test]
    fn eight_digits_collide_only_beyond_the_first_hundred_thousand() {
        let mut hashes: Vec<u32> = (0..500_000).map(|i| name_hash(format!("f{i:07}").as_bytes())).collect();
        let distinct = |hashes: &mut Vec<u32>| {
            hashes.sort_unstable();
            hashes.dedup();
            hashes.len()
        };
        assert_eq!(distinct(&mut hashes[..100_000].to_vec()), 100_000);
        assert_eq!(distinct(&mut hashes), 420_000);
    }
}
