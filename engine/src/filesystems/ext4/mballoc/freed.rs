//! Extents that a transaction has freed (`struct ext4_free_data`), by group: nobody gets them before it is on disk.

use std::collections::BTreeMap;

/// Blocks of a group next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The group.
    pub group: u32,
    /// The first block in it.
    pub start: u32,
    /// How many.
    pub count: u32,
}

impl Extent {
    /// The block behind it.
    pub fn end(&self) -> u32 {
        self.start + self.count
    }
}

/// All freed extents of transactions that are not on disk.
#[derive(Debug, Default)]
pub struct Freed {
    /// Ends by first block, of each transaction and group (`bb_free_root`).
    trees: BTreeMap<(u64, u32), BTreeMap<u32, u32>>,
}

impl Freed {
    /// Enters an extent; returns with how many neighbours it was merged (`ext4_try_merge_freed_extent`).
    pub fn insert(&mut self, transaction: u64, extent: Extent) -> u32 {
        let tree = self.trees.entry((transaction, extent.group)).or_default();
        let (mut start, mut end, mut merged) = (extent.start, extent.end(), 0);
        let left = tree.range(..start).next_back().map(|(&start, &end)| (start, end));
        if let Some((before, _)) = left.filter(|&(_, end)| end == start) {
            tree.remove(&before);
            (start, merged) = (before, merged + 1);
        }
        if let Some(behind) = tree.remove(&end) {
            (end, merged) = (behind, merged + 1);
        }
        tree.insert(start, end);
        merged
    }

    /// The extents of all transactions up to this one, which are on disk now.
    pub fn take(&mut self, transaction: u64) -> Vec<Extent> {
        let later = self.trees.split_off(&(transaction + 1, 0));
        let taken = std::mem::replace(&mut self.trees, later);
        let extents = |((_, group), tree): ((u64, u32), BTreeMap<u32, u32>)| {
            tree.into_iter().map(move |(start, end)| Extent { group, start, count: end - start })
        };
        taken.into_iter().flat_map(extents).collect()
    }

    /// Blocks of all of them.
    pub fn blocks(&self) -> u64 {
        self.trees.values().flatten().map(|(start, end)| u64::from(end - start)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(group: u32, start: u32, count: u32) -> Extent {
        Extent { group, start, count }
    }

    #[test]
    fn neighbours_of_one_transaction_are_merged() {
        let mut freed = Freed::default();
        assert_eq!(freed.insert(1, extent(0, 10, 2)), 0);
        assert_eq!(freed.insert(1, extent(0, 14, 2)), 0);
        assert_eq!(freed.insert(1, extent(0, 12, 2)), 2);
        assert_eq!((freed.insert(2, extent(0, 16, 1)), freed.insert(1, extent(1, 16, 1))), (0, 0));
        assert_eq!(freed.blocks(), 8);
        assert_eq!(freed.take(1), [extent(0, 10, 6), extent(1, 16, 1)]);
        assert_eq!((freed.take(1), freed.take(2)), (vec![], vec![extent(0, 16, 1)]));
    }
}
