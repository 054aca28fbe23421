//! The thread that writes metadata in place (`xfsaild`, `fs/xfs/xfs_trans_ail.c`): it goes along the AIL from the tail of the log
//! as far as a quarter of the log needs to become free, since 6.11 to the end if somebody waits for space. Since then it finds the target itself,
//! and runs as long as the AIL has an item; before, reservations told it and woke it up.
//!
//! It takes buffer locks by trylock only. What is locked counts as stuck and is tried again; what is pinned too, and has
//! the CIL flushed, for which it waited before 5.15. An inode is copied into its cluster buffer together with the others of the cluster that are dirty. Buffers are
//! queued, sorted, and written with their locks held: the device holds them until its interrupt has woken a worker (`xfs_buf_ioend_work`).
//! Whoever wants such a buffer waits for the device.

mod push;

use super::ail::{ItemId, Lsn};
use crate::devices::Work;
use crate::filesystems::costs::Costs;
use crate::kernel::xfs::{AilForce, AilTarget, AilTurn};
use crate::waist::Machine;
use crate::waist::{LockId, TaskId, Time};
use crate::workqueue::Workqueue;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

crate::cost_table!(AilCosts {
    visit: ["ail.visit"],
    flush: ["ail.flush_inode"],
    submit: ["ail.submit_buffer"],
    done: ["ail.done_buffer"],
    done_inode: ["ail.done_inode"],
});

/// Buffers that are written by one request; the lock of each, if the device holds it.
type Write = Vec<(ItemId, Option<LockId>)>;

/// The thread's state, and that of the workers that end its writes.
pub struct Pusher {
    costs: AilCosts,
    pub(super) target: AilTarget,
    force: AilForce,
    turn: AilTurn,
    thread: Cell<Option<TaskId>>,
    kicked: Cell<bool>,
    push_all: Cell<bool>,
    /// Something was pinned: the CIL has to be flushed before the next walk from the tail.
    flush_log: Cell<bool>,
    last_pushed: Cell<Lsn>,
    queue: RefCell<Vec<ItemId>>,
    /// Writes under way, by number, and numbers that are free.
    writes: RefCell<Vec<Write>>,
    unused: RefCell<Vec<u32>>,
    under_way: Cell<usize>,
    /// `m_buf_workqueue`.
    written: Rc<Workqueue<Work>>,
}

impl Pusher {
    /// Before the thread has started.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            costs: AilCosts::new(costs)?,
            target: costs.rules().ail_target,
            force: costs.rules().ail_force,
            turn: costs.rules().ail_turn,
            thread: Cell::new(None),
            kicked: Cell::new(false),
            push_all: Cell::new(false),
            flush_log: Cell::new(false),
            last_pushed: Cell::new(0),
            queue: RefCell::default(),
            writes: RefCell::default(),
            unused: RefCell::default(),
            under_way: Cell::new(0),
            written: Rc::new(Workqueue::new(m)),
        })
    }

    /// Wakes the thread.
    pub fn wake<M: Machine>(&self, m: &M) {
        self.kicked.set(true);
        if let Some(thread) = self.thread.get() {
            m.wake(thread);
        }
    }

    /// `xfs_ail_push_all`.
    pub fn push_all<M: Machine>(&self, m: &M) {
        if !self.push_all.replace(true) {
            self.wake(m);
        }
    }

    /// The number of a write that begins.
    fn begin(&self, write: Write) -> u32 {
        self.under_way.set(self.under_way.get() + 1);
        let mut writes = self.writes.borrow_mut();
        match self.unused.borrow_mut().pop() {
            Some(number) => {
                writes[number as usize] = write;
                number
            }
            None => {
                writes.push(write);
                (writes.len() - 1) as u32
            }
        }
    }

    fn end(&self, number: u32) -> Write {
        self.under_way.set(self.under_way.get() - 1);
        self.unused.borrow_mut().push(number);
        std::mem::take(&mut self.writes.borrow_mut()[number as usize])
    }

    /// `schedule_timeout`.
    async fn sleep<M: Machine>(&self, m: &M, time: Time, tick: Time) {
        let until = m.wake_at_tick(m.task(), time.div_ceil(tick));
        self.kicked.set(false);
        while !self.kicked.take() && m.now() < until {
            m.park().await;
        }
    }
}
