//! Spinlocks that stay on a socket for a while: a queue a socket, and a lock above them for which only the head of each queue
//! competes. Who releases passes both to the next of its own socket, up to so many times in a row (`cohort_handoffs`); then it
//! releases the upper lock, and the next of its socket asks for that again.
//!
//! * *cohort* (C-TKT-MCS of D. Dice, V. Marathe, N. Shavit, Lock Cohorting, PPoPP 2012): the upper lock is a ticket lock, whose
//!   word all heads poll; below are MCS queues.
//! * *hmcs* (M. Chabbi, M. Fagan, J. Mellor-Crummey, High Performance Locks for Multi-level NUMA Systems, PPoPP 2015), of two
//!   levels: the upper lock is an MCS queue of sockets, so that a hand-over to another socket is one store too.
//!
//! Both are fair: first come, first served within a socket, and sockets in the order in which they asked.

use super::family::{Family, InBody};
use super::release::Running;
use crate::machine::caches::line::Line;
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::machine::primitives::SpinUntil;
use crate::machine::state::State;
use crate::waist::{Access, LockId, Side, TaskId};
use std::collections::VecDeque;

/// What the upper lock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // described above
pub enum Policy {
    Ticket,
    Mcs,
}

/// State of such a lock; the upper lock's word is the lock's line.
#[derive(Debug)]
pub struct Cohorts {
    policy: Policy,
    /// By socket.
    cohorts: Vec<Cohort>,
    /// Sockets whose heads wait for the upper lock.
    queue: VecDeque<usize>,
    /// The socket that has the upper lock.
    owner: Option<usize>,
}

/// The queue of a socket.
#[derive(Debug)]
struct Cohort {
    /// Its tail.
    line: Line,
    /// Who has the lower lock: the holder, or who asks for the upper one.
    head: Option<TaskId>,
    waiters: VecDeque<TaskId>,
    /// Hand-offs since it has the upper lock.
    passed: u64,
}

impl Family for Cohorts {
    type Variant = Policy;

    const PERF_NAME: &'static str = "spinlock";
    const MAY_SLEEP: bool = false;

    fn new(policy: Policy) -> Self {
        Self { policy, cohorts: Vec::new(), queue: VecDeque::new(), owner: None }
    }

    fn inner(_policy: Policy) -> Option<(&'static str, LockKind)> {
        None
    }

    fn try_fast(cx: &Context, lock: LockId, _side: Side) -> bool {
        try_lock(&mut cx.state(), cx.id, lock)
    }

    async fn wait(cx: &Context, lock: LockId, _side: Side) -> bool {
        let socket = arrive(&mut cx.state(), cx.id, lock);
        loop {
            cx.spin(SpinUntil::default()).await;
            if has_its_turn(&mut cx.state(), cx.id, lock, socket) {
                return false;
            }
        }
    }

    fn release(cx: &Context, lock: LockId, _side: Side) -> Option<Running<'_>> {
        unlock(&mut cx.state(), cx.id, lock);
        None
    }
}

impl Cohorts {
    fn cohort(&mut self, socket: usize) -> &mut Cohort {
        while self.cohorts.len() <= socket {
            self.cohorts.push(Cohort { line: Line::new(1), head: None, waiters: VecDeque::new(), passed: 0 });
        }
        &mut self.cohorts[socket]
    }

    fn is_open(&self) -> bool {
        self.owner.is_none() && self.queue.is_empty()
    }
}

fn body(s: &mut State, lock: LockId) -> &mut Cohorts {
    s.body(lock)
}

fn touch_tail(s: &mut State, me: TaskId, lock: LockId, socket: usize) {
    s.touch_inside(me, lock, Access::Atomic, |inside| &mut Cohorts::in_body(inside).cohort(socket).line);
}

/// Takes both locks if nobody has them or waits.
fn try_lock(s: &mut State, me: TaskId, lock: LockId) -> bool {
    let socket = s.socket_of(me) as usize;
    touch_tail(s, me, lock, socket);
    if body(s, lock).cohort(socket).head.is_some() {
        return false;
    }
    s.touch_lock(me, lock, Access::Atomic);
    if !body(s, lock).is_open() {
        return false;
    }
    s.tasks[me as usize].preempt_off += 1;
    body(s, lock).cohort(socket).head = Some(me);
    take(s, me, lock, socket);
    true
}

fn take(s: &mut State, me: TaskId, lock: LockId, socket: usize) {
    body(s, lock).owner = Some(socket);
    s.begin_hold(lock, me);
}

/// Joins the queue of its socket, or that of sockets. Which socket it is: a host may move the task.
fn arrive(s: &mut State, me: TaskId, lock: LockId) -> usize {
    s.tasks[me as usize].preempt_off += 1;
    let socket = s.socket_of(me) as usize;
    let b = body(s, lock);
    let cohort = b.cohort(socket);
    if cohort.head.is_some() {
        cohort.waiters.push_back(me);
    } else {
        cohort.head = Some(me);
        b.queue.push_back(socket);
    }
    socket
}

/// Takes the lock if it was passed to `me`, or if it is the turn of its socket. A new head first asks for the upper lock.
fn has_its_turn(s: &mut State, me: TaskId, lock: LockId, socket: usize) -> bool {
    let b = body(s, lock);
    if b.cohorts[socket].head != Some(me) {
        return false;
    }
    let asked = b.owner == Some(socket) || b.queue.contains(&socket);
    if !asked {
        s.touch_lock(me, lock, Access::Atomic);
        let b = body(s, lock);
        if !b.is_open() {
            b.queue.push_back(socket);
            return false;
        }
    } else if b.owner.is_none() && b.queue.front() == Some(&socket) {
        b.queue.pop_front(); // its ticket is up
    } else if b.owner != Some(socket) {
        return false;
    }
    take(s, me, lock, socket);
    true
}

/// Passes the lock on within the socket, or lets another socket have it.
fn unlock(s: &mut State, me: TaskId, lock: LockId) {
    let most = s.kernel.cohort_handoffs;
    let socket = body(s, lock).owner.expect("somebody holds it");
    let cohort = body(s, lock).cohort(socket);
    let next = cohort.waiters.pop_front();
    let stays = next.is_some() && cohort.passed < most;
    cohort.passed = if stays { cohort.passed + 1 } else { 0 };
    cohort.head = next;
    if !stays {
        release_upper(s, me, lock);
    }
    match next {
        Some(next) => s.store_to_node(me, next),
        None => touch_tail(s, me, lock, socket),
    }
    s.end_hold(lock);
    s.preempt_enable(me);
    if !stays {
        s.show_in_random_order(me, lock, |s, order| order.extend(pollers(body(s, lock))));
    }
}

fn release_upper(s: &mut State, me: TaskId, lock: LockId) {
    let b = body(s, lock);
    b.owner = None;
    if b.policy == Policy::Ticket {
        return s.touch_lock(me, lock, Access::Store);
    }
    let Some(socket) = b.queue.pop_front() else { return s.touch_lock(me, lock, Access::Atomic) };
    b.owner = Some(socket);
    let next = b.cohorts[socket].head.expect("its head waits");
    s.store_to_node(me, next);
}

/// Who polls the word of the upper lock.
fn pollers(b: &Cohorts) -> impl Iterator<Item = TaskId> + '_ {
    let queue = b.queue.iter().filter(|_| b.policy == Policy::Ticket);
    queue.filter_map(|&socket| b.cohorts[socket].head)
}
