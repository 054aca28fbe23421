//! The same B-tree with optimistic lock coupling (V. Leis and others, 2016; D. Chinner tried it for XFS from 2019 on, linux-xfs):
//! each node has a version, which is odd while somebody changes the node. A search locks nothing: it reads a node's version,
//! reads the node, and checks that the version is the same before it goes on; if not, it begins again. Only what changes is
//! locked: the leaf, and with a split or a join its neighbours and the nodes above.
//!
//! So tasks at different leaves meet in no line that anybody writes; with few ranges there is one leaf, and all meet in it.

use super::btree::{find, Found};
use super::holds::Holds;
use super::lines::Lines;
use super::{Range, RequestId};
use crate::structures::range_btree::{Changes, Key, RangeBTree};
use crate::structures::NodeId;
use crate::waist::{Access, Account, Machine, Side, Time};
use std::cell::RefCell;

enum Attempt {
    Done,
    Queued,
    Restart,
}

/// The lock.
pub struct OptimisticLock {
    work: Time,
    pause: Time,
    tree: RefCell<RangeBTree>,
    versions: RefCell<Vec<u64>>,
    /// The word that points to the root.
    top: Lines,
    /// The first line of each node, with its version.
    heads: Lines,
    /// The other three.
    bodies: Lines,
    pub(super) holds: Holds,
}

impl OptimisticLock {
    /// A lock that nobody holds.
    pub fn new(work: Time, pause: Time) -> Self {
        let (tree, versions, holds) = (RefCell::default(), RefCell::default(), Holds::default());
        Self { work, pause, tree, versions, top: Lines::new(1), heads: Lines::new(1), bodies: Lines::new(3), holds }
    }

    /// Locks a range.
    pub async fn lock<M: Machine>(&self, m: &M, request: RequestId, range: Range, side: Side) {
        loop {
            match self.try_lock(m, request, range, side).await {
                Attempt::Done => return,
                Attempt::Queued => self.holds.wait(m, request).await,
                Attempt::Restart => m.end("restart", false),
            }
        }
    }

    /// Unlocks the range that `request` holds.
    pub async fn unlock<M: Machine>(&self, m: &M, request: RequestId) {
        while !self.try_unlock(m, request).await {
            m.end("restart", false);
        }
    }

    async fn try_lock<M: Machine>(&self, m: &M, request: RequestId, range: Range, side: Side) -> Attempt {
        if !self.descend(m, Key { start: range.start, hold: 0 }).await {
            return Attempt::Restart;
        }
        let mut locked = false;
        let found = find(&self.tree.borrow(), range, side, &mut |node, _| {
            self.read(m, node);
            locked |= self.is_locked(node);
        });
        let changes = match found {
            Found::Conflict(leaf, _) | Found::Same(leaf, _) => Changes::one(leaf),
            Found::Nothing => self.tree.borrow().insert_changes(Key { start: range.start, hold: self.holds.next() }),
        };
        if locked || !self.begin(m, &changes) {
            return Attempt::Restart;
        }
        match found {
            Found::Conflict(_, key) => self.holds.queue(m, request, key.hold),
            Found::Same(_, key) => {
                self.holds.share(request, key);
                self.change(m, &changes, |tree, mut touch| tree.record_mut(key, &mut touch).1.readers += 1);
            }
            Found::Nothing => {
                let record = self.holds.hold(request, range, side);
                self.change(m, &changes, |tree, mut touch| tree.insert(record, &mut touch));
            }
        }
        m.pay().await;
        self.end(m, &changes);
        if matches!(found, Found::Conflict(..)) {
            Attempt::Queued
        } else {
            Attempt::Done
        }
    }

    async fn try_unlock<M: Machine>(&self, m: &M, request: RequestId) -> bool {
        let key = self.holds.held(request);
        if !self.descend(m, key).await {
            return false;
        }
        let (leaf, last) = {
            let mut tree = self.tree.borrow_mut();
            let (leaf, record) = tree.record_mut(key, &mut |_, _| {});
            (leaf, record.readers <= 1)
        };
        let changes = if last { self.tree.borrow().remove_changes(key) } else { Changes::one(leaf) };
        if !self.begin(m, &changes) {
            return false;
        }
        let mut waiters = None;
        self.change(m, &changes, |tree, mut touch| {
            if last {
                tree.remove(key, &mut touch);
                waiters = Some(self.holds.release(m, key.hold));
            } else {
                tree.record_mut(key, &mut touch).1.readers -= 1;
            }
        });
        m.pay().await;
        self.end(m, &changes);
        if let Some(first) = waiters {
            self.holds.wake_all(m, first);
        }
        true
    }

    // Reading

    /// Goes down to the leaf of `key`. Returns whether nothing that it read had changed by the time it was read; until
    /// this task next waits, nothing can.
    async fn descend<M: Machine>(&self, m: &M, key: Key) -> bool {
        self.top.touch(m, 0, Access::Read);
        let mut node = self.tree.borrow().root();
        let mut version = self.stable_version(m, node).await;
        if self.tree.borrow().root() != node {
            return false;
        }
        loop {
            self.bodies.touch(m, node, Access::Read);
            let child = self.tree.borrow().child(node, key);
            m.run(Account::System, if child.is_none() { self.work } else { 0 }).await;
            if !self.is_still(m, node, version) {
                return false;
            }
            let Some(child) = child else { return true };
            let next = self.stable_version(m, child).await;
            if !self.is_still(m, node, version) {
                return false;
            }
            (node, version) = (child, next);
        }
    }

    /// Reads a node's version, polling while it is locked.
    async fn stable_version<M: Machine>(&self, m: &M, node: NodeId) -> u64 {
        self.heads.touch(m, node, Access::Read);
        while self.is_locked(node) {
            m.run(Account::Spin, self.pause).await;
            self.heads.touch(m, node, Access::Read);
        }
        self.version(node)
    }

    fn is_still<M: Machine>(&self, m: &M, node: NodeId, version: u64) -> bool {
        self.heads.touch(m, node, Access::Read);
        self.version(node) == version
    }

    fn read<M: Machine>(&self, m: &M, node: NodeId) {
        self.heads.touch(m, node, Access::Read);
        self.bodies.touch(m, node, Access::Read);
    }

    fn version(&self, node: NodeId) -> u64 {
        self.versions.borrow().get(node as usize).copied().unwrap_or(0)
    }

    fn is_locked(&self, node: NodeId) -> bool {
        self.version(node) % 2 == 1
    }

    // Changing

    /// Locks what is to change: one compare-and-swap a node, none of which may fail.
    fn begin<M: Machine>(&self, m: &M, changes: &Changes) -> bool {
        for &node in changes.nodes() {
            self.heads.touch(m, node, Access::Write);
            if self.is_locked(node) {
                return false;
            }
        }
        changes.nodes().iter().for_each(|&node| self.bump(node, 1));
        true
    }

    /// Unlocks it again, with new versions.
    fn end<M: Machine>(&self, m: &M, changes: &Changes) {
        for &node in changes.nodes() {
            self.heads.touch(m, node, Access::Write);
            self.bump(node, 1);
        }
    }

    fn bump(&self, node: NodeId, by: u64) {
        let mut versions = self.versions.borrow_mut();
        if versions.len() <= node as usize {
            versions.resize(node as usize + 1, 0);
        }
        versions[node as usize] += by;
    }

    fn change<M: Machine>(
        &self,
        m: &M,
        changes: &Changes,
        change: impl FnOnce(&mut RangeBTree, &mut dyn FnMut(NodeId, Access)),
    ) {
        let mut tree = self.tree.borrow_mut();
        let root = tree.root();
        change(&mut tree, &mut |node, access| {
            if access == Access::Write && !changes.nodes().contains(&node) {
                self.heads.touch(m, node, Access::Write);
                self.bump(node, 2); // a new node: who still looks at its former spawn_kind must notice
            }
            self.bodies.touch(m, node, access);
        });
        if tree.root() != root {
            self.top.touch(m, 0, Access::Write);
        }
    }

    /// What is wrong with the tree, and whether it is empty.
    pub fn check(&self) -> (Result<(), String>, bool) {
        (self.tree.borrow().check(), self.tree.borrow().is_empty())
    }
}
