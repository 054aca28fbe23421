//! What all locks have in common: their kinds and their state.
//!
//! The algorithms are in `locks/`, one file a family; each works on its own variant of [`Body`].

use super::line::Line;
use super::locks::{
    btrfs_tree_2, btrfs_tree_3, cohort, completion, mutex, mutex_counted, paravirt, percpu_rwsem, rcu, rwlock, rwsem,
    semaphore, seqlock, spinlock, waitqueue::WaitQueue,
};
use super::statistics::HoldTimes;
use super::task::{StateTimes, TaskId};
use super::time::Time;

/// A lock's number.
pub type LockId = u32;
/// A lock class's number.
pub type ClassId = u16;

/// Which side of a lock is taken; exclusive locks know only [`Side::Write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Shared.
    Read,
    /// Exclusive.
    Write,
}

/// How a btrfs tree lock of generation 2 or 3 is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// With the lock inside it: the holder must not sleep, and who waits for it spins.
    Spinning,
    /// Without: the holder may sleep, and so do those who wait.
    Blocking,
}

/// The lock types, named as in kernel profiles and scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Spinning locks.
    Spin(spinlock::Policy),
    /// Spinning readers and writers.
    Rwlock(rwlock::Policy),
    /// Spinlocks that stay on a socket.
    Cohorts(cohort::Policy),
    /// Queued spinlock of a guest, whose waiters halt.
    Paravirt,
    /// Semaphore with count 1: grant, strict FIFO, never spins.
    Semaphore,
    /// The same with a larger count.
    CountingSemaphore,
    /// Mutex before Linux 4.10.
    CountedMutex(mutex_counted::Era),
    /// Mutex of Linux 4.10 and later.
    Mutex,
    /// rw_semaphore.
    Rwsem(rwsem::Era),
    /// percpu_rw_semaphore (freeze protection).
    PercpuRwsem,
    /// Sequence counter and spinlock.
    Seqlock,
    /// RCU: readers wait for nobody, updaters for readers.
    Rcu,
    /// No lock at all: what a counterfactual has taken away.
    Removed,
    /// btrfs tree lock of 2009 to Linux 3.0.
    BtrfsTree2,
    /// btrfs tree lock of Linux 3.1 to 5.10, over this rwlock.
    BtrfsTree3(rwlock::Policy),
}

impl LockKind {
    /// All names that [`LockKind::parse`] accepts; the second of a pair is `perf lock`'s name of the type.
    pub const NAMES: [(&'static str, &'static str); 32] = [
        ("tas", "spinlock"),
        ("ticket", "spinlock"),
        ("mcs", "spinlock"),
        ("qspinlock", "spinlock"),
        ("cna", "spinlock"),
        ("hqlock", "spinlock"),
        ("cohort", "spinlock"),
        ("hmcs", "spinlock"),
        ("pvqspinlock", "spinlock"),
        ("rwlock-2.6", "rwlock"),
        ("qrwlock", "rwlock"),
        ("semaphore", "semaphore"),
        ("counting-semaphore", "semaphore"),
        ("mutex-2.6.16", "mutex"),
        ("mutex-2.6.30", "mutex"),
        ("mutex-3.0", "mutex"),
        ("mutex-3.10", "mutex"),
        ("mutex-4.10", "mutex"),
        ("mutex", "mutex"),
        ("rwsem-2.6", "rwsem"),
        ("rwsem-3.10", "rwsem"),
        ("rwsem-3.16", "rwsem"),
        ("rwsem-4.8", "rwsem"),
        ("rwsem-5.3", "rwsem"),
        ("rwsem-5.11", "rwsem"),
        ("rwsem", "rwsem"),
        ("percpu-rwsem", "percpu-rwsem"),
        ("seqlock", "spinlock"),
        ("rcu", "mutex"),
        ("btrfs-tree-2", "spinlock"),
        ("btrfs-tree-3-biased", "rwlock"),
        ("btrfs-tree-3", "rwlock"),
    ];

    /// The lock type of a name.
    pub fn parse(name: &str) -> Result<Self, String> {
        use mutex_counted::Era;
        use spinlock::Policy;
        Ok(match name {
            "tas" => Self::Spin(Policy::TestAndSet),
            "ticket" => Self::Spin(Policy::Ticket),
            "mcs" => Self::Spin(Policy::Mcs),
            "qspinlock" => Self::Spin(Policy::Queued),
            "cna" => Self::Spin(Policy::Cna),
            "hqlock" => Self::Spin(Policy::Hq),
            "cohort" => Self::Cohorts(cohort::Policy::Ticket),
            "hmcs" => Self::Cohorts(cohort::Policy::Mcs),
            "pvqspinlock" => Self::Paravirt,
            "rwlock-2.6" => Self::Rwlock(rwlock::Policy::Biased),
            "qrwlock" => Self::Rwlock(rwlock::Policy::Queued),
            "semaphore" => Self::Semaphore,
            "counting-semaphore" => Self::CountingSemaphore,
            "mutex-2.6.16" => Self::CountedMutex(Era::Since2_6_16),
            "mutex-2.6.30" => Self::CountedMutex(Era::Since2_6_30),
            "mutex-3.0" => Self::CountedMutex(Era::Since3_0),
            "mutex-3.10" => Self::CountedMutex(Era::Since3_10),
            "mutex" | "mutex-4.10" => Self::Mutex,
            "rwsem-2.6" => Self::Rwsem(rwsem::Era::V2_6),
            "rwsem-3.10" => Self::Rwsem(rwsem::Era::V3_10),
            "rwsem-3.16" => Self::Rwsem(rwsem::Era::V3_16),
            "rwsem-4.8" => Self::Rwsem(rwsem::Era::V4_8),
            "rwsem-5.3" => Self::Rwsem(rwsem::Era::V5_3),
            "rwsem" | "rwsem-5.11" => Self::Rwsem(rwsem::Era::V5_11),
            "percpu-rwsem" => Self::PercpuRwsem,
            "seqlock" => Self::Seqlock,
            "rcu" => Self::Rcu,
            "btrfs-tree-2" => Self::BtrfsTree2,
            "btrfs-tree-3-biased" => Self::BtrfsTree3(rwlock::Policy::Biased),
            "btrfs-tree-3" => Self::BtrfsTree3(rwlock::Policy::Queued),
            _ if name.contains(".py:") => {
                return Err(format!("{name} is written in Python and needs the reference machine: --engine simpy"));
            }
            _ => {
                let known: Vec<_> = Self::NAMES.iter().map(|n| n.0).collect();
                return Err(format!("unknown lock type '{name}'; known: {}", known.join(", ")));
            }
        })
    }

    /// The type as `perf lock contention` prints it.
    pub fn perf_name(self) -> &'static str {
        match self {
            Self::Spin(_) | Self::Cohorts(_) | Self::Paravirt | Self::Seqlock => "spinlock",
            Self::Semaphore | Self::CountingSemaphore => "semaphore",
            Self::Rwlock(_) | Self::BtrfsTree3(_) => "rwlock",
            Self::Mutex | Self::CountedMutex(_) | Self::Rcu => "mutex",
            Self::Rwsem(_) => "rwsem",
            Self::PercpuRwsem => "percpu-rwsem",
            Self::Removed => "removed",
            Self::BtrfsTree2 => "spinlock",
        }
    }

    /// The lock inside locks of this kind: how its class is called, after theirs, and its kind.
    pub(super) fn inner(self) -> Option<(&'static str, Self)> {
        match self {
            Self::Spin(_) | Self::Cohorts(_) | Self::Paravirt => None,
            Self::Rwlock(rwlock::Policy::Biased) | Self::PercpuRwsem | Self::Removed => None,
            Self::Seqlock => Some(("lock", Self::Spin(spinlock::Policy::Queued))),
            Self::Rcu => Some(("mutex", Self::Mutex)),
            Self::BtrfsTree2 => Some(("lock", Self::Spin(spinlock::Policy::Ticket))),
            Self::BtrfsTree3(policy) => Some(("lock", Self::Rwlock(policy))),
            _ => Some(("wait_lock", Self::Spin(spinlock::Policy::Queued))),
        }
    }

    /// Word and wait lock are in one cache line: a mutex has 32 to 40 bytes, an rwsem 40, a semaphore 24, a seqlock 8.
    pub(super) fn shares_line(self) -> bool {
        let semaphore = matches!(self, Self::Semaphore | Self::CountingSemaphore);
        semaphore || matches!(self, Self::Mutex | Self::CountedMutex(_) | Self::Rwsem(_) | Self::Seqlock)
    }

    /// Whether its holders turn it from spinning to blocking and back.
    pub fn has_modes(self) -> bool {
        matches!(self, Self::BtrfsTree2 | Self::BtrfsTree3(_))
    }

    /// Whether who waits for such a lock may sleep.
    pub(super) fn may_sleep(self) -> bool {
        let spins = matches!(self, Self::Spin(_) | Self::Cohorts(_) | Self::Paravirt | Self::Seqlock);
        !spins && !matches!(self, Self::Rwlock(_) | Self::Removed)
    }

    fn body(self) -> Body {
        match self {
            Self::Spin(policy) => Body::Spin(spinlock::Spinlock::new(policy)),
            Self::Cohorts(policy) => Body::Cohorts(cohort::Cohorts::new(policy)),
            Self::Paravirt => Body::Paravirt(paravirt::Paravirt::default()),
            Self::Semaphore => Body::Semaphore(semaphore::Semaphore::binary()),
            Self::CountingSemaphore => Body::Semaphore(semaphore::Semaphore::counting()),
            Self::Seqlock => Body::Seqlock(seqlock::Seqlock::default()),
            Self::Rcu => Body::Rcu(rcu::Rcu::default()),
            Self::Rwlock(policy) => Body::Rwlock(rwlock::Rwlock::new(policy)),
            Self::CountedMutex(era) => Body::CountedMutex(mutex_counted::CountedMutex::new(era)),
            Self::Mutex => Body::Mutex(mutex::Mutex::default()),
            Self::Rwsem(era) => Body::Rwsem(rwsem::Rwsem::new(era)),
            Self::PercpuRwsem => Body::PercpuRwsem(percpu_rwsem::PercpuRwsem::default()),
            Self::Removed => Body::Removed,
            Self::BtrfsTree2 => Body::BtrfsTree2(btrfs_tree_2::BtrfsTree2::default()),
            Self::BtrfsTree3(policy) => Body::BtrfsTree3(btrfs_tree_3::BtrfsTree3::new(policy)),
        }
    }
}

/// The state of one lock, by family.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Body {
    Spin(spinlock::Spinlock),
    Cohorts(cohort::Cohorts),
    Paravirt(paravirt::Paravirt),
    Semaphore(semaphore::Semaphore),
    Seqlock(seqlock::Seqlock),
    Rcu(rcu::Rcu),
    Rwlock(rwlock::Rwlock),
    CountedMutex(mutex_counted::CountedMutex),
    Mutex(mutex::Mutex),
    Rwsem(rwsem::Rwsem),
    PercpuRwsem(percpu_rwsem::PercpuRwsem),
    Completion(completion::Completion),
    Removed,
    BtrfsTree2(btrfs_tree_2::BtrfsTree2),
    BtrfsTree3(btrfs_tree_3::BtrfsTree3),
}

impl Body {
    /// The wait queues in it.
    pub fn wait_queues(&mut self) -> &mut [WaitQueue] {
        match self {
            Self::BtrfsTree2(body) => &mut body.queue,
            Self::BtrfsTree3(body) => &mut body.queues,
            _ => &mut [],
        }
    }
}

/// One lock.
#[derive(Debug)]
pub struct Lock {
    /// Its class, for statistics.
    pub class: ClassId,
    /// Its type.
    pub kind: LockKind,
    /// The cache line of its word.
    pub line: Line,
    /// The lock whose line it lies in: itself, or the one that it is the wait lock of.
    pub lies_in: Option<LockId>,
    /// The raw spinlock inside a sleeping lock.
    pub wait_lock: Option<LockId>,
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
    hold: Option<HoldTimes>,
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

impl Lock {
    /// A free lock.
    pub fn new(kind: LockKind, class: ClassId, wait_lock: Option<LockId>) -> Self {
        Self {
            class,
            kind,
            line: Line::new(1),
            lies_in: None,
            wait_lock,
            body: kind.body(),
            parts: Box::default(),
            scaled: false,
            granted: None,
            holder: None,
            held_since: 0,
            booked: StateTimes::default(),
            hold: None,
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

    /// Books the exclusive hold up to `times`, those of the holder now; it goes on in another way. One that begins later still does.
    pub fn book(&mut self, times: &StateTimes) {
        let part = self.part(times);
        *self.hold.get_or_insert_default() += &part;
        self.booked = StateTimes { since: times.since.max(self.booked.since), ..*times };
    }

    /// Books the exclusive hold up to `times`, those of the holder now. Returns all of it.
    pub fn book_all(&mut self, times: &StateTimes) -> HoldTimes {
        self.book(times);
        let hold = self.hold.take().unwrap_or_default();
        self.held_total += hold.total();
        hold
    }

    /// Whether the holder, whose times before it came to run are these, has done nothing else with the lock.
    pub fn only_ran(&self, times: &StateTimes) -> bool {
        let before = &self.booked;
        times.runnable == before.runnable && times.sleeping == before.sleeping && self.hold.is_none() && !self.device
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
