//! What the code of contended locks takes, beside the lines that it touches. The fast paths are not in it: the steps of
//! operations were traced with them.

use crate::machine::state::State;
use crate::spec::RunSpec;
use crate::waist::time::{from_ns, Time};
use crate::waist::TaskId;
use rand_core::RngCore;

/// The code of mutexes, or of rwsems.
#[derive(Clone, Debug)]
pub struct SleepingCode {
    /// From the failed attempt to the queue of spinners.
    pub spin: Time,
    /// From a spinner's look at the lock to its attempt.
    pub attempt: Time,
    /// From waking up to the next attempt, or to asking for the wait lock.
    pub woken: Time,
    /// From having the lock after a wait to the program.
    pub taken: Time,
    /// From having failed to asking for the wait lock.
    pub ask: Time,
    /// Under the wait lock, to queue oneself.
    pub queue: Time,
    /// Under the wait lock, to see whether the lock is free.
    pub look: Time,
    /// Under the wait lock, to leave the queue with the lock.
    pub take: Time,
    /// From the release to asking for the wait lock.
    pub wake: Time,
    /// Under the wait lock, to find a writer to wake, or the first of a mutex.
    pub mark: Time,
}

/// The code of qspinlocks.
#[derive(Clone, Debug)]
pub struct QspinlockCode {
    /// From the failed attempt to the pending bit.
    pub pend: Time,
    /// From the failed attempt to the tail.
    pub queue: Time,
    /// From there to the first look at the word, or at its own node.
    pub joined: Time,
    /// From the look at its node that says it is the head to the look at the word.
    pub head: Time,
    /// From the head's look that finds the lock free to taking it.
    pub take: Time,
    /// From there to the program.
    pub taken: Time,
    /// The same of the pending waiter.
    pub pending_take: Time,
    /// From there to the program.
    pub pending_taken: Time,
}

/// The code of qrwlocks, their wait lock apart.
#[derive(Clone, Debug)]
pub struct QrwlockCode {
    /// From the failed attempt to the one at the wait lock.
    pub ask: Time,
    /// From having the wait lock to the reader's addition or the writer's mark.
    pub count: Time,
    /// From the look that finds the lock free to the writer's exchange, or to the reader's release of the wait lock.
    pub enter: Time,
    /// From a writer's exchange to that.
    pub leave: Time,
    /// From there to the program.
    pub taken: Time,
}

/// The times of a machine that takes `machine.costs.instruction` for each of the kernel's `code_*` instructions.
#[derive(Clone, Debug)]
pub struct LockCode {
    pub mutex: SleepingCode,
    pub rwsem: SleepingCode,
    /// Under the wait lock of an rwsem, until the first reader has it.
    pub grant: Time,
    /// From there on, if a writer has it meanwhile.
    pub undo: Time,
    /// From there on, until all readers that go are in the count.
    pub count: Time,
    /// The same for each reader.
    pub count_reader: Time,
    /// From there on, until the wait lock is given back.
    pub collect: Time,
    /// Waking a waiter that is awake.
    pub awake: Time,
    /// The part of a wake-up before the waker waits for the CPU that the sleeper has not left yet.
    pub before_wait: Time,
    pub qspinlock: QspinlockCode,
    pub qrwlock: QrwlockCode,
    /// Under the wait lock of a semaphore, to queue oneself.
    pub semaphore_queue: Time,
    /// From waking up with a semaphore to the program.
    pub semaphore_taken: Time,
    /// Under the wait lock of a semaphore, to give it to the first.
    pub semaphore_mark: Time,
    /// From user space to the lock of a futex's hash bucket.
    pub futex: Time,
    /// Under that lock, to queue oneself.
    pub futex_queue: Time,
    /// Under that lock, to find whom to wake.
    pub futex_mark: Time,
    /// From a futex's system call back to user space.
    pub futex_return: Time,
    /// A call of `pthread_mutex_lock` or `pthread_mutex_unlock`, without its atomic operation and any waiting.
    pub pthread: Time,
}

impl LockCode {
    /// Of the kernel and on the machine of `spec`.
    pub fn new(spec: &RunSpec) -> Self {
        let (c, instruction) = (&spec.kernel.constants, spec.machine.costs.instruction);
        let takes = |instructions: f64| from_ns(instructions * instruction);
        let mutex = SleepingCode {
            spin: takes(c.code_mutex_spin),
            attempt: takes(c.code_mutex_attempt),
            woken: takes(c.code_mutex_woken),
            taken: takes(c.code_mutex_taken),
            ask: takes(c.code_mutex_ask),
            queue: takes(c.code_mutex_queue),
            look: takes(c.code_mutex_look),
            take: takes(c.code_mutex_take),
            wake: takes(c.code_mutex_wake),
            mark: takes(c.code_mutex_mark),
        };
        let rwsem = SleepingCode {
            spin: takes(c.code_rwsem_spin),
            attempt: takes(c.code_rwsem_attempt),
            woken: takes(c.code_rwsem_woken),
            taken: takes(c.code_rwsem_taken),
            ask: takes(c.code_rwsem_ask),
            queue: takes(c.code_rwsem_queue),
            look: takes(c.code_rwsem_look),
            take: takes(c.code_rwsem_take),
            wake: takes(c.code_rwsem_wake),
            mark: takes(c.code_rwsem_mark),
        };
        let qspinlock = QspinlockCode {
            pend: takes(c.code_qspinlock_pend),
            queue: takes(c.code_qspinlock_queue),
            joined: takes(c.code_qspinlock_joined),
            head: takes(c.code_qspinlock_head),
            take: takes(c.code_qspinlock_take),
            taken: takes(c.code_qspinlock_taken),
            pending_take: takes(c.code_qspinlock_pending_take),
            pending_taken: takes(c.code_qspinlock_pending_taken),
        };
        let qrwlock = QrwlockCode {
            ask: takes(c.code_qrwlock_ask),
            count: takes(c.code_qrwlock_count),
            enter: takes(c.code_qrwlock_enter),
            leave: takes(c.code_qrwlock_leave),
            taken: takes(c.code_qrwlock_taken),
        };
        Self {
            mutex,
            rwsem,
            qspinlock,
            qrwlock,
            grant: takes(c.code_rwsem_grant),
            undo: takes(c.code_rwsem_undo),
            count: takes(c.code_rwsem_count),
            count_reader: takes(c.code_rwsem_count_reader),
            collect: takes(c.code_rwsem_collect),
            awake: takes(c.code_wake_awake),
            before_wait: takes(c.code_wake_before_wait),
            semaphore_queue: takes(c.code_semaphore_queue),
            semaphore_taken: takes(c.code_semaphore_taken),
            semaphore_mark: takes(c.code_semaphore_mark),
            futex: takes(c.code_futex),
            futex_queue: takes(c.code_futex_queue),
            futex_mark: takes(c.code_futex_mark),
            futex_return: takes(c.code_futex_return),
            pthread: takes(c.code_pthread),
        }
    }
}

impl State {
    /// The running `task` owes the time of `code`.
    #[inline]
    pub(in crate::machine) fn runs(&mut self, task: TaskId, code: fn(&LockCode) -> Time) {
        self.tasks[task as usize].segment.debt += code(&self.lock_code);
    }

    /// Who polls looks once a round (`cpu_relax`), and where it is in the round when somebody writes is chance: how long it is
    /// until the next look, of the `nth` of `all` who are told in the order in which they look.
    #[inline]
    pub(in crate::machine) fn next_look(&mut self, nth: usize, all: usize) -> Time {
        let round = self.costs.cpu_relax;
        if round == 0 {
            return 0;
        }
        let part = (u128::from(self.random.next_u64()) * u128::from(round)) >> 64;
        (nth as Time * round + part as Time) / all as Time
    }
}
