//! The trees of space: the extent tree, which has an item of every tree block, extent of data and block group, and the free
//! space tree. Running a delayed ref changes both; a search of the extent tree says whether an extent is shared
//! (`fs/btrfs/extent-tree.c` of Linux 6.18).

use super::cache_files::{CacheCosts, CacheFiles};
use super::delayed_refs::{Change, DelayedRefs, Extent, Head};
use super::laid_out::SpaceTrees;
use super::Group;
use crate::cost_table;
use crate::filesystems::btrfs::root::{self, Root};
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::btrfs::tree::key::{Item, Key, NODE_SIZE};
use crate::filesystems::btrfs::tree::locks::{TreeLocks, Work};
use crate::filesystems::btrfs::tree::search::{Intent, Rules, TreeOps};
use crate::filesystems::btrfs::tree::{Dirty, Tree};
use crate::filesystems::costs::Costs;
use crate::kernel::btrfs::SpaceCache;
use crate::waist::Machine;
use crate::waist::{Account, LockId, Side};
use crate::workqueue::Pools;
use std::cell::RefCell;
use std::rc::Rc;

impl<L: TreeLocks> TreeOps<'_, L> {
    /// The extent tree's part of a delayed ref (`alloc_reserved_tree_block`, `__btrfs_free_extent`).
    pub(super) async fn run_in_extent_tree(&self, head: Head) {
        let item = item_of(head);
        if head.change == Change::Counted {
            let (mut path, found) = self.search_slot(item.key, Intent::Update).await;
            assert!(found, "{item:?} was never told");
            self.locks.work(Work::ExtentItem).await;
            self.release_path(&mut path).await;
        } else if head.change == Change::Added {
            self.insert_extent_item(item).await;
        } else {
            let (mut path, found) = self.search_slot(item.key, Intent::Delete).await;
            assert!(found, "{item:?} was never told");
            self.locks.work(Work::ExtentItem).await;
            if found {
                self.del_items(&mut path, 1).await;
            }
            self.release_path(&mut path).await;
        }
    }

    pub(super) async fn run_in_free_space_tree(&self, group: Group, head: Head) {
        if head.change == Change::Added {
            self.remove_free_space(group, head.place, head.extent.bytes()).await;
        } else {
            self.add_free_space(group, head.place, head.extent.bytes()).await;
        }
    }

    pub(super) async fn insert_extent_item(&self, item: Item) {
        let (mut path, inserted) = self.insert_items(&[item]).await;
        assert!(inserted, "{item:?} is there");
        self.locks.work(Work::ExtentItem).await;
        self.release_path(&mut path).await;
    }
}

pub(super) fn item_of(head: Head) -> Item {
    match head.extent {
        Extent::Block(level) => items::metadata_item(head.place, level),
        Extent::Data(bytes) => items::extent_item(head.place, bytes),
    }
}

cost_table!(ExtentCosts { run_head: ["delayed_ref_head"], cross_ref: ["cross_ref"] });

/// The trees of space as tasks see them.
pub struct Extents {
    /// An item of each extent in use.
    pub extent: Root,
    /// An item of each free extent.
    pub free_space: Root,
    /// Checksums of data.
    pub csum: Root,
    /// The tree of roots: only the files of free space in it.
    pub roots: Root,
    /// These files, if free space is kept there and not in the tree.
    pub caches: Option<CacheFiles>,
    /// What the trees are still to be told.
    pub refs: Rc<DelayedRefs>,
    /// Guards the items of a block group's free space (`free_space_lock`), here of all groups.
    free_space_lock: LockId,
    costs: ExtentCosts,
}

impl Extents {
    /// From what is on disk.
    pub fn new<M: Machine>(
        m: &M,
        trees: SpaceTrees,
        refs: Rc<DelayedRefs>,
        rules: Rules,
        (pools, costs): (&Pools, &Costs<'_>),
    ) -> Result<Self, String> {
        let root = |name: &str, tree: RefCell<Tree>| {
            let mut tree = tree.into_inner();
            tree.was_written();
            tree.transid += 1; // mkfs wrote the first blocks
            Root::new(m, name, tree, root::Space::Referenced(refs.clone()), rules, costs)
        };
        let in_files = trees.kept == SpaceCache::Files;
        let cache_costs = CacheCosts::new(costs)?;
        Ok(Self {
            caches: in_files.then(|| CacheFiles::new(m, pools, cache_costs)),
            roots: root("root", trees.roots)?,
            extent: root("extent", trees.extent)?,
            free_space: root("free space", trees.free_space)?,
            csum: root("csum", trees.csum)?,
            free_space_lock: m.new_lock(m.class("btrfs.free_space_lock", "btrfs.free_space_lock")),
            costs: ExtentCosts::new(costs)?,
            refs: refs.clone(),
        })
    }

    /// Places for the blocks of a tree that have none. Takes no time.
    pub fn lay_out(&self, tree: &mut Tree) {
        self.at_once(|trees| trees.lay_out(&self.refs.space, tree));
    }

    /// Data that are there already: `lay` asks for their places, by size. They may have checksums. Takes no time.
    pub fn lay_out_data<T>(&self, with_csums: bool, lay: impl FnOnce(&mut dyn FnMut(u64) -> u64) -> T) -> T {
        self.at_once(|trees| lay(&mut |bytes| trees.lay_out_data(&self.refs.space, bytes, with_csums)))
    }

    /// Other files have all metadata but so many bytes, and what block groups could be made of; of data there are at least so many bytes.
    /// Whether there was as much. Takes no time.
    pub fn fill_up(&self, metadata: u64, data: u64) -> bool {
        let space = &self.refs.space;
        if !space.borrow_mut().leave_room(metadata, data) {
            return false;
        }
        self.at_once(|trees| loop {
            let blocks = space.borrow().free_besides(metadata) / u64::from(NODE_SIZE);
            if blocks == 0 {
                return true;
            }
            trees.lay_out_ballast(space, blocks - blocks / 50); // their items need blocks, too
        })
    }

    fn at_once<T>(&self, change: impl FnOnce(&SpaceTrees) -> T) -> T {
        let take = |root: &Root| RefCell::new(root.tree.take());
        let trees = SpaceTrees {
            extent: take(&self.extent),
            free_space: take(&self.free_space),
            csum: take(&self.csum),
            roots: RefCell::default(),
            kept: if self.caches.is_some() { SpaceCache::Files } else { SpaceCache::Tree },
        };
        let answer = change(&trees);
        for tree in [&trees.extent, &trees.free_space, &trees.csum] {
            tree.borrow_mut().was_written();
        }
        drop(self.refs.space.borrow_mut().take_dirty_groups()); // an earlier commit has told of them
        self.extent.tree.swap(&trees.extent);
        self.free_space.tree.swap(&trees.free_space);
        self.csum.tree.swap(&trees.csum);
        answer
    }

    /// `btrfs_run_delayed_refs`: runs so many heads, or as many as there are. `mutex` is the runner's own.
    pub async fn run_delayed_refs<M: Machine>(&self, m: &M, mutex: LockId, most: usize) {
        self.create_pending_groups(m).await;
        for _ in 0..most {
            let Some(head) = self.refs.locked(m, |heads| heads.select(mutex)).await else { return };
            m.lock(mutex, Side::Write).await;
            m.run(Account::System, self.costs.run_head).await;
            match head.change {
                Change::Both => {}
                Change::Counted => self.extent.locked(m).ops().run_in_extent_tree(head).await,
                Change::Added | Change::Dropped => self.tell_of(m, head).await,
            }
            if let (Extent::Data(bytes), Change::Dropped | Change::Both) = (head.extent, head.change) {
                self.csum.locked(m).ops().delete_csums(head.place, bytes).await;
            }
            self.refs.locked(m, |heads| heads.finish(head.place)).await;
            m.unlock(mutex, Side::Write).await;
        }
    }

    /// Both trees learn of a head.
    async fn tell_of<M: Machine>(&self, m: &M, head: Head) {
        self.extent.locked(m).ops().run_in_extent_tree(head).await;
        if self.caches.is_some() {
            return;
        }
        let group = self.refs.space.borrow().group(head.place);
        m.lock(self.free_space_lock, Side::Write).await;
        self.make_groups(m).await; // the place may lie in one that was made meanwhile
        self.free_space.locked(m).ops().run_in_free_space_tree(group, head).await;
        m.unlock(self.free_space_lock, Side::Write).await;
    }

    /// The mutex of one who runs delayed refs: that of the head which he is at.
    pub fn new_runner<M: Machine>(&self, m: &M) -> LockId {
        m.new_lock(m.class("btrfs.delayed_ref_head", "btrfs.delayed_ref_head"))
    }

    /// The same by who has the `free_space_lock`: nobody finds a group half made.
    async fn make_groups<M: Machine>(&self, m: &M) {
        loop {
            let Some(group) = self.refs.space.borrow_mut().take_new_group() else { return };
            self.extent.locked(m).ops().insert_extent_item(items::block_group(group.start, group.bytes)).await;
            if self.caches.is_none() {
                self.free_space.locked(m).ops().add_free_group(group).await;
            }
        }
    }

    /// `btrfs_create_pending_block_groups`.
    pub async fn create_pending_groups<M: Machine>(&self, m: &M) {
        if self.refs.space.borrow().has_new_group() {
            m.lock(self.free_space_lock, Side::Write).await;
            self.make_groups(m).await;
            m.unlock(self.free_space_lock, Side::Write).await;
        }
    }

    /// `update_block_group_item`: how much of a block group is in use. One whose item is not there yet has its turn later.
    pub async fn update_group_item<M: Machine>(&self, m: &M, group: Group) {
        let locked = self.extent.locked(m);
        let ops = locked.ops();
        let (mut path, found) = ops.search_slot(items::block_group(group.start, group.bytes).key, Intent::Update).await;
        if found {
            locked.work(Work::ExtentItem).await;
        } else {
            self.refs.space.borrow_mut().put_back_dirty(group);
        }
        ops.release_path(&mut path).await;
    }

    /// `btrfs_cross_ref_exist`: whether somebody else has an extent, as the extent tree says and the delayed refs. Nobody has,
    /// but finding out takes the locks of both.
    pub async fn look_for_other_refs<M: Machine>(&self, m: &M, place: u64) {
        loop {
            let locked = self.extent.locked(m);
            let ops = locked.ops();
            let (mut path, _) = ops.search_slot(Key::behind(place), Intent::Read).await;
            m.run(Account::System, self.costs.cross_ref).await;
            ops.release_path(&mut path).await;
            let Some(runner) = self.refs.locked(m, |heads| heads.runner(place)).await else { return };
            m.lock(runner, Side::Write).await;
            m.unlock(runner, Side::Write).await;
        }
    }

    /// `btrfs_csum_file_blocks`.
    pub async fn add_csums<M: Machine>(&self, m: &M, place: u64, bytes: u64) {
        self.csum.locked(m).ops().add_csums(place, bytes).await;
    }

    /// `csum_exist_in_range`: a search in vain, for data that are written in place have none.
    pub async fn look_for_csums<M: Machine>(&self, m: &M, place: u64) {
        let locked = self.csum.locked(m);
        let ops = locked.ops();
        let (mut path, _) = ops.search_slot(items::csums(place, 0).key, Intent::Read).await;
        ops.release_path(&mut path).await;
    }

    /// The next transaction has begun. Returns what these trees have to write of the one before.
    pub fn next_transaction(&self) -> Dirty {
        let roots = [&self.extent, &self.free_space, &self.csum, &self.roots];
        roots.into_iter().map(|root| root.tree.borrow_mut().end_transaction()).sum()
    }
}
