//! The plain lock cycle: think, take one lock, hold it, release it. The machine repairman of the textbooks.

use super::draw::Draw;
use crate::machine::{Account, LockId, Side};
use crate::waist::Machine;

/// How long a task thinks and holds, and whether it thinks on its CPU.
#[derive(Clone, Copy, Debug)]
pub struct Cycle {
    /// Time between a release and the next acquisition.
    pub think: Draw,
    /// Time held.
    pub hold: Draw,
    /// Thinking uses the CPU (otherwise the task sleeps).
    pub thinks_on_cpu: bool,
    /// Share of acquisitions that are for reading.
    pub readers: f64,
}

/// Runs cycles for ever.
pub async fn run<M: Machine>(m: M, lock: LockId, cycle: Cycle, name: String) {
    let mut random = m.stream(&name);
    loop {
        let (think, hold) = (cycle.think.draw(&mut random), cycle.hold.draw(&mut random));
        let side = if super::draw::chance(&mut random, cycle.readers) { Side::Read } else { Side::Write };
        if cycle.thinks_on_cpu {
            m.run(Account::User, think).await;
        } else {
            m.sleep(think).await;
        }
        m.begin();
        m.lock(lock, side).await;
        m.run(Account::System, hold).await;
        m.unlock(lock, side).await;
        m.end("cycle", true);
    }
}
