//! The kinds of locks, by the names that kernel profiles and scenarios give them: one table. A new lock is a file with a
//! [`Family`] and a line here.

use crate::machine::context::Context;
use crate::machine::locks::family::{Family, InBody};
use crate::machine::locks::release::Running;
use crate::machine::locks::waitqueue::WaitQueue;
use crate::machine::locks::{
    bit_lock, btrfs_tree_2, btrfs_tree_3, cohort, completion, futex, mutex, mutex_counted, paravirt, percpu_rwsem, rcu,
    removed, rwlock, rwsem, semaphore, seqlock, spinlock,
};
use crate::waist::{LockId, Mode, Side};

/// What a family's state is in a lock. Large ones that few locks have are elsewhere, so that not all have room for them.
macro_rules! placed {
    ($family:ty) => { $family };
    ($family:ty, $place:ident) => { $place<$family> };
}

/// From families of locks, each with its kinds by name: [`LockKind`], [`Body`], and what the machine asks of a family by its kind.
macro_rules! lock_kinds {
    ($($(#[$doc:meta])* $kind:ident $(in $place:ident)?: $family:ty { $($name:literal: $variant:expr),* $(,)? })*) => {
        /// The lock types, named as in kernel profiles.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum LockKind {
            $($(#[$doc])* $kind(<$family as Family>::Variant),)*
        }

        /// The state of one lock, by family.
        #[derive(Debug)]
        #[allow(missing_docs)] // the families are described above
        pub enum Body {
            $($kind(placed!($family $(, $place)?)),)*
        }

        $(impl InBody for $family {
            #[inline(always)]
            fn in_body(body: &mut Body) -> &mut Self {
                match body {
                    Body::$kind(state) => state,
                    _ => unreachable!("kind and body agree"),
                }
            }
        })*

        impl Body {
            /// That of a free lock.
            pub(in crate::machine) fn of(kind: LockKind) -> Self {
                match kind {
                    $(LockKind::$kind(variant) => Self::$kind(<$family>::new(variant).into()),)*
                }
            }

            /// The wait queues in it.
            pub(in crate::machine) fn wait_queues(&mut self) -> &mut [WaitQueue] {
                match self {
                    $(Self::$kind(state) => state.wait_queues(),)*
                }
            }
        }

        impl LockKind {
            /// All kinds, by name.
            pub const NAMES: &'static [(&'static str, Self)] = &[$($(($name, Self::$kind($variant)),)*)*];

            /// The type as `perf lock contention` prints it.
            pub fn perf_name(self) -> &'static str {
                match self {
                    $(Self::$kind(_) => <$family>::PERF_NAME,)*
                }
            }

            /// See [`Family::inner`].
            pub(in crate::machine) fn inner(self) -> Option<(&'static str, Self)> {
                match self {
                    $(Self::$kind(variant) => <$family>::inner(variant),)*
                }
            }

            /// See [`Family::INNER_ROLE`].
            pub(super) fn inner_role(self) -> Option<&'static str> {
                match self {
                    $(Self::$kind(_) => <$family>::INNER_ROLE,)*
                }
            }

            /// See [`Family::SHARES_LINE`].
            pub(super) fn shares_line(self) -> bool {
                match self {
                    $(Self::$kind(_) => <$family>::SHARES_LINE,)*
                }
            }

            /// Whether its holders turn it from spinning to blocking and back.
            pub fn has_modes(self) -> bool {
                match self {
                    $(Self::$kind(_) => <$family>::HAS_MODES,)*
                }
            }

            /// Whether readers share such a lock.
            pub fn shares(self) -> bool {
                match self {
                    $(Self::$kind(_) => <$family>::READERS_SHARE,)*
                }
            }

            /// Whether who waits for such a lock may sleep.
            #[inline]
            pub(in crate::machine) fn may_sleep(self) -> bool {
                match self {
                    $(Self::$kind(_) => <$family>::MAY_SLEEP,)*
                }
            }

            /// See [`Family::try_fast`].
            #[inline(always)]
            pub(in crate::machine) fn try_fast(self, cx: &Context, lock: LockId, side: Side) -> bool {
                match self {
                    $(Self::$kind(_) => <$family>::try_fast(cx, lock, side),)*
                }
            }

            /// See [`Family::try_lock`].
            pub(in crate::machine) fn try_lock(self, cx: &Context, lock: LockId, side: Side) -> bool {
                match self {
                    $(Self::$kind(_) => <$family>::try_lock(cx, lock, side),)*
                }
            }

            /// See [`Family::try_lock_spinning`].
            pub(in crate::machine) async fn try_lock_spinning(self, cx: &Context, lock: LockId, side: Side) -> bool {
                match self {
                    $(Self::$kind(_) => <$family>::try_lock_spinning(cx, lock, side).await,)*
                }
            }

            /// See [`Family::wait`].
            pub(in crate::machine) async fn wait(self, cx: &Context, lock: LockId, side: Side) -> bool {
                match self {
                    $(Self::$kind(_) => <$family>::wait(cx, lock, side).await,)*
                }
            }

            /// See [`Family::release`].
            pub(in crate::machine) fn release(self, cx: &Context, lock: LockId, side: Side) -> Option<Running<'_>> {
                match self {
                    $(Self::$kind(_) => <$family>::release(cx, lock, side),)*
                }
            }

            /// See [`Family::convert`].
            pub(in crate::machine) async fn convert(self, cx: &Context, lock: LockId, side: Side, mode: Mode) {
                match self {
                    $(Self::$kind(_) => <$family>::convert(cx, lock, side, mode).await,)*
                }
            }
        }
    };
}

lock_kinds! {
    /// Spinning locks.
    Spin: spinlock::Spinlock {
        "tas": spinlock::Policy::TestAndSet,
        "ticket": spinlock::Policy::Ticket,
        "mcs": spinlock::Policy::Mcs,
        "qspinlock": spinlock::Policy::Queued,
        "cna": spinlock::Policy::Cna,
        "hqlock": spinlock::Policy::Hq,
    }
    /// Spinlocks that stay on a socket.
    Cohorts in Box: cohort::Cohorts { "cohort": cohort::Policy::Ticket, "hmcs": cohort::Policy::Mcs }
    /// Queued spinlock of a guest, whose waiters halt.
    Paravirt in Box: paravirt::Paravirt { "pvqspinlock": () }
    /// Spinning readers and writers.
    Rwlock: rwlock::Rwlock { "rwlock-2.6": rwlock::Policy::Biased, "qrwlock": rwlock::Policy::Queued, "qrwlock-3.16": rwlock::Policy::QueuedWaiting }
    /// Semaphores: grant, strict FIFO, never spin.
    Semaphore: semaphore::Semaphore {
        "semaphore": semaphore::Count::One,
        "counting-semaphore": semaphore::Count::Many,
    }
    /// A bit and its wait queue.
    Bit: bit_lock::BitLock { "bit-lock": () }
    /// Mutex before Linux 4.10.
    CountedMutex: mutex_counted::CountedMutex {
        "mutex-2.6.16": mutex_counted::Era::Since2_6_16,
        "mutex-2.6.30": mutex_counted::Era::Since2_6_30,
        "mutex-3.0": mutex_counted::Era::Since3_0,
        "mutex-3.10": mutex_counted::Era::Since3_10,
    }
    /// Mutex of Linux 4.10 and later.
    Mutex: mutex::Mutex { "mutex-4.10": (), "mutex": () }
    /// Mutex of user space on a futex.
    PthreadMutex: futex::PthreadMutex { "pthread-mutex": () }
    /// rw_semaphore.
    Rwsem: rwsem::Rwsem {
        "rwsem-2.6": rwsem::Era::V2_6,
        "rwsem-3.10": rwsem::Era::V3_10,
        "rwsem-3.16": rwsem::Era::V3_16,
        "rwsem-4.8": rwsem::Era::V4_8,
        "rwsem-5.3": rwsem::Era::V5_3,
        "rwsem-5.4": rwsem::Era::V5_4,
        "rwsem-5.11": rwsem::Era::V5_11,
        "rwsem-5.16": rwsem::Era::V5_16,
        "rwsem": rwsem::Era::V5_16,
    }
    /// percpu_rw_semaphore (freeze protection).
    PercpuRwsem in Box: percpu_rwsem::PercpuRwsem { "percpu-rwsem": () }
    /// Sequence counter and spinlock.
    Seqlock: seqlock::Seqlock { "seqlock": () }
    /// RCU: readers wait for nobody, updaters for readers.
    Rcu: rcu::Rcu { "rcu": () }
    /// btrfs tree lock of 2009 to Linux 3.0.
    BtrfsTree2: btrfs_tree_2::BtrfsTree2 { "btrfs-tree-2": () }
    /// btrfs tree lock of Linux 3.1 to 5.10, over this rwlock.
    BtrfsTree3 in Box: btrfs_tree_3::BtrfsTree3 {
        "btrfs-tree-3-biased": rwlock::Policy::Biased,
        "btrfs-tree-3": rwlock::Policy::Queued,
    }
    /// No lock but what tasks wait for; no scenario names it.
    Completion: completion::Completion {}
    /// No lock at all: what a counterfactual has taken away.
    Removed: removed::Removed {}
}

impl LockKind {
    /// The spinlock of kernels of today, which guards the queues of other locks.
    pub const QSPINLOCK: Self = Self::Spin(spinlock::Policy::Queued);

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
}
