//! What both B-tree range locks have beside the tree: requests, and for each held range the list of those who wait for it.
//!
//! The prototypes were never published; their mails say that a range has a wait list. Taken here: a request waits on the
//! first range in its way, first come first, a release wakes the whole list, and each then searches again.

use super::lines::Lines;
use super::{Range, RequestId};
use crate::structures::range_btree::{Key, Record};
use crate::waist::{Access, Machine, Side, TaskId};
use std::cell::RefCell;

const NOBODY: RequestId = RequestId::MAX;

struct Request {
    task: TaskId,
    /// The record that it holds.
    held: Key,
    /// Woken since it began to wait.
    woken: bool,
    /// The next in the same list.
    next: RequestId,
}

#[derive(Clone, Copy)]
struct WaitList {
    first: RequestId,
    last: RequestId,
}

const EMPTY: WaitList = WaitList { first: NOBODY, last: NOBODY };

/// Requests and wait lists.
pub struct Holds {
    requests: RefCell<Vec<Request>>,
    waiting: RefCell<Vec<WaitList>>,
    spare: RefCell<Vec<u32>>,
    lines: Lines,
}

impl Default for Holds {
    fn default() -> Self {
        Self {
            requests: RefCell::default(),
            waiting: RefCell::default(),
            spare: RefCell::default(),
            lines: Lines::new(1),
        }
    }
}

impl Holds {
    /// A place for one range of this task.
    pub fn new_request<M: Machine>(&self, m: &M) -> RequestId {
        let mut requests = self.requests.borrow_mut();
        requests.push(Request { task: m.task(), held: Key::default(), woken: false, next: NOBODY });
        (requests.len() - 1) as RequestId
    }

    /// The key under which a request holds its range.
    pub fn held(&self, request: RequestId) -> Key {
        self.requests.borrow()[request as usize].held
    }

    /// The number that the next [`Holds::hold`] will use.
    pub fn next(&self) -> u32 {
        self.spare.borrow().last().copied().unwrap_or(self.waiting.borrow().len() as u32)
    }

    /// A record for a range that `request` holds from now on.
    pub fn hold(&self, request: RequestId, range: Range, side: Side) -> Record {
        let hold = self.spare.borrow_mut().pop().unwrap_or_else(|| {
            self.waiting.borrow_mut().push(EMPTY);
            (self.waiting.borrow().len() - 1) as u32
        });
        let key = Key { start: range.start, hold };
        self.share(request, key);
        Record { key, last: range.last, readers: u32::from(side == Side::Read) }
    }

    /// `request` holds the record that is there already.
    pub fn share(&self, request: RequestId, key: Key) {
        self.requests.borrow_mut()[request as usize].held = key;
    }

    /// Puts `request` at the end of a held range's list.
    pub fn queue<M: Machine>(&self, m: &M, request: RequestId, hold: u32) {
        self.lines.touch(m, hold, Access::Write);
        let (requests, list) = (&mut self.requests.borrow_mut(), &mut self.waiting.borrow_mut()[hold as usize]);
        (requests[request as usize].woken, requests[request as usize].next) = (false, NOBODY);
        match list.last {
            NOBODY => list.first = request,
            last => requests[last as usize].next = request,
        }
        list.last = request;
    }

    /// Sleeps until the range that it queued on was released.
    pub async fn wait<M: Machine>(&self, m: &M, request: RequestId) {
        while !self.requests.borrow()[request as usize].woken {
            m.wchan("range_lock");
            m.park().await;
        }
    }

    /// Gives back what a range that is no longer held had. Returns who is to be woken.
    pub fn release<M: Machine>(&self, m: &M, hold: u32) -> RequestId {
        self.lines.touch(m, hold, Access::Read);
        self.spare.borrow_mut().push(hold);
        std::mem::replace(&mut self.waiting.borrow_mut()[hold as usize], EMPTY).first
    }

    /// Wakes a whole list.
    pub fn wake_all<M: Machine>(&self, m: &M, first: RequestId) {
        let mut waiter = first;
        while waiter != NOBODY {
            let (task, next) = {
                let request = &mut self.requests.borrow_mut()[waiter as usize];
                request.woken = true;
                (request.task, request.next)
            };
            m.wake(task);
            waiter = next;
        }
    }
}
