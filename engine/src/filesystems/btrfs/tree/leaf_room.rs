//! Room in leaves: pushing items to the neighbours, splitting, deleting (`push_leaf_right`, `push_leaf_left`, `split_leaf`,
//! `btrfs_del_items` of `fs/btrfs/ctree.c`).

use super::key::{Item, Key, ITEM_HEAD, LEAF_DATA};
use super::locks::{TreeLocks, Work};
use super::path::Path;
use super::search::TreeOps;
use super::{BlockId, Tree};
use crate::waist::Side;

/// What a push is for.
#[derive(Clone, Copy, Debug)]
struct Push {
    /// Bytes that the item to be inserted takes with the items before or behind it.
    data_size: u32,
    /// Bytes that the neighbour must have free.
    needed: u32,
    /// The leaf shall be emptied, not made fit for an insertion.
    empty: bool,
}

/// How a leaf is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Split {
    /// A new empty leaf for the new item alone.
    NewLeaf,
    /// In two at a slot.
    At(usize),
    /// In two at a slot, and then once more.
    TwiceAt(usize),
    /// Not yet: pushing both ends away may save a second split.
    PushFirst,
}

impl<L: TreeLocks> TreeOps<'_, L> {
    /// `push_leaf_right`: whether items, or the place of the new one, moved to the right neighbour.
    async fn push_leaf_right(&self, path: &mut Path, push: Push, min_slot: usize) -> bool {
        let Some(upper) = path.nodes[1] else { return false };
        let left = path.leaf();
        let Some(right) = self.tree().child(upper, path.slots[1] + 1) else { return false };
        self.lock_other(right, 0).await;
        let free = self.tree().free_space(right);
        let len = self.tree().len(left);
        if free < push.needed || len == 0 {
            self.locks.unlock(right, Side::Write).await;
            return false;
        }
        self.cow(right).await;
        let (count, stays) = if path.slots[0] == len && !push.empty {
            (0, false) // the new item becomes the first of the neighbour
        } else {
            let count = items_to_push_right(&self.tree(), path, push, free, min_slot);
            if count == 0 {
                self.locks.unlock(right, Side::Write).await;
                return false;
            }
            let mut tree = self.tree.borrow_mut();
            tree.move_to_right(left, len - count, right);
            let key = tree.first_key(right);
            tree.set_key(upper, path.slots[1] + 1, key);
            (count, path.slots[0] < len - count)
        };
        let moved = if count > 0 { self.tree().len(right) } else { 0 };
        [left, right, upper].iter().for_each(|&block| self.locks.change(block));
        self.locks.work(Work::Shift(right, moved)).await;
        if stays {
            self.locks.unlock(right, Side::Write).await;
        } else {
            path.slots[0] -= len - count;
            path.slots[1] += 1;
            self.replace_leaf(path, right).await;
        }
        true
    }

    /// `push_leaf_left`: whether items moved to the left neighbour. Items from `max_slot` on stay.
    async fn push_leaf_left(&self, path: &mut Path, push: Push, max_slot: usize) -> bool {
        let Some(upper) = path.nodes[1] else { return false };
        let right = path.leaf();
        if path.slots[1] == 0 || self.tree().is_empty(right) {
            return false;
        }
        let left = self.tree().child(upper, path.slots[1] - 1).expect("the slot before");
        self.lock_other(left, 0).await;
        let free = self.tree().free_space(left);
        if free < push.needed {
            self.locks.unlock(left, Side::Write).await;
            return false;
        }
        self.cow(left).await;
        let count = items_to_push_left(&self.tree(), path, push, free, max_slot);
        if count == 0 {
            self.locks.unlock(left, Side::Write).await;
            return false;
        }
        let before = self.tree().len(left);
        move_left(&mut self.tree.borrow_mut(), path, count, left);
        let moved = count + self.tree().len(right);
        [left, right, upper].iter().for_each(|&block| self.locks.change(block));
        self.locks.work(Work::Shift(right, moved)).await;
        if path.slots[0] < count {
            path.slots[0] += before;
            path.slots[1] -= 1;
            self.replace_leaf(path, left).await;
        } else {
            self.locks.unlock(left, Side::Write).await;
            path.slots[0] -= count;
        }
        true
    }

    /// `split_leaf`: makes room for `bytes` at the path's slot, by the neighbours or by a new leaf. `extend`: an item that is
    /// there grows.
    pub(super) async fn split_leaf(&self, key: Key, path: &mut Path, bytes: u32, extend: bool) {
        if path.nodes[1].is_some() {
            if self.push_to_a_neighbour(path, bytes).await {
                return;
            }
        } else {
            self.allocate_root(path, 1).await;
        }
        let mut tried_pushing = false;
        loop {
            let split = choose_split(&self.tree(), path, bytes, extend, tried_pushing);
            match split {
                Split::PushFirst => {
                    tried_pushing = true;
                    self.push_both_ends(path, bytes).await;
                    if self.tree().free_space(path.leaf()) >= bytes {
                        return;
                    }
                }
                Split::NewLeaf => return self.insert_empty_leaf(key, path).await,
                Split::At(mid) => return self.split_leaf_at(path, mid).await,
                Split::TwiceAt(mid) => {
                    tried_pushing = true;
                    self.split_leaf_at(path, mid).await;
                }
            }
        }
    }

    /// The first try of `split_leaf`: to the right, else to the left. Whether there is room now.
    async fn push_to_a_neighbour(&self, path: &mut Path, bytes: u32) -> bool {
        let leaf = path.leaf();
        let free = self.tree().free_space(leaf);
        let needed = if path.slots[0] < self.tree().len(leaf) { bytes - free } else { bytes };
        if !self.push_leaf_right(path, Push { data_size: needed, needed, empty: false }, 0).await {
            let needed = if path.slots[0] > 0 { bytes - free } else { bytes };
            self.push_leaf_left(path, Push { data_size: needed, needed, empty: false }, usize::MAX).await;
        }
        self.tree().free_space(path.leaf()) >= bytes
    }

    /// `push_for_double_split`: everything behind the slot to the right, everything before it to the left.
    async fn push_both_ends(&self, path: &mut Path, bytes: u32) {
        let needed = |path: &Path, inside: bool| bytes - if inside { self.tree().free_space(path.leaf()) } else { 0 };
        let slot = path.slots[0];
        let behind = needed(path, slot < self.tree().len(path.leaf()));
        self.push_leaf_right(path, Push { data_size: 1, needed: behind, empty: false }, slot).await;
        let slot = path.slots[0];
        if slot == 0 || slot == self.tree().len(path.leaf()) || self.tree().free_space(path.leaf()) >= bytes {
            return;
        }
        let before = needed(path, true);
        self.push_leaf_left(path, Push { data_size: 1, needed: before, empty: false }, slot).await;
    }

    /// `copy_for_split`.
    async fn split_leaf_at(&self, path: &mut Path, mid: usize) {
        let leaf = path.leaf();
        let right = self.allocate(0).await;
        self.lock_other(right, 0).await;
        {
            let mut tree = self.tree.borrow_mut();
            tree.move_to_right(leaf, mid, right);
            let key = tree.first_key(right);
            tree.insert_pointer(path, key, right, path.slots[1] + 1, 1);
        }
        let moved = self.tree().len(right);
        [leaf, right, path.node(1)].iter().for_each(|&block| self.locks.change(block));
        self.locks.work(Work::Shift(leaf, moved)).await;
        if mid <= path.slots[0] {
            path.slots[0] -= mid;
            path.slots[1] += 1;
            self.replace_leaf(path, right).await;
        } else {
            self.locks.unlock(right, Side::Write).await;
        }
    }

    /// A new leaf for the new item alone, behind the path's leaf, or before it if the item comes first.
    async fn insert_empty_leaf(&self, key: Key, path: &mut Path) {
        let right = self.allocate(0).await;
        self.lock_other(right, 0).await;
        if path.slots[0] > 0 {
            path.slots[1] += 1;
        }
        {
            let mut tree = self.tree.borrow_mut();
            tree.insert_pointer(path, key, right, path.slots[1], 1);
            if path.slots[1] == 0 {
                tree.fixup_low_keys(path, key, 1);
            }
        }
        path.slots[0] = 0;
        self.replace_leaf(path, right).await;
    }

    /// The path goes to another leaf, which is locked already.
    async fn replace_leaf(&self, path: &mut Path, leaf: BlockId) {
        self.locks.unlock(path.leaf(), Side::Write).await;
        path.nodes[0] = Some(leaf);
    }

    /// `insert_new_root`: a new root above the present one, locked before anybody can find it.
    pub(super) async fn allocate_root(&self, path: &mut Path, level: usize) {
        let root = self.allocate(level).await;
        self.lock_other(root, level).await;
        self.tree.borrow_mut().insert_new_root(path, level, root);
        path.locks[level] = Some(Side::Write);
    }

    /// `btrfs_del_items`: deletes items at the path's slot. A leaf that is less than a third full goes into its neighbours if
    /// they have room.
    pub async fn del_items(&self, path: &mut Path, count: usize) {
        let (leaf, slot) = (path.leaf(), path.slots[0]);
        self.tree.borrow_mut().remove_items(leaf, slot, count);
        let behind = self.tree().len(leaf) - slot;
        self.locks.change(leaf);
        self.locks.work(Work::Shift(leaf, behind)).await;
        if self.tree().is_empty(leaf) {
            if self.tree().root() != leaf {
                self.set_path_blocking(path).await;
                self.del_leaf(path, leaf).await;
            }
            return;
        }
        if slot == 0 {
            let key = self.tree().first_key(leaf);
            self.tree.borrow_mut().fixup_low_keys(path, key, 1);
        }
        if LEAF_DATA - self.tree().free_space(leaf) >= LEAF_DATA / 3 {
            return;
        }
        self.set_path_blocking(path).await;
        let parent_slot = path.slots[1];
        let first = ITEM_HEAD + u32::from(self.tree().items(leaf)[0].size);
        // Before 5.18 room for a byte was asked, and what fits was pushed.
        let push = |needed| match self.rules.pushes_some {
            true => Push { data_size: 1, needed: 1, empty: true },
            false => Push { data_size: 0, needed, empty: true },
        };
        self.push_leaf_left(path, push(first), usize::MAX).await;
        if path.leaf() == leaf && !self.tree().is_empty(leaf) {
            let all = LEAF_DATA - self.tree().free_space(leaf);
            self.push_leaf_right(path, push(all), 0).await;
        }
        if self.tree().is_empty(leaf) {
            path.slots[1] = parent_slot;
            self.del_leaf(path, leaf).await;
        }
    }

    /// `btrfs_del_leaf`: all locks are dropped before the block is given back.
    async fn del_leaf(&self, path: &mut Path, leaf: BlockId) {
        self.tree.borrow_mut().delete_pointer(path, 1, path.slots[1]);
        self.unlock_up_safe(path, 0).await;
        self.free(leaf).await;
    }
}

/// How many items `__push_leaf_right` takes.
fn items_to_push_right(tree: &Tree, path: &Path, push: Push, free: u32, min_slot: usize) -> usize {
    let (items, slot) = (tree.items(path.leaf()), path.slots[0]);
    let lowest = if push.empty { 0 } else { min_slot.max(1) };
    let space = if slot >= items.len() { push.data_size } else { 0 };
    let last_first = items.iter().enumerate().skip(lowest).rev();
    items_to_push(tree, path, push, free, last_first, |i| slot > i, space)
}

/// Moves so many items of the path's leaf to its left neighbour; the key of what is left stands above.
fn move_left(tree: &mut Tree, path: &Path, count: usize, left: BlockId) {
    let right = path.leaf();
    tree.move_to_left(right, count, left);
    if !tree.is_empty(right) {
        let key = tree.first_key(right);
        tree.fixup_low_keys(path, key, 1);
    }
}

/// How many items `__push_leaf_left` takes.
fn items_to_push_left(tree: &Tree, path: &Path, push: Push, free: u32, max_slot: usize) -> usize {
    let (items, slot) = (tree.items(path.leaf()), path.slots[0]);
    let last = if push.empty { items.len() } else { items.len() - 1 };
    let first_first = items.iter().enumerate().take(last.min(max_slot));
    items_to_push(tree, path, push, free, first_first, |i| slot < i, 0)
}

/// How many items, in this order, fit into `free` bytes beside `space`. A push for an insertion ends when the slot is passed, or at it if
/// both leaves would be about as full.
fn items_to_push<'a>(
    tree: &Tree,
    path: &Path,
    push: Push,
    free: u32,
    items: impl Iterator<Item = (usize, &'a Item)>,
    passed: impl Fn(usize) -> bool,
    mut space: u32,
) -> usize {
    let (leaf, slot) = (path.leaf(), path.slots[0]);
    let mut count = 0;
    for (i, item) in items {
        let as_full = |space| tree.free_space(leaf) + space * 2 > free;
        if !push.empty && count > 0 && (passed(i) || (i == slot && as_full(space))) {
            break;
        }
        if i == slot {
            space += push.data_size;
        }
        if item.bytes() + space > free {
            break;
        }
        count += 1;
        space += item.bytes();
    }
    count
}

/// Where `split_leaf` splits.
fn choose_split(tree: &Tree, path: &Path, bytes: u32, extend: bool, tried_pushing: bool) -> Split {
    let (leaf, slot) = (path.leaf(), path.slots[0]);
    let len = tree.len(leaf);
    let mid = len.div_ceil(2);
    let used = LEAF_DATA - tree.free_space(leaf);
    let behind = |slot| tree.used_from(leaf, slot);
    let at_slot = || match slot != len && behind(slot) + bytes > LEAF_DATA {
        false => Split::At(slot),
        true if !tried_pushing => Split::PushFirst,
        true => Split::TwiceAt(slot),
    };
    if mid <= slot {
        if len > 1 && behind(mid) + bytes <= LEAF_DATA {
            Split::At(mid)
        } else if slot >= len {
            Split::NewLeaf
        } else {
            at_slot()
        }
    } else if used - behind(mid) + bytes <= LEAF_DATA {
        Split::At(mid)
    } else if slot > 0 {
        at_slot()
    } else if extend {
        Split::At(1)
    } else {
        Split::NewLeaf
    }
}
