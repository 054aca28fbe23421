//! The programs of `xfsaild` and of the workers that end its writes.

use super::super::ail::{Cursor, ItemId, Lsn, Subject};
use super::super::buffer::Place;
use super::Write;
use crate::devices::{End, Request};
use crate::filesystems::xfs::mount::Xfs;
use crate::filesystems::BLOCK;
use crate::kernel::xfs::{AilForce, AilTarget, AilTurn};
use crate::waist::Machine;
use crate::waist::{Access, Account, CpuId, LockId, Side, Time};
use std::rc::Rc;

/// Items that are stuck before the thread gives up for now, and visited before it looks at the log anew.
const STUCK: u32 = 100;
const VISITED: u32 = 1000;
/// Sleep when the target is reached, when nine of ten were stuck, and else, before 6.11: 50, 20 and 10 ms.
const MS: Time = crate::waist::time::US * 1000;
const REACHED: Time = 50 * MS;
const HINDERED: Time = 20 * MS;
const WORKING: Time = 10 * MS;
/// Requests that a queue of the block layer takes (`BLKDEV_DEFAULT_RQ`), and blocks that it puts into one (1,280 KiB).
const REQUESTS: usize = 128;
const MERGED: u32 = 320;

/// What came of pushing an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pushed {
    Success,
    Flushing,
    Pinned,
    Locked,
}

/// What a turn has met.
#[derive(Debug, Default)]
struct Turn {
    visited: u32,
    stuck: u32,
    flushing: u32,
    last: Lsn,
    /// The walk came to the end.
    ended: bool,
}

impl Xfs {
    /// The program of `xfsaild`.
    pub async fn xfsaild<M: Machine>(m: M, fs: Rc<Self>, tick: Time) {
        let pusher = &fs.log.pusher;
        pusher.thread.set(Some(m.task()));
        m.at("xfsaild");
        let mut pause = 0;
        loop {
            if fs.log.ail.borrow().is_empty() && pusher.queue.borrow().is_empty() {
                m.park().await;
                pause = 0;
                continue;
            }
            if pause > 0 {
                pusher.sleep(&m, pause, tick).await;
            }
            pause = fs.push(&m).await;
        }
    }

    /// `xfs_ail_push_all_sync`: has all metadata written in place.
    pub(in crate::filesystems::xfs) async fn empty_ail<M: Machine>(&self, m: &M) {
        loop {
            self.force_log(m).await;
            if self.log.ail.borrow().is_empty() {
                return;
            }
            self.log.ail.borrow_mut().push_target(true, self.log.size());
            self.log.pusher.wake(m);
            m.sleep(WORKING).await;
        }
    }

    /// `xfsaild_push`: one turn; how long to sleep before the next.
    async fn push<M: Machine>(&self, m: &M) -> Time {
        let pusher = &self.log.pusher;
        if pusher.last_pushed.get() == 0 && pusher.flush_log.take() {
            match pusher.force {
                AilForce::Waits => self.log.checkpoints.force_all(m).await,
                AilForce::Queues => self.log.checkpoints.flush(m).await,
            }
        }
        let target = self.push_target();
        let turn = self.push_to(m, target).await;
        if self.submit_queued(m).await {
            pusher.flush_log.set(true);
        }
        let reached = turn.visited == 0 || turn.ended || turn.last >= target;
        let hindered = !reached && (turn.stuck + turn.flushing) * 100 / turn.visited > 90;
        if reached || hindered {
            pusher.last_pushed.set(0);
        }
        match () {
            () if reached => REACHED,
            () if hindered => HINDERED,
            () if pusher.turn == AilTurn::Pauses => WORKING,
            () => 0,
        }
    }

    fn push_target(&self) -> Lsn {
        let (pusher, mut ail) = (&self.log.pusher, self.log.ail.borrow_mut());
        match pusher.target {
            AilTarget::Reservations => ail.target(),
            AilTarget::Items => ail.push_target(pusher.push_all.take(), self.log.size()).unwrap_or(0),
        }
    }

    async fn push_to<M: Machine>(&self, m: &M, target: Lsn) -> Turn {
        let (pusher, mut turn) = (&self.log.pusher, Turn::default());
        let mut cursor = Cursor::from(pusher.last_pushed.get());
        loop {
            let next = self.log.ail.borrow().next(&mut cursor);
            let Some((id, lsn)) = next.filter(|&(_, lsn)| lsn <= target) else {
                turn.ended = true;
                break;
            };
            let submits = pusher.turn == AilTurn::Submits;
            if turn.stuck > STUCK || submits && turn.visited > VISITED && lsn != turn.last {
                break;
            }
            turn.last = lsn;
            if submits && self.log.ail.borrow().is_flushed(id) {
                continue;
            }
            match self.push_item(m, id).await {
                Pushed::Success => pusher.last_pushed.set(lsn),
                Pushed::Flushing => {
                    turn.flushing += 1;
                    pusher.last_pushed.set(lsn);
                }
                Pushed::Pinned => {
                    turn.stuck += 1;
                    pusher.flush_log.set(true);
                }
                Pushed::Locked => turn.stuck += 1,
            }
            turn.visited += 1;
        }
        turn
    }

    /// `xfs_inode_item_push`, `xfs_buf_item_push`.
    async fn push_item<M: Machine>(&self, m: &M, id: ItemId) -> Pushed {
        let (costs, ail) = (&self.log.pusher.costs, &self.log.ail);
        m.run(Account::System, costs.visit).await;
        let (subject, pinned) = (ail.borrow().subject(id), ail.borrow().is_pinned(id));
        if pinned {
            return Pushed::Pinned;
        }
        if ail.borrow().is_flushed(id) {
            return Pushed::Flushing;
        }
        let buffer = if let Subject::Inode { cluster, .. } = subject { cluster } else { id };
        let (lock, writing) = (ail.borrow().lock(buffer), ail.borrow().is_writing(buffer));
        if writing || lock.is_some_and(|lock| !m.try_lock(lock, Side::Write)) {
            return Pushed::Locked;
        }
        let pushed = match buffer == id || self.flush_cluster(m, buffer).await {
            false => Pushed::Locked,
            true if ail.borrow_mut().queue(buffer) => {
                self.log.pusher.queue.borrow_mut().push(buffer);
                Pushed::Success
            }
            true => Pushed::Flushing,
        };
        if let Some(lock) = lock {
            m.unlock(lock, Side::Write).await;
        }
        pushed
    }

    /// `xfs_iflush_cluster`; false if no inode could be flushed, because transactions have them.
    async fn flush_cluster<M: Machine>(&self, m: &M, cluster: ItemId) -> bool {
        let flushed = self.log.ail.borrow_mut().flush_cluster(cluster, |line| m.touch(line, Access::Read));
        m.run(Account::System, self.log.pusher.costs.flush * Time::from(flushed)).await;
        flushed > 0
    }

    /// `xfs_buf_delwri_submit_nowait`: writes what is neither pinned nor locked, and keeps the rest. Whether something was pinned.
    async fn submit_queued<M: Machine>(&self, m: &M) -> bool {
        let (pusher, ail) = (&self.log.pusher, &self.log.ail);
        let mut queued = std::mem::take(&mut *pusher.queue.borrow_mut());
        queued.sort_by_key(|&id| ail.borrow().place(id));
        let (mut pinned, mut kept, mut request, mut end) = (false, Vec::new(), Vec::new(), None);
        for id in queued {
            let (place, lock, is_pinned) = (ail.borrow().place(id), ail.borrow().lock(id), ail.borrow().is_pinned(id));
            pinned |= is_pinned;
            if is_pinned || lock.is_some_and(|lock| !m.try_lock(lock, Side::Write)) {
                kept.push(id);
                continue;
            }
            if end != Some(place.block) || self.blocks_of(&request) + place.blocks > MERGED {
                self.write_buffers(m, std::mem::take(&mut request)).await;
            }
            m.run(Account::System, pusher.costs.submit).await;
            ail.borrow_mut().submit(id);
            request.push((id, lock));
            end = Some(place.block + u64::from(place.blocks));
        }
        self.write_buffers(m, request).await;
        pusher.queue.borrow_mut().extend(kept);
        pinned
    }

    fn blocks_of(&self, buffers: &Write) -> u32 {
        let ail = self.log.ail.borrow();
        buffers.iter().map(|&(id, _)| ail.place(id).blocks).sum()
    }

    /// Writes neighbouring buffers by one request. A lock that only its owner can release is not held meanwhile, as if a copy were
    /// written.
    async fn write_buffers<M: Machine>(&self, m: &M, mut buffers: Write) {
        let Some(&(first, _)) = buffers.first() else { return };
        let (pusher, blocks, Place { block, .. }) =
            (&self.log.pusher, self.blocks_of(&buffers), self.log.ail.borrow().place(first));
        while pusher.under_way.get() >= REQUESTS {
            m.park().await;
        }
        let mut own = arrayvec::ArrayVec::<LockId, { MERGED as usize }>::new();
        for (_, lock) in &mut buffers {
            own.extend(lock.take_if(|lock| !m.hand_to_device(*lock)));
        }
        let write = pusher.begin(buffers);
        let request = Request::write(blocks * BLOCK, Some(block * u64::from(BLOCK)));
        self.storage.submit(m, request, End::Queue(pusher.written.clone(), (write, 0))).await;
        for lock in own {
            m.unlock(lock, Side::Write).await;
        }
    }

    /// The program of a CPU's worker that ends writes (`xfs_buf_ioend_work`).
    pub async fn buffer_worker<M: Machine>(m: M, fs: Rc<Self>, cpu: CpuId) {
        let pusher = &fs.log.pusher;
        m.at("buffer i/o end");
        loop {
            let (write, _) = pusher.written.next(&m, cpu).await;
            if pusher.under_way.get() == REQUESTS {
                pusher.wake(&m);
            }
            for (id, lock) in pusher.end(write) {
                fs.clusters.written(fs.log.ail.borrow().place(id));
                let inodes = fs.log.ail.borrow_mut().written(id);
                m.run(Account::System, pusher.costs.done + pusher.costs.done_inode * Time::from(inodes)).await;
                if let Some(lock) = lock {
                    m.unlock(lock, Side::Write).await;
                }
            }
            fs.log.space_wake(&m).await;
        }
    }
}
