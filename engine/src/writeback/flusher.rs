//! The flusher of a device (`wb_workfn`): while more is dirty than the background limit, and every five seconds what is old.

use super::{Writeback, METADATA};
use crate::waist::Machine;
use crate::waist::{LockId, Side, Time};
use std::future::Future;
use std::rc::Rc;

/// Most pages of a request (`BLK_DEF_MAX_SECTORS`: 1,280 KiB).
pub const REQUEST_PAGES: u64 = 320;
/// Pages of a file that are written in its turn are a multiple of these (`MIN_WRITEBACK_PAGES`: 4 MiB).
const TURN_PAGES: u64 = 1024;
/// A turn is an eighth of the limit at most (`DIRTY_SCOPE`).
const SCOPE: u64 = 8;
/// For so long a pause of somebody lets the flusher have more requests (`wb_recent_wait`: a second).
const RECENT: Time = 1_000_000_000_000;

/// A filesystem whose dirty pages can be written back.
pub trait Flushed: 'static {
    /// Its device's.
    fn writeback(&self) -> &Writeback;
    /// Pages of a file that wait to be written.
    fn dirty_pages(&self, slot: u32) -> u64;
    /// At the end of a write, with the file's lock held (`balance_dirty_pages_ratelimited`).
    fn dirtied<M: Machine>(&self, m: &M, slot: u32) -> impl Future<Output = ()> {
        async move {
            let wb = self.writeback();
            wb.is_there(slot);
            if wb.is_limited() {
                wb.balance(m, slot, self.dirty_pages(slot)).await;
            }
        }
    }
    /// `writepages`: submits at most so many pages of a file, in requests that [`Writeback::submitted`] is told of.
    fn write_pages<M: Machine>(&self, m: &M, slot: u32, most: u64) -> impl Future<Output = ()>;
    /// The task holds back what it submits until [`Flushed::finish_plug`], as the flusher does for all files of a round since 4.3 (`wb_writeback`).
    fn start_plug<M: Machine>(&self, m: &M);
    /// It lets go of it.
    fn finish_plug<M: Machine>(&self, m: &M);
    /// Whether `writepages` writes anything of a file that is dirty, because it is old (`for_kupdate`) or because there is too much.
    fn may_write(&self, _slot: u32, _why: Why) -> bool {
        true
    }
}

/// Why the flusher writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is too much, or somebody needs clean pages.
    TooMuch,
    /// It is old.
    Old,
}

/// The program of the flusher.
pub async fn flusher<M: Machine, F: Flushed>(m: M, fs: Rc<F>) {
    m.at("flusher");
    let wb = fs.writeback();
    wb.flushes_as.set(Some(m.task()));
    loop {
        wb.sleep(&m).await;
        fs.start_plug(&m);
        let mut in_vain = None; // the first file of which nothing was written, since something was of another
        while wb.is_over_background() || wb.asked.get() {
            let Some(file) = wb.next(&m, Time::MAX).await else { break };
            if wb.take_turn(&m, &*fs, file, Why::TooMuch).await {
                in_vain = None;
            } else if in_vain.replace(in_vain.unwrap_or(file.0)) == Some(file.0) {
                break;
            }
        }
        wb.asked.set(false);
        let old = m.now().saturating_sub(wb.expire);
        while let Some(file) = wb.next(&m, old).await {
            wb.take_turn(&m, &*fs, file, Why::Old).await;
        }
        fs.finish_plug(&m);
        while wb.reap(&m, false).await {}
    }
}

/// What the flusher has submitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Submitted {
    done: LockId,
    slot: u32,
    pages: u64,
    /// It is a request of its own.
    alone: bool,
}

impl Writeback {
    /// Until there is too much, or for `dirty_writeback_interval`.
    async fn sleep<M: Machine>(&self, m: &M) {
        self.flusher.set(Some(m.task()));
        m.wake_at_tick(m.task(), (self.interval / self.tick).max(1));
        m.park().await;
        self.flusher.set(None);
    }

    /// Takes the first file off the list that is on it since before that time (`queue_io`), and tells since when it was.
    async fn next<M: Machine>(&self, m: &M, before: Time) -> Option<(u32, Time)> {
        m.lock(self.list_lock, Side::Write).await;
        let since = |slot| self.change(slot, |file| file.since.unwrap_or(0));
        let place = self.list.borrow().iter().find(|&(_, &slot)| since(slot) < before).map(|(&place, _)| place);
        let taken = place.and_then(|place| self.list.borrow_mut().remove(&place)).map(|slot| (slot, since(slot)));
        if let Some((slot, _)) = taken {
            self.change(slot, |file| (file.since, file.syncing) = (None, true));
        }
        m.unlock(self.list_lock, Side::Write).await;
        taken
    }

    /// Writes some of a file (`writeback_sb_inodes`), if it may; what is left of it has its next turn after all others, or counts as
    /// dirty since now if its turn was not all used (`redirty_tail`). Says no if nothing may be written.
    async fn take_turn<M: Machine, F: Flushed>(&self, m: &M, fs: &F, (slot, since): (u32, Time), why: Why) -> bool {
        let may = fs.may_write(slot, why);
        let all = slot == METADATA && self.change(slot, |file| file.dirty) <= self.turn();
        if may {
            fs.write_pages(m, slot, self.turn()).await;
        }
        m.lock(self.list_lock, Side::Write).await;
        let since = if may && !all { since } else { m.now() };
        let left = self.change(slot, |file| {
            file.syncing = false;
            let left = file.dirty > 0 && file.since.is_none();
            file.since = file.since.or(left.then_some(since));
            left
        });
        if left {
            self.list_last(slot);
        }
        m.unlock(self.list_lock, Side::Write).await;
        self.wake_waiting(m);
        may
    }

    /// `writeback_chunk_size`: half of what the device writes in a second.
    fn turn(&self) -> u64 {
        let scope = self.limits.map_or(u64::MAX, |limits| limits.most / SCOPE);
        let pages = ((self.rates.borrow().write / 2.0) as u64).min(scope);
        (pages + TURN_PAGES) / TURN_PAGES * TURN_PAGES
    }

    /// The flusher is about to make another request of what it has to write, and waits until it may (`wbt_wait`).
    pub async fn throttle<M: Machine>(&self, m: &M) {
        if self.flushes_as.get() == Some(m.task()) {
            self.room(m, 1).await;
        }
    }

    /// Waits until the flusher may have another request; so many that it is about to make are counted already.
    pub async fn room<M: Machine>(&self, m: &M, to_come: usize) {
        loop {
            let recent = self.paused.get() > 0 && m.now() - self.paused.get() < RECENT;
            let depth = if recent { self.depths.1 } else { self.depths.0 };
            if self.requests.get() < depth + to_come || !self.reap(m, true).await {
                return;
            }
        }
    }

    /// The flusher has submitted so many pages of a file, in a request whose end completes this.
    pub fn submitted(&self, done: LockId, slot: u32, pages: u64) {
        self.begin(pages);
        self.change(slot, |file| file.under_way += pages);
        self.requests.set(self.requests.get() + 1);
        self.submitted.borrow_mut().push_back(Submitted { done, slot, pages, alone: true });
    }

    /// The last of them became part of another one.
    pub fn joined(&self) {
        if let Some(last) = self.submitted.borrow_mut().back_mut() {
            last.alone = false;
            self.requests.set(self.requests.get() - 1);
        }
    }

    /// Waits for the oldest request of the flusher; says no if there is none. In the kernel it waits only `for_room` (`rq_qos_wait`): else
    /// the end of a request needs nobody.
    async fn reap<M: Machine>(&self, m: &M, for_room: bool) -> bool {
        let Some(Submitted { done, slot, pages, alone }) = self.submitted.borrow().front().copied() else {
            return false;
        };
        m.wchan("wbt_wait");
        m.io_schedule(for_room);
        m.wait_for(done).await;
        m.io_schedule(false);
        m.drop_completion(done);
        self.submitted.borrow_mut().pop_front();
        self.requests.set(self.requests.get() - usize::from(alone));
        self.end(pages);
        self.change(slot, |file| file.under_way -= pages);
        self.wake_waiting(m);
        true
    }

    pub(super) fn wake_waiting<M: Machine>(&self, m: &M) {
        for task in std::mem::take(&mut *self.waiting.borrow_mut()) {
            m.wake(task);
        }
    }
}
