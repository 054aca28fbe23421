//! Measures what the machine it runs on charges for what simfs models: lines, wake-ups, switches, memory, calls.
//!
//! A *probe* does one thing again and again on given CPUs until its time is over and returns every sample, so that who asks
//! takes medians and sees the noise. Probes pin threads of their own; the caller's affinity stays. Linux only.

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod core;
#[cfg(target_os = "linux")]
mod lines;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod pinned;
#[cfg(target_os = "linux")]
mod switches;
#[cfg(target_os = "linux")]
mod wakes;

use std::path::PathBuf;
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Request {
    /// The probe's name, one of `PROBES`.
    pub what: String,
    /// The CPUs it runs on: as many as the probe takes.
    pub cpus: Vec<usize>,
    /// How much of what the probe is about: lines, nanoseconds, bytes.
    pub amount: u64,
    /// How long it measures.
    pub time: Duration,
    /// The folder in which files are made.
    pub at: Option<PathBuf>,
}

/// Samples by what they are samples of, in nanoseconds unless the name says else.
pub type Series = Vec<(&'static str, Vec<f64>)>;

/// Names of all probes, what `cpus` are, and what `amount` is.
pub const PROBES: [(&str, &str, &str); 18] = [
    ("clock", "one", ""),
    ("syscall", "one", ""),
    ("atomic", "one", ""),
    ("pause", "one", ""),
    ("ping_pong", "two", "lines handed over together"),
    ("contended", "all that add to one line", ""),
    ("wake", "waker and sleeper", "ns that the sleeper's CPU idles before"),
    ("wake_nobody", "one", ""),
    ("yield", "one", ""),
    ("pipe", "two, or one twice", ""),
    ("pipe_alone", "one", ""),
    ("membarrier", "two", ""),
    ("tick", "one", ""),
    ("sleep", "one", "ns asked for"),
    ("memory", "one", "bytes, in random order"),
    ("memory_by_page", "one", "bytes, in random order within pages"),
    ("calls", "one", "bytes walked before each call; 1: a program is run before each"),
    ("load", "one, or none for anywhere", "0: create, close and unlink; 1: with a write of 4 KiB"),
];

/// Runs one probe. What cannot be done here is an error in words.
#[cfg(target_os = "linux")]
pub fn probe(request: &Request) -> Result<Series, String> {
    let Some((_, wanted, _)) = PROBES.iter().find(|(name, ..)| *name == request.what) else {
        let known: Vec<&str> = PROBES.iter().map(|(name, ..)| *name).collect();
        return Err(format!("no probe '{}'; there are {}", request.what, known.join(", ")));
    };
    let fits = match wanted.split([' ', ',']).next() {
        Some("one") => request.cpus.len() == 1 || (request.what == "load" && request.cpus.is_empty()),
        Some("all") => !request.cpus.is_empty(),
        _ => request.cpus.len() == 2,
    };
    if !fits {
        return Err(format!("{}: its CPUs are {wanted}, not {}", request.what, request.cpus.len()));
    }
    pinned::allowed(&request.cpus)?;
    let (cpu, time) = (request.cpus.first().copied(), request.time);
    let pair = || (request.cpus[0], request.cpus[1]);
    let first = || cpu.ok_or("no CPU".to_string());
    match request.what.as_str() {
        "clock" => core::clock(first()?, time),
        "syscall" => core::syscall(first()?, time),
        "atomic" => core::atomic(first()?, time),
        "pause" => core::pause(first()?, time),
        "tick" => core::tick(),
        "sleep" => core::sleep(first()?, request.amount, time),
        "ping_pong" => lines::ping_pong(pair(), request.amount.max(1), time),
        "contended" => lines::contended(&request.cpus, time),
        "wake" => wakes::wake(pair(), request.amount, time),
        "wake_nobody" => wakes::wake_nobody(first()?, time),
        "membarrier" => wakes::membarrier(pair(), time),
        "yield" => switches::yields(first()?, time),
        "pipe" => switches::pipe(pair(), time),
        "pipe_alone" => switches::pipe_alone(first()?, time),
        "memory" => memory::random(first()?, request.amount, time, false),
        "memory_by_page" => memory::random(first()?, request.amount, time, true),
        "calls" => calls::calls(first()?, folder(request)?, request.amount, time),
        _ => calls::load(cpu, folder(request)?, request.amount == 1, time),
    }
}

#[cfg(target_os = "linux")]
fn folder(request: &Request) -> Result<&std::path::Path, String> {
    request.at.as_deref().ok_or(format!("{}: needs a folder", request.what))
}

/// Runs one probe. What cannot be done here is an error in words.
#[cfg(not(target_os = "linux"))]
pub fn probe(_: &Request) -> Result<Series, String> {
    Err("only machines that run Linux can be measured".into())
}
