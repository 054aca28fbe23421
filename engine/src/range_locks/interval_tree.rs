//! The range rwlock of J. Kara and D. Bueso (posted to linux-mm in February 2018, never merged): holders and waiters in one
//! interval tree under one spinlock. A request counts the conflicting ranges that are in the tree before it, releases count
//! down, and zero is a **grant**. So overlapping requests are served in order of arrival, and a request also waits for
//! one that itself waits, however far away what that waits for is.
//!
//! The tree's node lies in the request, on its task's stack: one line of it is what others read and write (of the 72
//! bytes, the node and the count are the first 64). The root, the leftmost node and the count of requests lie beside the
//! spinlock, in the 32 bytes of `struct range_lock_tree`: who comes to wait takes their line from the holder.

use super::index_lock::IndexLock;
use super::lines::Lines;
use super::{Range, RequestId};
use crate::structures::interval_tree::IntervalTree;
use crate::structures::NodeId;
use crate::waist::{Access, Account, Machine, Side, TaskId, Time};
use std::cell::RefCell;

struct Request {
    task: TaskId,
    range: Range,
    reader: bool,
    blocking: u32,
    /// The next on a wake list.
    next: RequestId,
}

const NOBODY: RequestId = RequestId::MAX;

/// The lock.
pub struct IntervalTreeLock {
    index_lock: IndexLock,
    work: Time,
    tree: RefCell<IntervalTree>,
    requests: RefCell<Vec<Request>>,
    lines: Lines,
}

impl IntervalTreeLock {
    /// A lock that nobody holds.
    pub fn new(index_lock: IndexLock, work: Time) -> Self {
        Self { index_lock, work, tree: RefCell::default(), requests: RefCell::default(), lines: Lines::new(1) }
    }

    /// A place for one range of this task.
    pub fn new_request<M: Machine>(&self, m: &M) -> RequestId {
        let nothing = Range { start: 0, last: 0 };
        let mut requests = self.requests.borrow_mut();
        requests.push(Request { task: m.task(), range: nothing, reader: false, blocking: 0, next: NOBODY });
        (requests.len() - 1) as RequestId
    }

    /// `range_write_lock` and `range_read_lock`.
    pub async fn lock<M: Machine>(&self, m: &M, request: RequestId, range: Range, side: Side) {
        let reader = side == Side::Read;
        self.index_lock.lock(m).await;
        self.index_lock.touch_root(m, Access::Write); // counts the request as well
        let mut blocking = 0;
        self.conflicts(m, range, reader, |_| blocking += 1);
        {
            let mut requests = self.requests.borrow_mut();
            let me = &mut requests[request as usize];
            (me.range, me.reader, me.blocking) = (range, reader, blocking);
        }
        let touch = &mut |node: NodeId, access| self.lines.touch(m, node, access);
        self.tree.borrow_mut().insert(request, range.start, range.last, touch);
        m.run(Account::System, self.work).await;
        self.index_lock.unlock(m).await;
        while self.requests.borrow()[request as usize].blocking > 0 {
            m.wchan("range_lock");
            m.park().await;
        }
    }

    /// `range_write_unlock` and `range_read_unlock`.
    pub async fn unlock<M: Machine>(&self, m: &M, request: RequestId) {
        let (range, reader) = {
            let me = &self.requests.borrow()[request as usize];
            (me.range, me.reader)
        };
        self.index_lock.lock(m).await;
        self.index_lock.touch_root(m, Access::Read);
        self.tree.borrow_mut().erase(request, &mut |node: NodeId, access| self.lines.touch(m, node, access));
        let (mut first, mut last) = (NOBODY, NOBODY);
        self.conflicts(m, range, reader, |waiter| {
            self.lines.touch(m, waiter, Access::Write);
            let mut requests = self.requests.borrow_mut();
            requests[waiter as usize].blocking -= 1;
            if requests[waiter as usize].blocking == 0 {
                requests[waiter as usize].next = NOBODY;
                match last {
                    NOBODY => first = waiter,
                    _ => requests[last as usize].next = waiter,
                }
                last = waiter;
            }
        });
        m.run(Account::System, self.work).await;
        self.index_lock.unlock(m).await;
        self.wake(m, first);
    }

    fn wake<M: Machine>(&self, m: &M, first: RequestId) {
        let mut waiter = first;
        while waiter != NOBODY {
            let (task, next) = {
                let request = &self.requests.borrow()[waiter as usize];
                (request.task, request.next)
            };
            m.wake(task);
            waiter = next;
        }
    }

    /// Shows `visit` the requests in the tree that cannot hold their range together with this one, by their start.
    fn conflicts<M: Machine>(&self, m: &M, range: Range, reader: bool, mut visit: impl FnMut(RequestId)) {
        let (tree, mut touch) = (self.tree.borrow(), |node: NodeId, access| self.lines.touch(m, node, access));
        let mut found = tree.first_overlap(range.start, range.last, &mut touch);
        while let Some(other) = found {
            let shared = reader && self.requests.borrow()[other as usize].reader;
            if !shared {
                visit(other);
            }
            found = tree.next_overlap(other, range.start, range.last, &mut touch);
        }
    }

    /// What is wrong with the tree, and whether it is empty.
    pub fn check(&self) -> (Result<(), String>, bool) {
        (self.tree.borrow().check().map(|_| ()), self.tree.borrow().is_empty())
    }
}
