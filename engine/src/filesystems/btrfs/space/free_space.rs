//! The free space tree: an item of every free extent of a block group, one behind the group's own (`fs/btrfs/free-space-tree.c`
//! of Linux 6.18). Bitmaps, which take the place of items where there are very many, are not modelled.

use super::Group;
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::btrfs::tree::key::{Item, ItemKind, Key};
use crate::filesystems::btrfs::tree::locks::{TreeLocks, Work};
use crate::filesystems::btrfs::tree::path::Path;
use crate::filesystems::btrfs::tree::search::{Intent, TreeOps};
use crate::filesystems::btrfs::tree::Tree;

impl<L: TreeLocks> TreeOps<'_, L> {
    /// A block group that is free from end to end.
    pub async fn add_free_group(&self, group: Group) {
        self.insert_free_space(items::free_space_info(group.start, group.bytes)).await;
        self.insert_free_space(items::free_space_extent(group.start, group.bytes)).await;
    }

    /// `remove_free_space_extent`: what is left on both sides gets items of its own.
    pub async fn remove_free_space(&self, group: Group, place: u64, bytes: u64) {
        let (path, free) = self.search_previous(Key::behind(place)).await;
        let (start, end) = range_of(free);
        assert!(free.key.kind() == ItemKind::FreeSpaceExtent && start <= place && place + bytes <= end);
        self.delete_free_space(path).await;
        let mut extents = -1;
        if start < place {
            self.insert_free_space(items::free_space_extent(start, place - start)).await;
            extents += 1;
        }
        if place + bytes < end {
            self.insert_free_space(items::free_space_extent(place + bytes, end - place - bytes)).await;
            extents += 1;
        }
        self.count_free_space(group, extents).await;
    }

    /// `add_free_space_extent`: neighbours that touch go into the new item.
    pub async fn add_free_space(&self, group: Group, place: u64, bytes: u64) {
        let (mut new, mut extents) = ((place, place + bytes), 1);
        for (key, has_one) in
            [(place.wrapping_sub(1), place > group.start), (place + bytes, place + bytes < group.end())]
        {
            if !has_one {
                continue;
            }
            let (mut path, neighbour) = self.search_previous(Key::behind(key)).await;
            let (start, end) = range_of(neighbour);
            if neighbour.key.kind() == ItemKind::FreeSpaceExtent && (end == new.0 || start == new.1) {
                new = (start.min(new.0), end.max(new.1));
                extents -= 1;
                self.delete_free_space(path).await;
            } else {
                self.locks.work(Work::FreeSpaceItem).await;
                self.release_path(&mut path).await;
            }
        }
        self.insert_free_space(items::free_space_extent(new.0, new.1 - new.0)).await;
        self.count_free_space(group, extents).await;
    }

    /// `btrfs_search_prev_slot` for a deletion: the last item before a key.
    async fn search_previous(&self, key: Key) -> (Path, Item) {
        let (mut path, _) = self.search_slot(key, Intent::Delete).await;
        path.slots[0] -= 1;
        let item = self.tree().items(path.leaf())[path.slots[0]];
        (path, item)
    }

    async fn delete_free_space(&self, mut path: Path) {
        self.locks.work(Work::FreeSpaceItem).await;
        self.del_items(&mut path, 1).await;
        self.release_path(&mut path).await;
    }

    async fn insert_free_space(&self, item: Item) {
        let (mut path, inserted) = self.insert_items(&[item]).await;
        assert!(inserted);
        self.locks.work(Work::FreeSpaceItem).await;
        self.release_path(&mut path).await;
    }

    /// `update_free_space_extent_count`, if there are more or fewer.
    async fn count_free_space(&self, group: Group, more: i32) {
        if more != 0 {
            let info = items::free_space_info(group.start, group.bytes);
            let (mut path, found) = self.search_slot(info.key, Intent::Update).await;
            assert!(found);
            self.locks.work(Work::FreeSpaceItem).await;
            self.release_path(&mut path).await;
        }
    }
}

impl Tree {
    /// The same of the front of a free extent, where the tree is one leaf (`replace_in_place`). Says whether it is, and that is done.
    pub(super) fn take_front_in_place(&mut self, place: u64, bytes: u64) -> bool {
        self.replace_in_place(Key::behind(place), |&free| {
            let (start, end) = range_of(free);
            let front = free.key.kind() == ItemKind::FreeSpaceExtent && start == place && place + bytes < end;
            front.then(|| items::free_space_extent(place + bytes, end - place - bytes))
        })
    }
}

fn range_of(free: Item) -> (u64, u64) {
    let start = free.key.objectid();
    (start, start + free.key.offset())
}

#[cfg(test)]
mod tests {
    use super::super::Space;
    use super::*;
    use crate::filesystems::btrfs::subvolume::now;
    use crate::filesystems::btrfs::tree::locks::NoLocks;
    use crate::filesystems::btrfs::tree::search::DEFAULT_RULES;
    use std::cell::RefCell;

    fn free_group() -> (Group, RefCell<Tree>) {
        let mut space = Space::new(8 << 30);
        let place = space.allocate_data(4096);
        let (group, tree) = (space.group(place), RefCell::new(Tree::new()));
        now(TreeOps::new(&tree, &NoLocks, DEFAULT_RULES).add_free_group(group));
        (group, tree)
    }

    fn items_of(tree: &RefCell<Tree>) -> Vec<Item> {
        let tree = tree.borrow();
        tree.items(tree.root()).to_vec()
    }

    #[test]
    fn the_front_of_a_free_extent_is_taken_as_a_search_takes_it() {
        let ((group, quick), (_, plain)) = (free_group(), free_group());
        for taken in 0..100 {
            let place = group.start + taken * 4096;
            assert!(quick.borrow_mut().take_front_in_place(place, 4096));
            now(TreeOps::new(&plain, &NoLocks, DEFAULT_RULES).remove_free_space(group, place, 4096));
        }
        assert_eq!(items_of(&quick), items_of(&plain));
    }

    #[test]
    fn the_middle_and_all_of_a_free_extent_are_no_front() {
        let (group, tree) = free_group();
        assert!(!tree.borrow_mut().take_front_in_place(group.start + 4096, 4096));
        assert!(!tree.borrow_mut().take_front_in_place(group.start, group.bytes));
        tree.borrow_mut().transid += 1;
        assert!(!tree.borrow_mut().take_front_in_place(group.start, 4096), "the leaf has to be copied first");
    }
}
