//! Context switches: of two threads that yield, and between processes at the two ends of pipes.

use crate::pinned::{chunks, on, pin, MOST};
use crate::Series;
use rustix::pipe::pipe as new_pipe;
use std::fs::{read_to_string, File};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const YIELDS: u32 = 200;

/// Two threads on one CPU yield: ns of a yield, and how many of the yields switched (by /proc).
pub fn yields(cpu: usize, time: Duration) -> Result<Series, String> {
    let (over, others) = (AtomicBool::new(false), AtomicU64::new(0));
    let (each, share) = thread::scope(|scope| {
        scope.spawn(|| {
            pin(cpu);
            while !over.load(Ordering::Relaxed) {
                thread::yield_now();
                others.fetch_add(1, Ordering::Relaxed);
            }
        });
        let both = on(cpu, || counted(&others, time));
        over.store(true, Ordering::Relaxed);
        both
    })?;
    Ok(vec![("each", each), ("switched_share", share)])
}

fn counted(others: &AtomicU64, time: Duration) -> (Vec<f64>, Vec<f64>) {
    let (mut each, mut share, begin) = (Vec::new(), Vec::new(), Instant::now());
    while each.is_empty() || (begin.elapsed() < time && each.len() < MOST) {
        let (switches, yields, from) = (switches(), others.load(Ordering::Relaxed), Instant::now());
        for _ in 0..YIELDS {
            thread::yield_now();
        }
        let ns = from.elapsed().as_nanos() as f64;
        let yields = f64::from(YIELDS) + (others.load(Ordering::Relaxed) - yields) as f64;
        each.push(ns / yields);
        // There and back.
        share.push((2.0 * (self::switches() - switches) as f64 / yields).min(1.0));
    }
    (each, share)
}

/// How often this thread was switched away from.
fn switches() -> u64 {
    let status = read_to_string("/proc/thread-self/status").unwrap_or_default();
    let counts = status.lines().filter(|line| line.contains("_ctxt_switches:"));
    counts.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum()
}

/// A byte to another process and back, half of it: written by the one and read by the other.
pub fn pipe((a, b): (usize, usize), time: Duration) -> Result<Series, String> {
    let refused = |error: std::io::Error| format!("cat: {error}");
    let spawn = || Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut cat = on(b, spawn)?.map_err(refused)?;
    let ends = cat.stdin.take().zip(cat.stdout.take());
    let (mut there, mut back) = ends.ok_or("cat: has no pipes")?;
    let rounds = on(a, move || {
        let mut byte = [0];
        chunks(time, 20, || {
            let _ = there.write_all(&byte);
            let _ = back.read_exact(&mut byte);
        })
    })?; // both ends are closed: cat ends
    let ended = cat.wait().map_err(refused)?;
    if !ended.success() {
        return Err(format!("cat: {ended}"));
    }
    Ok(vec![("each", rounds.into_iter().map(|ns| ns / 2.0).collect())])
}

/// The same byte written and read by one task.
pub fn pipe_alone(cpu: usize, time: Duration) -> Result<Series, String> {
    let (read, write) = new_pipe().map_err(|error| format!("pipe: {error}"))?;
    let (mut read, mut write) = (File::from(read), File::from(write));
    let each = on(cpu, move || {
        let mut byte = [0];
        chunks(time, 100, || {
            let _ = write.write_all(&byte);
            let _ = read.read_exact(&mut byte);
        })
    })?;
    Ok(vec![("each", each)])
}
