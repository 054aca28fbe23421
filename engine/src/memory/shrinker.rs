//! Inodes and dentries that nobody uses fill memory too. Who reclaims gives some of them back (`do_shrink_slab` of `mm/shrinker.c`,
//! `super_cache_scan` of `fs/super.c`, Linux 5.10 to 6.12).
//!
//! Each inode has one dentry here. Of what a scan looks at half are dentries; the inodes that these leave unused are found by the other
//! half, so that as many pairs go. Their memory is free at once, where a grace period of RCU has to end first.

use crate::block::BLOCK;
use crate::costs::Costs;
use crate::waist::{Account, LockId, Machine, Side, Time};
use std::cell::Cell;
use std::rc::Rc;

/// What a superblock has looked at in one call (`s_shrink->batch`).
const BATCH: u64 = 1024;
/// `DEFAULT_SEEKS`: a scan looks at four times as much of the list as one of pages, divided by this.
const SEEKS: u64 = 2;
/// An inode and its dentry.
const PAIR: u64 = 2;

/// A lock that is taken for each inode that goes: one of several, by the inode.
pub struct Held {
    /// The locks.
    pub locks: Vec<LockId>,
    /// For how long.
    pub hold: Time,
    /// How many inodes there are in what it guards, if that is counted.
    pub count: Option<Rc<Cell<u64>>>,
}

/// The inodes of a filesystem that nobody uses, with their dentries.
pub struct Shrinker {
    /// Of an inode and its dentry.
    bytes: u64,
    inode: Time,
    dentry: Time,
    /// A look at a dentry of the list, under the list's lock.
    isolate: Time,
    /// The lists of unused dentries, one a node.
    lists: Vec<LockId>,
    /// What an inode leaves (`evict`).
    held: Vec<Held>,
    unused: Cell<u64>,
    /// Looks that were too few for a batch (`nr_deferred`).
    deferred: Cell<u64>,
    /// How many have gone.
    gone: Cell<u64>,
}

impl Shrinker {
    /// Of a filesystem, with the inodes that are there before the run; the error names a number that is missing.
    pub fn new(costs: &Costs<'_>, lists: Vec<LockId>, held: Vec<Held>) -> Result<Self, String> {
        let bytes = costs.number("memory.dentry_bytes")? + costs.number("inode_bytes")?;
        let under = held.iter().map(|held| held.hold).sum();
        Ok(Self {
            bytes: bytes as u64,
            inode: costs.sum(&["memory.evict_inode"])?.saturating_sub(under),
            dentry: costs.sum(&["memory.kill_dentry"])?,
            isolate: crate::waist::time::from_ns(costs.load_ns()),
            lists,
            held,
            unused: Cell::new(costs.number("cached_inodes")? as u64),
            deferred: Cell::new(0),
            gone: Cell::new(0),
        })
    }

    /// Leaves only those that so many pages have room for.
    pub fn keep(&self, pages: u64) {
        self.unused.set(self.unused.get().min(pages * u64::from(BLOCK) / self.bytes));
    }

    /// Pages of those that are there.
    pub fn pages(&self) -> u64 {
        self.pages_of(self.unused.get())
    }

    fn pages_of(&self, pairs: u64) -> u64 {
        (pairs * self.bytes).div_ceil(u64::from(BLOCK))
    }

    /// Pages that one more needs.
    pub fn pages_of_next(&self) -> u64 {
        self.pages_of(self.unused.get() + 1) - self.pages()
    }

    /// One more is there.
    pub fn add(&self) {
        self.unused.set(self.unused.get() + 1);
    }

    /// As many batches as a look at one 2^`priority`th of all is worth. Returns how many pages were given back.
    pub async fn shrink<M: Machine>(&self, m: &M, priority: u32) -> u64 {
        let (objects, mut gone) = (PAIR * self.unused.get(), 0);
        let mut scan = (self.deferred.take() + (objects >> priority) * 4 / SEEKS).min(2 * objects);
        while scan >= BATCH.min(objects).max(1) && self.unused.get() > 0 {
            scan -= BATCH.min(scan);
            gone += self.scan(m, BATCH / PAIR).await;
        }
        self.deferred.set(self.deferred.get() + scan);
        gone
    }

    /// `prune_dcache_sb`, then `prune_icache_sb`. Others bring inodes in meanwhile and take some out: pages are those of these pairs.
    async fn scan<M: Machine>(&self, m: &M, pairs: u64) -> u64 {
        let (before, pairs) = (self.pages(), pairs.min(self.unused.get()));
        self.unused.set(self.unused.get() - pairs);
        let gone = before - self.pages();
        let list = self.lists[self.gone.get() as usize / (BATCH / PAIR) as usize % self.lists.len()];
        m.lock(list, Side::Write).await;
        m.run(Account::System, self.isolate * pairs).await;
        m.unlock(list, Side::Write).await;
        m.run(Account::System, self.dentry * pairs).await;
        for _ in 0..pairs {
            self.evict(m).await;
        }
        gone
    }

    async fn evict<M: Machine>(&self, m: &M) {
        let number = self.gone.replace(self.gone.get() + 1);
        for held in &self.held {
            let lock = held.locks[number as usize % held.locks.len()];
            m.lock(lock, Side::Write).await;
            if let Some(count) = &held.count {
                count.set(count.get().saturating_sub(1));
            }
            m.run(Account::System, held.hold).await;
            m.unlock(lock, Side::Write).await;
        }
        m.run(Account::System, self.inode).await;
    }
}
