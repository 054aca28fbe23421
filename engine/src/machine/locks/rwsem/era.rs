//! What changed in `rw_semaphore` over the years, at named points. The last is of d257cc8cb8d5 (5.16), but for a reader that queues
//! (54c1ee4d614d, 5.19). Since 6.0 a mark that the first waiter has not set or seen is not heeded, and since 6.2 it is always the
//! first one's (6eebd5fb2083, b613c7f31476): only real-time tasks set another.
//!
//! | behaviour | to 3.8 | 3.10 | 3.16 | 4.8 | 5.3 | 5.4 | 5.11 | 5.16 |
//! |---|---|---|---|---|---|---|---|---|
//! | a writer spins on a writer | no | no | yes, on one | yes | until a hand-off is marked | yes | yes | yes |
//! | a writer spins on readers | no | no | by chance | no | 10 to 25 us | 10 to 25 us | 10 to 25 us | 10 to 25 us |
//! | a reader spins | no | no | no | no | on writers, in the writers' OSQ | the same | no | no |
//! | a reader steals | no | no | no | no | while spinning | the same | once, on entry, unless crowded | the same |
//! | a writer steals | no | yes | yes | yes | unless a hand-off is marked | the same | the same | the same |
//! | a writer's wake-up | grant | hint | hint | hint, or left to a spinner | hint | hint | hint | hint |
//! | readers granted at once | the run at the head | the same | the same | the same | all, up to 256 | the same | the same | the same |
//! | hand-off | (always) | never | never | never | the first, after 4 ms | the same | the same | anybody after 4 ms, for the first |
//! | a woken writer first looks at the count | no | yes | yes | yes | yes | yes | yes | no |
//! | a reader that queues wakes others beside readers | no | alone | alone | alone | alone | alone | alone | yes |
//! | who has marked a hand-off | | | | | sleeps | spins on a writer | spins on a writer | spins on a writer |

use crate::waist::Side;

/// An algorithm, by the version that brought it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // described above
pub enum Era {
    V2_6,
    V3_10,
    V3_16,
    V4_8,
    V5_3,
    V5_4,
    V5_11,
    V5_16,
}

impl Era {
    /// A writer that is woken has the lock already.
    pub(super) fn grants_writers(self) -> bool {
        self == Self::V2_6
    }

    /// Writers spin on a running writer.
    pub(super) fn writers_spin(self) -> bool {
        self >= Self::V3_16
    }

    /// Who takes the lock says so in a word beside the count.
    pub(super) fn writes_owner(self, side: Side) -> bool {
        self >= if side == Side::Read { Self::V5_3 } else { Self::V3_16 }
    }

    /// Readers spin on a running writer.
    pub(super) fn readers_spin(self) -> bool {
        matches!(self, Self::V5_3 | Self::V5_4)
    }

    /// Readers steal on entry.
    pub(super) fn readers_steal(self) -> bool {
        self >= Self::V5_11
    }

    /// The count is flags and a number of readers, the owner word knows readers, hand-offs are marked, and a phase is for
    /// all queued readers. Before, the count is a sum of biases: a failed fast path leaves its bias in it until it is taken
    /// back under the wait lock, and until then nobody can take a lock that is otherwise free.
    pub(super) fn has_phases(self) -> bool {
        self >= Self::V5_3
    }

    /// The owner word says that readers have the lock or had it, until the next writer; nobody spins on them, for how long
    /// is not bounded yet.
    pub(super) fn never_spins_on_readers(self) -> bool {
        self == Self::V4_8
    }

    /// A releaser that finds spinners wakes sleepers only if the wait lock is free: the spinner will do it.
    pub(super) fn leaves_wake_ups_to_spinners(self) -> bool {
        self == Self::V4_8
    }

    /// Wake-ups are issued before the wait lock is dropped.
    pub(super) fn wakes_under_wait_lock(self) -> bool {
        self <= Self::V3_16
    }

    /// A woken writer looks at the count, and takes the wait lock only if that is free or to ask for a hand-off.
    pub(super) fn looks_before_wait_lock(self) -> bool {
        self <= Self::V5_11
    }

    /// Only the first waiter may ask for a hand-off (until d257cc8cb8d5).
    pub(super) fn only_first_asks(self) -> bool {
        matches!(self, Self::V5_3 | Self::V5_4 | Self::V5_11)
    }

    /// A reader that queues where readers have the lock, `alone` in the queue, wakes whoever is first if that is a reader, too.
    pub(super) fn reader_wakes_beside_readers(self, alone: bool) -> bool {
        self >= Self::V3_10 && alone || self >= Self::V5_16
    }

    /// A marked hand-off sends all who spin on a writer to sleep, and the marked writer does not spin (until 91d2a812dfb9).
    pub(super) fn sleeps_at_handoff(self) -> bool {
        self == Self::V5_3
    }
}
