//! The lock around a whole index: one of the kernel's, or in a program in user space the mutex of its C library.

use super::ROLE;
use crate::waist::Machine;
use crate::waist::{Access, Account, LineId, LockId, Side, TaskId, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// An exclusive lock.
pub enum IndexLock {
    /// The kernel's lock of this role.
    Kernel(LockId),
    /// `pthread_mutex_t`.
    Pthread(PthreadMutex),
}

impl IndexLock {
    /// A free lock; a pthread mutex if a system call's price is given.
    pub fn new<M: Machine>(m: &M, syscall: Option<Time>) -> Self {
        match syscall {
            None => Self::Kernel(m.new_lock(m.class("range_lock.tree", ROLE))),
            Some(syscall) => Self::Pthread(PthreadMutex::new(m, syscall)),
        }
    }

    /// Acquires it.
    pub async fn lock<M: Machine>(&self, m: &M) {
        match self {
            Self::Kernel(lock) => m.lock(*lock, Side::Write).await,
            Self::Pthread(mutex) => mutex.lock(m).await,
        }
    }

    /// Accesses the index's root, which lies beside the lock.
    pub fn touch_root<M: Machine>(&self, m: &M, access: Access) {
        match self {
            Self::Kernel(lock) => m.touch_beside(*lock, access),
            Self::Pthread(mutex) => m.touch(mutex.line, access),
        }
    }

    /// Releases it.
    pub async fn unlock<M: Machine>(&self, m: &M) {
        match self {
            Self::Kernel(lock) => m.unlock(*lock, Side::Write).await,
            Self::Pthread(mutex) => mutex.unlock(m).await,
        }
    }
}

/// The default mutex of glibc (`nptl/lowlevellock.c`): one word, 0 free, 1 held, 2 held and perhaps waited for. It never
/// spins: a waiter stores 2 and calls `futex_wait`, which returns at once if the word is no longer 2. Whoever releases a 2
/// calls `futex_wake` for one sleeper, who must compete again and holds the lock as a 2, as it cannot know who else waits.
pub struct PthreadMutex {
    line: LineId,
    syscall: Time,
    word: Cell<u8>,
    sleepers: RefCell<VecDeque<TaskId>>,
}

impl PthreadMutex {
    fn new<M: Machine>(m: &M, syscall: Time) -> Self {
        Self { line: m.new_line("range_lock.mutex", 1), syscall, word: Cell::new(0), sleepers: RefCell::default() }
    }

    async fn lock<M: Machine>(&self, m: &M) {
        m.touch(self.line, Access::Atomic);
        if self.word.get() == 0 {
            self.word.set(1);
            return;
        }
        while self.word.replace(2) != 0 {
            self.futex_wait(m).await;
            m.touch(self.line, Access::Atomic);
        }
    }

    async fn unlock<M: Machine>(&self, m: &M) {
        m.touch(self.line, Access::Atomic);
        if self.word.replace(0) == 2 {
            m.run(Account::System, self.syscall).await;
            let sleeper = self.sleepers.borrow_mut().pop_front();
            if let Some(sleeper) = sleeper {
                m.wake(sleeper);
            }
        }
    }

    async fn futex_wait<M: Machine>(&self, m: &M) {
        m.run(Account::System, self.syscall).await;
        m.touch(self.line, Access::Read);
        if self.word.get() != 2 {
            return;
        }
        self.sleepers.borrow_mut().push_back(m.task());
        while self.sleepers.borrow().contains(&m.task()) {
            m.wchan("futex_wait");
            m.park().await;
        }
    }
}
