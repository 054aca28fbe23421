//! A count in one word with a spinlock (lib/lockref.c). It is changed by compare-and-exchange (`CMPXCHG_LOOP`) as long as nobody
//! is at the spinlock; who finds it taken queues for it, and as long as the queue is never empty everybody does.
//!
//! Between the look at the word and the exchange another CPU may have changed it. An attempt that fails has fetched the line,
//! so that the next one, if it comes at once, comes before anybody takes it away. After a pause the line is gone, and all who
//! try ask for it again. They are not served in turn: who comes is any of them, and succeeds if the count is what it was at its
//! last look: also if others took as many references since as they gave back. As all are alike, that is drawn.

use crate::kernel::vfs::DentryRef;
use crate::waist::Machine;
use crate::waist::{Access, Account, CpuId, SeldomId, Side, Time};
use rand_core::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::{Cell, RefCell};

/// The most attempts since 5.2; before there was no limit.
const ATTEMPTS: u32 = 100;

/// How such counts are changed.
pub struct Exchange {
    rule: DentryRef,
    pause: Time,
    random: RefCell<Xoshiro256PlusPlus>,
}

impl Exchange {
    /// By a kernel's rule; `pause` is `cpu_relax`.
    pub fn new<M: Machine>(m: &M, rule: DentryRef, pause: Time) -> Self {
        Self { rule, pause, random: RefCell::new(m.stream("lockref")) }
    }
}

/// What a task that tries to exchange the word has seen there, and what it adds.
struct Attempt {
    seen: i64,
    adds: i64,
}

/// One count.
pub struct Lockref {
    /// The spinlock, whose line is that of the word.
    lock: SeldomId,
    /// Who has the spinlock or waits for it.
    at_lock: Cell<u32>,
    /// References, but for those that were there at the beginning.
    count: Cell<i64>,
    /// Who tries to exchange the word.
    trying: RefCell<Vec<Attempt>>,
    /// The CPU that used the line last.
    last: Cell<Option<CpuId>>,
}

impl Lockref {
    /// A count whose spinlock is this.
    pub fn new(lock: SeldomId) -> Self {
        Self { lock, at_lock: Cell::new(0), count: Cell::new(0), trying: RefCell::default(), last: Cell::new(None) }
    }

    /// An access to the line of the word.
    pub fn touch<M: Machine>(&self, m: &M, access: Access) {
        self.last.set(Some(m.cpu()));
        m.touch_seldom(self.lock, access);
    }

    /// Adds one or takes one away: `lockref_get`, `lockref_get_not_dead`, `lockref_put_return`.
    pub async fn change<M: Machine>(&self, m: &M, by: &Exchange, adds: i64) {
        let left = match by.rule {
            DentryRef::Locked => Some(adds),
            _ if self.is_alone(m) => return self.exchange_alone(m, adds),
            DentryRef::Relaxed => self.exchange(m, by, u32::MAX, adds).await,
            DentryRef::Limited => self.exchange(m, by, ATTEMPTS, adds).await,
            DentryRef::Immediate => self.exchange_at_once(m, adds).await,
        };
        if let Some(left) = left {
            self.hold(m, left, || ()).await;
        }
    }

    fn add(&self, adds: i64) {
        self.count.set(self.count.get() + adds);
    }

    /// Nobody else has used the line since this CPU did, so that nobody comes between.
    fn is_alone<M: Machine>(&self, m: &M) -> bool {
        self.at_lock.get() == 0 && self.last.get().is_none_or(|cpu| cpu == m.cpu())
    }

    fn exchange_alone<M: Machine>(&self, m: &M, adds: i64) {
        self.touch(m, Access::Read);
        self.touch(m, Access::Atomic);
        self.add(adds);
    }

    /// An access that has come when it returns.
    async fn ask<M: Machine>(&self, m: &M, access: Access) {
        self.touch(m, access);
        m.pay().await;
    }

    /// At the latest the second attempt succeeds, unless somebody is at the spinlock: then it returns what is still to be added.
    async fn exchange_at_once<M: Machine>(&self, m: &M, adds: i64) -> Option<i64> {
        self.ask(m, Access::Read).await;
        if self.at_lock.get() == 0 {
            self.ask(m, Access::Atomic).await;
        }
        if self.at_lock.get() > 0 {
            return Some(adds);
        }
        self.add(adds);
        None
    }

    /// Tries at most so often, with pauses. Returns what is still to be added, if it has failed.
    async fn exchange<M: Machine>(&self, m: &M, by: &Exchange, attempts: u32, adds: i64) -> Option<i64> {
        self.ask(m, Access::Read).await;
        self.trying.borrow_mut().push(Attempt { seen: self.count.get(), adds });
        for _ in 0..attempts {
            if self.at_lock.get() == 0 {
                self.ask(m, Access::Atomic).await;
            }
            if self.at_lock.get() > 0 {
                break;
            }
            if self.serve(by) {
                return None;
            }
            m.run(Account::System, by.pause).await;
        }
        self.trying.borrow_mut().pop().map(|attempt| attempt.adds) // any of them: all are alike
    }

    /// The line has come to any of those who try. Whether it succeeds.
    fn serve(&self, by: &Exchange) -> bool {
        let mut trying = self.trying.borrow_mut();
        let drawn = match trying.len() {
            1 => 0,
            all => by.random.borrow_mut().next_u64() as usize % all,
        };
        let attempt = &mut trying[drawn];
        if attempt.seen != self.count.get() {
            attempt.seen = self.count.get();
            return false;
        }
        self.add(attempt.adds);
        trying.swap_remove(drawn);
        true
    }

    /// A change under the spinlock of more than the word, to which it adds this: who counts meanwhile queues for it.
    pub async fn under_lock<M: Machine>(&self, m: &M, by: &Exchange, adds: i64, change: impl FnOnce()) {
        if by.rule != DentryRef::Locked && self.is_alone(m) {
            self.exchange_alone(m, adds);
            return change();
        }
        self.hold(m, adds, change).await;
    }

    /// Takes a reference of `child` under this spinlock and its own, as one who goes along the children of a directory.
    pub async fn get_child<M: Machine>(&self, m: &M, by: &Exchange, child: &Self) {
        if by.rule != DentryRef::Locked && self.is_alone(m) && child.is_alone(m) {
            self.exchange_alone(m, 0);
            return child.exchange_alone(m, 1);
        }
        self.acquire(m).await;
        child.under_lock(m, by, 1, || ()).await;
        self.release(m).await;
    }

    async fn hold<M: Machine>(&self, m: &M, adds: i64, change: impl FnOnce()) {
        self.acquire(m).await;
        self.add(adds);
        change();
        self.release(m).await;
    }

    async fn acquire<M: Machine>(&self, m: &M) {
        self.at_lock.set(self.at_lock.get() + 1);
        self.last.set(Some(m.cpu()));
        let lock = m.seldom_lock(self.lock);
        m.lock(lock, Side::Write).await;
        m.touch_beside(lock, Access::Write); // `count > 0`, then the count: who queued for the line has lost it
    }

    async fn release<M: Machine>(&self, m: &M) {
        m.settle().await;
        m.unlock(m.seldom_lock(self.lock), Side::Write).await;
        self.last.set(Some(m.cpu()));
        self.at_lock.set(self.at_lock.get() - 1);
    }
}
