//! Open loads: requests arrive by themselves and wait for a task that is free. The next one goes to whoever is free first, so
//! that a load of n tasks is the FIFO queue with n servers (G/G/n) of the textbooks.

use super::draw::Draw;
use crate::spec::WorkloadSpec;
use crate::waist::time::from_ns;
use crate::waist::{Machine, Time};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The requests that the tasks of a load serve; without any, each begins again as soon as it has done.
pub type Requests = Option<Rc<Arrivals>>;

/// When requests arrive.
pub struct Arrivals {
    gaps: Gaps,
    random: RefCell<Xoshiro256PlusPlus>,
    last: Cell<Time>,
}

enum Gaps {
    Drawn(Draw),
    Trace { gaps: Vec<Time>, next: Cell<usize> },
}

impl Arrivals {
    /// Those of a load whose first task has this number, from now on. The error names what is wrong.
    pub fn of<M: Machine>(m: &M, w: &WorkloadSpec, first: u32) -> Result<Requests, String> {
        let gaps = match w.times("arrivals_trace") {
            Some(gaps) => Gaps::Trace { gaps: gaps.into_iter().map(from_ns).collect(), next: Cell::new(0) },
            None => match w.given("arrivals_ns") {
                Some(_) => Gaps::Drawn(Draw::of(w, "arrivals")?),
                None => return Ok(None),
            },
        };
        let random = RefCell::new(m.stream(&format!("arrivals {first}")));
        Ok(Some(Rc::new(Self { gaps, random, last: Cell::new(m.now()) })))
    }

    fn next(&self) -> Time {
        let gap = match &self.gaps {
            Gaps::Drawn(draw) => draw.draw(&mut self.random.borrow_mut()),
            Gaps::Trace { gaps, next } => {
                next.set((next.get() + 1) % gaps.len());
                gaps[(next.get() + gaps.len() - 1) % gaps.len()]
            }
        };
        self.last.set(self.last.get().saturating_add(gap));
        self.last.get()
    }
}

/// Takes the next request, for which a free task sleeps, and returns when it arrived.
pub async fn taken<M: Machine>(m: &M, requests: &Requests) -> Option<Time> {
    let arrived = requests.as_ref()?.next();
    if let Some(early) = arrived.checked_sub(m.now()).filter(|early| *early > 0) {
        m.sleep(early).await;
    }
    m.delayed("queue", arrived);
    Some(arrived)
}

/// A request has been served.
pub fn served<M: Machine>(m: &M, arrived: Option<Time>) {
    if let Some(arrived) = arrived {
        m.delayed("response", arrived);
    }
}
