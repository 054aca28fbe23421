//! Calls of a filesystem, one by one, and the loads that simfs knows, whole.

use crate::pinned::{on, MOST};
use crate::Series;
use std::fs::{remove_file, rename, symlink_metadata, File, OpenOptions};
use std::hint::black_box;
use std::io::{Result as Io, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const BLOCK: [u8; 4096] = [b'x'; 4096];
const EXEC: u64 = 1;

/// Times of the calls of one sequence, each in its place of a `Series`.
struct Times {
    before: Box<dyn FnMut()>,
    series: Series,
}

impl Times {
    fn timed<T>(&mut self, name: &'static str, call: impl FnOnce() -> Io<T>) -> Io<T> {
        (self.before)();
        let from = Instant::now();
        let done = call();
        let ns = from.elapsed().as_nanos() as f64;
        match self.series.iter_mut().find(|(known, _)| *known == name) {
            Some((_, samples)) => samples.push(ns),
            None => self.series.push((name, vec![ns])),
        }
        done
    }
}

/// Calls in three sequences: create, close, unlink; with a write and others; with fsync, which is what takes longest.
///
/// Before each call so many bytes of memory are walked; 1 for a program that is run; 0 for nothing: then calls are hot.
pub fn calls(cpu: usize, at: &Path, before: u64, time: Duration) -> Result<Series, String> {
    let refused = |error| format!("{}: {error}", at.display());
    let measured = on(cpu, || -> Io<Series> {
        let mut times = Times { before: disturb(before), series: Vec::new() };
        for (share, sequence) in [(0.3, create_unlink as Sequence), (0.4, others), (0.3, synced)] {
            let (begin, mut turn) = (Instant::now(), 0);
            while turn == 0 || (begin.elapsed() < time.mul_f64(share) && turn < MOST) {
                sequence(&mut times, &name(at, turn))?;
                turn += 1;
            }
        }
        Ok(times.series)
    })?;
    measured.map_err(refused)
}

type Sequence = fn(&mut Times, &Path) -> Io<()>;

fn create_unlink(times: &mut Times, file: &Path) -> Io<()> {
    let made = times.timed("create", || create(file))?;
    times.timed("close", || closed(made))?;
    times.timed("unlink", || remove_file(file))
}

fn others(times: &mut Times, file: &Path) -> Io<()> {
    let other = file.with_extension("b");
    let mut made = create(file)?;
    times.timed("write", || made.write_all(&BLOCK))?;
    times.timed("close_written", || closed(made))?;
    times.timed("stat", || symlink_metadata(file))?;
    times.timed("rename", || rename(file, &other))?;
    let opened = times.timed("open", || File::open(&other))?;
    drop(opened);
    times.timed("unlink_written", || remove_file(&other))
}

fn synced(times: &mut Times, file: &Path) -> Io<()> {
    let mut made = create(file)?;
    made.write_all(&BLOCK)?;
    times.timed("fsync", || made.sync_all())?;
    closed(made)?;
    remove_file(file)
}

/// One process's turns of a load of simfs until its time is over: how many, and seconds.
pub fn load(cpu: Option<usize>, at: &Path, write: bool, time: Duration) -> Result<Series, String> {
    let turns = || -> Io<(u64, f64)> {
        let (begin, mut done) = (Instant::now(), 0);
        while done == 0 || begin.elapsed() < time {
            let file = name(at, done as usize);
            let mut made = create(&file)?;
            if write {
                made.write_all(&BLOCK)?;
            }
            closed(made)?;
            remove_file(&file)?;
            done += 1;
        }
        Ok((done, begin.elapsed().as_secs_f64()))
    };
    let (done, seconds) = match cpu {
        Some(cpu) => on(cpu, turns)?,
        None => turns(),
    }
    .map_err(|error| format!("{}: {error}", at.display()))?;
    Ok(vec![("operations", vec![done as f64]), ("seconds", vec![seconds])])
}

fn create(file: &Path) -> Io<File> {
    OpenOptions::new().write(true).create_new(true).open(file)
}

fn closed(file: File) -> Io<()> {
    drop(file);
    Ok(())
}

fn name(at: &Path, turn: usize) -> PathBuf {
    at.join(format!("p{}_{turn:08}", std::process::id()))
}

/// What is done before each call.
fn disturb(before: u64) -> Box<dyn FnMut()> {
    match before {
        0 => Box::new(|| {}),
        EXEC => Box::new(|| {
            let _ = Command::new("true").stdin(Stdio::null()).status();
        }),
        bytes => {
            let mut memory = vec![1_u8; bytes.min(1 << 30) as usize];
            Box::new(move || {
                for line in memory.iter_mut().step_by(64) {
                    *line = line.wrapping_add(1);
                }
                black_box(&memory);
            })
        }
    }
}
