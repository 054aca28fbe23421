//! Threads that stay on their CPU, and timing in chunks.

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};
use std::thread;
use std::time::{Duration, Instant};

/// Samples that a probe keeps at most.
pub const MOST: usize = 20_000;

/// Refuses CPUs on which this process may not run.
pub fn allowed(cpus: &[usize]) -> Result<(), String> {
    let set = sched_getaffinity(None).map_err(|error| format!("sched_getaffinity: {error}"))?;
    match cpus.iter().find(|&&cpu| cpu >= CpuSet::MAX_CPU || !set.is_set(cpu)) {
        Some(cpu) => Err(format!("this process may not run on CPU {cpu}")),
        None => Ok(()),
    }
}

/// Moves this thread to a CPU. Those asked for are `allowed`; one that goes away meanwhile only adds noise.
pub fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    let _ = sched_setaffinity(None, &set);
}

/// Does `work` in a thread of its own on `cpu`.
pub fn on<T: Send>(cpu: usize, work: impl FnOnce() -> T + Send) -> Result<T, String> {
    let started = thread::scope(|scope| {
        let body = move || {
            pin(cpu);
            work()
        };
        scope.spawn(body).join()
    });
    started.map_err(|_| "a measuring thread has panicked".to_string())
}

/// Nanoseconds of one of `n` calls, chunk by chunk until `time` is over.
pub fn chunks(time: Duration, n: u32, mut one: impl FnMut()) -> Vec<f64> {
    let (mut samples, begin) = (Vec::with_capacity(MOST), Instant::now());
    while samples.is_empty() || (begin.elapsed() < time && samples.len() < MOST) {
        let from = Instant::now();
        for _ in 0..n {
            one();
        }
        samples.push(ns(from) / f64::from(n));
    }
    samples
}

/// Nanoseconds since `from`.
pub fn ns(from: Instant) -> f64 {
    from.elapsed().as_nanos() as f64
}
