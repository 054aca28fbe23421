//! The floor under every simulator of a lock cycle: a loop that models nothing but the queue.
//!
//! Tasks think (exponential), wait for one first-come-first-served lock, hold it (exponential) and release it. No CPUs,
//! no cache lines, no scheduler, no statistics but a count. `cargo run --release --example floor -- TASKS CYCLES`
//! prints the number of cycles and the simulated time in nanoseconds.

use rand_core::SeedableRng;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Mean times in picoseconds, the engine's unit.
const THINK: f64 = 1_000_000.0;
const HOLD: f64 = 50_000.0;

fn main() -> Result<(), std::num::ParseIntError> {
    let number = |at: usize, default: u64| std::env::args().nth(at).map_or(Ok(default), |a| a.parse());
    let (tasks, cycles) = (number(1, 24)?, number(2, 1_000_000)?);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut draw = |mean: f64| {
        let unit: f64 = Exp1.sample(&mut random);
        (unit * mean) as u64
    };
    let mut events: BinaryHeap<Reverse<(u64, u64)>> = (0..tasks).map(|task| Reverse((draw(THINK), task))).collect();
    let mut waiting = VecDeque::new();
    let mut holder = None;
    let (mut now, mut done) = (0, 0);
    while done < cycles {
        let Some(Reverse((time, task))) = events.pop() else { break };
        now = time;
        if holder == Some(task) {
            done += 1;
            events.push(Reverse((now + draw(THINK), task)));
            holder = waiting.pop_front();
            if let Some(next) = holder {
                events.push(Reverse((now + draw(HOLD), next)));
            }
        } else if holder.is_none() {
            holder = Some(task);
            events.push(Reverse((now + draw(HOLD), task)));
        } else {
            waiting.push_back(task);
        }
    }
    println!("{{\"operations\": {done}, \"window_ns\": {}}}", now / 1000);
    Ok(())
}
