//! What all locks have in common: their state.
//!
//! The algorithms are in `locks/`, one file a family; the table of all is in `lock_kind`.

pub(super) mod at;
pub(super) mod code;
pub(super) mod holds;
pub(super) mod kind;
pub(super) mod new;
pub(super) mod untaken;
pub(super) mod wait_lock;
pub(super) mod waits;
pub(super) mod whatif;

pub use super::lock::kind::{Body, LockKind};
use super::lock::wait_lock::WaitLock;
use super::seldom::Seldom;
use super::statistics::HoldTimes;
use super::task::StateTimes;
use crate::waist::time::Time;
use crate::waist::{ClassId, LockId, TaskId};

/// One lock.
#[derive(Debug)]
pub struct Lock {
    /// Its class, for statistics.
    pub class: ClassId,
    /// Its type.
    pub kind: LockKind,
    /// The lock in whose line its word lies: itself, or the one that it is the wait lock of.
    pub lies_in: LockId,
    /// What messages and traces call it by, after its class.
    pub number: u32,
    /// The raw spinlock inside a sleeping lock.
    pub wait_lock: WaitLock,
    /// Its state.
    pub body: Body,
    /// The locks that it was split into, itself the first; none where it is whole.
    pub parts: Box<[LockId]>,
    /// A counterfactual scales the CPU time of its holders.
    pub scaled: bool,
    /// Who was given it and has not run since.
    pub granted: Option<TaskId>,
    /// Who holds it exclusively (a granted waiter that still sleeps included).
    pub holder: Option<TaskId>,
    /// When the present hold began.
    pub held_since: Time,
    /// The holder's times when the present hold was last booked.
    booked: StateTimes,
    /// The present hold up to then, if any of it was booked.
    hold: Seldom<HoldTimes>,
    is_booked: bool,
    /// All time held exclusively in the measured window.
    pub held_total: Time,
    /// How many hold it shared, and since when so many.
    pub readers: u32,
    readers_since: Time,
    /// Who polls its line and looks again when somebody has written to it, in the order of coming.
    pub pollers: Vec<TaskId>,
    /// The first release since somebody was woken for it, or fell asleep: when, and by whom.
    pub left: Option<(Time, TaskId)>,
    /// Somebody waited during the present hold.
    contended: bool,
    /// A device holds it.
    device: bool,
}

/// A file has six and a run up to a million files: what few locks need is in a [`Seldom`] or a box.
const _: () = assert!(std::mem::size_of::<Lock>() <= 248);

impl Lock {
    /// A free lock.
    pub fn new(kind: LockKind, class: ClassId) -> Self {
        Self {
            class,
            kind,
            lies_in: 0,
            number: 0,
            wait_lock: WaitLock::Nothing,
            body: Body::of(kind),
            parts: Box::default(),
            scaled: false,
            granted: None,
            holder: None,
            held_since: 0,
            booked: StateTimes::default(),
            hold: Seldom::default(),
            is_booked: false,
            held_total: 0,
            readers: 0,
            readers_since: 0,
            pollers: Vec::new(),
            left: None,
            contended: false,
            device: false,
        }
    }

    /// Which of the parts of a split lock `task` takes.
    pub fn part_of(&self, task: TaskId) -> LockId {
        self.parts[task as usize % self.parts.len()]
    }

    /// Notes that `task`, whose times are these, becomes the exclusive holder.
    pub fn begin_hold(&mut self, task: TaskId, times: StateTimes) {
        self.holder = Some(task);
        self.granted = None;
        self.held_since = times.since;
        self.booked = times;
        self.contended = false;
        self.device = false;
    }

    /// The hold that has just begun counts from `owed` later, when its holder has paid what it owes.
    pub fn begin_later(&mut self, owed: Time) {
        self.held_since += owed;
        self.booked.since += owed;
    }

    /// The exclusive hold since it was last booked; `times` are those of the holder now.
    #[inline]
    fn part(&self, times: &StateTimes) -> HoldTimes {
        let before = &self.booked;
        let span = times.since.saturating_sub(before.since);
        if self.device {
            return HoldTimes { device: span, ..HoldTimes::default() };
        }
        // a task that ended with the lock may have left its number to another one
        let blocked = times.sleeping.saturating_sub(before.sleeping).min(span);
        let runnable = times.runnable.saturating_sub(before.runnable).min(span - blocked);
        let (preempted, granted) = if self.granted.is_none() { (runnable, 0) } else { (0, runnable) };
        let granted_idle = times.cpu_idle.saturating_sub(before.cpu_idle).min(granted);
        let (running, granted_behind) = (span - blocked - runnable, granted - granted_idle);
        HoldTimes { running, granted_behind, granted_idle, preempted, blocked, device: 0 }
    }

    /// The same, which is booked by this. One that begins later still does.
    #[inline]
    fn book_part(&mut self, times: &StateTimes) -> HoldTimes {
        let part = self.part(times);
        self.booked = StateTimes { since: times.since.max(self.booked.since), ..*times };
        part
    }

    /// Books the exclusive hold up to `times`, those of the holder now; it goes on in another way.
    #[inline]
    pub fn book(&mut self, times: &StateTimes) {
        let part = self.book_part(times);
        *self.hold += &part;
        self.is_booked = true;
    }

    /// Books the exclusive hold up to `times`, those of the holder now. Returns all of it.
    #[inline]
    pub fn book_all(&mut self, times: &StateTimes) -> HoldTimes {
        if !std::mem::take(&mut self.is_booked) {
            let hold = self.book_part(times);
            self.held_total += hold.total();
            return hold;
        }
        let mut hold = std::mem::take(&mut *self.hold);
        if self.has_run(times) {
            hold.running += times.since.saturating_sub(self.booked.since);
            self.booked.since = times.since.max(self.booked.since);
        } else {
            hold += &self.book_part(times);
        }
        self.held_total += hold.total();
        hold
    }

    /// Whether the holder, whose times before it came to run are these, has done nothing else with the lock.
    pub fn only_ran(&self, times: &StateTimes) -> bool {
        self.has_run(times) && !self.is_booked
    }

    /// Whether it has done nothing else since the hold was last booked.
    #[inline]
    fn has_run(&self, times: &StateTimes) -> bool {
        let before = &self.booked;
        times.runnable == before.runnable && times.sleeping == before.sleeping && !self.device
    }

    /// Books an exclusive hold up to `now` of such a holder. Returns for how long it was.
    pub fn book_running(&mut self, now: Time) -> Time {
        let span = now.saturating_sub(self.booked.since);
        self.booked.since += span;
        self.held_total += span;
        span
    }

    /// Notes that a device holds the lock from now on.
    pub fn hand_to_device(&mut self) {
        self.device = true;
    }

    /// Whether a device holds the lock.
    pub fn held_by_device(&self) -> bool {
        self.device
    }

    /// Notes that somebody has to wait for the present holder.
    pub fn mark_contended(&mut self) {
        self.contended = true;
    }

    /// Whether somebody waited during the present hold.
    pub fn is_contended(&self) -> bool {
        self.contended
    }

    /// Whether anybody holds it.
    pub fn is_held(&self) -> bool {
        self.holder.is_some() || self.readers > 0
    }

    /// Takes the time that readers have held it since it was last asked for: of all together, and of any.
    pub fn take_shared(&mut self, now: Time, window: Time) -> (Time, Time) {
        let span = now - self.readers_since.max(window).min(now);
        self.readers_since = now;
        (Time::from(self.readers) * span, if self.readers > 0 { span } else { 0 })
    }
}
