//! Extents that a transaction has freed (`struct ext4_free_data`), by group: nobody gets them before it is on disk.

use crate::filesystems::inodes::listed::{Entry, Lists};
use std::collections::BTreeMap;

/// There is one list.
const LIST: u32 = 0;

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
#[derive(Default)]
pub struct Freed {
    /// Ends and entries by first block, of each transaction and group (`bb_free_root`).
    trees: BTreeMap<(u64, u32), BTreeMap<u32, (u32, Entry)>>,
    /// `s_freed_data_list`, the newest first.
    list: Lists,
    /// Numbers of entries that are no more, and how many there were.
    spare: Vec<Entry>,
    entries: Entry,
}

/// What an extent met in the tree of its group.
#[derive(Debug, PartialEq, Eq)]
pub struct Inserted {
    /// Its entry, or the neighbour that has grown by it.
    pub entry: Entry,
    /// It is an entry of its own, which is on no list yet.
    pub new: bool,
    /// The entries before and behind it (`rb_prev`, `rb_next`).
    pub beside: [Option<Entry>; 2],
    /// Those of them that are a part of it now.
    pub merged: Vec<Entry>,
}

impl Freed {
    /// Enters an extent, merged with its neighbours (`ext4_try_merge_freed_extent`). Where neighbours grow, the first of them stays.
    pub fn insert(&mut self, transaction: u64, extent: Extent, grow: bool) -> Inserted {
        let tree = self.trees.entry((transaction, extent.group)).or_default();
        let (mut start, mut end, mut merged) = (extent.start, extent.end(), Vec::new());
        let left = tree.range(..start).next_back().map(|(&start, &(end, entry))| (start, end, entry));
        let right = tree.range(end..).next().map(|(&start, &(end, entry))| (start, end, entry));
        if let Some((before, _, entry)) = left.filter(|&(_, end, _)| end == start) {
            tree.remove(&before);
            start = before;
            merged.push(entry);
        }
        if let Some((behind, last, entry)) = right.filter(|&(start, ..)| start == end) {
            tree.remove(&behind);
            end = last;
            merged.push(entry);
        }
        let new = !grow || merged.is_empty();
        let entry = if new { Self::number(&mut self.spare, &mut self.entries) } else { merged.remove(0) };
        tree.insert(start, (end, entry));
        Inserted { entry, new, beside: [left, right].map(|other| other.map(|(.., entry)| entry)), merged }
    }

    fn number(spare: &mut Vec<Entry>, entries: &mut Entry) -> Entry {
        spare.pop().unwrap_or_else(|| {
            *entries += 1;
            *entries
        })
    }

    /// `list_add_tail` to `s_freed_data_list`; the entry that was the last.
    pub fn add_tail(&self, entry: Entry) -> Option<Entry> {
        self.list.add(LIST, entry)
    }

    /// `list_del` of an entry that is a part of another now, and those beside it. Its number is free.
    pub fn delete(&mut self, entry: Entry) -> [Option<Entry>; 2] {
        self.spare.push(entry);
        self.list.remove(entry)
    }

    /// The extents of all transactions up to this one, which are on disk now, with their entries, which have left the list.
    pub fn take(&mut self, transaction: u64) -> Vec<(Extent, Entry)> {
        let later = self.trees.split_off(&(transaction + 1, 0));
        let taken = std::mem::replace(&mut self.trees, later);
        let extents = |((_, group), tree): ((u64, u32), BTreeMap<u32, (u32, Entry)>)| {
            tree.into_iter().map(move |(start, (end, entry))| (Extent { group, start, count: end - start }, entry))
        };
        let taken: Vec<_> = taken.into_iter().flat_map(extents).collect();
        taken.iter().for_each(|&(_, entry)| _ = self.delete(entry));
        taken
    }

    /// Blocks of all of them.
    pub fn blocks(&self) -> u64 {
        self.trees.values().flatten().map(|(start, (end, _))| u64::from(end - start)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(group: u32, start: u32, count: u32) -> Extent {
        Extent { group, start, count }
    }

    fn taken(freed: &mut Freed, transaction: u64) -> Vec<Extent> {
        freed.take(transaction).into_iter().map(|(extent, _)| extent).collect()
    }

    /// How many neighbours an extent was merged with, all as 6.16 does it.
    fn merges(freed: &mut Freed, transaction: u64, extent: Extent) -> usize {
        freed.insert(transaction, extent, false).merged.len()
    }

    #[test]
    fn neighbours_of_one_transaction_are_merged() {
        let mut freed = Freed::default();
        assert_eq!(merges(&mut freed, 1, extent(0, 10, 2)), 0);
        assert_eq!(merges(&mut freed, 1, extent(0, 14, 2)), 0);
        assert_eq!(merges(&mut freed, 1, extent(0, 12, 2)), 2);
        assert_eq!((merges(&mut freed, 2, extent(0, 16, 1)), merges(&mut freed, 1, extent(1, 16, 1))), (0, 0));
        assert_eq!(freed.blocks(), 8);
        assert_eq!(taken(&mut freed, 1), [extent(0, 10, 6), extent(1, 16, 1)]);
        assert_eq!((taken(&mut freed, 1), taken(&mut freed, 2)), (vec![], vec![extent(0, 16, 1)]));
    }

    #[test]
    fn an_entry_meets_those_before_and_behind_it_and_the_last_of_the_list() {
        let mut freed = Freed::default();
        let [first, second] = [10, 30].map(|start| freed.insert(1, extent(0, start, 2), false).entry);
        assert_eq!((freed.add_tail(first), freed.add_tail(second)), (None, Some(first)));
        let between = freed.insert(1, extent(0, 12, 2), false);
        assert_eq!((between.beside, between.merged), ([Some(first), Some(second)], vec![first]));
        assert_eq!(freed.delete(first), [Some(second), None]);
        assert_eq!(freed.add_tail(between.entry), Some(second));
    }

    #[test]
    fn since_6_17_a_neighbour_grows() {
        let mut freed = Freed::default();
        let first = freed.insert(1, extent(0, 10, 2), true);
        let behind = freed.insert(1, extent(0, 14, 2), true);
        assert!(first.new && behind.new);
        let between = freed.insert(1, extent(0, 12, 2), true);
        assert_eq!((between.entry, between.new, between.merged), (first.entry, false, vec![behind.entry]));
    }
}
