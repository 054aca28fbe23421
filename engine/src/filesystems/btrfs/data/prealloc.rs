//! Files that `fallocate` has made. What is written to an unwritten extent stays there, as a part of it (`run_delalloc_nocow`). When it is
//! on the device, the part becomes an extent of its own, or joins a written neighbour of the same allocation (`btrfs_mark_extent_written` of
//! `fs/btrfs/file.c`, Linux 5.10 to 6.18).

use super::{Extent, FileData, Placed};
use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::btrfs::tree::locks::TreeLocks;
use crate::filesystems::btrfs::tree::path::Path;
use crate::filesystems::btrfs::tree::search::{Intent, TreeOps};
use crate::filesystems::BLOCK;
use crate::waist::Machine;
use crate::waist::{Account, Time};
use arrayvec::ArrayVec;

/// Most bytes that are allocated at once (`btrfs_prealloc_file_range`).
const MOST: u64 = 256 << 20;

/// How the items of a file change when part of an extent is written: by first byte in the file, those that come and those that go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Those that come.
    pub comes: ArrayVec<u64, 2>,
    /// Those that go.
    pub goes: ArrayVec<u64, 2>,
    /// The extent on disk: first byte and size.
    pub on_disk: (u64, u64),
}

impl Converted {
    /// One that goes gives its place in the leaf to one that comes (`btrfs_set_item_key_safe`).
    fn moves_key(&self) -> bool {
        !self.comes.is_empty() && !self.goes.is_empty()
    }
}

impl FileData {
    /// A file of this size whose extents, where `allocate` puts them, were never written.
    pub fn preallocated(size: u64, mut allocate: impl FnMut(u64) -> u64) -> Self {
        let page = u64::from(BLOCK);
        let end = size.next_multiple_of(page);
        let place = |offset: u64| {
            let bytes = MOST.min(end - offset);
            Placed { offset, place: allocate(bytes), bytes, generation: 0, unwritten: true }
        };
        let extents = (0..end).step_by(MOST as usize).map(place).collect();
        Self { size, extents, preallocated: true, mapped: end / page, ..Self::default() }
    }

    /// Whether `fallocate` has made it.
    pub fn is_preallocated(&self) -> bool {
        self.preallocated
    }

    /// What of it was never written: places and sizes.
    pub fn unwritten(&self) -> Vec<(u64, u64)> {
        self.extents.iter().filter(|extent| extent.unwritten).map(|extent| (extent.place, extent.bytes)).collect()
    }

    /// How many pages of a range are in one unwritten extent, or in none, from its first on.
    pub(super) fn pages_alike(&self, first: u64, end: u64) -> u64 {
        let page = u64::from(BLOCK);
        if !self.preallocated {
            return end - first;
        }
        let alike = match self.extent_of(first * page).filter(|extent| extent.unwritten) {
            Some(extent) => extent.end() / page,
            None => {
                let behind = self.extents.partition_point(|extent| extent.offset <= first * page);
                let mut others = self.extents[behind..].iter().take_while(|extent| extent.offset < end * page);
                others.find(|extent| extent.unwritten).map_or(end, |extent| extent.offset / page)
            }
        };
        alike - first
    }

    /// Part of an unwritten extent is on disk. `in_leaf` says which items are in the leaf that is locked: others cannot be joined.
    pub fn convert(&mut self, written: &Extent, transid: u64, in_leaf: impl Fn(u64) -> bool) -> Converted {
        let (offset, bytes) = (written.offset, written.bytes);
        let slot = self.extents.partition_point(|extent| extent.offset <= offset) - 1;
        let whole = self.extents[slot];
        let mut part = Placed { offset, place: whole.place_of(offset), bytes, generation: transid, unwritten: false };
        let head = (whole.offset < offset).then(|| Placed { bytes: offset - whole.offset, ..whole });
        let tail = whole.behind(part.end());
        let known = in_leaf(whole.offset);
        let left = slot.checked_sub(1).map(|left| self.extents[left]);
        let left = left.filter(|left| head.is_none() && known && in_leaf(left.offset) && self.joins(left, &part));
        let right = self.extents.get(slot + 1).copied();
        let right = right.filter(|right| tail.is_none() && known && in_leaf(right.offset) && self.joins(&part, right));
        let mut change = Converted::default();
        change.comes.extend(head.map(|_| offset).into_iter().chain(tail.map(|tail| tail.offset)));
        change.goes.extend(left.map(|_| offset).into_iter().chain(right.map(|right| right.offset)));
        if let Some(left) = left {
            part = Placed { offset: left.offset, place: left.place, bytes: left.bytes + part.bytes, ..part };
        }
        part.bytes += right.map_or(0, |right| right.bytes);
        let replaced = slot - usize::from(left.is_some())..slot + 1 + usize::from(right.is_some());
        self.extents.splice(replaced, head.into_iter().chain([part]).chain(tail));
        self.share(whole, 1 + change.comes.len() as u32);
        if let Some((place, (bytes, parts))) = self.shared_by(part.place) {
            *parts -= change.goes.len() as u32;
            change.on_disk = (place, *bytes);
        }
        change
    }

    /// `extent_mergeable`: whether two written extents follow each other in the same allocation.
    fn joins(&mut self, one: &Placed, next: &Placed) -> bool {
        let mut allocation = |part: &Placed| self.shared_by(part.place).map(|(place, _)| place);
        let follows = one.end() == next.offset && one.place + one.bytes == next.place;
        follows && !one.unwritten && !next.unwritten && allocation(one).is_some() && allocation(one) == allocation(next)
    }
}

impl Btrfs {
    /// `btrfs_mark_extent_written`: splits the item, or joins it to neighbours in its leaf. Each item more or fewer is a reference of the
    /// allocation more or fewer.
    pub(super) async fn mark_written<M: Machine>(&self, m: &M, slot: u32, written: &Extent, time: Time) {
        let ino = self.file(slot).ino;
        let fs_root = self.fs_root(ino);
        let locked = fs_root.root.locked(m);
        let ops = locked.ops();
        let (mut path, _) = ops.search_slot(written.item.key, Intent::Delete).await;
        let leaf = path.leaf();
        let in_leaf = |offset| ops.tree().search_block(leaf, items::extent(ino, offset).key, 0).0;
        let change = self.data(slot).convert(written, self.transid(), in_leaf);
        ops.convert(&mut path, ino, &change).await;
        m.run(Account::System, fs_root.root.after_search(time)).await;
        ops.release_path(&mut path).await;
        if !change.moves_key() {
            for _ in 0..change.comes.len() + change.goes.len() {
                self.extents.refs.count_data(m, change.on_disk.0, change.on_disk.1).await;
            }
        }
    }
}

impl<L: TreeLocks> TreeOps<'_, L> {
    /// Items come and go in the path's leaf; what comes and finds no room there is searched for anew.
    async fn convert(&self, path: &mut Path, ino: u64, change: &Converted) {
        if change.moves_key() {
            self.unlock_up_safe(path, 1).await;
            let leaf = path.leaf();
            let (_, slot) = self.tree().search_block(leaf, items::extent(ino, change.goes[0]).key, 0);
            let mut tree = self.tree.borrow_mut();
            tree.remove_items(leaf, slot, 1);
            tree.insert_items(leaf, slot, &[items::extent(ino, change.comes[0])]);
            drop(tree);
            return self.locks.change(leaf);
        }
        if let Some(&first) = change.goes.first() {
            path.slots[0] = self.tree().search_block(path.leaf(), items::extent(ino, first).key, 0).1;
            self.del_items(path, change.goes.len()).await;
        }
        for &offset in &change.comes {
            let item = items::extent(ino, offset);
            if path.locks[0].is_some() && self.tree().free_space(path.leaf()) >= item.bytes() {
                path.slots[0] = self.tree().search_block(path.leaf(), item.key, 0).1;
                self.put_items(path, &[item]).await;
            } else {
                self.release_path(path).await;
                *path = self.insert_items(&[item]).await.0;
            }
        }
    }
}
