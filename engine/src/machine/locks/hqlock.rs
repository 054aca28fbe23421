//! HQ spinlock (*hqlock*: A. Stepanov and N. Fedorov, [RFC PATCH v2 0/5] Introduce Hierarchical Queued (HQ) Spinlock,
//! December 2025, linux-arch, `kernel/locking/hqlock_core.h`; never merged): a qspinlock that keeps a queue a socket once a
//! queue has seen more than `hqlock_general_handoffs_turn_numa` hand-offs.
//!
//! Then who comes joins the queue of its own socket and leaves the word alone; queues stand in line in the order in which they
//! began. The head, alone, polls the word. Who takes the lock makes the next of its socket head, until `hqlock_fairness_threshold`
//! hand-offs in a row; then, or where none of its socket waits, the head of the next queue (`hqlock_handoff`).
//!
//! Left out: two locks that fall into the same metadata, so that one stays a qspinlock. Version 3 (April 2026) goes back to
//! one queue when hand-offs between sockets become few; version 2, as here, does not.

use super::family::InBody;
use super::spinlock::{body, Spinlock};
use crate::machine::caches::line::Line;
use crate::machine::state::State;
use crate::waist::{Access, LockId, TaskId};
use std::collections::VecDeque;

/// What an hqlock knows beside a qspinlock.
#[derive(Debug)]
pub struct Queues {
    /// It keeps a queue a socket.
    pub(super) by_socket: bool,
    /// Hand-offs of one queue, or in a row within a socket (`general_handoffs`).
    handoffs: u64,
    /// Who was head before.
    before: Option<TaskId>,
    /// Queues in line (`lock_metadata`), and the line that this is in.
    order: VecDeque<usize>,
    meta: Line,
    sockets: Vec<Queue>,
}

/// The queue of a socket (`struct numa_queue`); the head of the lock, if it is of this socket, stands first.
#[derive(Debug)]
struct Queue {
    tail: Line,
    waiters: VecDeque<TaskId>,
    /// Hand-offs between sockets since the first in line was served (`handoffs_not_head`).
    not_head: usize,
}

impl Queues {
    /// Of a free lock.
    pub(super) fn new() -> Self {
        Self {
            by_socket: false,
            handoffs: 0,
            before: None,
            order: VecDeque::new(),
            meta: Line::new(1),
            sockets: Vec::new(),
        }
    }

    fn socket(&mut self, socket: usize) -> &mut Queue {
        while self.sockets.len() <= socket {
            self.sockets.push(Queue { tail: Line::new(1), waiters: VecDeque::new(), not_head: 0 });
        }
        &mut self.sockets[socket]
    }

    /// Whose queue `head` is the first of.
    fn socket_of(&self, head: TaskId) -> usize {
        self.sockets.iter().position(|queue| queue.waiters.front() == Some(&head)).expect("the head is in a queue")
    }

    /// The queue that follows in line, if any (`next_node`).
    fn after(&self, socket: usize) -> Option<usize> {
        let at = self.order.iter().position(|&other| other == socket)?;
        self.order.get(at + 1).copied()
    }

    /// `handoff_remote`: which queue is served after `from`: the `next` in line, or the first where as many were served since as
    /// there are sockets.
    fn pass_on(&mut self, from: usize, next: Option<usize>, sockets: usize) -> usize {
        let (waited, first) = (self.sockets[from].not_head, self.order[0]);
        let (to, not_head) = match next {
            Some(next) if waited < sockets => (next, waited + usize::from(first != from)),
            _ => (first, 0),
        };
        self.sockets[to].not_head = not_head;
        self.handoffs = 0;
        to
    }
}

fn queues(s: &mut State, lock: LockId) -> &mut Queues {
    of(body(s, lock))
}

fn of(body: &mut Spinlock) -> &mut Queues {
    body.queues.as_mut().expect("only hqlock asks")
}

fn touch_tail(s: &mut State, me: TaskId, lock: LockId, socket: usize) {
    s.touch_inside(me, lock, Access::Atomic, |inside| &mut of(Spinlock::in_body(inside)).socket(socket).tail);
}

fn touch_meta(s: &mut State, me: TaskId, lock: LockId) {
    s.touch_inside(me, lock, Access::Atomic, |inside| &mut of(Spinlock::in_body(inside)).meta);
}

/// Whether who comes joins the queue of its socket.
#[inline]
pub(super) fn keeps_queues(b: &Spinlock) -> bool {
    b.queues.as_ref().is_some_and(|queues| queues.by_socket)
}

/// Joins the queue of its socket (`try_update_tail_hqlock_mode`); the first of all is head of the lock.
pub(super) fn join(s: &mut State, me: TaskId, lock: LockId) {
    let socket = s.socket_of(me) as usize;
    touch_tail(s, me, lock, socket);
    let q = queues(s, lock);
    q.socket(socket).waiters.push_back(me);
    if q.sockets[socket].waiters.len() > 1 {
        return;
    }
    q.sockets[socket].not_head = 0;
    let first = q.order.is_empty();
    q.order.push_back(socket);
    touch_meta(s, me, lock);
    if first {
        body(s, lock).waiters.push_back(me);
    }
}

/// The head `me`, which has taken the lock, makes another one head, who is returned.
pub(super) fn hand_off(s: &mut State, me: TaskId, lock: LockId) -> Option<TaskId> {
    let next = if keeps_queues(body(s, lock)) { hand_off_by_socket(s, me, lock) } else { hand_off_in_turn(s, lock) };
    queues(s, lock).before = next.map(|_| me);
    next
}

/// The next in the one queue; the last of a queue that saw many hand-offs turns to queues by socket
/// (`low_contention_mcs_lock_handoff`, `low_contention_try_clear_tail`).
fn hand_off_in_turn(s: &mut State, lock: LockId) -> Option<TaskId> {
    let turn = s.kernel.hqlock_turn_numa;
    let b = body(s, lock);
    let next = b.waiters.front().copied();
    let q = of(b);
    match next {
        Some(next) => q.handoffs += u64::from(q.before != Some(next)),
        None => {
            q.by_socket = q.handoffs > turn;
            q.handoffs = 0;
        }
    }
    next
}

/// `hqlock_try_clear_tail` and `hqlock_handoff`.
fn hand_off_by_socket(s: &mut State, me: TaskId, lock: LockId) -> Option<TaskId> {
    let threshold = s.kernel.hqlock_fairness_threshold;
    let sockets = s.topology.sockets() as usize;
    let q = queues(s, lock);
    let socket = q.socket_of(me);
    q.sockets[socket].waiters.pop_front();
    if q.sockets[socket].waiters.is_empty() {
        return leave_line(s, me, lock, socket);
    }
    let alone = q.order.len() == 1;
    let next = if q.handoffs > threshold && !alone {
        let next = q.after(socket);
        q.pass_on(socket, next, sockets)
    } else {
        q.handoffs = if q.handoffs > threshold { 1 } else { q.handoffs + 1 };
        socket
    };
    Some(make_head(s, lock, next))
}

/// The last waiter of `socket` takes its queue out of the line; the last of all gives the metadata back (`release_lock_meta`).
fn leave_line(s: &mut State, me: TaskId, lock: LockId, socket: usize) -> Option<TaskId> {
    let sockets = s.topology.sockets() as usize;
    let q = queues(s, lock);
    let next = q.after(socket);
    q.order.retain(|&other| other != socket);
    touch_meta(s, me, lock);
    touch_tail(s, me, lock, socket);
    let q = queues(s, lock);
    if !q.order.is_empty() {
        let next = q.pass_on(socket, next, sockets);
        return Some(make_head(s, lock, next));
    }
    q.handoffs = 0;
    for socket in 0..sockets {
        touch_tail(s, me, lock, socket);
    }
    s.touch_lock(me, lock, Access::Atomic);
    None
}

/// The first waiter of `socket` becomes the head of the lock.
fn make_head(s: &mut State, lock: LockId, socket: usize) -> TaskId {
    let head = queues(s, lock).sockets[socket].waiters[0];
    body(s, lock).waiters.push_back(head);
    head
}
