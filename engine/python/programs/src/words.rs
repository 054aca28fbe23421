//! Words that programs written in Python share, on cache lines, and the futex of each.
//!
//! An access takes effect when the line is there and what the task owes is paid. A store waits in the store buffer behind all who have
//! asked for the line before: until it is done, others find what was there (its own task finds what it stored). A
//! compare-and-exchange that has failed has fetched the line; if its task tries again at once, with what it found, that comes before
//! anybody takes the line away.
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
    /// Who has stored what, and when that is done.
    stores: VecDeque<(TaskId, i64, Time)>,
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
        words.push(Shared { line, bucket, value, stores: VecDeque::new(), failed: None, waiters: VecDeque::new() });
        Word { number: words.len() - 1, line }
    }

    /// Does something to a word, as user code, which gives way between any two steps, or as kernel code; the calls of a futex are that.
    pub async fn perform<M: Machine>(&self, m: &M, account: Account, word: usize, operation: Operation) -> i64 {
        let access = match operation {
            Operation::FutexWait(expected) => return self.wait(m, word, expected).await,
            Operation::FutexWake(most) => return self.wake(m, word, most).await,
            Operation::Store(new) => return self.store(m, account, word, new).await,
            Operation::Load => Access::Read,
            _ => Access::Atomic,
        };
        self.0.borrow_mut()[word].settle(m.now());
        if !self.tries_again(m, word, operation) {
            let line = self.0.borrow()[word].line;
            arrives(m, account, line, access).await;
        }
        let before = self.0.borrow_mut()[word].change(m.task(), m.now(), operation);
        let fails = matches!(operation, Operation::CompareExchange(expected, _) if before != expected);
        self.0.borrow_mut()[word].failed = fails.then(|| (m.task(), m.now()));
        before
    }

    async fn store<M: Machine>(&self, m: &M, account: Account, word: usize, new: i64) -> i64 {
        let (line, before) = {
            let shared = &mut self.0.borrow_mut()[word];
            shared.failed = None;
            (shared.line, shared.change(m.task(), m.now(), Operation::Load))
        };
        m.touch(line, Access::Store);
        self.0.borrow_mut()[word].stores.push_back((m.task(), new, m.stored()));
        m.run(account, 0).await;
        before
    }

    /// An attempt that has just failed is made again with the value that it found.
    fn tries_again<M: Machine>(&self, m: &M, word: usize, operation: Operation) -> bool {
        let shared = &self.0.borrow()[word];
        matches!(operation, Operation::CompareExchange(expected, _) if expected == shared.value)
            && shared.failed == Some((m.task(), m.now()))
    }

    async fn wait<M: Machine>(&self, m: &M, word: usize, expected: i64) -> i64 {
        let (line, bucket) = (self.0.borrow()[word].line, self.0.borrow()[word].bucket);
        m.lock(bucket, Side::Write).await;
        arrives(m, Account::System, line, Access::Read).await;
        let waits = self.0.borrow_mut()[word].change(m.task(), m.now(), Operation::Load) == expected;
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
async fn arrives<M: Machine>(m: &M, account: Account, line: LineId, access: Access) {
    m.touch(line, access);
    m.run(account, 0).await;
}

impl Shared {
    /// Stores that are done by now are there for all.
    fn settle(&mut self, now: Time) {
        while let Some(&(_, new, _)) = self.stores.front().filter(|(.., done)| *done <= now) {
            self.value = new;
            self.stores.pop_front();
        }
    }

    /// What `task` does to it, now that it has the line. Returns what it finds.
    fn change(&mut self, task: TaskId, now: Time, operation: Operation) -> i64 {
        self.settle(now);
        let before = self.value;
        match operation {
            Operation::Load => {
                let own = self.stores.iter().rev().find(|(by, ..)| *by == task);
                return own.map_or(before, |&(_, new, _)| new);
            }
            Operation::Exchange(new) => self.value = new,
            Operation::CompareExchange(expected, new) if before == expected => self.value = new,
            Operation::FetchAdd(more) => self.value = before.wrapping_add(more),
            _ => (),
        }
        before
    }
}
