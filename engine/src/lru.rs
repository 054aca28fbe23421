//! The lists of pages that can be reclaimed, and the lock that all CPUs of a node take to put pages on them and to take pages off
//! (`mm/swap.c`, `lru_lock` of `struct lruvec`). The pages of a load are in one cgroup, so there is a list for each node.

use crate::kernel::mm::PageRelease;
use crate::spec::RunSpec;
use crate::waist::time::from_ns;
use crate::waist::{Access, Account, LineId, LockId, Machine, Side, Time};
use std::cell::RefCell;

/// Pages of a process that are gathered in `struct mmu_gather` itself (`MMU_GATHER_BUNDLE`); these are freed first.
const FIRST_GATHERED: u64 = 8;
/// Pages of each further batch (`MAX_GATHER_BATCH`): pointers in a page beside the head of the batch.
const GATHERED: u64 = 510;
/// Lines of the list that a hold writes: its head, and the links of the page beside.
const LINES: u32 = 2;
/// Pages that `release_pages` takes off their list before it lets go of the lock (`SWAP_CLUSTER_MAX`).
const SWAP_CLUSTER_MAX: u64 = 32;

/// What is done with a page, each part at one time for many of them.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// Under the lock: `lru_add`; `lruvec_del_folio`; `folio_activate_fn`.
    add: Time,
    release: Time,
    activate: Time,
    /// Not under it: `unmap_page_range`; `free_unref_folios` and gathering the next batch.
    unmap: Time,
    free: Time,
}

/// Pages that a CPU has not put on the list yet (`cpu_fbatches.lru_add`), and how long that takes.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    pages: u64,
    work: Time,
    /// Those that nobody else refers to any more: their process has ended.
    dead: u64,
}

/// The lists of all nodes.
pub struct Lru {
    /// For each node the lock, and lines of which others have written: the list's head, and its page next to those of a batch.
    nodes: Vec<(LockId, LineId)>,
    cpus_per_node: u32,
    /// Pages that a CPU puts on the list at a time (`PAGEVEC_SIZE`).
    size: u64,
    released: PageRelease,
    /// Who ends puts on the list first what his CPU has collected.
    exit_drains: bool,
    /// Who frees a process's pages gives way after each batch that was gathered.
    gives_way: bool,
    /// There are lists of active and of inactive pages, and not of generations.
    activates: bool,
    work: Work,
    batches: RefCell<Vec<Batch>>,
    /// How many pages each CPU has found active and not moved yet (`cpu_fbatches.activate`).
    activated: RefCell<Vec<u64>>,
}

impl Lru {
    /// The empty lists of a machine.
    pub fn new<M: Machine>(m: &M, spec: &RunSpec) -> Self {
        let (c, cpus) = (&spec.kernel.constants, m.cpus());
        let work = |instructions: f64| from_ns(instructions * spec.machine.costs.instruction);
        let cpus_per_node = spec.machine.cpus_per_socket.clamp(1, cpus);
        let class = m.class("mm.lru_lock", "mm.lru_lock");
        Self {
            nodes: (0..cpus.div_ceil(cpus_per_node))
                .map(|_| (m.new_lock(class), m.new_line("mm.lru list", LINES)))
                .collect(),
            cpus_per_node,
            size: (c.lru_batch as u64).max(1),
            released: spec.kernel.rules.page_release,
            exit_drains: spec.kernel.rules.exit_drains,
            gives_way: spec.kernel.rules.gather_gives_way,
            activates: spec.kernel.rules.activates,
            work: Work {
                add: work(c.code_lru_add),
                release: work(c.code_lru_release),
                activate: work(c.code_lru_activate),
                unmap: work(c.code_unmap_page),
                free: work(c.code_free_page),
            },
            batches: RefCell::new(vec![Batch::default(); cpus as usize]),
            activated: RefCell::new(vec![0; cpus as usize]),
        }
    }

    /// All that is done with a page of a process from when it is faulted in until it is free, but for the fault itself.
    pub fn of_process(&self) -> Time {
        self.work.add + self.work.unmap + self.work.release + self.work.free
    }

    /// What putting a page of a file on the list takes, and taking it off.
    pub fn of_file(&self) -> (Time, Time) {
        (self.work.add, self.work.release)
    }

    /// The lock of the node of the task's CPU.
    pub fn lock<M: Machine>(&self, m: &M) -> LockId {
        self.nodes[(m.cpu() / self.cpus_per_node) as usize].0
    }

    /// How many pages the task's CPU collects before it puts them on the list.
    pub fn room<M: Machine>(&self, m: &M) -> u64 {
        self.size - self.batches.borrow()[m.cpu() as usize].pages
    }

    /// Pages that a task has faulted in, or new ones of a file that it writes (`folio_add_lru`).
    pub async fn add<M: Machine>(&self, m: &M, pages: u64) {
        self.collect(m, pages, self.work.add).await;
    }

    /// Pages of a file whose steps have the time that this takes.
    pub async fn add_in_step<M: Machine>(&self, m: &M, pages: u64) {
        self.collect(m, pages, 0).await;
    }

    async fn collect<M: Machine>(&self, m: &M, mut pages: u64, each: Time) {
        while pages > 0 {
            let few = pages.min(self.room(m));
            pages -= few;
            let is_full = {
                let batch = &mut self.batches.borrow_mut()[m.cpu() as usize];
                (batch.pages, batch.work) = (batch.pages + few, batch.work + few * each);
                batch.pages == self.size
            };
            if is_full {
                self.drain(m).await;
            }
        }
    }

    /// Pages on the list that were read for the second time (`folio_activate`).
    pub async fn activate<M: Machine>(&self, m: &M, pages: u64) {
        for _ in 0..if self.activates { pages } else { 0 } {
            let collected = {
                let own = &mut self.activated.borrow_mut()[m.cpu() as usize];
                *own += 1;
                *own
            };
            if collected == self.size {
                self.move_active(m).await;
            }
        }
    }

    /// What the task's CPU has found active goes to the list of such pages.
    async fn move_active<M: Machine>(&self, m: &M) {
        let pages = std::mem::take(&mut self.activated.borrow_mut()[m.cpu() as usize]);
        if pages > 0 {
            self.hold(m, pages * self.work.activate).await;
        }
    }

    /// `lru_add_drain`: all that the task's CPU has collected.
    async fn drain_all<M: Machine>(&self, m: &M) {
        self.drain(m).await;
        self.move_active(m).await;
    }

    /// `folio_batch_move_lru`: what the task's CPU has collected goes onto the list, and off it again what nobody
    /// uses any more.
    async fn drain<M: Machine>(&self, m: &M) {
        let batch = std::mem::take(&mut self.batches.borrow_mut()[m.cpu() as usize]);
        if batch.pages > 0 {
            self.hold(m, batch.work).await;
        }
        self.release(m, batch.dead, batch.dead).await;
    }

    async fn hold<M: Machine>(&self, m: &M, time: Time) {
        let (lock, line) = self.nodes[(m.cpu() / self.cpus_per_node) as usize];
        m.lock(lock, Side::Write).await;
        m.touch(line, Access::Write);
        m.run(Account::System, time).await;
        m.unlock(lock, Side::Write).await;
    }

    /// `truncate_inode_pages_final`: a file that goes drops its pages. Before the first what the CPU has collected goes onto the
    /// list, as it may be there (`__folio_batch_release`).
    pub async fn truncate<M: Machine>(&self, m: &M, mut pages: u64) {
        self.drain_all(m).await;
        while pages > 0 {
            let few = pages.min(self.size);
            pages -= few;
            self.hold(m, few * self.work.release).await;
        }
    }

    /// `exit_mmap`: a process unmaps its pages, all of which are its own, and frees them, but for those that its CPU has not put on
    /// the list yet. It gives way in between (`zap_pmd_range`, `tlb_batch_pages_flush`), and so before its parent is told.
    pub async fn exit_mmap<M: Machine>(&self, m: &M, pages: u64) {
        if self.exit_drains {
            self.drain_all(m).await;
        }
        m.run(Account::System, pages * self.work.unmap).await;
        let pages = pages - self.leave(m, pages);
        m.cond_resched().await;
        let most = match self.released {
            PageRelease::Batches => self.size,
            PageRelease::Runs => SWAP_CLUSTER_MAX,
        };
        let (mut left, mut gathered) = (pages, FIRST_GATHERED);
        while left > 0 {
            let few = left.min(gathered);
            self.release(m, few, most).await;
            if self.gives_way {
                m.cond_resched().await;
            }
            (left, gathered) = (left - few, GATHERED);
        }
    }

    /// How many of a process's pages are still in its CPU's batch, which keeps them until it is put on the list. The last ones that
    /// were collected are taken for the process's.
    fn leave<M: Machine>(&self, m: &M, pages: u64) -> u64 {
        let batch = &mut self.batches.borrow_mut()[m.cpu() as usize];
        let few = pages.min(batch.pages - batch.dead);
        batch.dead += few;
        few
    }

    /// Takes so many pages at a time off the list, and frees them then or all at the end.
    async fn release<M: Machine>(&self, m: &M, pages: u64, most: u64) {
        let (mut left, mut off) = (pages, 0);
        while left > 0 {
            let few = left.min(most);
            self.hold(m, few * self.work.release).await;
            (left, off) = (left - few, off + few);
            if left == 0 || self.released == PageRelease::Batches {
                m.run(Account::System, std::mem::take(&mut off) * self.work.free).await;
            }
        }
    }
}
