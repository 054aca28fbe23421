//! How checksums get into their tree, and into the log (`btrfs_csum_file_blocks` of `fs/btrfs/file-item.c`, Linux 6.12).
//!
//! A search for a change finds those that are there, which are written over, or an item that ends where they begin, which grows.
//! Otherwise another search makes an item of their own, that ends where the next one begins.

use super::csums::{ends, sums, MOST_SUMS};
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::btrfs::tree::key::{size, Item};
use crate::filesystems::btrfs::tree::locks::{TreeLocks, Work};
use crate::filesystems::btrfs::tree::path::Path;
use crate::filesystems::btrfs::tree::search::{Intent, TreeOps};
use crate::filesystems::BLOCK;
use std::ops::Range;

const BYTES: u64 = BLOCK as u64;

/// What a leaf has of sums from a place on (`btrfs_lookup_csum`).
enum Found {
    /// Those of so many bytes.
    There(u64),
    /// An item that ends there, at this slot.
    Before(usize),
    Nothing,
}

impl<L: TreeLocks> TreeOps<'_, L> {
    /// Adds the sums of data that lie at a place.
    pub async fn add_csums(&self, place: u64, bytes: u64) {
        let mut left = place..place + bytes.next_multiple_of(BYTES);
        while !left.is_empty() {
            left.start += self.add_some_csums(left.clone()).await;
        }
    }

    /// Adds as many as one item takes; of how many bytes.
    async fn add_some_csums(&self, places: Range<u64>) -> u64 {
        let key = items::csums(places.start, 1).key;
        let (mut path, _) = self.search_slot(key, Intent::Update).await;
        let is_last = path.slots[0] == self.tree().len(path.leaf());
        let found = self.csums_at(&path, places.start);
        match found {
            Found::There(bytes) => {
                self.locks.work(Work::CsumItem).await;
                self.release_path(&mut path).await;
                return bytes.min(places.end - places.start);
            }
            Found::Before(_) if self.rules.joins_last_csums || !is_last => {
                let has_room = self.tree().free_space(path.leaf()) >= size::CSUM;
                if has_room && self.rules.extends_csums_in_place {
                    return self.extend_csums(path, places).await;
                }
                self.locks.work(Work::CsumLookup).await;
                self.release_path(&mut path).await;
                return self.extend_csums_with_room(places).await;
            }
            _ => {}
        }
        self.locks.work(Work::CsumLookup).await;
        self.release_path(&mut path).await;
        if is_last {
            self.look_into_next_leaf(key).await; // `find_next_csum_offset`
        }
        self.insert_csums(places).await
    }

    fn csums_at(&self, path: &Path, first: u64) -> Found {
        let (tree, slot) = (self.tree(), path.slots[0]);
        let here = tree.items(path.leaf());
        let slot = match here.get(slot) {
            Some(item) if item.key == items::csums(first, 1).key => slot,
            _ if slot > 0 => slot - 1,
            _ => return Found::Nothing,
        };
        match ends(&here[slot]) {
            Some(end) if end > first => Found::There(end - first),
            Some(end) if end == first && sums(&here[slot]) < MOST_SUMS => Found::Before(slot),
            _ => Found::Nothing,
        }
    }

    /// Searches with room for one sum in the leaf (`search_for_extension`). If that is in the next leaf, one sum gets an item there.
    async fn extend_csums_with_room(&self, places: Range<u64>) -> u64 {
        let key = items::csums(places.start, 1).key;
        let (mut path, _) = self.search_slot(key, Intent::Insert(size::CSUM)).await;
        if let Found::Before(_) = self.csums_at(&path, places.start) {
            return self.extend_csums(path, places).await;
        }
        self.release_path(&mut path).await;
        self.insert_csums(places.start..places.start + BYTES).await
    }

    /// Lets the item before the path grow (`btrfs_extend_item`).
    async fn extend_csums(&self, mut path: Path, places: Range<u64>) -> u64 {
        let Found::Before(slot) = self.csums_at(&path, places.start) else { unreachable!("it is locked") };
        let (leaf, before) = (path.leaf(), self.csum_item_at(&path, slot));
        let room = u64::from(self.tree().free_space(leaf) / size::CSUM).min(MOST_SUMS - sums(&before));
        let blocks = self.blocks_before_next(&places).min(room);
        self.resize_item(leaf, slot, u32::from(before.size) + blocks as u32 * size::CSUM).await;
        self.locks.work(Work::CsumItem).await;
        self.release_path(&mut path).await;
        blocks * BYTES
    }

    fn csum_item_at(&self, path: &Path, slot: usize) -> Item {
        self.tree().items(path.leaf())[slot]
    }

    async fn insert_csums(&self, places: Range<u64>) -> u64 {
        let blocks = self.blocks_before_next(&places).min(MOST_SUMS);
        let (mut path, inserted) = self.insert_items(&[items::csums(places.start, blocks)]).await;
        self.locks.work(Work::CsumItem).await;
        self.release_path(&mut path).await;
        if inserted {
            blocks * BYTES
        } else {
            0
        }
    }

    /// How many of these blocks lie before the next item.
    fn blocks_before_next(&self, places: &Range<u64>) -> u64 {
        let next = self.tree().next_within(items::csums(places.start, 1).key, places.end);
        (next.map_or(places.end, |next| next.offset()) - places.start) / BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystems::btrfs::subvolume::now;
    use crate::filesystems::btrfs::tree::locks::NoLocks;
    use crate::filesystems::btrfs::tree::search::{Rules, DEFAULT_RULES};
    use crate::filesystems::btrfs::tree::Tree;
    use std::cell::RefCell;

    fn after(rules: Rules, blocks: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let tree = RefCell::new(Tree::new());
        let ops = TreeOps::new(&tree, &NoLocks, rules);
        blocks.iter().for_each(|(first, count)| now(ops.add_csums(first * 4096, count * 4096)));
        let tree = tree.borrow();
        tree.check().unwrap();
        let leaves = tree.blocks().filter(|&block| tree.level(block) == 0);
        leaves.flat_map(|leaf| tree.items(leaf)).map(|item| (item.key.offset() / 4096, sums(item))).collect()
    }

    const LOG: Rules = Rules { joins_last_csums: false, ..DEFAULT_RULES };

    #[test]
    fn sums_of_neighbours_share_an_item() {
        for rules in [DEFAULT_RULES, Rules { extends_csums_in_place: false, ..DEFAULT_RULES }] {
            assert_eq!(after(rules, &[(10, 1), (11, 1), (12, 1), (20, 2), (22, 3)]), [(10, 3), (20, 5)]);
        }
    }

    #[test]
    fn in_the_log_the_last_item_of_a_leaf_does_not_grow() {
        assert_eq!(after(LOG, &[(10, 1), (11, 1), (12, 1)]), [(10, 1), (11, 1), (12, 1)]);
        assert_eq!(
            after(LOG, &[(10, 1), (20, 1), (11, 2)]),
            [(10, 3), (20, 1)],
            "one that is followed by another does"
        );
    }

    #[test]
    fn sums_that_are_there_are_written_over_and_the_rest_added() {
        assert_eq!(after(DEFAULT_RULES, &[(10, 4), (20, 4), (12, 10)]), [(10, 10), (20, 4)]);
        assert_eq!(after(LOG, &[(10, 4), (20, 4), (8, 4)]), [(8, 2), (10, 4), (20, 4)]);
    }

    #[test]
    fn all_sums_are_there_once_whatever_comes_and_goes() {
        for rules in [DEFAULT_RULES, LOG, Rules { extends_csums_in_place: false, ..DEFAULT_RULES }] {
            let tree = RefCell::new(Tree::new());
            let ops = TreeOps::new(&tree, &NoLocks, rules);
            let (mut there, mut number) = (std::collections::BTreeSet::new(), 1_u64);
            for _ in 0..20_000 {
                number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (first, count) = ((number >> 33) % 30_000, 1 + (number >> 50) % 40);
                if number >> 62 == 0 {
                    now(ops.delete_csums(first * 4096, count * 4096));
                    (first..first + count).for_each(|block| _ = there.remove(&block));
                } else {
                    now(ops.add_csums(first * 4096, count * 4096));
                    there.extend(first..first + count);
                }
            }
            let tree = tree.borrow();
            tree.check().unwrap();
            let leaves = tree.blocks().filter(|&block| tree.level(block) == 0);
            let mut blocks: Vec<_> = leaves
                .flat_map(|leaf| tree.items(leaf))
                .flat_map(|item| (0..sums(item)).map(|nth| item.key.offset() / 4096 + nth))
                .collect();
            blocks.sort_unstable();
            assert_eq!(blocks, there.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn many_sums_are_several_items() {
        assert_eq!(after(DEFAULT_RULES, &[(0, 9000)]), [(0, 4000), (4000, 4000), (8000, 1000)]);
    }
}
