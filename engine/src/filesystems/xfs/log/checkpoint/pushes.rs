//! Which checkpoints are being pushed, and who waits for those that were before him: since 5.15 by `flush_workqueue` of `xfs-cil`, before
//! by `flush_work` of its one item.
//!
//! `flush_workqueue` gives each who comes a colour, and what is queued after him the next one. Only the first of those who wait is told
//! when the last item of his colour has returned. He then tells the others for whom nothing is under way any more, and makes the next one the
//! first (`__flush_workqueue`, 3.5 to 6.18). So they wait until he has a CPU. Who comes when all colours are in use shares one with others that come
//! then. `wq->mutex`, under which this happens, is not modelled.

use crate::waist::LockId;
use crate::waist::Machine;
use std::cell::RefCell;
use std::collections::VecDeque;

/// How many colours there are (`WORK_NR_COLORS`).
const COLOURS: u32 = 16;

/// Contexts that are queued or written, and who waits.
#[derive(Debug)]
pub struct Pushes {
    /// Each waits for an item of his own (`flush_work`), and is told by the worker.
    alone: bool,
    state: RefCell<State>,
}

/// A waiter: his colour, and what is completed for him.
type Flusher = (u32, LockId);

#[derive(Debug, Default)]
struct State {
    /// How many colours may be in use.
    colours: u32,
    /// The colour of what is queued now, and that for which the first waits; they are counted and not used again.
    work_colour: u32,
    flush_colour: u32,
    /// Contexts and their colours.
    under_way: Vec<(u32, u32)>,
    first: Option<Flusher>,
    queue: VecDeque<Flusher>,
    overflow: Vec<LockId>,
}

impl State {
    fn is_under_way(&self, colour: u32) -> bool {
        self.under_way.iter().any(|&(_, other)| other == colour)
    }

    /// Who comes waits for all that is under way. Returns whether there is anything.
    fn begin_wait(&mut self, done: LockId) -> bool {
        if self.work_colour - self.flush_colour == self.colours - 1 {
            self.overflow.push(done);
            return true;
        }
        let mine = self.work_colour;
        self.work_colour += 1;
        if self.first.is_some() {
            self.queue.push_back((mine, done));
        } else if self.is_under_way(mine) {
            self.first = Some((mine, done));
        } else {
            self.flush_colour = self.work_colour;
            return false;
        }
        true
    }

    /// An item has returned. Returns the first if he has waited for it.
    fn end(&mut self, sequence: u32) -> Option<LockId> {
        let at = self.under_way.iter().position(|&(other, _)| other == sequence)?;
        let (_, colour) = self.under_way.remove(at);
        let (first, done) = self.first?;
        (first == colour && !self.is_under_way(colour)).then_some(done)
    }

    /// The first, who is told, goes on: whom he tells.
    fn cascade(&mut self) -> Vec<LockId> {
        let mut told = Vec::new();
        self.first = None;
        loop {
            while self.queue.front().is_some_and(|&(colour, _)| colour == self.flush_colour) {
                told.extend(self.queue.pop_front().map(|(_, done)| done));
            }
            self.flush_colour += 1;
            if !self.overflow.is_empty() {
                let colour = self.work_colour;
                self.work_colour += 1;
                self.queue.extend(self.overflow.drain(..).map(|done| (colour, done)));
            }
            let Some(next) = self.queue.pop_front() else { return told };
            if self.is_under_way(self.flush_colour) {
                self.first = Some(next);
                return told;
            }
            told.push(next.1);
        }
    }
}

impl Pushes {
    /// Nothing is queued. `alone`: as before 5.15.
    pub fn new(alone: bool) -> Self {
        let colours = if alone { u32::MAX } else { COLOURS };
        Self { alone, state: RefCell::new(State { colours, ..State::default() }) }
    }

    /// A context is queued.
    pub fn begin(&self, sequence: u32) {
        let mut state = self.state.borrow_mut();
        let colour = state.work_colour;
        state.under_way.push((sequence, colour));
    }

    /// Its worker has returned, whether what it wrote is on disk or not.
    pub async fn end<M: Machine>(&self, m: &M, sequence: u32) {
        let first = self.state.borrow_mut().end(sequence);
        let Some(first) = first else { return };
        let told = if self.alone { self.state.borrow_mut().cascade() } else { Vec::new() };
        for done in [first].into_iter().chain(told) {
            m.complete(done).await;
        }
    }

    /// Waits for all that are under way now.
    pub async fn wait<M: Machine>(&self, m: &M) {
        let done = m.new_completion();
        if self.state.borrow_mut().begin_wait(done) {
            m.wchan("__flush_workqueue");
            m.wait_for(done).await;
            let is_first = self.state.borrow().first.is_some_and(|(_, first)| first == done);
            let told = if is_first { self.state.borrow_mut().cascade() } else { Vec::new() };
            for other in told {
                m.complete(other).await;
            }
        }
        m.drop_completion(done);
    }
}

#[cfg(test)]
mod tests {
    use super::{State, COLOURS};

    fn queue(state: &mut State, sequence: u32) {
        let colour = state.work_colour;
        state.under_way.push((sequence, colour));
    }

    #[test]
    fn the_first_is_told_by_the_worker_and_tells_the_others() {
        let mut state = State { colours: COLOURS, ..State::default() };
        assert!(!state.begin_wait(9)); // nothing is under way
        queue(&mut state, 1);
        assert!(state.begin_wait(10) && state.begin_wait(11));
        queue(&mut state, 2);
        assert!(state.begin_wait(12));
        assert_eq!(state.end(1), Some(10));
        assert!(state.begin_wait(13)); // the first is told, and has not run
        assert_eq!(state.cascade(), vec![11]);
        assert_eq!(state.end(2), Some(12));
        assert_eq!(state.cascade(), vec![13]);
        assert!(!state.begin_wait(14));
    }

    #[test]
    fn nobody_is_told_before_what_he_waits_for_has_returned() {
        let mut state = State { colours: COLOURS, ..State::default() };
        queue(&mut state, 1);
        assert!(state.begin_wait(10));
        queue(&mut state, 2);
        assert!(state.begin_wait(11));
        assert_eq!(state.end(2), None);
        assert_eq!(state.end(1), Some(10));
        assert_eq!(state.cascade(), vec![11]);
    }

    #[test]
    fn who_comes_when_all_colours_are_in_use_waits_for_one_with_others() {
        let mut state = State { colours: COLOURS, ..State::default() };
        queue(&mut state, 1);
        for done in 1..COLOURS + 2 {
            assert!(state.begin_wait(done));
        }
        assert_eq!(state.overflow, vec![COLOURS, COLOURS + 1]);
        assert_eq!(state.end(1), Some(1));
        assert_eq!(state.cascade(), (2..COLOURS + 2).collect::<Vec<_>>());
    }
}
