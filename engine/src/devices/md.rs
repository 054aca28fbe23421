//! Flushes of an md array of RAID 0 (`drivers/md/md.c`). The array says that it has a volatile cache whether its members have one or
//! not, so that it is sent flushes, and passes them on to all members. Here the members serve requests in the submitter.
//!
//! Until 6.11 one flush at a time is under way (`md_flush_request`). Who asks meanwhile sleeps; all are woken at its end, and meet at
//! the array's lock. A worker of the CPU sends the flushes, and queues itself again to write what was to be written behind them
//! (`submit_flushes`, `md_submit_flush_data`).

use super::{BlockDevice, End, Request};
use crate::kernel::block::MdFlush;
use crate::waist::{Account, CpuId, LockId, Machine, Side, TaskId, Time};
use crate::workqueue::Workqueue;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A request on its way, and what its end does.
#[derive(Debug)]
pub(super) struct Bio {
    pub request: Request,
    pub end: End,
}

/// What a worker of `md_wq` does.
#[derive(Clone, Copy, Debug)]
enum Job {
    SubmitFlushes,
    SubmitData,
}

/// `struct mddev`.
pub(super) struct Md {
    members: u32,
    rule: MdFlush,
    lock: LockId,
    flush_bio: RefCell<Option<Bio>>,
    /// When the flush under way was sent, and when the last one that is over was.
    start_flush: Cell<Time>,
    prev_flush_start: Cell<Option<Time>>,
    sb_wait: RefCell<Vec<TaskId>>,
    work: Workqueue<Job>,
}

impl Md {
    /// An array of so many members.
    pub fn new<M: Machine>(m: &M, members: u32, rule: MdFlush) -> Self {
        Self {
            members,
            rule,
            lock: m.new_lock(m.class("md.lock", "md.lock")),
            flush_bio: RefCell::default(),
            start_flush: Cell::default(),
            prev_flush_start: Cell::default(),
            sb_wait: RefCell::default(),
            work: Workqueue::new(m),
        }
    }

    /// Whether workers send the flushes.
    pub fn has_workers(&self) -> bool {
        self.rule != MdFlush::Inline
    }

    /// A flush that was sent after this moment is over, and does for who asked then.
    fn was_flushed_since(&self, asked: Time) -> bool {
        self.rule == MdFlush::Joined && self.prev_flush_start.get().is_some_and(|start| asked < start)
    }

    /// `md_flush_request`; returns the request if nothing is to be flushed for it any more.
    async fn request<M: Machine>(&self, m: &M, bio: Bio) -> Option<Bio> {
        let asked = m.now();
        m.lock(self.lock, Side::Write).await;
        while self.flush_bio.borrow().is_some() && !self.was_flushed_since(asked) {
            self.sb_wait.borrow_mut().push(m.task());
            m.unlock(self.lock, Side::Write).await;
            m.wchan("md_flush_request");
            m.park().await;
            m.lock(self.lock, Side::Write).await;
        }
        let is_safe = self.was_flushed_since(asked);
        let left = if is_safe { Some(bio) } else { self.flush_bio.replace(Some(bio)) };
        m.unlock(self.lock, Side::Write).await;
        if !is_safe {
            self.work.queue(m, Job::SubmitFlushes).await;
        }
        left
    }

    /// What `md_submit_flush_data` does first: the next flush may begin.
    async fn flushed<M: Machine>(&self, m: &M) -> Bio {
        m.lock(self.lock, Side::Write).await;
        self.prev_flush_start.set(Some(self.start_flush.get()));
        let bio = self.flush_bio.take().expect("somebody asked for the flush");
        m.unlock(self.lock, Side::Write).await;
        for task in std::mem::take(&mut *self.sb_wait.borrow_mut()) {
            m.wake(task);
        }
        bio
    }
}

impl BlockDevice {
    /// A request that flushes comes to an array.
    pub(super) async fn flush_members<M: Machine>(&self, m: &M, md: &Md, bio: Bio) {
        if md.has_workers() {
            if let Some(bio) = md.request(m, bio).await {
                self.serve_flushed(m, bio).await;
            }
        } else {
            self.send_flushes(m, md).await;
            self.serve_flushed(m, bio).await;
        }
    }

    /// An empty write to each member, which ends at once.
    async fn send_flushes<M: Machine>(&self, m: &M, md: &Md) {
        let time: Time = (0..md.members).map(|_| self.timing.draw(Request::Flush)).sum();
        m.run(Account::System, time).await;
    }

    async fn serve_flushed<M: Machine>(&self, m: &M, Bio { request, end }: Bio) {
        if let Some(request) = request.after_flush() {
            self.serve_here(m, request).await;
        }
        Self::finish(m, end).await;
    }
}

/// The program of a CPU's worker of `md_wq`.
pub(super) async fn worker<M: Machine>(m: M, device: Rc<BlockDevice>, cpu: CpuId) {
    m.at("md");
    let Some(md) = &device.md else { return };
    loop {
        match md.work.next(&m, cpu).await {
            Job::SubmitFlushes => {
                md.start_flush.set(m.now());
                device.send_flushes(&m, md).await;
                md.work.queue(&m, Job::SubmitData).await;
            }
            Job::SubmitData => {
                let bio = md.flushed(&m).await;
                device.serve_flushed(&m, bio).await;
            }
        }
    }
}
