//! The lists of pages that can be reclaimed, and the lock that all CPUs of a node take to put pages on them and to take pages off
//! (`mm/swap.c`, `lru_lock` of `struct lruvec`). The pages of a load are in one cgroup, so there is a list for each node.

use crate::kernel::mm::PageRelease;
use crate::spec::RunSpec;
use crate::waist::time::from_ns;
use crate::waist::{Account, LockId, Machine, Side, Time};
use std::cell::RefCell;

/// Pages of a process that are gathered in `struct mmu_gather` itself (`MMU_GATHER_BUNDLE`); these are freed first.
const FIRST_GATHERED: u64 = 8;
/// Pages that `release_pages` takes off their list before it lets go of the lock (`SWAP_CLUSTER_MAX`).
const SWAP_CLUSTER_MAX: u64 = 32;

/// What is done with a page, each part at one time for many of them.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// Under the lock: `lru_add`; `lruvec_del_folio`.
    add: Time,
    release: Time,
    /// Not under it: `unmap_page_range`; `free_unref_folios` and gathering the next batch.
    unmap: Time,
    free: Time,
}

/// Pages that a CPU has not put on the list yet (`cpu_fbatches.lru_add`), and how long that takes.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    pages: u64,
    work: Time,
}

/// The lists of all nodes.
pub struct Lru {
    /// One a node.
    locks: Vec<LockId>,
    cpus_per_node: u32,
    /// Pages that a CPU puts on the list at a time (`PAGEVEC_SIZE`).
    size: u64,
    release: PageRelease,
    work: Work,
    batches: RefCell<Vec<Batch>>,
}

impl Lru {
    /// The empty lists of a machine.
    pub fn new<M: Machine>(m: &M, spec: &RunSpec) -> Self {
        let (c, cpus) = (&spec.kernel.constants, m.cpus());
        let work = |instructions: f64| from_ns(instructions * spec.machine.costs.instruction);
        let cpus_per_node = spec.machine.cpus_per_socket.clamp(1, cpus);
        let class = m.class("mm.lru_lock", "mm.lru_lock");
        Self {
            locks: (0..cpus.div_ceil(cpus_per_node)).map(|_| m.new_lock(class)).collect(),
            cpus_per_node,
            size: (c.lru_batch as u64).max(1),
            release: spec.kernel.rules.page_release,
            work: Work {
                add: work(c.code_lru_add),
                release: work(c.code_lru_release),
                unmap: work(c.code_unmap_page),
                free: work(c.code_free_page),
            },
            batches: RefCell::new(vec![Batch::default(); cpus as usize]),
        }
    }

    /// All that is done with a page from when it is faulted in until it is free, but for the fault itself.
    pub fn per_page(&self) -> Time {
        self.work.add + self.work.unmap + self.work.release + self.work.free
    }

    /// The lock of the node of the task's CPU.
    pub fn lock<M: Machine>(&self, m: &M) -> LockId {
        self.locks[(m.cpu() / self.cpus_per_node) as usize]
    }

    /// How many pages the task's CPU collects before it puts them on the list.
    pub fn room<M: Machine>(&self, m: &M) -> u64 {
        (self.size - self.batches.borrow()[m.cpu() as usize].pages.min(self.size)).max(1)
    }

    /// Pages that the task has faulted in (`folio_add_lru_vma`).
    pub async fn fault<M: Machine>(&self, m: &M, pages: u64) {
        self.collect(m, Batch { pages, work: pages * self.work.add }).await;
    }

    /// Pages of a file (`folio_add_lru`). The steps that write or read them have the time that this takes.
    pub async fn add<M: Machine>(&self, m: &M, pages: u64) {
        self.collect(m, Batch { pages, work: 0 }).await;
    }

    async fn collect<M: Machine>(&self, m: &M, came: Batch) {
        let is_full = {
            let batch = &mut self.batches.borrow_mut()[m.cpu() as usize];
            (batch.pages, batch.work) = (batch.pages + came.pages, batch.work + came.work);
            batch.pages >= self.size
        };
        if is_full {
            self.drain(m).await;
        }
    }

    /// `lru_add_drain`, `folio_batch_move_lru`: what the task's CPU has collected goes onto the list.
    pub async fn drain<M: Machine>(&self, m: &M) {
        let batch = std::mem::take(&mut self.batches.borrow_mut()[m.cpu() as usize]);
        if batch.pages > 0 {
            self.hold(m, batch.work).await;
        }
    }

    async fn hold<M: Machine>(&self, m: &M, time: Time) {
        let lock = self.lock(m);
        m.lock(lock, Side::Write).await;
        if time > 0 {
            m.run(Account::System, time).await;
        }
        m.unlock(lock, Side::Write).await;
    }

    /// `exit_mmap`: a process unmaps its pages, all of which are its own, and frees them.
    pub async fn exit_mmap<M: Machine>(&self, m: &M, pages: u64) {
        self.drain(m).await;
        m.run(Account::System, pages * self.work.unmap).await;
        let mut left = pages;
        let mut taken = |most: u64| {
            let taken = left.min(most);
            left -= taken;
            (taken > 0).then_some(taken)
        };
        let mut most = FIRST_GATHERED;
        let mut free = 0;
        while let Some(count) = taken(most) {
            self.hold(m, count * self.work.release).await;
            free += count;
            most = match self.release {
                PageRelease::Batches => self.size,
                PageRelease::Runs => SWAP_CLUSTER_MAX,
            };
            if self.release == PageRelease::Batches {
                m.run(Account::System, std::mem::take(&mut free) * self.work.free).await;
            }
        }
        m.run(Account::System, free * self.work.free).await;
    }
}
