//! The trees of space while nobody runs: what `mkfs` leaves, and places for what lies there already. Delayed refs are run
//! without locks and time.

use super::csums::{csum_items, sums};
use super::delayed_refs::{Change, Extent, Head, Heads};
use super::extents::item_of;
use super::Space;
use crate::filesystems::btrfs::subvolume::now;
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::btrfs::tree::locks::Unlocked;
use crate::filesystems::btrfs::tree::search::{TreeOps, DEFAULT_RULES};
use crate::filesystems::btrfs::tree::{BlockId, Tree};
use crate::filesystems::BLOCK;
use crate::kernel::btrfs::SpaceCache;
use std::cell::RefCell;

/// Tasks that take places and delay references for which no time goes by.
struct Laying<'a> {
    space: &'a RefCell<Space>,
    heads: &'a RefCell<Heads>,
}

impl Unlocked for Laying<'_> {
    fn place(&self, level: usize) -> u64 {
        let place = self.space.borrow_mut().allocate_block();
        self.heads.borrow_mut().add(Head { place, extent: Extent::Block(level as u8), change: Change::Added });
        place
    }
    fn give_back(&self, place: u64, level: usize) {
        let extent = Extent::Block(level as u8);
        let waits = self.heads.borrow_mut().add(Head { place, extent, change: Change::Dropped });
        self.space.borrow_mut().give_back(place, extent.bytes(), !waits);
    }
}

/// The trees of space as they lie on disk.
pub struct SpaceTrees {
    /// An item of each extent in use.
    pub extent: RefCell<Tree>,
    /// An item of each free extent, if that is where free space is kept; else empty.
    pub free_space: RefCell<Tree>,
    /// Checksums of data.
    pub csum: RefCell<Tree>,
    /// The tree of roots, with the files of free space.
    pub roots: RefCell<Tree>,
    /// Where free space is kept.
    pub kept: SpaceCache,
}

impl SpaceTrees {
    /// What `mkfs` leaves: a block for each tree, `fs` among them, and one of the chunk tree.
    pub fn new(space: &RefCell<Space>, fs: &mut Tree, kept: SpaceCache) -> Self {
        let (extent, free_space, csum, roots) = Default::default();
        let trees = Self { extent, free_space, csum, roots, kept };
        let heads = RefCell::default();
        let laying = Laying { space, heads: &heads };
        let take = |tree: &mut Tree| tree.set_place(tree.root(), laying.place(0));
        for tree in [&trees.extent, &trees.free_space, &trees.csum, &trees.roots] {
            take(&mut tree.borrow_mut());
        }
        take(fs);
        for _ in 0..items::OTHER_TREES {
            laying.place(0);
        }
        let ops = TreeOps::new(&trees.extent, &laying, DEFAULT_RULES);
        for item in items::chunk_tree() {
            now(ops.insert_extent_item(item));
        }
        trees.settle(space, &heads);
        trees
    }

    /// Places for the blocks of a tree that have none, as if they had been written one after the other.
    pub fn lay_out(&self, space: &RefCell<Space>, tree: &mut Tree) {
        let heads = RefCell::default();
        let mut blocks: Vec<BlockId> = tree.blocks().filter(|&block| tree.place(block) == 0).collect();
        blocks.sort_unstable();
        let laying = Laying { space, heads: &heads };
        for block in blocks {
            let place = laying.place(tree.level(block));
            tree.set_place(block, place);
        }
        self.settle(space, &heads);
    }

    /// A place for data, perhaps with their checksums.
    pub(super) fn lay_out_data(&self, space: &RefCell<Space>, bytes: u64, with_csums: bool) -> u64 {
        let heads = RefCell::<Heads>::default();
        let place = space.borrow_mut().allocate_data(bytes);
        space.borrow_mut().take_unwritten(place + bytes);
        heads.borrow_mut().add(Head { place, extent: Extent::Data(bytes), change: Change::Added });
        if with_csums {
            self.insert_csums(&Laying { space, heads: &heads }, place, bytes);
        }
        self.settle(space, &heads);
        place
    }

    /// What other files have: so many tree blocks.
    pub(super) fn lay_out_ballast(&self, space: &RefCell<Space>, blocks: u64) {
        let heads = RefCell::<Heads>::default();
        for _ in 0..blocks {
            let place = space.borrow_mut().add_ballast();
            heads.borrow_mut().add(Head { place, extent: Extent::Block(0), change: Change::Added });
        }
        self.settle(space, &heads);
    }

    fn insert_csums(&self, laying: &Laying<'_>, place: u64, bytes: u64) {
        for item in csum_items(place, bytes) {
            if !self.csum.borrow_mut().insert_csum_in_place(item) {
                let ops = TreeOps::new(&self.csum, laying, DEFAULT_RULES);
                now(ops.add_csums(item.key.offset(), sums(&item) * u64::from(BLOCK)));
            }
        }
    }

    /// Runs all delayed refs; those of neighbours take their free space at once.
    fn settle(&self, space: &RefCell<Space>, heads: &RefCell<Heads>) {
        let laying = Laying { space, heads };
        let settling = Settling {
            extent: TreeOps::new(&self.extent, &laying, DEFAULT_RULES),
            free_space: TreeOps::new(&self.free_space, &laying, DEFAULT_RULES),
            has_free_space_tree: self.kept == SpaceCache::Tree,
            space,
            heads,
        };
        loop {
            settling.make_groups();
            settling.run_heads();
            if heads.borrow().waiting() == 0 {
                return;
            }
        }
    }
}

/// Delayed refs that are run without locks and time.
struct Settling<'a> {
    extent: TreeOps<'a, Laying<'a>>,
    free_space: TreeOps<'a, Laying<'a>>,
    has_free_space_tree: bool,
    space: &'a RefCell<Space>,
    heads: &'a RefCell<Heads>,
}

impl Settling<'_> {
    /// Items of the block groups that were begun since the last time.
    fn make_groups(&self) {
        loop {
            let Some(group) = self.space.borrow_mut().take_new_group() else { return };
            now(self.extent.insert_extent_item(items::block_group(group.start, group.bytes)));
            if self.has_free_space_tree {
                now(self.free_space.add_free_group(group));
            }
        }
    }

    /// All heads that wait now.
    fn run_heads(&self) {
        let mut run: Option<(u64, u64)> = None;
        while let Some(head) = self.next_head() {
            self.tell_extent_tree(head);
            if !self.has_free_space_tree {
                continue;
            }
            let group = self.space.borrow().group(head.place);
            if head.change != Change::Added {
                now(self.free_space.run_in_free_space_tree(group, head));
                continue;
            }
            let (place, end) = (head.place, head.place + head.extent.bytes());
            run = match run {
                Some((start, before)) if before == place && self.group_end(start) > place => Some((start, end)),
                _ => {
                    self.take(run);
                    Some((place, end))
                }
            };
        }
        self.take(run);
    }

    fn tell_extent_tree(&self, head: Head) {
        let added = head.change == Change::Added;
        if !added || !self.extent.tree.borrow_mut().insert_in_place(&[item_of(head)]) {
            now(self.extent.run_in_extent_tree(head));
        }
    }

    fn next_head(&self) -> Option<Head> {
        let mut heads = self.heads.borrow_mut();
        let head = heads.select(0)?;
        heads.finish(head.place);
        Some(head)
    }

    fn group_end(&self, place: u64) -> u64 {
        self.space.borrow().group(place).end()
    }

    fn take(&self, run: Option<(u64, u64)>) {
        let Some((start, end)) = run else { return };
        self.make_groups(); // running a ref may have taken a place in a new one
        if self.free_space.tree.borrow_mut().take_front_in_place(start, end - start) {
            return;
        }
        let group = self.space.borrow().group(start);
        now(self.free_space.remove_free_space(group, start, end - start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free_extents(tree: &Tree) -> usize {
        tree.blocks().filter(|&b| tree.level(b) == 0).map(|leaf| tree.len(leaf)).sum()
    }

    #[test]
    fn a_new_filesystem_has_its_own_blocks_in_the_extent_tree() {
        let space = RefCell::new(Space::new(8 << 30));
        let trees = SpaceTrees::new(&space, &mut Tree::new(), SpaceCache::Tree);
        let extent = trees.extent.borrow();
        extent.check().unwrap();
        assert_eq!(extent.len(extent.root()), 3 + 9, "three block groups, nine tree blocks");
        assert_eq!(free_extents(&trees.free_space.borrow()), 2 * 2, "two groups, each with one free extent");
    }

    #[test]
    fn a_tree_that_grows_into_a_new_block_group_while_refs_are_run_is_told_of_it() {
        let space = RefCell::new(Space::new(256 << 20));
        let trees = SpaceTrees::new(&space, &mut Tree::new(), SpaceCache::Tree);
        let group = space.borrow().metadata_bytes();
        while space.borrow().metadata_used() < group - 4 * 16384 {
            space.borrow_mut().allocate_block();
        }
        let places: Vec<u64> = (0..2000).map(|_| trees.lay_out_data(&space, 4096, false)).collect();
        assert!(space.borrow().metadata_bytes() > group);
        assert_eq!(places.len(), 2000);
    }
}
