//! A tree of 16 KiB blocks, byte-accurate as to room: blocks by number, and the changes of one or two of them that the
//! algorithms of `search`, `leaf_room` and `balance` are made of. Nothing here locks.
//!
//! Every item is kept (key and size, 24 bytes), so a tree of 70 million items is exact and takes some 2 GB. Copies of a tree
//! share the blocks that neither has changed since.

pub mod balance;
mod change;
mod check;
mod contents;
#[cfg(test)]
mod eras;
mod forward;
mod in_place;
#[cfg(test)]
mod interleaving;
mod interpolation;
pub mod items;
pub mod key;
pub mod leaf_room;
pub mod locks;
pub mod path;
mod pointers;
pub mod search;

use key::{Item, ItemKind, Key, HEADER, ITEM_HEAD, LEAF_DATA, NODE_SIZE};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// The number of a tree block in memory. Copy-on-write moves a block on disk; its number stays.
pub type BlockId = u32;
/// Levels a tree may have (`BTRFS_MAX_LEVEL`).
pub const MAX_LEVEL: usize = 8;

/// A pointer of a node to a block one level below.
#[derive(Clone, Copy, Debug)]
pub struct Pointer {
    /// The lowest key below.
    pub key: Key,
    /// The block.
    pub child: BlockId,
}

/// What a block holds.
#[derive(Clone, Debug)]
enum Content {
    Leaf { items: Vec<Item>, used: u32 },
    Node(Vec<Pointer>),
}

/// A tree block.
#[derive(Clone, Debug)]
struct Block {
    level: u8,
    /// The transaction that wrote it last.
    generation: u64,
    content: Content,
}

/// What happened to a tree since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks copied because an earlier transaction had written them.
    pub copied: u64,
    /// Blocks added.
    pub allocated: u64,
    /// Blocks given back.
    pub freed: u64,
    /// Searches that began anew with more write locks.
    pub restarts: u64,
}

/// A tree.
#[derive(Clone, Debug)]
pub struct Tree {
    blocks: Vec<Arc<Block>>,
    free: [Vec<BlockId>; MAX_LEVEL],
    root: BlockId,
    /// The running transaction.
    pub transid: u64,
    /// What happened so far.
    pub counts: Counts,
    /// Where each block lies on disk.
    places: Vec<u64>,
    /// What the running transaction has copied and added and nobody has written yet (`EXTENT_BUFFER_DIRTY`).
    dirty: BTreeSet<BlockId>,
    /// The same of what somebody has written (`BTRFS_HEADER_FLAG_WRITTEN`).
    written: BTreeSet<BlockId>,
    /// The same of what files have that were laid out: the commit writes it, and it is not dirty before.
    laid_out: BTreeSet<BlockId>,
}

/// What is to be written (`btrfs_write_marked_extents`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Blocks.
    pub blocks: u64,
    /// Items of their leaves.
    pub items: u64,
    /// Extents of files among them.
    pub extents: u64,
    /// Runs of checksums among them.
    pub csums: u64,
}

impl Dirty {
    fn leaf(items: &[Item]) -> Self {
        let of = |kind| items.iter().filter(|item| item.key.kind() == kind).count() as u64;
        let (extents, csums) = (of(ItemKind::ExtentData), of(ItemKind::ExtentCsum));
        Self { blocks: 1, items: items.len() as u64, extents, csums }
    }
}

impl std::iter::Sum for Dirty {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            blocks: sum.blocks + one.blocks,
            items: sum.items + one.items,
            extents: sum.extents + one.extents,
            csums: sum.csums + one.csums,
        })
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// An empty tree: one empty leaf.
    pub fn new() -> Self {
        let (blocks, places, free, dirty, written, laid_out) = Default::default();
        let (root, transid, counts) = (0, 1, Counts::default());
        let mut tree = Self { blocks, free, root, transid, counts, places, dirty, written, laid_out };
        tree.root = tree.allocate(0, 0);
        tree
    }

    /// The root block.
    pub fn root(&self) -> BlockId {
        self.root
    }

    /// How far a block is above the leaves.
    pub fn level(&self, block: BlockId) -> usize {
        usize::from(self.blocks[block as usize].level)
    }

    /// How many items or pointers a block has (`btrfs_header_nritems`).
    pub fn len(&self, block: BlockId) -> usize {
        match &self.blocks[block as usize].content {
            Content::Leaf { items, .. } => items.len(),
            Content::Node(pointers) => pointers.len(),
        }
    }

    /// Whether a block has neither items nor pointers.
    pub fn is_empty(&self, block: BlockId) -> bool {
        self.len(block) == 0
    }

    /// The items of a leaf.
    pub fn items(&self, leaf: BlockId) -> &[Item] {
        match &self.blocks[leaf as usize].content {
            Content::Leaf { items, .. } => items,
            Content::Node(_) => unreachable!("block {leaf} is no leaf"),
        }
    }

    /// The pointers of a node.
    pub fn pointers(&self, node: BlockId) -> &[Pointer] {
        match &self.blocks[node as usize].content {
            Content::Node(pointers) => pointers,
            Content::Leaf { .. } => unreachable!("block {node} is a leaf"),
        }
    }

    /// Block numbers that were ever given out.
    pub fn numbers(&self) -> BlockId {
        self.blocks.len() as BlockId
    }

    /// Bytes of its blocks (`btrfs_root_used`).
    pub fn bytes_used(&self) -> u64 {
        let free: usize = self.free.iter().map(Vec::len).sum();
        (self.blocks.len() - free) as u64 * u64::from(NODE_SIZE)
    }

    /// Bytes that a leaf's items take on average, heads included.
    pub fn bytes_of_item(&self, leaf: BlockId) -> usize {
        (LEAF_DATA - self.free_space(leaf)) as usize / self.len(leaf).max(1)
    }

    /// Where a leaf has its last so many items: heads from the front of the block on, data from its end down.
    pub fn places_of_last(&self, leaf: BlockId, items: usize) -> [Range<u32>; 2] {
        let len = self.len(leaf);
        let (all, items) = (len as u32, items.min(len) as u32);
        let heads = HEADER + (all - items) * ITEM_HEAD..HEADER + all * ITEM_HEAD;
        let data = LEAF_DATA - self.free_space(leaf) - all * ITEM_HEAD;
        let moved = (u64::from(data) * u64::from(items) / u64::from(all.max(1))) as u32; // as if all were of one size
        [heads, NODE_SIZE - data..NODE_SIZE - data + moved]
    }

    /// The lowest key of a block.
    pub fn first_key(&self, block: BlockId) -> Key {
        self.key(block, 0)
    }

    /// A key of a block.
    pub fn key(&self, block: BlockId, slot: usize) -> Key {
        match &self.blocks[block as usize].content {
            Content::Leaf { items, .. } => items[slot].key,
            Content::Node(pointers) => pointers[slot].key,
        }
    }

    /// A block's child at `slot`, if there is one.
    pub fn child(&self, node: BlockId, slot: usize) -> Option<BlockId> {
        self.pointers(node).get(slot).map(|pointer| pointer.child)
    }

    /// Bytes that a leaf has left (`btrfs_leaf_free_space`).
    pub fn free_space(&self, leaf: BlockId) -> u32 {
        match &self.blocks[leaf as usize].content {
            Content::Leaf { used, .. } => LEAF_DATA - used,
            Content::Node(_) => unreachable!("block {leaf} is no leaf"),
        }
    }

    /// Bytes that the items of a leaf from `slot` on take (`leaf_space_used`).
    pub fn used_from(&self, leaf: BlockId, slot: usize) -> u32 {
        self.items(leaf)[slot..].iter().map(Item::bytes).sum()
    }

    /// `btrfs_bin_search`: whether a block has the key, and where it is or belongs; slots before `low` are known to be lower.
    pub fn search_block(&self, block: BlockId, key: Key, low: usize) -> (bool, usize) {
        match &self.blocks[block as usize].content {
            Content::Leaf { items, .. } => search(items, key, low, |item| item.key),
            Content::Node(pointers) => search(pointers, key, low, |pointer| pointer.key),
        }
    }

    /// Whether the running transaction has to copy a block before it may change it (`should_cow_block`).
    pub fn should_cow(&self, block: BlockId) -> bool {
        !self.is_new(block) || self.written.contains(&block)
    }

    /// Whether the running transaction has copied or added a block.
    pub fn is_new(&self, block: BlockId) -> bool {
        self.blocks[block as usize].generation == self.transid
    }

    /// Where a block lies on disk.
    pub fn place(&self, block: BlockId) -> u64 {
        self.places[block as usize]
    }

    /// Says where a block lies on disk.
    pub fn set_place(&mut self, block: BlockId, place: u64) {
        self.places[block as usize] = place;
    }

    /// Puts the blocks that another tree has where they are there, and all others nowhere yet.
    pub fn take_places(&mut self, other: &Self) {
        let known = other.places.len();
        self.places[..known].copy_from_slice(&other.places);
        self.places[known..].fill(0);
    }

    /// `btrfs_cow_block`: the block moves to a new place. Returns the old one.
    pub fn cow(&mut self, block: BlockId, place: u64) -> u64 {
        self.change(block).generation = self.transid;
        self.counts.copied += 1;
        self.written.remove(&block);
        self.laid_out.remove(&block);
        self.dirty.insert(block);
        std::mem::replace(&mut self.places[block as usize], place)
    }

    /// A new empty block at a place on disk.
    pub fn allocate(&mut self, level: usize, place: u64) -> BlockId {
        self.counts.allocated += 1;
        let content = if level == 0 { Content::Leaf { items: Vec::new(), used: 0 } } else { Content::Node(Vec::new()) };
        let block = Block { level: level as u8, generation: self.transid, content };
        if let Some(id) = self.free[level].pop() {
            self.blocks[id as usize] = Arc::new(block);
            self.places[id as usize] = place;
            self.dirty.insert(id);
            return id;
        }
        self.blocks.push(Arc::new(block));
        self.places.push(place);
        let id = (self.blocks.len() - 1) as BlockId;
        self.dirty.insert(id);
        id
    }

    /// The running transaction is over: what it is to write. Blocks that were given back are not written.
    pub fn end_transaction(&mut self) -> Dirty {
        let mut blocks = std::mem::take(&mut self.dirty);
        blocks.append(&mut self.laid_out);
        let written = blocks.iter().filter(|&&block| self.is_new(block)).map(|&block| self.to_write(block)).sum();
        self.written.clear();
        self.transid += 1;
        written
    }

    /// What a block is to who writes it.
    fn to_write(&self, block: BlockId) -> Dirty {
        match &self.blocks[block as usize].content {
            Content::Leaf { items, .. } => Dirty::leaf(items),
            Content::Node(_) => Dirty::leaf(&[]),
        }
    }

    /// What was changed so far is on disk already.
    pub fn was_written(&mut self) {
        self.dirty.clear();
    }

    /// What was changed so far is of files that were there before the run: nobody writes it before the commit.
    pub fn was_laid_out(&mut self) {
        self.laid_out.append(&mut self.dirty);
    }

    /// Blocks that the running transaction has changed and nobody has written.
    pub fn dirty(&self) -> &BTreeSet<BlockId> {
        &self.dirty
    }

    /// `lock_extent_buffer_for_io` before the commit: from now on a block that is dirty at this place is written, and has to be copied
    /// before it changes again. Says no of others.
    pub fn begin_write(&mut self, block: BlockId, place: u64) -> Option<Dirty> {
        if self.place(block) != place || !self.dirty.remove(&block) {
            return None;
        }
        self.written.insert(block);
        Some(self.to_write(block))
    }

    /// Gives a block back (`btrfs_free_tree_block`).
    pub fn release(&mut self, block: BlockId) {
        self.counts.freed += 1;
        let level = self.level(block);
        self.dirty.remove(&block);
        self.written.remove(&block);
        self.laid_out.remove(&block);
        self.change(block).content = Content::Node(Vec::new());
        self.free[level].push(block);
    }

    /// Forgets everything, to begin anew at a place; the blocks may be used again.
    pub fn clear(&mut self, place: u64) {
        let blocks: Vec<_> = self.blocks().collect();
        for block in blocks {
            self.release(block);
        }
        self.dirty.clear();
        self.root = self.allocate(0, place);
    }

    /// All blocks that are in the tree, parents first, with their depth-first order kept.
    pub fn blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        let mut stack = vec![self.root];
        std::iter::from_fn(move || {
            let block = stack.pop()?;
            if self.level(block) > 0 {
                stack.extend(self.pointers(block).iter().rev().map(|pointer| pointer.child));
            }
            Some(block)
        })
    }

    fn change(&mut self, block: BlockId) -> &mut Block {
        Arc::make_mut(&mut self.blocks[block as usize])
    }
}

/// Whether a key is among entries that are sorted by theirs, and where it is or belongs; entries before `low` are known to be lower.
fn search<T>(entries: &[T], key: Key, low: usize, key_of: impl Fn(&T) -> Key) -> (bool, usize) {
    let slot = low + entries[low..].partition_point(|entry| key_of(entry) < key);
    (entries.get(slot).is_some_and(|entry| key_of(entry) == key), slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: u64) -> Item {
        Item::new(Key::new(id, ItemKind::InodeItem, 0), 160)
    }

    #[test]
    fn a_transaction_writes_what_it_changed_once_and_not_what_it_gave_back() {
        let mut tree = Tree::new();
        tree.insert_items(tree.root(), 0, &[item(1), item(2)]);
        assert_eq!(tree.end_transaction(), Dirty { blocks: 1, items: 2, ..Dirty::default() });
        assert_eq!(tree.end_transaction(), Dirty::default(), "nothing was changed");
        tree.cow(tree.root(), 0);
        tree.insert_items(tree.root(), 2, &[item(3)]);
        let given_back = tree.allocate(0, 0);
        tree.insert_items(given_back, 0, &[item(4)]);
        tree.release(given_back);
        let again = tree.allocate(1, 0);
        tree.release(again);
        assert_eq!(tree.end_transaction(), Dirty { blocks: 1, items: 3, ..Dirty::default() });
    }

    #[test]
    fn extents_and_checksums_are_told_from_other_items_as_they_take_longer_or_less_to_check() {
        let of = |kind, offset| Item { key: Key::new(256, kind, offset), size: 50 };
        let items = [of(ItemKind::ExtentData, 0), of(ItemKind::ExtentData, 4096), of(ItemKind::ExtentCsum, 0)];
        assert_eq!(Dirty::leaf(&items), Dirty { blocks: 1, items: 3, extents: 2, csums: 1 });
    }

    #[test]
    fn what_was_written_before_the_commit_is_copied_before_it_changes_and_only_then_written_again() {
        let mut tree = Tree::new();
        tree.insert_items(tree.root(), 0, &[item(1)]);
        let (root, place) = (tree.root(), tree.place(tree.root()));
        assert_eq!(tree.begin_write(root, place + 1), None, "it lies elsewhere by now");
        assert_eq!(tree.begin_write(root, place), Some(Dirty { blocks: 1, items: 1, ..Dirty::default() }));
        assert_eq!(tree.begin_write(root, place), None, "it is clean");
        assert!(tree.should_cow(root) && tree.is_new(root));
        let mut other = tree.clone();
        assert_eq!(tree.end_transaction(), Dirty::default());
        other.cow(root, 0);
        assert!(!other.should_cow(root));
        assert_eq!(other.end_transaction().blocks, 1);
    }

    #[test]
    fn what_was_laid_out_is_written_by_the_commit_only() {
        let mut tree = Tree::new();
        tree.insert_items(tree.root(), 0, &[item(1)]);
        let (root, place) = (tree.root(), tree.place(tree.root()));
        tree.was_laid_out();
        assert!(tree.dirty().is_empty() && !tree.should_cow(root));
        assert_eq!(tree.begin_write(root, place), None);
        assert_eq!(tree.end_transaction().blocks, 1);
        assert_eq!(tree.end_transaction().blocks, 0);
    }

    #[test]
    fn what_was_there_before_the_run_is_not_written() {
        let mut tree = Tree::new();
        tree.was_written();
        assert_eq!(tree.end_transaction(), Dirty::default());
    }
}
