//! Free space in files (`space_cache=v1`): each block group of 100 MiB or more has one in the tree of roots, which a commit that
//! changes the group writes anew (`cache_save_setup` of `fs/btrfs/block-group.c`, `__btrfs_write_out_cache` and
//! `__btrfs_wait_cache_io` of `free-space-cache.c`, Linux 4.1 to 6.18).
//!
//! Once a transaction, before it keeps anybody out, the file is emptied, gets new room as an unwritten extent, and is submitted; what
//! has changed since is written once more when nobody may change anything, and the commit waits for all of it. Left out:
//! `cache_write_mutex` and `ro_block_group_mutex`, for which only balance, scrub and the removal of groups come; the `data_rwsem` of a
//! group while its entries are copied; bitmaps.

use super::delayed_refs::Extent;
use super::{Group, Purpose, Space};
use crate::cost_table;
use crate::devices::{End, Request, Work as Ended};
use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::btrfs::root::Root;
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::btrfs::tree::key::{Item, Key, FIRST_FREE_OBJECTID};
use crate::filesystems::btrfs::tree::locks::{TreeLocks, Work};
use crate::filesystems::btrfs::tree::search::Intent;
use crate::filesystems::BLOCK;
use crate::waist::Machine;
use crate::waist::{Account, LockId};
use crate::workqueue::{Pools, Workqueue};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Smaller block groups have no file.
const LEAST_GROUP: u64 = 100 << 20;
/// For each so many bytes of a group its file has 16 pages (`cache_save_setup`).
const UNIT: u64 = 256 << 20;

cost_table!(pub(super) CacheCosts {
    page: ["cache_page"],
    entry: ["cache_entry"],
    start: ["ordered.start"],
    item: ["ordered.item"],
    end: ["ordered.end"],
});

/// A group's file.
#[derive(Clone, Copy, Debug)]
struct CacheFile {
    ino: u64,
    /// Where its room lies, how much it is, and whether it was written.
    room: Option<(u64, u64, bool)>,
    /// The transaction that made this room (`cache_generation`).
    set_up: u64,
}

/// The files of all groups, by the groups' first bytes.
pub struct CacheFiles {
    costs: CacheCosts,
    files: RefCell<BTreeMap<u64, CacheFile>>,
    /// Files that are on their way to the device, and what is completed when the trees know it (`io_bgs`).
    under_way: RefCell<Vec<(u64, LockId)>>,
    /// The work queue `freespace-write`.
    pub(in super::super) ended: Rc<Workqueue<Ended>>,
}

impl CacheFiles {
    /// None yet: `mkfs` makes no such file.
    pub(super) fn new<M: Machine>(m: &M, pools: &Pools, costs: CacheCosts) -> Self {
        let (files, under_way) = Default::default();
        Self { costs, files, under_way, ended: Rc::new(Workqueue::unbound(m, pools, 1)) }
    }

    /// Extents of data that the files have, which have no checksums.
    pub fn extents(&self) -> Vec<(u64, u64)> {
        self.files.borrow().values().filter_map(|file| file.room).map(|(place, bytes, _)| (place, bytes)).collect()
    }

    fn file(&self, group: u64) -> CacheFile {
        self.files.borrow()[&group]
    }

    fn change(&self, group: u64, change: impl FnOnce(&mut CacheFile)) {
        self.files.borrow_mut().get_mut(&group).map(change).expect("the group has a file");
    }

    /// A new file for a group, if it has none.
    fn make(&self, group: u64) -> Option<u64> {
        let mut files = self.files.borrow_mut();
        let ino = FIRST_FREE_OBJECTID + files.len() as u64;
        let is_new = !files.contains_key(&group);
        files.entry(group).or_insert(CacheFile { ino, room: None, set_up: 0 });
        is_new.then_some(ino)
    }

    /// The file of a group if it is under way; then whoever asks waits for it.
    fn take_under_way(&self, group: Option<u64>) -> Option<(u64, LockId)> {
        let mut under_way = self.under_way.borrow_mut();
        let at = under_way.iter().position(|&(of, _)| group.is_none_or(|group| group == of))?;
        Some(under_way.remove(at))
    }
}

impl Space {
    /// How many entries a list of a group's free space has, with what is free after the commit (`write_cache_extent_entries`,
    /// `write_pinned_extent_entries`).
    fn entries_in(&self, group: &Group) -> usize {
        let free = if group.purpose == Purpose::Metadata { &self.metadata } else { &self.data };
        let inside = group.start..group.end();
        free.extents.range(inside.clone()).count() + self.pinned.iter().filter(|run| inside.contains(&run.0)).count()
    }
}

/// Bytes of the file of a group; none if it has no file.
fn bytes_for(group: &Group) -> Option<u64> {
    let pages = 16 * (group.bytes / UNIT).max(1);
    (group.bytes >= LEAST_GROUP).then_some(pages * u64::from(BLOCK))
}

impl Btrfs {
    /// The file of a group that has changed gets room and is on its way to the device; `mutex`: the commit's own runner, when
    /// nobody may change anything any more, and what this adds is told to the trees before.
    pub(in super::super) async fn write_cache<M: Machine>(&self, m: &M, group: Group, mutex: Option<LockId>) {
        let Some(caches) = &self.extents.caches else { return };
        let Some(bytes) = bytes_for(&group) else { return };
        if let Some(under_way) = caches.take_under_way(Some(group.start)) {
            self.wait_for_cache(m, under_way).await;
        }
        self.set_up_cache(m, caches, &group, bytes).await;
        if let Some(mutex) = mutex {
            self.extents.run_delayed_refs(m, mutex, usize::MAX).await;
        }
        self.write_out_cache(m, caches, &group).await;
    }

    /// `cache_save_setup`.
    async fn set_up_cache<M: Machine>(&self, m: &M, caches: &CacheFiles, group: &Group, bytes: u64) {
        let (e, transid) = (&self.extents, self.transid());
        let roots = &e.roots;
        if let Some(ino) = caches.make(group.start) {
            insert(m, roots, items::inode(ino)).await; // `create_free_space_inode`
            insert(m, roots, items::free_space_header(group.start)).await;
        }
        let file = caches.file(group.start);
        self.update_cache_inode(m, file.ino).await; // generation 0: not to be trusted
        if file.set_up == transid {
            return;
        }
        let data = items::extent(file.ino, 0);
        if let Some((place, bytes, _)) = file.room {
            let locked = roots.locked(m); // `btrfs_truncate_free_space_cache`
            locked.ops().delete_key(data.key).await;
            self.extents.refs.give_back(m, place, Extent::Data(bytes), false).await;
            self.update_cache_inode(m, file.ino).await;
        }
        let place = e.refs.space.borrow_mut().allocate_data(bytes); // `btrfs_prealloc_file_range_trans`
        e.refs.add_data(m, place, bytes).await;
        insert(m, roots, data).await;
        self.update_cache_inode(m, file.ino).await;
        caches.change(group.start, |file| {
            file.room = Some((place, bytes, false));
            file.set_up = transid;
        });
    }

    /// `btrfs_write_out_cache`: not while data of the group are on their way to new places (`delalloc_bytes`).
    async fn write_out_cache<M: Machine>(&self, m: &M, caches: &CacheFiles, group: &Group) {
        if group.purpose == Purpose::Data && self.ordered.has_new_in(group.start..group.end()) {
            return self.update_cache_inode(m, caches.file(group.start).ino).await;
        }
        let file = caches.file(group.start);
        let (place, bytes, _) = file.room.expect("it was set up");
        let (c, pages) = (&caches.costs, bytes / u64::from(BLOCK));
        let entries = self.extents.refs.space.borrow().entries_in(group) as u64;
        m.run(Account::System, c.page * pages + c.entry * entries + self.writeback_time(pages)).await;
        let locked = self.extents.roots.locked(m); // `run_delalloc_nocow`
        let ops = locked.ops();
        let (mut path, _) = ops.search_slot(items::extent(file.ino, 0).key, Intent::Read).await;
        ops.release_path(&mut path).await;
        self.extents.look_for_other_refs(m, place).await;
        self.extents.look_for_csums(m, place).await;
        let known = m.new_completion();
        caches.under_way.borrow_mut().push((group.start, known));
        let first = self.extents.refs.space.borrow_mut().take_unwritten(place + bytes).min(bytes) as u32;
        let request = Request::Write { bytes: bytes as u32, at: Some(place), first };
        let number = (file.ino - FIRST_FREE_OBJECTID) as u32;
        self.storage.submit(m, request, End::Queue(caches.ended.clone(), (number, known))).await;
    }

    /// What a worker does of `freespace-write`: `btrfs_finish_one_ordered` of such a file.
    pub(in super::super) async fn end_cache<M: Machine>(&self, m: &M, caches: &CacheFiles, (number, known): Ended) {
        m.at("freespace-write");
        self.finish_cache(m, caches, FIRST_FREE_OBJECTID + u64::from(number)).await;
        m.complete(known).await;
    }

    async fn finish_cache<M: Machine>(&self, m: &M, caches: &CacheFiles, ino: u64) {
        let c = &caches.costs;
        m.run(Account::System, c.start).await;
        let handle = self.transaction.join_nolock(m).await;
        let group = caches.files.borrow().iter().find(|(_, file)| file.ino == ino).map(|(&group, file)| (group, *file));
        let (group, file) = group.expect("it was under way");
        if let Some((_, _, false)) = file.room {
            let locked = self.extents.roots.locked(m); // `btrfs_mark_extent_written`
            let ops = locked.ops();
            let (mut path, _) = ops.search_slot(items::extent(ino, 0).key, Intent::Delete).await;
            m.run(Account::System, self.extents.roots.after_search(c.item)).await;
            ops.release_path(&mut path).await;
            caches.change(group, |file| file.room.iter_mut().for_each(|room| room.2 = true));
        }
        self.update_cache_inode(m, ino).await;
        m.run(Account::System, c.end).await;
        self.transaction.end(m, handle).await;
    }

    /// `btrfs_wait_cache_io` of all files that are under way.
    pub(in super::super) async fn wait_for_caches<M: Machine>(&self, m: &M) {
        let Some(caches) = &self.extents.caches else { return };
        while let Some(under_way) = caches.take_under_way(None) {
            self.wait_for_cache(m, under_way).await;
        }
    }

    async fn wait_for_cache<M: Machine>(&self, m: &M, (group, known): (u64, LockId)) {
        let Some(caches) = &self.extents.caches else { return };
        m.wchan("btrfs_wait_cache_io");
        m.wait_for_io(known).await;
        m.drop_completion(known);
        self.update_root_item(m, items::free_space_header(group).key).await; // `update_cache_item`
        self.update_cache_inode(m, caches.file(group).ino).await;
    }

    /// `btrfs_update_inode`: such inodes are never delayed.
    async fn update_cache_inode<M: Machine>(&self, m: &M, ino: u64) {
        self.update_root_item(m, items::inode_key(ino)).await;
    }

    async fn update_root_item<M: Machine>(&self, m: &M, key: Key) {
        let locked = self.extents.roots.locked(m);
        let ops = locked.ops();
        let (mut path, found) = ops.search_slot(key, Intent::Update).await;
        assert!(found, "an item of the tree of roots");
        locked.work(Work::DelayedInode).await;
        ops.release_path(&mut path).await;
    }
}

async fn insert<M: Machine>(m: &M, roots: &Root, item: Item) {
    let locked = roots.locked(m);
    let ops = locked.ops();
    let (mut path, inserted) = ops.insert_items(&[item]).await;
    assert!(inserted, "it is new in the tree of roots");
    ops.release_path(&mut path).await;
}
