//! `btrfs_search_slot`: the way down a tree with lock coupling, and the room made on the way. Follows `fs/btrfs/ctree.c` of
//! Linux 6.18.

use super::key::{Key, ITEM_HEAD, MAX_POINTERS};
use super::locks::{TreeLocks, Work};
use super::path::Path;
use super::{BlockId, Tree, MAX_LEVEL};
use crate::kernel::btrfs::PathClearing;
use crate::waist::{Mode, Side};
use std::cell::{Ref, RefCell};

/// What a search is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// To read.
    Read,
    /// To change an item in place.
    Update,
    /// To insert so many bytes, heads of items included.
    Insert(u32),
    /// To delete items.
    Delete,
}

/// How kernels differ in the way they hold locks.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// An insertion that fits the leaf, and not at its front, unlocks the parent before it searches the leaf (since 5.17).
    pub early_unlock: bool,
    /// Locks are taken spinning; before a task may sleep it makes all that it holds blocking (before 5.11).
    pub modes: bool,
    /// How it makes them spinning again.
    pub clearing: PathClearing,
    /// A leaf that a deletion leaves nearly empty pushes what a neighbour has room for, if only one item (before 5.18).
    pub pushes_some: bool,
    /// An extent takes the place of others only where they lie in one leaf (before 5.18).
    pub replaces_in_one_leaf: bool,
    /// Checksums go into an item that ends where they begin without another search, if its leaf has room (since 5.8).
    pub extends_csums_in_place: bool,
    /// They do also where that is the last one of its leaf (not in the log since 5.13).
    pub joins_last_csums: bool,
}

/// The rules of Linux 6.18.
pub const DEFAULT_RULES: Rules = Rules {
    early_unlock: true,
    modes: false,
    clearing: PathClearing::Never,
    pushes_some: false,
    replaces_in_one_leaf: false,
    extends_csums_in_place: true,
    joins_last_csums: true,
};

/// A tree, and the locks by which a task goes through it.
pub struct TreeOps<'a, L> {
    pub(crate) tree: &'a RefCell<Tree>,
    pub(crate) locks: &'a L,
    pub(crate) rules: Rules,
    leave_spinning: bool,
}

impl<'a, L: TreeLocks> TreeOps<'a, L> {
    /// A task's access to a tree.
    pub fn new(tree: &'a RefCell<Tree>, locks: &'a L, rules: Rules) -> Self {
        Self { tree, locks, rules, leave_spinning: true }
    }

    /// The same for who may sleep with what it found: not asking for `leave_spinning`, it gets all locks blocking.
    pub fn blocking(self) -> Self {
        Self { leave_spinning: false, ..self }
    }

    pub(crate) fn tree(&self) -> Ref<'a, Tree> {
        self.tree.borrow()
    }

    /// Looks for a key: the path to where it is or belongs, and whether it is there. The path must be released.
    pub async fn search_slot(&self, key: Key, intent: Intent) -> (Path, bool) {
        let mut write_level = match intent {
            Intent::Read => -1,
            Intent::Update => 0,
            Intent::Insert(_) => 1,
            Intent::Delete => 2,
        };
        let min_write_level = write_level;
        loop {
            let mut path = Path::default();
            let found = self.descend(key, intent, &mut path, &mut write_level, min_write_level).await;
            if let Some(found) = found {
                return (path, found);
            }
            self.release_path(&mut path).await;
            self.tree.borrow_mut().counts.restarts += 1;
        }
    }

    /// One way down. Nothing if it must begin anew: blocks up to `write_level` must then be locked for writing.
    async fn descend(
        &self,
        key: Key,
        intent: Intent,
        path: &mut Path,
        write_level: &mut i32,
        min_write_level: i32,
    ) -> Option<bool> {
        let changes_size = matches!(intent, Intent::Insert(_) | Intent::Delete);
        let lowest_unlock = if intent == Intent::Delete { 2 } else { 1 };
        let mut exact = false; // a node above had just this key, so it is the first of all blocks below
        let mut block = self.lock_root(path, *write_level).await;
        loop {
            let level = self.tree().level(block);
            if intent != Intent::Read
                && self.tree().should_cow(block)
                && !self.cow_on_path(block, path, write_level).await
            {
                return None;
            }
            path.nodes[level] = Some(block);
            if !changes_size && level + 1 < MAX_LEVEL {
                self.unlock_level(path, level + 1).await;
            }
            if level == 0 {
                let found = self.search_leaf(key, intent, path, exact).await;
                self.unlock_up(path, 0, lowest_unlock, min_write_level, &mut write_level.clone()).await;
                if intent == Intent::Read || !self.leave_spinning {
                    self.set_path_blocking(path).await;
                }
                return Some(found);
            }
            let (found, slot) = if exact { (true, 0) } else { self.tree().search_block(block, key, 0) };
            exact = found;
            path.slots[level] = if found { slot } else { slot.saturating_sub(1) };
            if !self.make_room_in_node(intent, path, level, write_level).await {
                return None;
            }
            if path.slots[level] == 0 && changes_size && *write_level < level as i32 + 1 {
                *write_level = level as i32 + 1;
                return None;
            }
            self.locks.look_into(path.node(level));
            self.locks.work(Work::Node).await;
            self.unlock_up(path, level, lowest_unlock, min_write_level, write_level).await;
            block = self.tree().child(path.node(level), path.slots[level]).expect("the slot has a child");
            let side = if level as i32 - 1 <= *write_level { Side::Write } else { Side::Read };
            self.lock_child(path, level - 1, block, side).await;
        }
    }

    /// Copies a block that was written since it was last changed; where its parent is not locked for writing,
    /// raises `write_level` instead and says no.
    async fn cow_on_path(&self, block: BlockId, path: &mut Path, write_level: &mut i32) -> bool {
        let level = self.tree().level(block);
        let parent = level + 1 < MAX_LEVEL && path.nodes[level + 1].is_some();
        if level as i32 > *write_level || (parent && level as i32 + 1 > *write_level) {
            *write_level = level as i32 + 1;
            return false;
        }
        self.set_path_blocking(path).await;
        self.cow(block).await;
        self.clear_path_blocking(path).await;
        true
    }

    /// Locks the next block on the way down. Where locks have modes, the path above blocks before this task may sleep.
    async fn lock_child(&self, path: &mut Path, level: usize, block: BlockId, side: Side) {
        if !self.rules.modes {
            self.lock(path, level, block, side).await;
        } else if self.locks.try_lock(block, level, side).await {
            (path.nodes[level], path.locks[level]) = (Some(block), Some(side));
        } else {
            self.set_path_blocking(path).await;
            self.lock(path, level, block, side).await;
            self.clear_path_blocking(path).await;
        }
    }

    /// `btrfs_search_slot_get_root`: a read lock first, since only then is the root's level known. While the task waited,
    /// another block may have become the root, or the root an empty leaf: only what it finds then enters the path.
    async fn lock_root(&self, path: &mut Path, write_level: i32) -> BlockId {
        let mut side = Side::Read;
        loop {
            let root = self.tree().root();
            let level = self.tree().level(root);
            self.locks.lock(root, level, side).await;
            let level = self.tree().level(root);
            if self.tree().root() != root {
                self.locks.unlock(root, side).await;
            } else if side == Side::Read && level as i32 <= write_level {
                self.locks.work(Work::ReadRoot).await;
                self.locks.unlock(root, side).await;
                self.locks.work(Work::TradeRoot).await;
                side = Side::Write;
            } else {
                (path.nodes[level], path.locks[level]) = (Some(root), Some(side));
                return root;
            }
        }
    }

    /// `setup_nodes_for_search`: splits a node that is nearly full before an insertion goes through it, balances one that is
    /// half empty before a deletion does. False if the search must begin anew.
    async fn make_room_in_node(&self, intent: Intent, path: &mut Path, level: usize, write_level: &mut i32) -> bool {
        let len = self.tree().len(path.node(level));
        let full = matches!(intent, Intent::Insert(_)) && len >= MAX_POINTERS - 3;
        let sparse = intent == Intent::Delete && len < MAX_POINTERS / 2;
        if !full && !sparse {
            return true;
        }
        if *write_level < level as i32 + 1 {
            *write_level = level as i32 + 1;
            return false;
        }
        self.set_path_blocking(path).await;
        if full {
            self.split_node(path, level).await;
        } else {
            self.balance_level(path, level).await;
        }
        self.clear_path_blocking(path).await;
        path.nodes[level].is_some()
    }

    /// `search_leaf`: finds the slot, and makes room for what is to be inserted.
    async fn search_leaf(&self, key: Key, intent: Intent, path: &mut Path, exact: bool) -> bool {
        let leaf = path.leaf();
        let Intent::Insert(bytes) = intent else { return self.find_slot(key, path, 0, exact).await };
        self.locks.work(Work::EnterLeaf).await;
        let free = self.tree().free_space(leaf);
        let mut low = 0;
        if self.rules.early_unlock && path.locks[1].is_some() && free >= bytes {
            let first = self.tree().first_key(leaf);
            if first <= key {
                self.unlock_up_safe(path, 1).await;
            }
            low = usize::from(first < key);
        }
        let found = self.find_slot(key, path, low, exact).await;
        let bytes = if found { bytes - ITEM_HEAD } else { bytes };
        if free < bytes {
            self.set_path_blocking(path).await;
            self.split_leaf(key, path, bytes, found).await;
        }
        found
    }

    /// `search_for_key_slot` in the leaf: there is nothing to search if a node above had the very key.
    async fn find_slot(&self, key: Key, path: &mut Path, low: usize, exact: bool) -> bool {
        let leaf = path.leaf();
        if exact {
            path.slots[0] = 0;
            return true;
        }
        self.locks.look_into(leaf);
        self.locks.work(Work::SearchLeaf).await;
        let (found, slot) = self.tree().search_block(leaf, key, low);
        path.slots[0] = slot;
        found
    }

    /// `unlock_up`: drops the locks above `level`, but for the parents of slots 0, whose keys may change.
    async fn unlock_up(
        &self,
        path: &mut Path,
        level: usize,
        lowest_unlock: usize,
        min_write_level: i32,
        write_level: &mut i32,
    ) {
        let mut skip_level = level;
        let mut check_skip = true;
        for i in level..MAX_LEVEL {
            if path.nodes[i].is_none() || path.locks[i].is_none() {
                break;
            }
            if check_skip && path.slots[i] == 0 {
                skip_level = i + 1;
                continue;
            }
            if i >= lowest_unlock && i > skip_level {
                check_skip = false;
                self.unlock_level(path, i).await;
                if i as i32 > min_write_level && i as i32 <= *write_level {
                    *write_level = i as i32 - 1;
                }
            }
        }
    }

    /// `btrfs_unlock_up_safe`: drops all locks from a level up.
    pub async fn unlock_up_safe(&self, path: &mut Path, level: usize) {
        for i in level..MAX_LEVEL {
            if path.locks[i].is_some() {
                self.unlock_level(path, i).await; // entered only where there is something to do
            }
        }
    }

    /// `btrfs_release_path`.
    pub async fn release_path(&self, path: &mut Path) {
        self.unlock_up_safe(path, 0).await;
        *path = Path::default();
    }

    pub(crate) async fn unlock_level(&self, path: &mut Path, level: usize) {
        if let Some(side) = path.locks[level].take() {
            self.locks.unlock(path.node(level), side).await;
        }
    }

    async fn lock(&self, path: &mut Path, level: usize, block: BlockId, side: Side) {
        self.locks.lock(block, level, side).await;
        path.nodes[level] = Some(block);
        path.locks[level] = Some(side);
    }

    /// `btrfs_set_path_blocking`, from the leaf up.
    pub(crate) async fn set_path_blocking(&self, path: &Path) {
        if self.rules.modes {
            for level in 0..MAX_LEVEL {
                self.convert_level(path, level, Mode::Blocking).await;
            }
        }
    }

    /// `btrfs_clear_path_blocking`, from the root down.
    pub(crate) async fn clear_path_blocking(&self, path: &Path) {
        if !self.rules.modes || self.rules.clearing == PathClearing::Never {
            return;
        }
        if self.rules.clearing == PathClearing::BlockingFirst {
            self.set_path_blocking(path).await;
        }
        for level in (0..MAX_LEVEL).rev() {
            self.convert_level(path, level, Mode::Spinning).await;
        }
    }

    async fn convert_level(&self, path: &Path, level: usize, mode: Mode) {
        if let (Some(block), Some(side)) = (path.nodes[level], path.locks[level]) {
            self.locks.convert(block, side, mode).await;
        }
    }

    /// Locks a neighbour or a new block for writing, blocking from the start.
    pub(crate) async fn lock_other(&self, block: BlockId, level: usize) {
        self.locks.lock(block, level, Side::Write).await;
        if self.rules.modes {
            self.locks.convert(block, Side::Write, Mode::Blocking).await;
        }
    }

    /// `btrfs_cow_block`, once a transaction for each block.
    pub(crate) async fn cow(&self, block: BlockId) {
        if !self.tree().should_cow(block) {
            return;
        }
        let level = self.tree().level(block);
        let place = self.locks.place(level).await;
        let old = self.tree.borrow_mut().cow(block, place);
        self.locks.work(Work::Copy(block)).await;
        self.locks.give_back(old, level, false).await;
    }

    /// `btrfs_alloc_tree_block`.
    pub(crate) async fn allocate(&self, level: usize) -> BlockId {
        let place = self.locks.place(level).await;
        self.tree.borrow_mut().allocate(level, place)
    }

    /// `btrfs_free_tree_block`.
    pub(crate) async fn free(&self, block: BlockId) {
        let (place, level) = (self.tree().place(block), self.tree().level(block));
        let new = !self.tree().should_cow(block);
        self.tree.borrow_mut().release(block);
        self.locks.work(Work::Free).await;
        self.locks.give_back(place, level, new).await;
    }
}
