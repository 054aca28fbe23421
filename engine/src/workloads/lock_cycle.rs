//! The plain lock cycle: think, take a lock, hold it, release it. The machine repairman of the textbooks; with a second lock
//! inside the first, and with a device that goes on holding the lock, as buffers under write do.

use super::arrivals::{served, taken, Requests};
use super::draw::{chance, uniform, Draw};
use crate::waist::Machine;
use crate::waist::{Access, Account, DeviceId, Io, LineId, LockId, Mode, Side, Then, Time};
use std::future::Future;
use std::rc::Rc;

/// What one cycle is made of.
#[derive(Clone, Debug)]
pub struct Cycle {
    /// The lock.
    pub outer: LockId,
    /// A second lock, taken and released while the first is held.
    pub inner: Option<LockId>,
    /// Time between a release and the next acquisition.
    pub think: Draw,
    /// Time held.
    pub hold: Draw,
    /// Thinking uses the CPU (otherwise the task sleeps).
    pub thinks_on_cpu: bool,
    /// Cache lines that the lock protects: a writer writes them, a reader reads them.
    pub data: Option<LineId>,
    /// Share of acquisitions that are for reading.
    pub readers: f64,
    /// Share of holds that go blocking, where the lock has such a mode; with an inner lock all do, as that may sleep.
    pub blocking: f64,
    /// The lock is handed to this device, which releases it after the time drawn; the task goes on at once.
    pub write: Option<(DeviceId, Draw)>,
    /// Within which tasks begin.
    pub begin: Time,
}

/// Runs cycles for ever, with the random stream of that name. It keeps little, as there may be many tasks.
pub fn run<M: Machine>(m: M, cycle: Rc<Cycle>, requests: Requests, stream: &str) -> impl Future<Output = ()> {
    let mut random = m.stream(stream);
    async move {
        if cycle.begin > 0 {
            m.sleep((uniform(&mut random) * cycle.begin as f64) as Time).await;
        }
        loop {
            let (think, hold) = (cycle.think.draw(&mut random), cycle.hold.draw(&mut random));
            let side = if chance(&mut random, cycle.readers) { Side::Read } else { Side::Write };
            // Few loads are open.
            let request = if requests.is_some() { Box::pin(taken(&m, &requests)).await } else { None };
            if cycle.thinks_on_cpu {
                m.run(Account::User, think).await;
            } else {
                m.sleep(think).await;
            }
            m.begin();
            m.lock(cycle.outer, side).await;
            if cycle.inner.is_some() || chance(&mut random, cycle.blocking) {
                Box::pin(m.convert(cycle.outer, side, Mode::Blocking)).await; // few locks have modes
            }
            if let Some(data) = cycle.data {
                m.touch(data, if side == Side::Write { Access::Write } else { Access::Read });
            }
            m.run(Account::System, hold).await;
            if let Some(inner) = cycle.inner {
                m.lock(inner, side).await;
                m.run(Account::System, hold).await;
                m.unlock(inner, side).await;
            }
            match &cycle.write {
                None => m.unlock(cycle.outer, side).await,
                Some((device, service)) => {
                    let io = Io::taking(service.draw(&mut random));
                    m.submit(*device, io, Then::Release(cycle.outer));
                }
            }
            m.end("cycle", true);
            served(&m, request);
        }
    }
}
