//! Memory for pages of files, for inodes and dentries: it fills up, `kswapd` makes room, and whoever needs memory when there is next to
//! no room left makes some himself, with whatever locks he holds (`mm/vmscan.c`, `mm/page_alloc.c` of Linux 5.10 to 6.12).
//!
//! Pages are in one list in the order in which they came; one that was used since is passed over once (`folio_check_references`), a
//! dirty one until it is written. Inodes that nobody uses go as [`Shrinker`] says. What a load makes does not count, inodes or pages of
//! files, but for files that are laid out, and is never reclaimed.

mod hash_buckets;
mod shrinker;
mod watermarks;

pub use crate::lru::Lru;
pub use hash_buckets::hash_buckets;
pub use shrinker::{Held, Shrinker};

use crate::block::{Written, BLOCK};
use crate::cost_table;
use crate::costs::Costs;
use crate::page_cache::PageCache;
use crate::waist::Machine;
use crate::waist::{Account, Side, TaskId, Time};
use crate::writeback::Writeback;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use watermarks::Watermarks;

cost_table!(MemoryCosts { reclaim: ["memory.reclaim_page"] });

/// A list is looked at in parts of one 2^12th of it first.
const DEF_PRIORITY: u32 = 12;

/// Pages of a file that came together.
struct Pages {
    file: Rc<PageCache>,
    first: u64,
    count: u64,
}

/// Pages of files, and room for them.
pub struct Memory {
    costs: MemoryCosts,
    marks: Option<Watermarks>,
    tick: Time,
    /// Pages that are reclaimed at a time (`SWAP_CLUSTER_MAX`).
    batch: u64,
    /// How long who finds nothing to reclaim waits (`reclaim_throttle`), and how often (`MAX_RECLAIM_RETRIES`).
    throttle: Time,
    retries: u64,
    /// The lists that these pages are on, with those of processes.
    lru: Rc<Lru>,
    list: RefCell<VecDeque<Pages>>,
    /// Files were laid out that were written together: the list is to be put in the order of their bytes.
    written_together: Cell<bool>,
    used: Cell<u64>,
    /// Inodes that nobody uses, if a filesystem has any (`register_shrinker`).
    shrinker: OnceCell<Shrinker>,
    /// `kswapd`, if it sleeps.
    kswapd: Cell<Option<TaskId>>,
}

impl Memory {
    /// Room for so many bytes, if there is an end of it. The error names a number that is missing.
    pub fn new(bytes: Option<u64>, tick: Time, costs: &Costs<'_>) -> Result<Self, String> {
        let number = |name: &str| costs.number(&format!("memory.{name}"));
        let (share, scale) = (costs.number("writeback.dirtyable")?, number("watermark_scale")?);
        Ok(Self {
            costs: MemoryCosts::new(costs)?,
            marks: bytes.map(|bytes| Watermarks::new(bytes, share, scale)),
            tick: tick.max(1),
            batch: number("batch")? as u64,
            throttle: crate::waist::time::from_ns(number("throttle")?),
            retries: number("retries")? as u64,
            lru: costs.lru(),
            list: RefCell::default(),
            written_together: Cell::new(false),
            used: Cell::new(0),
            shrinker: OnceCell::new(),
            kswapd: Cell::new(None),
        })
    }

    /// Whether it has an end.
    pub fn is_limited(&self) -> bool {
        self.marks.is_some()
    }

    /// The filesystem of this memory has inodes that can be reclaimed; only what there is room for is there.
    pub fn register(&self, shrinker: Shrinker) {
        let Some(marks) = &self.marks else { return };
        shrinker.keep(self.free(marks).saturating_sub(marks.high));
        self.used.set(self.used.get() + shrinker.pages());
        assert!(self.shrinker.set(shrinker).is_ok(), "one filesystem");
    }

    /// Memory for an inode that comes into memory without a user, and its dentry (`alloc_inode`, `d_alloc`).
    pub async fn add_inode<M: Machine>(&self, m: &M, writeback: &Writeback) {
        let (Some(marks), Some(shrinker)) = (&self.marks, self.shrinker.get()) else { return };
        if self.allocate(m, writeback, marks, shrinker.pages_of_next()).await {
            self.used.set(self.used.get() + shrinker.pages_of_next());
            shrinker.add();
        }
    }

    fn free(&self, marks: &Watermarks) -> u64 {
        marks.pages.saturating_sub(self.used.get())
    }

    /// A file was laid out: what of it is in memory, as far as there is room.
    pub fn lay_out(&self, file: &Rc<PageCache>) {
        let Some(marks) = &self.marks else { return };
        let room = self.free(marks).saturating_sub(marks.high);
        let count = file.keep_first(room);
        if count > 0 {
            self.used.set(self.used.get() + count);
            self.list.borrow_mut().push_back(Pages { file: file.clone(), first: 0, count });
        }
    }

    /// One of so many files that were written together, block after block: its newest bytes are in memory, as far as there is room.
    pub fn lay_out_written(&self, file: &Rc<PageCache>, written: Written) {
        let (end, block) = (written.bytes / u64::from(BLOCK), u64::from(written.block.div_ceil(BLOCK)));
        let most = self.marks.map_or(end, |marks| marks.pages.saturating_sub(marks.high) / u64::from(written.files));
        let first = end.saturating_sub(most).next_multiple_of(block);
        for at in (first..end).step_by(block as usize) {
            let count = file.fill(at * u64::from(BLOCK), block.min(end - at) as u32 * BLOCK);
            self.used.set(self.used.get() + count);
            self.list.borrow_mut().push_back(Pages { file: file.clone(), first: at, count });
        }
        self.written_together.set(true);
    }

    /// Files that were written together are put in the order in which their pages came.
    fn sort(&self) {
        if self.written_together.take() {
            self.list.borrow_mut().make_contiguous().sort_by_key(|pages| pages.first);
        }
    }

    /// Memory for what of these bytes of a file is not there (`filemap_add_folio`). Where none is to be had the run is given up, so
    /// callers need not know.
    pub async fn add<M: Machine>(
        &self,
        m: &M,
        writeback: &Writeback,
        file: &Rc<PageCache>,
        (offset, bytes): (u64, u32),
    ) {
        let Some(marks) = &self.marks else {
            file.fill(offset, bytes);
            return;
        };
        if !self.allocate(m, writeback, marks, file.absent(offset, bytes)).await {
            return;
        }
        let came = file.fill(offset, bytes); // others may have brought some of it meanwhile
        self.used.set(self.used.get() + came);
        let page = u64::from(BLOCK);
        let (first, end) = (offset / page, (offset + u64::from(bytes)).div_ceil(page));
        self.list.borrow_mut().push_back(Pages { file: file.clone(), first, count: end - first });
        self.lru.add_in_step(m, came).await;
    }

    /// `__alloc_pages_slowpath`: `kswapd` is woken below the low watermark; below the least one the task reclaims itself.
    async fn allocate<M: Machine>(&self, m: &M, writeback: &Writeback, marks: &Watermarks, pages: u64) -> bool {
        if pages == 0 {
            return true;
        }
        if self.free(marks) < marks.low + pages {
            if let Some(kswapd) = self.kswapd.take() {
                m.wake(kswapd);
            }
        }
        let mut tries = 0;
        while self.free(marks) < marks.least + pages {
            if self.shrink(m).await > 0 {
                tries = 0;
                continue;
            }
            tries += 1;
            if tries > self.retries {
                m.give_up("out of memory: no page of a file can be reclaimed");
                return false;
            }
            self.wait_for_writeback(m, writeback).await;
        }
        true
    }

    /// `reclaim_throttle`, after the flusher was told.
    async fn wait_for_writeback<M: Machine>(&self, m: &M, writeback: &Writeback) {
        writeback.write_some(m);
        m.wake_at_tick(m.task(), (self.throttle / self.tick).max(1));
        m.wchan("reclaim_throttle");
        m.park().await;
    }

    /// `shrink_node`: looks at some pages and at some inodes, and at twice as many each time that nothing can go. How many pages it gave
    /// back.
    async fn shrink<M: Machine>(&self, m: &M) -> u64 {
        self.sort();
        for looked in 0..=DEF_PRIORITY {
            let gone =
                self.shrink_pages(m, self.batch << looked).await + self.shrink_inodes(m, DEF_PRIORITY - looked).await;
            if gone > 0 {
                return gone;
            }
        }
        0
    }

    /// `shrink_lruvec`: takes so many pages off the list, and gives back those that are clean and were not used.
    async fn shrink_pages<M: Machine>(&self, m: &M, looks: u64) -> u64 {
        let lock = self.lru.lock(m);
        m.lock(lock, Side::Write).await;
        let gone = self.evict(looks);
        m.unlock(lock, Side::Write).await;
        m.run(Account::System, self.costs.reclaim * gone.max(1)).await;
        gone
    }

    /// `shrink_slab`.
    async fn shrink_inodes<M: Machine>(&self, m: &M, priority: u32) -> u64 {
        let Some(shrinker) = self.shrinker.get() else { return 0 };
        let gone = shrinker.shrink(m, priority).await;
        self.used.set(self.used.get() - gone);
        gone
    }

    /// Looks at so many pages, and gives back a batch at most.
    fn evict(&self, mut left: u64) -> u64 {
        let (mut list, mut gone) = (self.list.borrow_mut(), 0);
        while left > 0 && gone < self.batch {
            let Some(mut pages) = list.pop_front() else { break };
            let count = pages.count.min(left).min(self.batch - gone);
            for page in pages.first..pages.first + count {
                if pages.file.evict(page) {
                    gone += 1;
                } else if pages.file.is_present(page) {
                    list.push_back(Pages { file: pages.file.clone(), first: page, count: 1 });
                }
            }
            left -= count;
            (pages.first, pages.count) = (pages.first + count, pages.count - count);
            if pages.count > 0 {
                list.push_front(pages);
            }
        }
        self.used.set(self.used.get() - gone);
        gone
    }

    /// What `kswapd` does when it is woken (`balance_pgdat`); false if memory has no end.
    pub async fn balance<M: Machine>(&self, m: &M, writeback: &Writeback) -> bool {
        let Some(marks) = &self.marks else { return false };
        self.kswapd.set(Some(m.task()));
        m.park().await;
        self.kswapd.set(None);
        while self.free(marks) < marks.high {
            m.at("kswapd"); // each look at its own pace
            if self.shrink(m).await == 0 {
                self.wait_for_writeback(m, writeback).await;
            }
        }
        true
    }
}
