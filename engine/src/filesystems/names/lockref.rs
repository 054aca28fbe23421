//! A count in one word with a spinlock (lib/lockref.c). It is changed by compare-and-exchange (`CMPXCHG_LOOP`) as long as nobody
//! is at the spinlock; who finds it taken queues for it, and as long as the queue is never empty everybody does.
//!
//! Between the look at the word and the exchange another CPU may have changed it. An attempt that fails has fetched the line,
//! so that the next one, if it comes at once, comes before anybody takes it away. After a pause the line is gone, and all who
//! try ask for it again. They are not served in turn: who comes is any of them, and succeeds if nobody else did since its last
//! look. As all are alike, that is drawn.

use crate::draw::chance;
use crate::kernel::vfs::DentryRef;
use crate::waist::Machine;
use crate::waist::{Access, Account, CpuId, SeldomId, Side, Time};
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

/// One count.
pub struct Lockref {
    /// The spinlock, whose line is that of the word.
    lock: SeldomId,
    /// Who has the spinlock or waits for it.
    at_lock: Cell<u32>,
    /// Who tries to exchange the word, and how many of them have looked since it last changed.
    trying: Cell<u32>,
    fresh: Cell<u32>,
    /// The CPU that used the line last.
    last: Cell<Option<CpuId>>,
}

impl Lockref {
    /// A count whose spinlock is this.
    pub fn new(lock: SeldomId) -> Self {
        Self { lock, at_lock: Cell::new(0), trying: Cell::new(0), fresh: Cell::new(0), last: Cell::new(None) }
    }

    /// An access to the line of the word.
    pub fn touch<M: Machine>(&self, m: &M, access: Access) {
        self.last.set(Some(m.cpu()));
        m.touch_seldom(self.lock, access);
    }

    /// Adds one or takes one away: `lockref_get`, `lockref_get_not_dead`, `lockref_put_return`.
    pub async fn change<M: Machine>(&self, m: &M, by: &Exchange) {
        let exchanged = match by.rule {
            DentryRef::Locked => false,
            _ if self.is_alone(m) => return self.exchange_alone(m),
            DentryRef::Relaxed => self.exchange(m, by, u32::MAX).await,
            DentryRef::Limited => self.exchange(m, by, ATTEMPTS).await,
            DentryRef::Immediate => self.exchange_at_once(m).await,
        };
        if !exchanged {
            self.change_locked(m).await;
        }
    }

    /// Nobody else has used the line since this CPU did, so that nobody comes between.
    fn is_alone<M: Machine>(&self, m: &M) -> bool {
        self.at_lock.get() == 0 && self.last.get().is_none_or(|cpu| cpu == m.cpu())
    }

    fn exchange_alone<M: Machine>(&self, m: &M) {
        self.touch(m, Access::Read);
        self.touch(m, Access::Atomic);
        self.fresh.set(0);
    }

    /// An access that has come when it returns.
    async fn ask<M: Machine>(&self, m: &M, access: Access) {
        self.touch(m, access);
        m.pay().await;
    }

    /// At the latest the second attempt succeeds, unless somebody is at the spinlock.
    async fn exchange_at_once<M: Machine>(&self, m: &M) -> bool {
        self.ask(m, Access::Read).await;
        if self.at_lock.get() == 0 {
            self.ask(m, Access::Atomic).await;
        }
        self.at_lock.get() == 0
    }

    /// Tries at most so often, with pauses.
    async fn exchange<M: Machine>(&self, m: &M, by: &Exchange, attempts: u32) -> bool {
        self.ask(m, Access::Read).await;
        self.trying.set(self.trying.get() + 1);
        let mut exchanged = false;
        for _ in 0..attempts {
            self.fresh.set((self.fresh.get() + 1).min(self.trying.get()));
            if self.at_lock.get() == 0 {
                self.ask(m, Access::Atomic).await;
            }
            exchanged = self.at_lock.get() == 0 && self.is_served_fresh(by);
            if exchanged || self.at_lock.get() > 0 {
                break;
            }
            m.run(Account::System, by.pause).await;
        }
        self.trying.set(self.trying.get() - 1);
        self.fresh.set(if exchanged { 0 } else { self.fresh.get().min(self.trying.get()) });
        exchanged
    }

    /// Whether any of those who try, now that the line has come to one, has looked since the word changed.
    fn is_served_fresh(&self, by: &Exchange) -> bool {
        let (fresh, trying) = (self.fresh.get(), self.trying.get());
        fresh == trying || chance(&mut by.random.borrow_mut(), f64::from(fresh) / f64::from(trying))
    }

    /// A change under the spinlock of more than the word: who counts meanwhile queues for it.
    pub async fn under_lock<M: Machine>(&self, m: &M, by: &Exchange, change: impl FnOnce()) {
        if by.rule != DentryRef::Locked && self.is_alone(m) {
            self.exchange_alone(m);
            return change();
        }
        self.hold(m, change).await;
    }

    async fn change_locked<M: Machine>(&self, m: &M) {
        self.hold(m, || ()).await;
    }

    /// Changes that of `child` under this spinlock and its own, as one who goes along the children of a directory.
    pub async fn change_child<M: Machine>(&self, m: &M, by: &Exchange, child: &Self) {
        if by.rule != DentryRef::Locked && self.is_alone(m) && child.is_alone(m) {
            self.exchange_alone(m);
            return child.exchange_alone(m);
        }
        self.acquire(m).await;
        child.under_lock(m, by, || ()).await;
        self.release(m).await;
    }

    async fn hold<M: Machine>(&self, m: &M, change: impl FnOnce()) {
        self.acquire(m).await;
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
        self.fresh.set(0);
        self.at_lock.set(self.at_lock.get() - 1);
    }
}
