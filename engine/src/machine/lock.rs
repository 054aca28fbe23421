//! What all locks have in common: their kinds, their state, and the statistics of their class.
//!
//! The algorithms are in `locks/`, one file a family; each works on its own variant of [`Body`].

use super::line::Line;
use super::locks::{
    btrfs_tree_2, btrfs_tree_3, completion, mutex, mutex_counted, percpu_rwsem, rwlock, rwsem, semaphore, spinlock, waitqueue::WaitQueue,
};
use super::task::{StateTimes, TaskId};
use super::time::{to_ns, Time};
use hdrhistogram::Histogram;

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
    /// Counting semaphore: grant, strict FIFO, never spins.
    Semaphore,
    /// Mutex before Linux 4.10.
    CountedMutex(mutex_counted::Era),
    /// Mutex of Linux 4.10 and later.
    Mutex,
    /// rw_semaphore.
    Rwsem(rwsem::Era),
    /// percpu_rw_semaphore (freeze protection).
    PercpuRwsem,
    /// No lock at all: what a counterfactual has taken away.
    Removed,
    /// btrfs tree lock of 2009 to Linux 3.0.
    BtrfsTree2,
    /// btrfs tree lock of Linux 3.1 to 5.10, over this rwlock.
    BtrfsTree3(rwlock::Policy),
}

impl LockKind {
    /// All names that [`LockKind::parse`] accepts; the second of a pair is `perf lock`'s name of the type.
    pub const NAMES: [(&'static str, &'static str); 25] = [
        ("tas", "spinlock"),
        ("ticket", "spinlock"),
        ("mcs", "spinlock"),
        ("qspinlock", "spinlock"),
        ("cna", "spinlock"),
        ("rwlock-2.6", "rwlock"),
        ("qrwlock", "rwlock"),
        ("semaphore", "semaphore"),
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
            "rwlock-2.6" => Self::Rwlock(rwlock::Policy::Biased),
            "qrwlock" => Self::Rwlock(rwlock::Policy::Queued),
            "semaphore" => Self::Semaphore,
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
            Self::Spin(_) => "spinlock",
            Self::Semaphore => "semaphore",
            Self::Rwlock(_) | Self::BtrfsTree3(_) => "rwlock",
            Self::Mutex | Self::CountedMutex(_) => "mutex",
            Self::Rwsem(_) => "rwsem",
            Self::PercpuRwsem => "percpu-rwsem",
            Self::Removed => "removed",
            Self::BtrfsTree2 => "spinlock",
        }
    }

    /// The lock inside locks of this kind: how its class is called, after theirs, and its kind.
    pub(super) fn inner(self) -> Option<(&'static str, Self)> {
        match self {
            Self::Spin(_) | Self::Rwlock(rwlock::Policy::Biased) | Self::PercpuRwsem | Self::Removed => None,
            Self::BtrfsTree2 => Some(("lock", Self::Spin(spinlock::Policy::Ticket))),
            Self::BtrfsTree3(policy) => Some(("lock", Self::Rwlock(policy))),
            _ => Some(("wait_lock", Self::Spin(spinlock::Policy::Queued))),
        }
    }

    /// Word and wait lock are in one cache line: a mutex has 32 to 40 bytes, an rwsem 40, a semaphore 24.
    pub(super) fn shares_line(self) -> bool {
        matches!(self, Self::Semaphore | Self::Mutex | Self::CountedMutex(_) | Self::Rwsem(_))
    }

    /// Whether its holders turn it from spinning to blocking and back.
    pub fn has_modes(self) -> bool {
        matches!(self, Self::BtrfsTree2 | Self::BtrfsTree3(_))
    }

    /// Whether who waits for such a lock may sleep.
    pub(super) fn may_sleep(self) -> bool {
        !matches!(self, Self::Spin(_) | Self::Rwlock(_) | Self::Removed)
    }

    fn body(self) -> Body {
        match self {
            Self::Spin(policy) => Body::Spin(spinlock::Spinlock::new(policy)),
            Self::Semaphore => Body::Semaphore(semaphore::Semaphore::new(1)),
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
    Semaphore(semaphore::Semaphore),
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
    /// When the present hold began, and the holder's times at that moment.
    pub held_since: Time,
    holder_times: StateTimes,
    /// How many hold it shared, and since when so many.
    pub readers: u32,
    readers_since: Time,
    /// Who polls its line and looks again when somebody has written to it, in the order of coming.
    pub pollers: Vec<TaskId>,
    /// Somebody waited during the present hold.
    contended: bool,
    /// Since when a device holds it, and the task's times up to then.
    device: Option<(Time, StateTimes)>,
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
            holder_times: StateTimes::default(),
            readers: 0,
            readers_since: 0,
            pollers: Vec::new(),
            contended: false,
            device: None,
        }
    }

    /// Which of the parts of a split lock `task` takes.
    pub fn part_of(&self, task: TaskId) -> LockId {
        self.parts[task as usize % self.parts.len()]
    }

    /// Notes that `task` becomes the exclusive holder.
    pub fn begin_hold(&mut self, task: TaskId, now: Time, times: StateTimes) {
        self.holder = Some(task);
        self.held_since = now;
        self.holder_times = times;
        self.contended = false;
        self.device = None;
    }

    /// Notes that a device holds the lock from now on; `times` are those of the task that took it.
    pub fn hand_to_device(&mut self, now: Time, times: StateTimes) {
        self.device = Some((now, times));
    }

    /// Whether a device holds the lock.
    pub fn held_by_device(&self) -> bool {
        self.device.is_some()
    }

    /// Notes that somebody has to wait for the present holder.
    pub fn mark_contended(&mut self) {
        self.contended = true;
    }

    /// Books the time that readers have held it, before one more or less does.
    pub fn book_readers(&mut self, now: Time, window: Time, stats: &mut ClassStats) {
        let since = self.readers_since.max(window).min(now);
        stats.hold_shared_total += Time::from(self.readers) * (now - since);
        self.readers_since = now;
    }

    /// Ends the exclusive hold and books it.
    pub fn end_hold(&mut self, now: Time, window: Time, times: StateTimes, stats: &mut ClassStats) {
        self.holder = None;
        let held = now - self.held_since.max(window).min(now);
        stats.hold_total += held;
        stats.hold_max = stats.hold_max.max(held);
        let device = self.device.take();
        if self.contended && self.held_since >= window {
            let times = device.map_or(times, |(_, then)| then);
            stats.holder_device += device.map_or(0, |(since, _)| now - since);
            stats.holder_running += times.running - self.holder_times.running;
            stats.holder_runnable += times.runnable - self.holder_times.runnable;
            stats.holder_sleeping += times.sleeping - self.holder_times.sleeping;
        }
    }
}

/// Waits at one place in the programs.
#[derive(Clone, Copy, Debug, Default)]
pub struct SiteStats {
    /// Waits.
    pub contended: u64,
    /// Time waited.
    pub wait_total: Time,
}

/// Statistics of all locks of one class within the measured window.
#[derive(Debug)]
pub struct ClassStats {
    /// Name, for example `xfs.AGI`.
    pub name: String,
    /// Role in the kernel profile, for example `xfs.buffer`.
    pub role: String,
    /// Type.
    pub kind: LockKind,
    /// Locks of this class.
    pub instances: u64,
    /// Acquisitions.
    pub acquired: u64,
    /// Acquisitions that had to wait.
    pub contended: u64,
    /// Time waited.
    pub wait_total: Time,
    /// Longest wait.
    pub wait_max: Time,
    /// Waits in nanoseconds.
    pub waits: Histogram<u64>,
    /// Time held exclusively.
    pub hold_total: Time,
    /// Longest exclusive hold.
    pub hold_max: Time,
    /// Acquisitions that share it.
    pub acquired_shared: u64,
    /// Time held shared, of all who do together.
    pub hold_shared_total: Time,
    /// Waits that ended without sleeping.
    pub resolved_spinning: u64,
    /// Waits that slept.
    pub slept: u64,
    /// Times the releaser handed ownership over.
    pub handoffs: u64,
    /// Times a newcomer took the lock while others were queued.
    pub steals: u64,
    /// Wake-ups by releasers.
    pub wakeups: u64,
    /// From grant to the new owner running.
    pub grant_to_run: Time,
    /// The holder's time in contended holds: on a CPU.
    pub holder_running: Time,
    /// The holder's time in contended holds: waiting for a CPU.
    pub holder_runnable: Time,
    /// The holder's time in contended holds: asleep.
    pub holder_sleeping: Time,
    /// Time in contended holds during which a device held the lock.
    pub holder_device: Time,
    /// Waits by place.
    pub sites: Vec<SiteStats>,
    waiting: u64,
    waiting_since: Time,
    waiting_integral: u128,
}

impl ClassStats {
    /// A class without any event yet.
    pub fn new(name: &str, role: &str, kind: LockKind) -> Self {
        Self {
            name: name.into(),
            role: role.into(),
            kind,
            instances: 0,
            acquired: 0,
            contended: 0,
            wait_total: 0,
            wait_max: 0,
            waits: crate::hdr::histogram(2),
            hold_total: 0,
            hold_max: 0,
            acquired_shared: 0,
            hold_shared_total: 0,
            resolved_spinning: 0,
            slept: 0,
            handoffs: 0,
            steals: 0,
            wakeups: 0,
            grant_to_run: 0,
            holder_running: 0,
            holder_runnable: 0,
            holder_sleeping: 0,
            holder_device: 0,
            sites: Vec::new(),
            waiting: 0,
            waiting_since: 0,
            waiting_integral: 0,
        }
    }

    /// Starts the measured window: forgets all events, keeps who waits now.
    pub fn reset(&mut self, now: Time) {
        let fresh = Self::new("", "", self.kind);
        let (name, role) = (std::mem::take(&mut self.name), std::mem::take(&mut self.role));
        let (instances, waiting) = (self.instances, self.waiting);
        *self = Self { name, role, instances, waiting, waiting_since: now, ..fresh };
    }

    fn integrate(&mut self, now: Time) {
        self.waiting_integral += u128::from(self.waiting) * u128::from(now - self.waiting_since);
        self.waiting_since = now;
    }

    /// A task begins to wait.
    pub fn begin_wait(&mut self, now: Time) {
        self.integrate(now);
        self.waiting += 1;
    }

    /// A task that waited since `since` has the lock; `slept` says how, `site` where in the program.
    pub fn end_wait(&mut self, now: Time, window: Time, since: Time, slept: bool, site: u16) {
        self.integrate(now);
        self.waiting -= 1;
        let wait = now - since.max(window);
        self.contended += 1;
        self.wait_total += wait;
        self.wait_max = self.wait_max.max(wait);
        self.waits.saturating_record((to_ns(wait)) as u64);
        *(if slept { &mut self.slept } else { &mut self.resolved_spinning }) += 1;
        let site = usize::from(site);
        if self.sites.len() <= site {
            self.sites.resize(site + 1, SiteStats::default());
        }
        self.sites[site].contended += 1;
        self.sites[site].wait_total += wait;
    }

    /// Little's law in its exact form: the time integral of the number waiting equals the sum of the waits, those in
    /// progress (`open`: when each began) included. Returns both in ps.
    pub fn little(&mut self, now: Time, window: Time, open: &[Time]) -> (u128, u128) {
        self.integrate(now);
        let open: u128 = open.iter().map(|&since| u128::from(now - since.max(window))).sum();
        (self.waiting_integral, u128::from(self.wait_total) + open)
    }
}
