//! Wake-ups by futex, and interrupts by membarrier.

use crate::pinned::{chunks, ns, on, pin, MOST};
use crate::Series;
use rustix::thread::{futex, membarrier as barrier, MembarrierCommand};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const STOP: u32 = u32::MAX;

/// Who sleeps, and what it tells of when it ran.
struct Bed {
    begin: Instant,
    word: AtomicU32,
    ran: AtomicU64,
    done: AtomicU32,
}

impl Bed {
    fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// Sleeps until the word changes, again and again, and notes when it runs.
    fn sleep(&self) {
        let mut seen = 0;
        loop {
            while self.word.load(Ordering::Acquire) == seen {
                let _ = futex::wait(&self.word, futex::Flags::PRIVATE, seen, None);
            }
            self.ran.store(self.now(), Ordering::Relaxed);
            seen = self.word.load(Ordering::Acquire);
            if seen == STOP {
                return;
            }
            self.done.store(seen, Ordering::Release);
        }
    }

    /// Wakes the sleeper by giving the word a value: the clock before and after the call.
    fn wake(&self, value: u32) -> (u64, u64) {
        let before = self.now();
        self.word.store(value, Ordering::Release);
        let _ = futex::wake(&self.word, futex::Flags::PRIVATE, 1);
        (before, self.now())
    }
}

/// A CPU wakes a sleeper after its CPU idled for `idle` ns: from the call until it runs, and the call itself.
///
/// Both may be on one CPU, which never idles then.
pub fn wake((waker, sleeper): (usize, usize), idle: u64, time: Duration) -> Result<Series, String> {
    let bed = Bed { begin: Instant::now(), word: AtomicU32::new(0), ran: AtomicU64::new(0), done: AtomicU32::new(0) };
    let (mut run, mut call) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(sleeper);
            bed.sleep();
        });
        on(waker, || {
            let (begin, mut turn) = (Instant::now(), 0);
            while turn == 0 || (begin.elapsed() < time && run.len() < MOST) {
                turn += 1;
                let asleep = bed.now() + idle;
                while bed.now() < asleep {}
                let (before, after) = bed.wake(turn);
                while bed.done.load(Ordering::Acquire) != turn {
                    if waker == sleeper {
                        thread::yield_now();
                    }
                }
                run.push(bed.ran.load(Ordering::Relaxed).saturating_sub(before) as f64);
                call.push((after - before) as f64);
            }
            bed.wake(STOP);
        })
    })?;
    Ok(vec![("run", run), ("call", call)])
}

/// The call that wakes nobody.
pub fn wake_nobody(cpu: usize, time: Duration) -> Result<Series, String> {
    let word = AtomicU32::new(0);
    let each = on(cpu, || {
        chunks(time, 1000, || {
            let _ = black_box(futex::wake(&word, futex::Flags::PRIVATE, 1));
        })
    })?;
    Ok(vec![("each", each)])
}

/// A barrier on all CPUs that run this program: an interrupt of the second CPU, which is busy, and its answer.
///
/// The second CPU counts; a barrier while it does something else would interrupt nobody.
pub fn membarrier((a, b): (usize, usize), time: Duration) -> Result<Series, String> {
    let refused = |error| format!("membarrier: {error}");
    barrier(MembarrierCommand::RegisterPrivateExpedited).map_err(refused)?;
    let (over, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let each = thread::scope(|scope| {
        scope.spawn(|| {
            pin(b);
            while !over.load(Ordering::Relaxed) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let each = on(a, || {
            let (mut samples, begin) = (Vec::new(), Instant::now());
            while samples.is_empty() || (begin.elapsed() < time && samples.len() < MOST) {
                let seen = count.load(Ordering::Relaxed);
                while count.load(Ordering::Relaxed) == seen {}
                let from = Instant::now();
                let _ = barrier(MembarrierCommand::PrivateExpedited);
                samples.push(ns(from));
            }
            samples
        });
        over.store(true, Ordering::Relaxed);
        each
    })?;
    Ok(vec![("each", each)])
}
