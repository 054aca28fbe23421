//! Room in the nodes above the leaves, made on the way down (`split_node`, `push_nodes_for_insert`, `balance_level` of
//! `fs/btrfs/ctree.c`).

use super::key::MAX_POINTERS;
use super::locks::TreeLocks;
use super::path::Path;
use super::search::TreeOps;
use super::{BlockId, Tree};
use crate::waist::Side;

impl<L: TreeLocks> TreeOps<'_, L> {
    /// `split_node`: makes room in a nearly full node, by its neighbours or by a new one.
    pub(super) async fn split_node(&self, path: &mut Path, level: usize) {
        let mut node = path.node(level);
        if self.tree().root() == node {
            self.allocate_root(path, level + 1).await;
        } else {
            let pushed = self.push_nodes_for_insert(path, level).await;
            node = path.node(level);
            if pushed && self.tree().len(node) < MAX_POINTERS - 3 {
                return;
            }
        }
        let mid = self.tree().len(node).div_ceil(2);
        let split = self.allocate(level).await;
        self.lock_other(split, level).await;
        {
            let mut tree = self.tree.borrow_mut();
            tree.move_to_right(node, mid, split);
            let key = tree.first_key(split);
            tree.insert_pointer(path, key, split, path.slots[level + 1] + 1, level + 1);
        }
        if path.slots[level] >= mid {
            path.slots[level] -= mid;
            path.slots[level + 1] += 1;
            path.nodes[level] = Some(split);
            self.locks.unlock(node, Side::Write).await;
        } else {
            self.locks.unlock(split, Side::Write).await;
        }
    }

    /// `push_nodes_for_insert`: whether pointers moved to the left neighbour, or else to the right.
    async fn push_nodes_for_insert(&self, path: &mut Path, level: usize) -> bool {
        let Some(parent) = path.nodes[level + 1] else { return false };
        self.push_to_left(path, level, parent).await || self.push_to_right(path, level, parent).await
    }

    /// Whether pointers of the path's node moved to its left neighbour. The path follows its pointer.
    async fn push_to_left(&self, path: &mut Path, level: usize, parent: BlockId) -> bool {
        let (mid, slot, parent_slot) = (path.node(level), path.slots[level], path.slots[level + 1]);
        let Some(left) = self.lock_neighbour(parent, parent_slot.checked_sub(1), level).await else { return false };
        let before = self.tree().len(left);
        let count = if before < MAX_POINTERS - 1 { pointers_to_left(&self.tree(), left, mid, false) } else { 0 };
        if count > 0 {
            self.cow(left).await;
            let mut tree = self.tree.borrow_mut();
            tree.move_to_left(mid, count, left);
            let key = tree.first_key(mid);
            tree.set_key(parent, parent_slot, key);
        }
        let goes_left = count > slot;
        if goes_left {
            path.nodes[level] = Some(left);
            path.slots[level + 1] -= 1;
            path.slots[level] = slot + before;
        } else {
            path.slots[level] = slot - count;
        }
        self.locks.unlock(if goes_left { mid } else { left }, Side::Write).await;
        count > 0
    }

    /// Whether pointers of the path's node moved to its right neighbour. The path follows its pointer.
    async fn push_to_right(&self, path: &mut Path, level: usize, parent: BlockId) -> bool {
        let (mid, slot, parent_slot) = (path.node(level), path.slots[level], path.slots[level + 1]);
        let Some(right) = self.lock_neighbour(parent, Some(parent_slot + 1), level).await else { return false };
        let count =
            if self.tree().len(right) < MAX_POINTERS - 1 { pointers_to_right(&self.tree(), mid, right) } else { 0 };
        if count > 0 {
            self.cow(right).await;
            let mut tree = self.tree.borrow_mut();
            let stay = tree.len(mid) - count;
            tree.move_to_right(mid, stay, right);
            let key = tree.first_key(right);
            tree.set_key(parent, parent_slot + 1, key);
            if stay <= slot {
                path.nodes[level] = Some(right);
                path.slots[level + 1] += 1;
                path.slots[level] = slot - stay;
            }
        }
        let other = if path.node(level) == right { mid } else { right };
        self.locks.unlock(other, Side::Write).await;
        count > 0
    }

    /// `balance_level`: fills a node that is less than a quarter full from its neighbours, or empties it into them. A root
    /// with one child gives way to it; the path then has no node at this level.
    pub(super) async fn balance_level(&self, path: &mut Path, level: usize) {
        let mid = path.node(level);
        let Some(parent) = path.nodes[level + 1] else {
            if self.tree().len(mid) == 1 {
                self.promote_child(path, level).await;
            }
            return;
        };
        if self.tree().len(mid) > MAX_POINTERS / 4 {
            return;
        }
        let parent_slot = path.slots[level + 1];
        let left = self.lock_to_change(parent, parent_slot.checked_sub(1), level).await;
        let right = self.lock_to_change(parent, Some(parent_slot + 1), level).await;
        let before = left.map_or(0, |left| self.tree().len(left));
        if let Some(left) = left {
            self.push_node_left(left, mid);
        }
        let right = self.take_from_right(path, level, right).await;
        if self.tree().len(mid) == 1 {
            // A deletion below could take the only pointer: get some from the left, which must exist then.
            self.refill_from_left(left.expect("a node with one pointer has a left neighbour"), mid);
        }
        let emptied = self.tree().is_empty(mid);
        if emptied {
            self.unlock_level(path, level).await;
            self.tree.borrow_mut().delete_pointer(path, level + 1, parent_slot);
            self.free(mid).await;
        } else {
            let key = self.tree().first_key(mid);
            self.tree.borrow_mut().set_key(parent, parent_slot, key);
        }
        self.follow_pointer(path, level, left, before, emptied).await;
        for neighbour in [right, left.filter(|&left| path.nodes[level] != Some(left))].into_iter().flatten() {
            self.locks.unlock(neighbour, Side::Write).await;
        }
    }

    /// Moves what fits from the right neighbour into the path's node. Returns the neighbour, unless it was emptied.
    async fn take_from_right(&self, path: &mut Path, level: usize, right: Option<BlockId>) -> Option<BlockId> {
        let (mid, parent, next) = (path.node(level), path.node(level + 1), path.slots[level + 1] + 1);
        let right = right?;
        self.push_node_left(mid, right);
        if self.tree().is_empty(right) {
            self.locks.unlock(right, Side::Write).await;
            self.tree.borrow_mut().delete_pointer(path, level + 1, next);
            self.free(right).await;
            return None;
        }
        let key = self.tree().first_key(right);
        self.tree.borrow_mut().set_key(parent, next, key);
        Some(right)
    }

    fn refill_from_left(&self, left: BlockId, mid: BlockId) {
        self.balance_node_right(left, mid);
        if self.tree().len(mid) == 1 {
            self.push_node_left(left, mid);
        }
    }

    /// The path's pointer may have moved to the left neighbour, which had `before` of them: the path follows it, and its
    /// node is unlocked, unless it was emptied and freed.
    async fn follow_pointer(&self, path: &mut Path, level: usize, left: Option<BlockId>, before: usize, emptied: bool) {
        let place = path.slots[level] + before; // counted over the left neighbour and this node
        let now = left.map_or(0, |left| self.tree().len(left));
        if now <= place {
            path.slots[level] = place - now;
            return;
        }
        if !emptied {
            self.locks.unlock(path.node(level), Side::Write).await;
        }
        path.nodes[level] = left;
        path.slots[level + 1] -= 1;
        path.slots[level] = place;
        path.locks[level] = Some(Side::Write);
    }

    /// A root with one child: the child becomes the root.
    async fn promote_child(&self, path: &mut Path, level: usize) {
        let root = path.node(level);
        let child = self.tree().child(root, 0).expect("the only child");
        self.lock_other(child, level - 1).await;
        self.cow(child).await;
        self.tree.borrow_mut().promote(child);
        self.locks.unlock(child, Side::Write).await;
        self.unlock_level(path, level).await;
        path.nodes[level] = None;
        self.free(root).await;
    }

    async fn lock_neighbour(&self, parent: BlockId, slot: Option<usize>, level: usize) -> Option<BlockId> {
        let neighbour = self.tree().child(parent, slot?)?;
        self.lock_other(neighbour, level).await;
        Some(neighbour)
    }

    /// Locks a neighbour as who will write into it.
    async fn lock_to_change(&self, parent: BlockId, slot: Option<usize>, level: usize) -> Option<BlockId> {
        let neighbour = self.lock_neighbour(parent, slot, level).await?;
        self.cow(neighbour).await;
        Some(neighbour)
    }

    fn push_node_left(&self, left: BlockId, from: BlockId) {
        let count = pointers_to_left(&self.tree(), left, from, true);
        self.tree.borrow_mut().move_to_left(from, count, left);
    }

    fn balance_node_right(&self, from: BlockId, right: BlockId) {
        let count = pointers_to_right(&self.tree(), from, right);
        let mut tree = self.tree.borrow_mut();
        let stay = tree.len(from) - count;
        tree.move_to_right(from, stay, right);
    }
}

/// How many pointers `push_node_left` takes: to empty the source if asked to, else all but eight.
fn pointers_to_left(tree: &Tree, left: BlockId, from: BlockId, empty: bool) -> usize {
    let len = tree.len(from);
    let room = MAX_POINTERS - tree.len(left);
    if !empty {
        return if len <= 8 { 0 } else { room.min(len - 8) };
    }
    let count = room.min(len);
    match len - count {
        0 => count,
        rest if rest < 8 => count.saturating_sub(8),
        _ => count,
    }
}

/// How many pointers `balance_node_right` takes: at most half and one.
fn pointers_to_right(tree: &Tree, from: BlockId, right: BlockId) -> usize {
    let len = tree.len(from);
    let most = len / 2 + 1;
    if len < 4 || most >= len {
        return 0;
    }
    most.min(MAX_POINTERS - tree.len(right))
}
