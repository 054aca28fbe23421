//! D. Chinner's range lock of April 2019 (linux-xfs; a prototype, never posted as code): held ranges in a B-tree like that of
//! XFS extents in memory, under one mutex for the whole tree. Reads of exactly the same range share a record.
//!
//! A node is four lines fetched together, so a record costs a share of a miss, where a red-black tree pays one for each node.

use super::holds::Holds;
use super::index_lock::IndexLock;
use super::lines::Lines;
use super::{Range, RequestId};
use crate::structures::range_btree::{Key, RangeBTree, Record};
use crate::structures::NodeId;
use crate::waist::{Account, Machine, Side, Time};
use std::cell::RefCell;

/// What is in the way of a request, or can be shared by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    /// The same range is held for reading, as it is asked for now.
    Same(NodeId, Key),
    /// This record conflicts.
    Conflict(NodeId, Key),
}

/// Searches the tree for what a request meets first.
pub(super) fn find(tree: &RangeBTree, range: Range, side: Side, touch: &mut impl crate::structures::Touch) -> Found {
    let mut found = Found::Nothing;
    tree.overlapping(range.start, range.last, touch, |leaf, record: &Record| {
        if side == Side::Write || record.readers == 0 {
            found = Found::Conflict(leaf, record.key);
        } else if (record.key.start, record.last) == (range.start, range.last) {
            found = Found::Same(leaf, record.key);
        }
        matches!(found, Found::Conflict(..))
    });
    found
}

/// The lock.
pub struct BTreeLock {
    index_lock: IndexLock,
    work: Time,
    tree: RefCell<RangeBTree>,
    nodes: Lines,
    pub(super) holds: Holds,
}

impl BTreeLock {
    /// A lock that nobody holds.
    pub fn new(index_lock: IndexLock, work: Time) -> Self {
        Self { index_lock, work, tree: RefCell::default(), nodes: Lines::new(4), holds: Holds::default() }
    }

    /// Locks a range.
    pub async fn lock<M: Machine>(&self, m: &M, request: RequestId, range: Range, side: Side) {
        loop {
            self.index_lock.lock(m).await;
            let taken = self.take_or_queue(m, request, range, side);
            m.run(Account::System, self.work).await;
            self.index_lock.unlock(m).await;
            if taken {
                return;
            }
            self.holds.wait(m, request).await;
        }
    }

    fn take_or_queue<M: Machine>(&self, m: &M, request: RequestId, range: Range, side: Side) -> bool {
        let (mut tree, mut touch) = (self.tree.borrow_mut(), |node, access| self.nodes.touch(m, node, access));
        match find(&tree, range, side, &mut touch) {
            Found::Conflict(_, key) => self.holds.queue(m, request, key.hold),
            Found::Same(_, key) => {
                tree.record_mut(key, &mut touch).1.readers += 1;
                self.holds.share(request, key);
                return true;
            }
            Found::Nothing => {
                tree.insert(self.holds.hold(request, range, side), &mut touch);
                return true;
            }
        }
        false
    }

    /// Unlocks the range that `request` holds.
    pub async fn unlock<M: Machine>(&self, m: &M, request: RequestId) {
        let key = self.holds.held(request);
        self.index_lock.lock(m).await;
        let waiters = {
            let (mut tree, mut touch) = (self.tree.borrow_mut(), |node, access| self.nodes.touch(m, node, access));
            let record = tree.record_mut(key, &mut touch).1;
            if record.readers > 1 {
                record.readers -= 1;
                None
            } else {
                tree.remove(key, &mut touch);
                Some(self.holds.release(m, key.hold))
            }
        };
        m.run(Account::System, self.work).await;
        self.index_lock.unlock(m).await;
        if let Some(first) = waiters {
            self.holds.wake_all(m, first);
        }
    }

    /// What is wrong with the tree, and whether it is empty.
    pub fn check(&self) -> (Result<(), String>, bool) {
        (self.tree.borrow().check(), self.tree.borrow().is_empty())
    }
}
