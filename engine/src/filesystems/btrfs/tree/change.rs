//! Inserting and deleting items at the end of a search (`fs/btrfs/ctree.c`, `dir-item.c` and `file.c` of Linux 6.18).

use super::key::{Item, Key};
use super::locks::{TreeLocks, Work};
use super::path::Path;
use super::search::{Intent, TreeOps};
use super::BlockId;

impl<L: TreeLocks> TreeOps<'_, L> {
    /// `btrfs_insert_empty_items`: inserts items that follow each other into one leaf. The path holds the leaf; nothing is
    /// inserted if the first key is there.
    pub async fn insert_items(&self, items: &[Item]) -> (Path, bool) {
        let bytes = items.iter().map(Item::bytes).sum();
        let (mut path, found) = self.search_slot(items[0].key, Intent::Insert(bytes)).await;
        if found {
            return (path, false);
        }
        self.put_items(&mut path, items).await;
        (path, true)
    }

    /// `setup_items_for_insert`: puts items where the path points to, in a leaf that has room for them.
    pub(crate) async fn put_items(&self, path: &mut Path, items: &[Item]) {
        if path.slots[0] == 0 {
            self.tree.borrow_mut().fixup_low_keys(path, items[0].key, 1);
        }
        self.unlock_up_safe(path, 1).await;
        self.tree.borrow_mut().insert_items(path.leaf(), path.slots[0], items);
        self.locks.change(path.leaf());
        let behind = self.tree().len(path.leaf()) - path.slots[0] - items.len();
        self.locks.work(Work::Shift(path.leaf(), behind)).await;
    }

    /// `btrfs_extend_item` and `btrfs_truncate_item`: the data of the item and of all behind it move within the leaf.
    pub(crate) async fn resize_item(&self, leaf: BlockId, slot: usize, size: u32) {
        self.tree.borrow_mut().resize_item(leaf, slot, size);
        self.locks.change(leaf);
        let moved = self.tree().len(leaf) - slot;
        self.locks.work(Work::Shift(leaf, moved)).await;
    }

    /// `insert_with_overflow`: inserts an item, or if its key is there makes that item larger by its data.
    pub async fn insert_or_extend(&self, item: Item) -> Path {
        let (mut path, inserted) = self.insert_items(&[item]).await;
        if !inserted {
            self.unlock_up_safe(&mut path, 1).await;
            let (leaf, slot) = (path.leaf(), path.slots[0]);
            let size = u32::from(self.tree().items(leaf)[slot].size) + u32::from(item.size);
            self.resize_item(leaf, slot, size).await;
        }
        path
    }

    /// `btrfs_drop_extents` with `replace_extent`: what begins in its range, which ends at a byte of the file, goes, and the extent
    /// comes, if the leaf is still there and has room without another search.
    pub async fn replace_extent(&self, extent: Item, end: u64) -> Path {
        let (mut path, _) = self.search_slot(extent.key, Intent::Delete).await;
        let mut may = true;
        loop {
            let run = self.run_within(&path, extent.key, end);
            let goes_on = path.slots[0] + run == self.tree().len(path.leaf());
            if run > 0 {
                self.del_items(&mut path, run).await;
            }
            let next = self.tree().next_within(extent.key, end).filter(|_| goes_on);
            if !goes_on || (run > 0 && next.is_none()) {
                break;
            }
            self.release_path(&mut path).await;
            self.look_into_next_leaf(extent.key).await;
            let Some(next) = next else { return self.insert_items(&[extent]).await.0 }; // it is locked for reading only
            may = !self.rules.replaces_in_one_leaf;
            path = self.search_slot(next, Intent::Delete).await.0;
        }
        if may && path.locks[0].is_some() && self.tree().free_space(path.leaf()) >= extent.bytes() {
            self.put_items(&mut path, &[extent]).await;
            return path;
        }
        self.release_path(&mut path).await;
        self.insert_items(&[extent]).await.0
    }

    /// `btrfs_next_leaf` of a path that is at the end of its leaf: another search, for reading. The next leaf's own lock is left out.
    pub(crate) async fn look_into_next_leaf(&self, key: Key) {
        let (mut path, _) = self.search_slot(key, Intent::Read).await;
        self.release_path(&mut path).await;
    }

    /// How many items from the path's slot on are of the object and kind of a key, from it on and before an offset.
    fn run_within(&self, path: &Path, first: Key, end: u64) -> usize {
        let tree = self.tree();
        let items = &tree.items(path.leaf())[path.slots[0]..];
        items.iter().take_while(|item| item.key.is_like(first) && item.key.offset() < end).count()
    }

    /// Deletes one item, if it is there.
    pub async fn delete_key(&self, key: Key) {
        let (mut path, found) = self.search_slot(key, Intent::Delete).await;
        if found {
            self.del_items(&mut path, 1).await;
        }
        self.release_path(&mut path).await;
    }

    /// `btrfs_delete_one_dir_name`: deletes an entry by hash; another of the same hash stays in a smaller item.
    pub async fn delete_dir_item(&self, item: Item) {
        let (mut path, found) = self.search_slot(item.key, Intent::Delete).await;
        if found {
            self.delete_one_dir_name(&mut path, item).await;
        }
        self.release_path(&mut path).await;
    }

    /// Deletes the entry that the path points to, or its part of an item of several.
    pub async fn delete_one_dir_name(&self, path: &mut Path, item: Item) {
        let size = self.tree().items(path.leaf())[path.slots[0]].size;
        if size == item.size {
            self.del_items(path, 1).await;
        } else {
            self.resize_item(path.leaf(), path.slots[0], u32::from(size - item.size)).await;
        }
    }
}
