//! What one CPU does alone: clock, system call, atomic, pause, tick, sleep.

use crate::pinned::{chunks, ns, on, MOST};
use crate::Series;
use rustix::process::getppid;
use rustix::time::{clock_getres, ClockId};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering::AcqRel};
use std::thread;
use std::time::{Duration, Instant};

pub fn clock(cpu: usize, time: Duration) -> Result<Series, String> {
    let each = on(cpu, || {
        chunks(time, 1000, || {
            black_box(Instant::now());
        })
    })?;
    Ok(vec![("each", each)])
}

/// `getppid`: as little as a system call can do.
pub fn syscall(cpu: usize, time: Duration) -> Result<Series, String> {
    let each = on(cpu, || {
        chunks(time, 1000, || {
            black_box(getppid());
        })
    })?;
    Ok(vec![("each", each)])
}

pub fn atomic(cpu: usize, time: Duration) -> Result<Series, String> {
    let counter = AtomicU64::new(0);
    let each = on(cpu, || {
        chunks(time, 10_000, || {
            counter.fetch_add(1, AcqRel);
        })
    })?;
    Ok(vec![("each", each)])
}

pub fn pause(cpu: usize, time: Duration) -> Result<Series, String> {
    Ok(vec![("each", on(cpu, || chunks(time, 1000, spin_loop))?)])
}

/// The coarse clock steps once a tick, and says so (`hrtimer_resolution` of `CLOCK_MONOTONIC_COARSE` is `KTIME_LOW_RES`).
pub fn tick() -> Result<Series, String> {
    let step = clock_getres(ClockId::MonotonicCoarse);
    Ok(vec![("each", vec![step.tv_sec as f64 * 1e9 + step.tv_nsec as f64])])
}

/// How much longer than asked for a sleep takes.
pub fn sleep(cpu: usize, asked: u64, time: Duration) -> Result<Series, String> {
    let beyond = on(cpu, || {
        let (mut samples, begin) = (Vec::new(), Instant::now());
        while samples.is_empty() || (begin.elapsed() < time && samples.len() < MOST) {
            let from = Instant::now();
            thread::sleep(Duration::from_nanos(asked));
            samples.push(ns(from) - asked as f64);
        }
        samples
    })?;
    Ok(vec![("beyond", beyond)])
}
