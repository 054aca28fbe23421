//! What the code of contended locks takes, beside the lines that it touches. The fast paths are not in it: the steps of
//! operations were traced with them.

use crate::machine::state::State;
use crate::spec::RunSpec;
use crate::waist::time::{from_ns, Time};
use crate::waist::TaskId;
use rand_core::RngCore;

/// The times of a machine that takes `machine.costs.instruction` for each of the kernel's `code_*` instructions.
#[derive(Clone, Debug)]
pub struct LockCode {
    /// From the failed attempt to the queue of spinners.
    pub spin: Time,
    /// From a look at the lock, of a spinner or of who was woken, to the next attempt.
    pub attempt: Time,
    /// From having the lock after a wait to the program.
    pub taken: Time,
    /// From having failed to asking for the wait lock.
    pub ask: Time,
    /// Under the wait lock, to queue oneself.
    pub queue: Time,
    /// Under the wait lock, to take the lock and to leave the queue.
    pub take: Time,
    /// From the release to asking for the wait lock.
    pub wake: Time,
    /// Under the wait lock, to find whom to wake.
    pub mark: Time,
    /// The part of it before the first reader has the lock.
    pub grant: Time,
    /// The same for each reader.
    pub mark_reader: Time,
    /// From user space to the lock of a futex's hash bucket.
    pub futex: Time,
    /// From a futex's system call back to user space.
    pub futex_return: Time,
    /// A call of `pthread_mutex_lock` or `pthread_mutex_unlock`, without its atomic operation and any waiting.
    pub pthread: Time,
}

impl LockCode {
    /// Of the kernel and on the machine of `spec`.
    pub fn new(spec: &RunSpec) -> Self {
        let (constants, instruction) = (&spec.kernel.constants, spec.machine.costs.instruction);
        let takes = |instructions: f64| from_ns(instructions * instruction);
        Self {
            spin: takes(constants.code_spin),
            attempt: takes(constants.code_attempt),
            taken: takes(constants.code_taken),
            ask: takes(constants.code_ask),
            queue: takes(constants.code_queue),
            take: takes(constants.code_take),
            wake: takes(constants.code_wake),
            mark: takes(constants.code_mark),
            grant: takes(constants.code_grant),
            mark_reader: takes(constants.code_mark_reader),
            futex: takes(constants.code_futex),
            futex_return: takes(constants.code_futex_return),
            pthread: takes(constants.code_pthread),
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
