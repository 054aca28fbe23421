//! Range locks as programs over structures and locks: who waits for whom is a question of overlap, and the index that
//! answers it is itself shared. Every node of an index lies on cache lines of its own, so its price comes from who wrote it last.
//!
//! | design | index | who waits |
//! |---|---|---|
//! | [`interval_tree`] | red-black tree of holders and waiters under a spinlock | until no earlier request overlaps: granted, FIFO |
//! | [`btree`] | B-tree of holders under a mutex | on the first range in the way; woken all at once, tries again |
//! | [`optimistic`] | the same B-tree, a version in each node, no lock for the whole | as above |
//! | rwsem | none: the whole file is one range | by the rwsem's rules |

pub mod btree;
pub mod holds;
pub mod index_lock;
pub mod interval_tree;
mod lines;
pub mod optimistic;
use crate::waist::Machine;
use crate::waist::{LockId, Side, Time};
use index_lock::IndexLock;
use std::cell::RefCell;

/// The role of the lock around the index, or of the rwsem that stands for all ranges.
pub const ROLE: &str = "range_lock";

/// Units `start..=last` of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First unit.
    pub start: u64,
    /// Last unit.
    pub last: u64,
}

impl Range {
    /// Whether the two have a unit in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start <= other.last && other.start <= self.last
    }
}

/// A task's place for one range at a time, as the kernel has it on the stack.
pub type RequestId = u32;

/// The designs there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // described above
pub enum Design {
    IntervalTree,
    BTree,
    Optimistic,
    Rwsem,
}

impl Design {
    /// All of them, by name.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("interval-tree", Self::IntervalTree),
        ("btree", Self::BTree),
        ("optimistic", Self::Optimistic),
        ("rwsem", Self::Rwsem),
    ];

    /// The design of a name.
    pub fn parse(name: &str) -> Result<Self, String> {
        let known = Self::NAMES.iter().find(|(known, _)| *known == name);
        known.map(|&(_, design)| design).ok_or_else(|| format!("unknown design '{name}'"))
    }
}

/// What a range lock does beyond touching lines.
#[derive(Clone, Copy, Debug)]
pub struct Prices {
    /// CPU time of one search of the index.
    pub work: Time,
    /// CPU time of a look at a node that is locked.
    pub pause: Time,
    /// CPU time of a system call, if the lock around the index is a pthread mutex.
    pub syscall: Option<Time>,
}

/// A range lock of one design.
pub enum RangeLock {
    /// Holders and waiters in one tree, grant by count.
    IntervalTree(interval_tree::IntervalTreeLock),
    /// Holders in a B-tree, one mutex.
    BTree(btree::BTreeLock),
    /// Holders in a B-tree, a version in each node.
    Optimistic(optimistic::OptimisticLock),
    /// No ranges: one rwsem, and the side each request holds.
    Rwsem(LockId, RefCell<Vec<Side>>),
}

impl RangeLock {
    /// A lock that nobody holds.
    pub fn new<M: Machine>(m: &M, design: Design, prices: Prices) -> Self {
        let Prices { work, pause, syscall } = prices;
        let index_lock = || IndexLock::new(m, syscall);
        match design {
            Design::IntervalTree => Self::IntervalTree(interval_tree::IntervalTreeLock::new(index_lock(), work)),
            Design::BTree => Self::BTree(btree::BTreeLock::new(index_lock(), work)),
            Design::Optimistic => Self::Optimistic(optimistic::OptimisticLock::new(work, pause)),
            Design::Rwsem => Self::Rwsem(m.new_lock(m.class("range_lock.rwsem", ROLE)), RefCell::default()),
        }
    }

    /// A place for one range of this task.
    pub fn new_request<M: Machine>(&self, m: &M) -> RequestId {
        match self {
            Self::IntervalTree(lock) => lock.new_request(m),
            Self::BTree(lock) => lock.holds.new_request(m),
            Self::Optimistic(lock) => lock.holds.new_request(m),
            Self::Rwsem(_, sides) => {
                sides.borrow_mut().push(Side::Read);
                (sides.borrow().len() - 1) as RequestId
            }
        }
    }

    /// Locks a range; `request` holds none.
    pub async fn lock<M: Machine>(&self, m: &M, request: RequestId, range: Range, side: Side) {
        match self {
            Self::IntervalTree(lock) => lock.lock(m, request, range, side).await,
            Self::BTree(lock) => lock.lock(m, request, range, side).await,
            Self::Optimistic(lock) => lock.lock(m, request, range, side).await,
            Self::Rwsem(rwsem, sides) => {
                sides.borrow_mut()[request as usize] = side;
                m.lock(*rwsem, side).await;
            }
        }
    }

    /// Unlocks the range that `request` holds.
    pub async fn unlock<M: Machine>(&self, m: &M, request: RequestId) {
        match self {
            Self::IntervalTree(lock) => lock.unlock(m, request).await,
            Self::BTree(lock) => lock.unlock(m, request).await,
            Self::Optimistic(lock) => lock.unlock(m, request).await,
            Self::Rwsem(rwsem, sides) => {
                let side = sides.borrow()[request as usize];
                m.unlock(*rwsem, side).await;
            }
        }
    }

    /// Whether the index holds no range and keeps its own rules; an rwsem has none.
    pub fn check_empty(&self) -> Result<(), String> {
        let (checked, empty) = match self {
            Self::IntervalTree(lock) => lock.check(),
            Self::BTree(lock) => lock.check(),
            Self::Optimistic(lock) => lock.check(),
            Self::Rwsem(..) => (Ok(()), true),
        };
        checked?;
        if empty {
            Ok(())
        } else {
            Err("ranges are left in the index".into())
        }
    }
}
