//! The lock inside a lock: most are never taken, as nobody waits for what they guard, and a file has several.

use super::{Lock, LockKind};
use crate::machine::state::State;
use crate::waist::{ClassId, LockId};

/// The lock inside a lock.
#[derive(Clone, Copy, Debug)]
pub enum WaitLock {
    /// There is none.
    Nothing,
    /// It has this number, and is made when it is first taken.
    Numbered(u32),
    /// This one.
    Made(LockId),
}

impl WaitLock {
    /// The lock, if it was ever taken.
    #[inline(always)]
    pub fn made(self) -> Option<LockId> {
        match self {
            Self::Made(lock) => Some(lock),
            Self::Nothing | Self::Numbered(_) => None,
        }
    }
}

impl State {
    /// That of a new lock of this kind and class. One that has a lock inside itself is made at once.
    pub(super) fn new_wait_lock(&mut self, outer: ClassId, kind: LockKind) -> WaitLock {
        let Some((name, usual)) = kind.inner() else { return WaitLock::Nothing };
        let class = self.inner_class(outer, name, |s| s.kind_of_inner(kind, usual));
        if self.classes[class as usize].kind.inner().is_some() {
            return WaitLock::Made(self.new_lock(class));
        }
        WaitLock::Numbered(self.next_number(class))
    }

    /// The lock inside a lock that has one.
    #[inline(always)]
    pub(in crate::machine) fn inner(&mut self, lock: LockId) -> LockId {
        match self.locks[lock as usize].wait_lock {
            WaitLock::Made(inner) => inner,
            wait_lock => self.make_inner(lock, wait_lock),
        }
    }

    #[cold]
    fn make_inner(&mut self, outer: LockId, wait_lock: WaitLock) -> LockId {
        let WaitLock::Numbered(number) = wait_lock else { unreachable!("sleeping locks have an inner spinlock") };
        let Lock { kind, class, .. } = self.locks[outer as usize];
        let (name, usual) = kind.inner().expect("it has a number");
        let class = self.inner_class(class, name, |s| s.kind_of_inner(kind, usual));
        let inner = self.push_lock(Lock { number, ..Lock::new(self.classes[class as usize].kind, class) });
        if kind.shares_line() {
            self.locks[inner as usize].lies_in = outer;
        }
        self.locks[outer as usize].wait_lock = WaitLock::Made(inner);
        self.apply_what_if(class, inner);
        inner
    }

    pub(in crate::machine) fn inner_is_held(&self, lock: LockId) -> bool {
        self.locks[lock as usize].wait_lock.made().is_some_and(|inner| self.locks[inner as usize].holder.is_some())
    }
}
