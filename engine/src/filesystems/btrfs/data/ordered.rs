//! Ordered extents: data on their way to the device, and what is to be told to the trees when they are there
//! (`fs/btrfs/ordered-data.c`, `btrfs_finish_one_ordered` of Linux 5.10 to 6.18). Who submits data goes on; the end of the write wakes
//! who waits for the writeback and queues the rest for a worker of `endio-write`, which any CPU may run.
//!
//! Left out: that a commit waits for what fast fsyncs have logged, and compression.

use super::extent::{Extent, Placed, Replaced};
use crate::cost_table;
use crate::devices::{End, Request, Work, NOTHING};
use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::costs::Costs;
use crate::filesystems::Io;
use crate::waist::Machine;
use crate::waist::{Account, LockId, TaskId};
use crate::workqueue::{Pools, Workqueue};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

cost_table!(OrderedCosts {
    start: ["ordered.start"],
    item: ["ordered.item"],
    reference: ["ordered.reference"],
    end: ["ordered.end"],
    verify: ["dread.verify"],
});

/// An extent whose write is not over.
#[derive(Clone, Debug)]
struct Ordered {
    slot: u32,
    extent: Extent,
    placing: Placing,
}

/// Where data on their way to the device lie.
#[derive(Clone, Debug)]
enum Placing {
    /// In a new place, in that of what they replace.
    New(Replaced),
    /// Where data of the file lay before: the trees know it.
    Kept,
    /// In an extent that was allocated before and not written.
    Unwritten,
}

/// Ordered extents of all files.
pub struct OrderedExtents {
    costs: OrderedCosts,
    under_way: RefCell<BTreeMap<u32, Ordered>>,
    bytes: Cell<u64>,
    next: Cell<u32>,
    waiting: RefCell<Vec<TaskId>>,
    /// The work queues `endio-write` and, for reads, `endio`.
    pub(in super::super) writes: Rc<Workqueue<Work>>,
    pub(in super::super) reads: Rc<Workqueue<Work>>,
}

impl OrderedExtents {
    pub(crate) fn new<M: Machine>(m: &M, (pools, most): (&Pools, u32), costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            costs: OrderedCosts::new(costs)?,
            under_way: RefCell::default(),
            bytes: Cell::new(0),
            next: Cell::new(0),
            waiting: RefCell::default(),
            writes: Rc::new(Workqueue::unbound(m, pools, most)),
            reads: Rc::new(Workqueue::unbound(m, pools, most)),
        })
    }

    /// Whether no write is under way.
    pub fn at_rest(&self) -> bool {
        self.under_way.borrow().is_empty()
    }

    /// Writes that are under way.
    pub fn count(&self) -> u64 {
        self.under_way.borrow().len() as u64
    }

    /// Their bytes (`ordered_bytes`).
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Whether writes of a file are under way.
    pub fn has(&self, slot: u32) -> bool {
        self.under_way.borrow().values().any(|ordered| ordered.slot == slot)
    }

    fn overlaps(&self, slot: u32, offset: u64, bytes: u64) -> bool {
        let under_way = self.under_way.borrow();
        let mut extents = under_way.values().filter(|ordered| ordered.slot == slot).map(|ordered| ordered.extent);
        extents.any(|extent| extent.offset < offset + bytes && offset < extent.offset + extent.bytes)
    }

    /// Whether data are under way to new places in this range.
    pub fn has_new_in(&self, places: std::ops::Range<u64>) -> bool {
        let under_way = self.under_way.borrow();
        let mut new = under_way.values().filter(|ordered| matches!(ordered.placing, Placing::New(_)));
        new.any(|ordered| places.contains(&ordered.extent.place))
    }

    async fn wait_while<M: Machine>(&self, m: &M, under_way: impl Fn() -> bool) {
        while under_way() {
            self.waiting.borrow_mut().push(m.task());
            m.wchan("btrfs_start_ordered_extent");
            m.park().await;
        }
    }

    /// `btrfs_wait_ordered_range` of a whole file.
    pub async fn wait_for_file<M: Machine>(&self, m: &M, slot: u32) {
        self.wait_while(m, || self.has(slot)).await;
    }

    /// `btrfs_wait_ordered_roots`: those that there are now.
    pub async fn wait_for_all<M: Machine>(&self, m: &M) {
        let Some(last) = self.under_way.borrow().last_key_value().map(|(&id, _)| id) else { return };
        self.wait_while(m, || self.under_way.borrow().first_key_value().is_some_and(|(&id, _)| id <= last)).await;
    }

    /// `lock_and_cleanup_extent_if_need`: what is on its way from this range must get there first.
    pub async fn wait_for_range<M: Machine>(&self, m: &M, slot: u32, offset: u64, bytes: u64) {
        self.wait_while(m, || self.overlaps(slot, offset, bytes)).await;
    }
}

impl Btrfs {
    /// An extent gets its place, unless it has one (`cow_file_range`, `run_delalloc_nocow`), and its write is submitted, whose end
    /// completes `written`, for which somebody waits or not. Returns whether the trees do not know the extent as it will be.
    pub(crate) async fn submit_ordered<M: Machine>(
        &self,
        m: &M,
        slot: u32,
        extent: &mut Extent,
        (written, waited): (LockId, bool),
    ) -> bool {
        let (at, mut first) = (extent.offset, 0);
        let before = self.data(slot).extent_of(at).filter(|before| self.is_written_in_place(before));
        let placing = if let Some(before) = before {
            extent.place = before.place_of(at);
            if before.unwritten {
                Placing::Unwritten
            } else {
                Placing::Kept
            }
        } else {
            let mut space = self.extents.refs.space.borrow_mut();
            extent.place = space.allocate_data(extent.bytes);
            first = space.take_unwritten(extent.place + extent.bytes).min(extent.bytes);
            drop(space);
            let &mut Extent { offset, place, bytes, .. } = extent;
            let placed = Placed { offset, place, bytes, generation: self.transid(), unwritten: false };
            Placing::New(self.data(slot).put(placed))
        };
        let changes = !matches!(placing, Placing::Kept);
        let id = self.ordered.next.get();
        self.ordered.next.set(id.wrapping_add(1));
        self.ordered.under_way.borrow_mut().insert(id, Ordered { slot, extent: *extent, placing });
        self.ordered.bytes.set(self.ordered.bytes.get() + extent.bytes);
        let request = Request::Write { bytes: extent.bytes as u32, at: Some(at), first: first as u32 };
        let end = End::Both(self.ordered.writes.clone(), (id, written));
        self.submit_data(m, request, extent.bytes, end, waited).await;
        changes
    }

    /// Reads past the page cache; the worker that ends it looks at the checksums.
    pub(super) async fn read_data<M: Machine>(&self, m: &M, io: Io) {
        let done = io.done.unwrap_or_else(|| m.new_completion());
        let request = Request::Read { bytes: io.bytes, at: Some(io.offset) };
        self.storage.submit(m, request, End::Queue(self.ordered.reads.clone(), (0, done))).await;
        if io.done.is_none() {
            m.wchan("iomap_dio_rw");
            m.wait_for_io(done).await;
            m.drop_completion(done);
        }
    }

    /// What a worker does of `endio`, for a read that has ended.
    pub(in super::super) async fn end_read<M: Machine>(&self, m: &M, (_, done): Work) {
        m.at("endio");
        m.run(Account::System, self.ordered.costs.verify).await;
        m.complete(done).await;
    }

    /// What a worker does of `endio-write`, for a write that has ended.
    pub(in super::super) async fn end_write<M: Machine>(&self, m: &M, (id, written): Work) {
        m.at("endio-write");
        if written != NOTHING {
            m.complete(written).await;
        }
        self.finish_ordered(m, id).await;
    }

    /// `btrfs_finish_one_ordered`.
    async fn finish_ordered<M: Machine>(&self, m: &M, id: u32) {
        let c = &self.ordered.costs;
        let ordered = self.ordered.under_way.borrow()[&id].clone();
        m.run(Account::System, c.start).await;
        let handle = self.transaction.join(m).await;
        match &ordered.placing {
            Placing::New(replaced) => self.insert_ordered(m, &ordered, replaced).await,
            Placing::Unwritten => {
                self.mark_written(m, ordered.slot, &ordered.extent, c.item).await;
                m.run(Account::System, c.reference).await;
                self.add_sums(m, &ordered.extent).await;
            }
            Placing::Kept => {}
        }
        self.update_root_times(m, ordered.extent.item.key.inode()).await; // `btrfs_update_inode`
        self.data(ordered.slot).written(ordered.extent, self.transid());
        m.run(Account::System, c.end).await;
        self.transaction.reservations.release(m).await; // `btrfs_remove_ordered_extent`
        self.end_transaction(m, handle).await;
        self.ordered.under_way.borrow_mut().remove(&id);
        self.ordered.bytes.set(self.ordered.bytes.get() - ordered.extent.bytes);
        self.grant_tickets(m).await;
        for task in std::mem::take(&mut *self.ordered.waiting.borrow_mut()) {
            m.wake(task);
        }
    }

    /// `insert_ordered_extent_file_extent` and `add_pending_csums`.
    async fn insert_ordered<M: Machine>(&self, m: &M, ordered: &Ordered, replaced: &Replaced) {
        let (c, extent) = (&self.ordered.costs, &ordered.extent);
        let fs_root = self.fs_root_with(extent.item.key);
        let locked = fs_root.root.locked(m);
        let ops = locked.ops();
        let mut path = ops.replace_extent(extent.item, extent.end()).await;
        m.run(Account::System, fs_root.root.after_search(c.item)).await;
        ops.release_path(&mut path).await;
        if let Some(tail) = replaced.tail {
            let ino = self.file(ordered.slot).ino;
            self.insert(m, &[crate::filesystems::btrfs::tree::items::extent(ino, tail.offset)], 0).await;
        }
        self.extents.refs.add_data(m, extent.place, extent.bytes).await;
        for &gone in &replaced.gone {
            self.give_back_data(m, Some(gone)).await;
        }
        m.run(Account::System, c.reference).await;
        self.add_sums(m, extent).await;
    }

    /// `add_pending_csums`.
    async fn add_sums<M: Machine>(&self, m: &M, extent: &Extent) {
        if !self.nodatacow {
            self.extents.add_csums(m, extent.place, extent.bytes).await;
        }
    }
}
