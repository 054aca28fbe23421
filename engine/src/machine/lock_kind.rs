//! The kinds of locks, by the names that kernel profiles and scenarios give them.

use super::locks::{cohort, mutex_counted, rwlock, rwsem, spinlock};

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
    /// Mutex of user space on a futex.
    PthreadMutex,
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
    /// All kinds, by name.
    pub const NAMES: [(&'static str, Self); 33] = [
        ("tas", Self::Spin(spinlock::Policy::TestAndSet)),
        ("ticket", Self::Spin(spinlock::Policy::Ticket)),
        ("mcs", Self::Spin(spinlock::Policy::Mcs)),
        ("qspinlock", Self::Spin(spinlock::Policy::Queued)),
        ("cna", Self::Spin(spinlock::Policy::Cna)),
        ("hqlock", Self::Spin(spinlock::Policy::Hq)),
        ("cohort", Self::Cohorts(cohort::Policy::Ticket)),
        ("hmcs", Self::Cohorts(cohort::Policy::Mcs)),
        ("pvqspinlock", Self::Paravirt),
        ("rwlock-2.6", Self::Rwlock(rwlock::Policy::Biased)),
        ("qrwlock", Self::Rwlock(rwlock::Policy::Queued)),
        ("semaphore", Self::Semaphore),
        ("counting-semaphore", Self::CountingSemaphore),
        ("mutex-2.6.16", Self::CountedMutex(mutex_counted::Era::Since2_6_16)),
        ("mutex-2.6.30", Self::CountedMutex(mutex_counted::Era::Since2_6_30)),
        ("mutex-3.0", Self::CountedMutex(mutex_counted::Era::Since3_0)),
        ("mutex-3.10", Self::CountedMutex(mutex_counted::Era::Since3_10)),
        ("mutex-4.10", Self::Mutex),
        ("mutex", Self::Mutex),
        ("pthread-mutex", Self::PthreadMutex),
        ("rwsem-2.6", Self::Rwsem(rwsem::Era::V2_6)),
        ("rwsem-3.10", Self::Rwsem(rwsem::Era::V3_10)),
        ("rwsem-3.16", Self::Rwsem(rwsem::Era::V3_16)),
        ("rwsem-4.8", Self::Rwsem(rwsem::Era::V4_8)),
        ("rwsem-5.3", Self::Rwsem(rwsem::Era::V5_3)),
        ("rwsem-5.11", Self::Rwsem(rwsem::Era::V5_11)),
        ("rwsem", Self::Rwsem(rwsem::Era::V5_11)),
        ("percpu-rwsem", Self::PercpuRwsem),
        ("seqlock", Self::Seqlock),
        ("rcu", Self::Rcu),
        ("btrfs-tree-2", Self::BtrfsTree2),
        ("btrfs-tree-3-biased", Self::BtrfsTree3(rwlock::Policy::Biased)),
        ("btrfs-tree-3", Self::BtrfsTree3(rwlock::Policy::Queued)),
    ];

    /// The lock type of a name.
    pub fn parse(name: &str) -> Result<Self, String> {
        if let Some((_, kind)) = Self::NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(*kind);
        }
        if name.contains(".py:") {
            return Err(format!("{name} is written in Python and needs the reference machine: --engine simpy"));
        }
        let known: Vec<_> = Self::NAMES.iter().map(|(known, _)| *known).collect();
        Err(format!("unknown lock type '{name}'; known: {}", known.join(", ")))
    }

    /// The type as `perf lock contention` prints it.
    pub fn perf_name(self) -> &'static str {
        match self {
            Self::Spin(_) | Self::Cohorts(_) | Self::Paravirt | Self::Seqlock => "spinlock",
            Self::Semaphore | Self::CountingSemaphore => "semaphore",
            Self::Rwlock(_) | Self::BtrfsTree3(_) => "rwlock",
            Self::Mutex | Self::CountedMutex(_) | Self::Rcu => "mutex",
            Self::PthreadMutex => "futex",
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
            Self::PthreadMutex => Some(("hash_bucket", Self::Spin(spinlock::Policy::Queued))),
            Self::BtrfsTree2 => Some(("lock", Self::Spin(spinlock::Policy::Ticket))),
            Self::BtrfsTree3(policy) => Some(("lock", Self::Rwlock(policy))),
            _ => Some(("wait_lock", Self::Spin(spinlock::Policy::Queued))),
        }
    }

    /// The role whose kind in the kernel profile the lock inside has, if that is told.
    pub(super) fn inner_role(self) -> Option<&'static str> {
        (self == Self::PthreadMutex).then_some("futex.bucket")
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
}
