//! Cache lines that CPUs take from one another.

use crate::pinned::{chunks, on, pin};
use crate::Series;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

/// A counter in a pair of lines of its own: prefetchers fetch neighbours in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Apart(AtomicU64);

/// One line of a row.
#[derive(Default)]
#[repr(align(64))]
struct Line(AtomicU64);

const STOP: u64 = u64::MAX;
const ROUNDS: u32 = 200;

/// Two CPUs hand a line over in strict alternation, and write `lines - 1` neighbouring ones before each hand-over: ns of one.
pub fn ping_pong((a, b): (usize, usize), lines: u64, time: Duration) -> Result<Series, String> {
    let turn = Apart::default();
    let row: Vec<Line> = (1..lines.min(1024)).map(|_| Line::default()).collect();
    let write = |value| row.iter().for_each(|line| line.0.store(value, Ordering::Relaxed));
    let rounds = thread::scope(|scope| {
        scope.spawn(|| {
            pin(b);
            loop {
                match turn.0.load(Ordering::Acquire) {
                    STOP => break,
                    odd if odd % 2 == 1 => {
                        write(odd);
                        turn.0.store(odd + 1, Ordering::Release);
                    }
                    _ => {}
                }
            }
        });
        on(a, || {
            let mut value = 0;
            let rounds = chunks(time, ROUNDS, || {
                write(value);
                turn.0.store(value + 1, Ordering::Release);
                value += 2;
                while turn.0.load(Ordering::Acquire) != value {}
            });
            turn.0.store(STOP, Ordering::Release);
            rounds
        })
    })?;
    Ok(vec![("each", rounds.into_iter().map(|ns| ns / 2.0).collect())])
}

/// All CPUs add to one line: ns of one addition as the CPU that does it sees it.
pub fn contended(cpus: &[usize], time: Duration) -> Result<Series, String> {
    let (counter, start) = (Apart::default(), Barrier::new(cpus.len()));
    let add = |cpu: usize| {
        pin(cpu);
        start.wait();
        chunks(time, 1000, || {
            counter.0.fetch_add(1, Ordering::AcqRel);
        })
    };
    let each = thread::scope(|scope| {
        let add = &add;
        let threads: Vec<_> = cpus.iter().map(|&cpu| scope.spawn(move || add(cpu))).collect();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect::<Result<Vec<_>, _>>()
    });
    let each = each.map_err(|_| "a measuring thread has panicked".to_string())?;
    Ok(vec![("each", each.concat())])
}
