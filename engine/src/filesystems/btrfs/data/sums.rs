//! Checksums by workers (`btrfs_wq_submit_bio`; `fs/btrfs/async-thread.c` of 5.10): who writes data back that nobody waits for queues
//! the request for a worker of `btrfs-worker`, which computes the checksums. Requests are submitted in the order in which they were
//! queued, by the worker that finds the first of them ready (`run_ordered_work`).
//!
//! Left out: `list_lock` of the queue.

use crate::cost_table;
use crate::devices::{BlockDevice, End, Request};
use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::costs::Costs;
use crate::filesystems::BLOCK;
use crate::kernel::btrfs::DataSums;
use crate::waist::Machine;
use crate::waist::{Account, Time};
use crate::workqueue::{Pools, Workqueue};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

cost_table!(SumCosts { page: ["csum_page"] });

struct Bio {
    request: Request,
    end: End,
    summed: bool,
}

/// Data that workers submit.
pub struct SumWorkers {
    costs: SumCosts,
    design: DataSums,
    /// Numbers of requests, counted from the first one, and their pages.
    pub(in super::super) queue: Workqueue<(u64, u64)>,
    ordered: RefCell<VecDeque<Bio>>,
    submitted: Cell<u64>,
    submitting: Cell<bool>,
}

impl SumWorkers {
    pub(crate) fn new<M: Machine>(m: &M, (pools, most): (&Pools, u32), costs: &Costs<'_>) -> Result<Self, String> {
        let design = costs.rules().data_sums;
        Ok(Self {
            costs: SumCosts::new(costs)?,
            design,
            queue: Workqueue::unbound(m, pools, if design == DataSums::Workers { most } else { 0 }),
            ordered: RefCell::default(),
            submitted: Cell::new(0),
            submitting: Cell::new(false),
        })
    }

    /// CPU time for checksums.
    fn time(&self, pages: u64) -> Time {
        self.costs.page * pages
    }

    async fn queue<M: Machine>(&self, m: &M, request: Request, pages: u64, end: End) {
        let number = self.submitted.get() + self.ordered.borrow().len() as u64;
        self.ordered.borrow_mut().push_back(Bio { request, end, summed: false });
        self.queue.queue(m, (number, pages)).await;
    }

    fn is_summed(&self, number: u64) {
        let at = number - self.submitted.get();
        self.ordered.borrow_mut()[at as usize].summed = true;
    }

    /// The next one to be submitted, if it is ready.
    fn next(&self) -> Option<Bio> {
        let ready = self.ordered.borrow().front().is_some_and(|bio| bio.summed);
        let bio = if ready { self.ordered.borrow_mut().pop_front() } else { None };
        self.submitted.set(self.submitted.get() + u64::from(ready));
        bio
    }

    /// `run_ordered_work`.
    async fn submit<M: Machine>(&self, m: &M, device: &BlockDevice) {
        if self.submitting.replace(true) {
            return;
        }
        while let Some(Bio { request, end, .. }) = self.next() {
            device.submit(m, request, end).await;
        }
        self.submitting.set(false);
    }
}

impl Btrfs {
    /// Whether workers compute the checksums of data that nobody waits for.
    fn sums_by_workers(&self) -> bool {
        self.sums.design == DataSums::Workers && !self.nodatacow
    }

    /// CPU time of the flusher for so many pages that follow each other.
    pub(super) fn flusher_time(&self, pages: u64) -> Time {
        let sums = if self.sums_by_workers() { self.sums.time(pages) } else { 0 };
        self.writeback_time(pages).saturating_sub(sums)
    }

    /// Submits data: at once if somebody waits for them (`sync_writers`, `REQ_SYNC`).
    pub(super) async fn submit_data<M: Machine>(&self, m: &M, request: Request, bytes: u64, end: End, waited: bool) {
        if waited || !self.sums_by_workers() {
            self.storage.submit(m, request, end).await;
            return;
        }
        self.sums.queue(m, request, bytes / u64::from(BLOCK), end).await;
    }

    /// What a worker does of `btrfs-worker`: the checksums of a request.
    pub(in super::super) async fn sum_data<M: Machine>(&self, m: &M, (number, pages): (u64, u64)) {
        m.at("btrfs-worker");
        m.run(Account::System, self.sums.time(pages)).await;
        self.sums.is_summed(number);
        self.sums.submit(m, &self.storage).await;
    }
}
