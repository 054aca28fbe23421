//! Words that programs written in Python share, on cache lines, and the futex of each.
//!
//! An access takes effect when the line is there and what the task owes is paid. A compare-and-exchange that has failed has fetched
//! the line; if its task tries again at once, with what it found, that comes before anybody takes the line away.
//!
//! `futex_wait` and `futex_wake` follow `kernel/futex/waitwake.c` 6.12: the value is looked at under the lock of the hash bucket; who
//! is woken is taken from the queue under it, in the order of coming, and woken after. Each word has a bucket of its own.

use super::steps::Word;
use simfs_engine::waist::Machine;
use simfs_engine::waist::{Access, Account, LineId, LockId, Side, TaskId, Time};
use std::cell::RefCell;
use std::collections::VecDeque;

/// The words of a run.
#[derive(Default)]
pub struct Words(RefCell<Vec<Shared>>);

struct Shared {
    line: LineId,
    bucket: LockId,
    value: i64,
    /// Whose compare-and-exchange failed last, and when.
    failed: Option<(TaskId, Time)>,
    waiters: VecDeque<TaskId>,
}

/// What is done to a word. The value of the yield is what it was before.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    Load,
    Store(i64),
    Exchange(i64),
    /// Puts the second there if it is the first.
    CompareExchange(i64, i64),
    FetchAdd(i64),
    /// Sleeps if it is that; the value of the yield is whether it slept.
    FutexWait(i64),
    /// Wakes so many; the value of the yield is how many there were.
    FutexWake(u32),
}

impl Words {
    /// Makes a word with this value, on this line.
    pub fn add(&self, value: i64, line: LineId, bucket: LockId) -> Word {
        let mut words = self.0.borrow_mut();
        words.push(Shared { line, bucket, value, failed: None, waiters: VecDeque::new() });
        Word { number: words.len() - 1, line }
    }

    /// Does something to a word.
    pub async fn perform<M: Machine>(&self, m: &M, word: usize, operation: Operation) -> i64 {
        let access = match operation {
            Operation::FutexWait(expected) => return self.wait(m, word, expected).await,
            Operation::FutexWake(most) => return self.wake(m, word, most).await,
            Operation::Load => Access::Read,
            Operation::Store(_) => Access::Store,
            _ => Access::Atomic,
        };
        if !self.tries_again(m, word, operation) {
            let line = self.0.borrow()[word].line;
            arrives(m, line, access).await;
        }
        let before = self.change(word, operation);
        let fails = matches!(operation, Operation::CompareExchange(expected, _) if before != expected);
        self.0.borrow_mut()[word].failed = fails.then(|| (m.task(), m.now()));
        before
    }

    /// An attempt that has just failed is made again with the value that it found.
    fn tries_again<M: Machine>(&self, m: &M, word: usize, operation: Operation) -> bool {
        let shared = &self.0.borrow()[word];
        matches!(operation, Operation::CompareExchange(expected, _) if expected == shared.value)
            && shared.failed == Some((m.task(), m.now()))
    }

    fn change(&self, word: usize, operation: Operation) -> i64 {
        let value = &mut self.0.borrow_mut()[word].value;
        let before = *value;
        match operation {
            Operation::Store(new) | Operation::Exchange(new) => *value = new,
            Operation::CompareExchange(expected, new) if before == expected => *value = new,
            Operation::FetchAdd(more) => *value = before.wrapping_add(more),
            _ => (),
        }
        before
    }

    async fn wait<M: Machine>(&self, m: &M, word: usize, expected: i64) -> i64 {
        let (line, bucket) = (self.0.borrow()[word].line, self.0.borrow()[word].bucket);
        m.lock(bucket, Side::Write).await;
        arrives(m, line, Access::Read).await;
        let waits = self.0.borrow()[word].value == expected;
        if waits {
            self.0.borrow_mut()[word].waiters.push_back(m.task());
        }
        m.unlock(bucket, Side::Write).await;
        while self.0.borrow()[word].waiters.contains(&m.task()) {
            m.park().await;
        }
        i64::from(waits)
    }

    async fn wake<M: Machine>(&self, m: &M, word: usize, most: u32) -> i64 {
        let bucket = self.0.borrow()[word].bucket;
        m.touch_beside(bucket, Access::Read); // futex_hb_waiters_pending
        if self.0.borrow()[word].waiters.is_empty() {
            return 0;
        }
        m.lock(bucket, Side::Write).await;
        let woken: Vec<_> = {
            let waiters = &mut self.0.borrow_mut()[word].waiters;
            let count = waiters.len().min(most as usize);
            waiters.drain(..count).collect()
        };
        m.unlock(bucket, Side::Write).await;
        for &task in &woken {
            m.wake(task);
        }
        woken.len() as i64
    }
}

/// The line comes, and the task pays what it owes.
async fn arrives<M: Machine>(m: &M, line: LineId, access: Access) {
    m.touch(line, access);
    m.run(Account::System, 0).await;
}
