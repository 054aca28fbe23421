//! Room for metadata that dirty data keep reserved until the trees know them (`btrfs_delalloc_reserve_metadata`,
//! `btrfs_calculate_inode_block_rsv_size` of `fs/btrfs/delalloc-space.c`), and writing them back to have it again (`shrink_delalloc` of
//! `space-info.c`).
//!
//! Each range of dirty pages, and each ordered extent, is an outstanding extent, whose item is paid for from the beginning; so are the inode
//! and the leaves of its checksums.
//!
//! Left out: that an extent of an ordered one keeps its checksums' leaf, and that who writes back does not wait for the device.

use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::btrfs::transaction::reclaim::ITEM;
use crate::filesystems::btrfs::transaction::tickets::Want;
use crate::filesystems::btrfs::tree::key::NODE_SIZE;
use crate::filesystems::BLOCK;
use crate::waist::{LockId, Machine};
use crate::writeback::Flushed;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Checksums in a leaf, of four bytes each (`btrfs_csum_bytes_to_leaves`).
const SUMS: u64 = NODE_SIZE as u64 / 4;
/// `shrink_delalloc` writes so often at most, and an eighth of what is dirty at least.
const LOOPS: u32 = 3;
const PART: u64 = 8;

/// How `shrink_delalloc` goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::filesystems::btrfs) enum Shrink {
    /// `for_preempt`: it writes once, and waits for nothing.
    Once,
    /// `FLUSH_DELALLOC`: it waits for ordered extents if they are more than what is dirty.
    Begin,
    /// `FLUSH_DELALLOC_WAIT`.
    Wait,
}

/// What a file has.
#[derive(Clone, Copy, Debug, Default)]
struct OfFile {
    pages: u64,
    room: u64,
}

/// Dirty data of all files.
#[derive(Debug, Default)]
pub struct Outstanding {
    files: RefCell<BTreeMap<u32, OfFile>>,
    all: Cell<OfFile>,
    /// Writes that have room and whose pages are not dirty yet.
    writes: Cell<u64>,
}

impl Outstanding {
    /// A file has other dirty data than before.
    fn set(&self, slot: u32, now: OfFile) {
        let mut files = self.files.borrow_mut();
        let before = if now.pages > 0 { files.insert(slot, now) } else { files.remove(&slot) }.unwrap_or_default();
        let all = self.all.get();
        self.all.set(OfFile { pages: all.pages + now.pages - before.pages, room: all.room + now.room - before.room });
    }

    /// A write has room.
    pub fn promise(&self) {
        self.writes.set(self.writes.get() + 1);
    }

    fn has(&self, slot: u32) -> bool {
        self.files.borrow().contains_key(&slot)
    }
}

impl Btrfs {
    /// Bytes reserved for data that are dirty or on their way to the device.
    pub(in crate::filesystems::btrfs) fn delalloc_room(&self) -> u64 {
        let one_each = self.outstanding.writes.get() + self.ordered.count();
        self.outstanding.all.get().room + one_each * ITEM
    }

    /// Most of the data that hold room are on their way already, so that writing back helps little.
    pub(in crate::filesystems::btrfs) fn mostly_ordered(&self) -> bool {
        self.ordered.bytes() / 2 >= self.outstanding.all.get().pages * u64::from(BLOCK)
    }

    /// The dirty data of a file have changed.
    pub(in crate::filesystems::btrfs) fn count_dirty(&self, slot: u32) {
        let (extents, pages) = self.data(slot).outstanding();
        let sums = if self.nodatacow { 0 } else { pages.div_ceil(SUMS) };
        let room = if pages > 0 { (extents + sums) * ITEM + ITEM / 2 } else { 0 };
        self.outstanding.set(slot, OfFile { pages, room });
    }

    /// A write that has room has made its pages dirty.
    pub(in crate::filesystems::btrfs) fn written_in_memory(&self, slot: u32) {
        self.count_dirty(slot);
        self.outstanding.writes.set(self.outstanding.writes.get() - 1);
    }

    /// The file goes.
    pub(in crate::filesystems::btrfs) fn forget_dirty(&self, slot: u32) {
        self.outstanding.set(slot, OfFile::default());
    }

    /// `btrfs_delalloc_reserve_metadata`: room for an extent, which then is the data's.
    pub(in crate::filesystems::btrfs) async fn reserve_extent<M: Machine>(&self, m: &M) {
        match self.reserve_metadata(m, Want { bytes: ITEM, steals: false }).await {
            Ok(()) => self.transaction.give_back(ITEM),
            Err(_) => m.give_up("no space left in the filesystem"),
        }
    }

    /// `btrfs_reserve_data_bytes`: where there is no room, dirty data are written and a transaction is committed, which gives back what is
    /// pinned (`btrfs_async_reclaim_data_space`).
    pub(in crate::filesystems::btrfs) async fn reserve_data<M: Machine>(&self, m: &M, bytes: u64) {
        let dirty = || self.outstanding.all.get().pages * u64::from(BLOCK);
        let has_room = || dirty() + bytes <= self.extents.refs.space.borrow().data_room();
        if has_room() {
            return;
        }
        self.shrink_delalloc(m, (u64::MAX, Shrink::Wait), || !has_room()).await;
        if !has_room() {
            let handle = self.transaction.join(m).await;
            self.commit_for_fsync(m, handle).await;
        }
        if !has_room() {
            m.give_up("no space left in the filesystem");
        }
    }

    /// `shrink_delalloc`: to have so many bytes again, while `go_on` says so.
    pub(in crate::filesystems::btrfs) async fn shrink_delalloc<M: Machine>(
        &self,
        m: &M,
        (wanted, how): (u64, Shrink),
        go_on: impl Fn() -> bool,
    ) {
        let dirty = || self.outstanding.all.get().pages * u64::from(BLOCK);
        let wanted = wanted.max(dirty() / PART);
        let wait = how == Shrink::Wait || (how == Shrink::Begin && self.ordered.bytes() > dirty());
        for _ in 0..LOOPS {
            if dirty() == 0 && self.ordered.at_rest() {
                return;
            }
            self.start_delalloc(m, wanted.min(dirty()) / u64::from(BLOCK)).await;
            if wait {
                self.ordered.wait_for_all(m).await;
            } else {
                m.wake_at_tick(m.task(), 1);
                m.wchan("shrink_delalloc");
                m.park().await;
            }
            if how == Shrink::Once || !go_on() {
                return;
            }
        }
    }

    /// `btrfs_start_delalloc_roots`.
    async fn start_delalloc<M: Machine>(&self, m: &M, mut left: u64) {
        let wb = self.writeback();
        let slots: Vec<u32> = self.outstanding.files.borrow().keys().copied().collect();
        let mut submitted: Vec<(LockId, u32, u64)> = Vec::new();
        for slot in slots {
            while left > 0 && self.outstanding.has(slot) {
                wb.begins_flush(slot);
                let Some((done, pages)) = self.write_some(m, slot, left).await else {
                    wb.ends_flush(m, slot);
                    break;
                };
                wb.begin(pages);
                submitted.push((done, slot, pages));
                left = left.saturating_sub(pages);
            }
        }
        for (done, slot, pages) in submitted {
            m.wchan("btrfs_start_delalloc_roots");
            m.wait_for(done).await;
            m.drop_completion(done);
            wb.end(pages);
            wb.ends_flush(m, slot);
        }
    }
}
