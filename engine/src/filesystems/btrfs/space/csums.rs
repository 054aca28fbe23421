//! The checksum tree: one crc32c of each data block, those of neighbours together in one item (`fs/btrfs/file-item.c`). How they get
//! there is in `csum_blocks.rs`.

use crate::filesystems::btrfs::tree::items;
use crate::filesystems::btrfs::tree::key::{size, Item, ItemKind, EXTENT_CSUM_OBJECTID, ITEM_HEAD};
use crate::filesystems::btrfs::tree::locks::{TreeLocks, Work};
use crate::filesystems::btrfs::tree::path::Path;
use crate::filesystems::btrfs::tree::search::{Intent, TreeOps};
use crate::filesystems::btrfs::tree::Tree;
use crate::filesystems::BLOCK;

/// Sums that an item may have: a leaf has room for them and another item's head (`MAX_CSUM_ITEMS`).
pub(super) const MOST_SUMS: u64 = 4000;

impl<L: TreeLocks> TreeOps<'_, L> {
    /// `btrfs_del_csums`, from the end on: what an item has besides stays. Sums in the middle of an item take three searches: it is split where they
    /// begin, then they are cut off the second part, and the third finds none.
    pub async fn delete_csums(&self, place: u64, bytes: u64) {
        let end = place + bytes.next_multiple_of(u64::from(BLOCK));
        let last = items::csums(end - u64::from(BLOCK), 1).key;
        loop {
            let (mut path, found) = self.search_slot(last, Intent::Delete).await;
            let (leaf, slot) = (path.leaf(), if found { Some(path.slots[0]) } else { path.slots[0].checked_sub(1) });
            let item = slot.map(|slot| self.tree().items(leaf)[slot]);
            let Some(item) = item.filter(|item| ends(item) > Some(place)) else {
                self.locks.work(Work::CsumLookup).await;
                return self.release_path(&mut path).await;
            };
            path.slots[0] = slot.unwrap_or(0);
            self.locks.work(Work::CsumItem).await;
            let (first, behind) = (item.key.offset(), ends(&item).unwrap_or(0));
            let mut is_last = first < place;
            if first >= place && behind <= end {
                is_last = self.delete_items_of_csums(&mut path, place).await;
            } else if is_last && behind > end {
                is_last = false;
                if self.tree().free_space(leaf) < ITEM_HEAD {
                    // `setup_leaf_for_split`, for the item that is there, whose own head is not counted
                    self.release_path(&mut path).await;
                    (path, _) = self.search_slot(item.key, Intent::Insert(2 * ITEM_HEAD)).await;
                } else {
                    self.replace_csums(&mut path, &[csums_between(first, place), csums_between(place, behind)]);
                }
            } else {
                let stays = if is_last { csums_between(first, place) } else { csums_between(end, behind) };
                self.replace_csums(&mut path, &[stays]);
            }
            self.release_path(&mut path).await;
            if is_last {
                return;
            }
        }
    }

    /// Deletes the item at the path and those before it in its leaf that begin at a place or behind it. Whether one begins there.
    async fn delete_items_of_csums(&self, path: &mut Path, place: u64) -> bool {
        let (run, first) = {
            let tree = self.tree();
            let here = &tree.items(path.leaf())[..=path.slots[0]];
            let inside = here.iter().rev().take_while(|item| ends(item).is_some() && item.key.offset() >= place);
            let run = inside.count();
            (run, here[here.len() - run].key.offset())
        };
        path.slots[0] -= run - 1;
        self.del_items(path, run).await;
        first == place
    }

    /// Puts these in the place of the item at the path, whose leaf has room for them (`truncate_one_csum`, `btrfs_split_item`).
    fn replace_csums(&self, path: &mut Path, parts: &[Item]) {
        let (leaf, slot) = (path.leaf(), path.slots[0]);
        {
            let mut tree = self.tree.borrow_mut();
            tree.remove_items(leaf, slot, 1);
            tree.insert_items(leaf, slot, parts);
            if slot == 0 {
                tree.fixup_low_keys(path, parts[0].key, 1);
            }
        }
        self.locks.change(leaf);
    }
}

fn csums_between(first: u64, behind: u64) -> Item {
    items::csums(first, (behind - first) / u64::from(BLOCK))
}

impl Tree {
    /// What `add_csums` does where that changes one leaf, with all sums in one item (`insert_in_place`). Says whether it does, and is done.
    pub(super) fn insert_csum_in_place(&mut self, item: Item) -> bool {
        let Some((leaf, slot)) = self.room_in_place(item.key, item.bytes()) else { return false };
        let first = item.key.offset();
        if self.next_within(item.key, first + sums(&item) * u64::from(BLOCK)).is_some() {
            return false; // some are there
        }
        let before = self.items(leaf)[slot - 1];
        match joined(&before, &item) {
            Some(together) => self.resize_item(leaf, slot - 1, together),
            None if ends(&before) >= Some(first) => return false,
            None => self.insert_items(leaf, slot, &[item]),
        }
        true
    }
}

/// The items that the sums of so many bytes fill.
pub(super) fn csum_items(place: u64, bytes: u64) -> impl Iterator<Item = Item> {
    let blocks = bytes.div_ceil(u64::from(BLOCK));
    (0..blocks)
        .step_by(MOST_SUMS as usize)
        .map(move |done| items::csums(place + done * u64::from(BLOCK), (blocks - done).min(MOST_SUMS)))
}

/// The size of an item `before` with these sums in it too, if they belong there.
fn joined(before: &Item, item: &Item) -> Option<u32> {
    let belong = ends(before) == Some(item.key.offset()) && u64::from(before.size / 4) + sums(item) <= MOST_SUMS;
    belong.then(|| u32::from(before.size) + u32::from(item.size))
}

/// How many sums an item has.
pub(super) fn sums(item: &Item) -> u64 {
    u64::from(u32::from(item.size) / size::CSUM)
}

/// The byte of the disk behind those whose sums an item has.
pub(super) fn ends(item: &Item) -> Option<u64> {
    let is_csum = item.key.kind() == ItemKind::ExtentCsum && item.key.objectid() == EXTENT_CSUM_OBJECTID;
    is_csum.then(|| item.key.offset() + sums(item) * u64::from(BLOCK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystems::btrfs::subvolume::now;
    use crate::filesystems::btrfs::tree::locks::{NoLocks, Unlocked};
    use crate::filesystems::btrfs::tree::search::DEFAULT_RULES;
    use std::cell::{Cell, RefCell};

    fn after(change: impl FnOnce(&TreeOps<'_, NoLocks>)) -> Vec<(u64, u64)> {
        let tree = RefCell::new(Tree::new());
        change(&TreeOps::new(&tree, &NoLocks, DEFAULT_RULES));
        let tree = tree.into_inner();
        tree.check().unwrap();
        let leaves = tree.blocks().filter(|&block| tree.level(block) == 0);
        leaves.flat_map(|leaf| tree.items(leaf)).map(|item| (item.key.offset() / 4096, sums(item))).collect()
    }

    #[test]
    fn sums_are_deleted_from_the_front_the_end_and_the_middle_of_an_item() {
        let deleted = |first: u64, blocks: u64| {
            after(|ops| {
                now(ops.add_csums(100 * 4096, 10 * 4096));
                now(ops.delete_csums(first * 4096, blocks * 4096));
            })
        };
        assert_eq!(deleted(100, 3), [(103, 7)]);
        assert_eq!(deleted(108, 2), [(100, 8)]);
        assert_eq!(deleted(104, 2), [(100, 4), (106, 4)]);
        assert_eq!(deleted(100, 10), []);
        assert_eq!(deleted(50, 10), [(100, 10)]);
    }

    #[test]
    fn an_item_that_ends_a_full_leaf_is_split_where_it_is_moved_to() {
        let left = after(|ops| {
            now(ops.add_csums(100 * 4096, 100 * 4096));
            now(ops.add_csums(1000 * 4096, 3958 * 4096));
            let tree = ops.tree();
            let leaf = tree.blocks().find(|&block| tree.level(block) == 0).unwrap();
            assert!((tree.len(leaf), tree.free_space(leaf) < ITEM_HEAD) == (2, true));
            drop(tree);
            now(ops.delete_csums(2000 * 4096, 10 * 4096));
        });
        assert_eq!(left, [(100, 100), (1000, 1000), (2010, 2948)]);
    }

    /// How often it was searched for sums.
    #[derive(Default)]
    struct Searched(Cell<u32>);

    impl Unlocked for Searched {
        fn work(&self, work: Work) {
            let searched = matches!(work, Work::CsumItem | Work::CsumLookup);
            self.0.set(self.0.get() + u32::from(searched));
        }
    }

    #[test]
    fn a_deletion_searches_again_behind_what_it_has_cut() {
        let searches = |first: u64, blocks: u64| {
            let (tree, locks) = (RefCell::new(Tree::new()), Searched::default());
            let ops = TreeOps::new(&tree, &locks, DEFAULT_RULES);
            now(ops.add_csums(100 * 4096, 10 * 4096));
            locks.0.set(0);
            now(ops.delete_csums(first * 4096, blocks * 4096));
            locks.0.get()
        };
        assert_eq!(searches(50, 10), 1, "nothing is there");
        assert_eq!(searches(100, 10), 1, "the whole item");
        assert_eq!(searches(108, 2), 1, "its end");
        assert_eq!(searches(100, 3), 2, "its front");
        assert_eq!(searches(104, 2), 3, "from its middle");
    }

    #[test]
    fn sums_that_change_one_leaf_are_put_where_a_search_puts_them() {
        let (quick, plain) = (RefCell::new(Tree::new()), RefCell::new(Tree::new()));
        let insert = |tree: &RefCell<Tree>, item: Item| {
            let ops = TreeOps::new(tree, &NoLocks, DEFAULT_RULES);
            now(ops.add_csums(item.key.offset(), sums(&item) * 4096));
        };
        let (mut place, mut in_place) = (0, 0);
        for number in 0..20_000 {
            let blocks = 1 + number % 7;
            place += 4096 * if number % 3 == 0 { 5000 } else { 0 }; // else where the last ones end
            let item = items::csums(if number % 11 == 0 { place / 8192 * 4096 } else { place }, blocks);
            if quick.borrow_mut().insert_csum_in_place(item) {
                in_place += 1;
            } else {
                insert(&quick, item);
            }
            insert(&plain, item);
            place += 4096 * blocks;
        }
        let leaves = |tree: &RefCell<Tree>| {
            let tree = tree.borrow();
            assert_eq!(tree.check(), Ok(()));
            let leaves = tree.blocks().filter(|&block| tree.level(block) == 0);
            leaves.map(|leaf| tree.items(leaf).to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(leaves(&quick), leaves(&plain));
        assert!(in_place > 15_000, "{in_place}");
    }
}
