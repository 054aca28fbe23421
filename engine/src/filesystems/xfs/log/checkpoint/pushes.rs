//! Which checkpoints are being pushed, and who waits for those that were before him: since 5.15 by `flush_workqueue` of `xfs-cil`, before
//! by `flush_work` of its one item.
//!
//! `flush_workqueue` gives each who comes a colour, and what is queued after him the next one. Only the first of those who wait is told
//! when the last item of his colour has returned. He then tells the others for whom nothing is under way any more, and makes the next one the
//! first (`__flush_workqueue`, 3.5 to 6.18). So they wait until he has a CPU. Who comes when all colours are in use shares one with others that come
//! then.
//!
//! All of this happens under `wq->mutex`. Who comes and has a colour gives each part of the queue (`struct pool_workqueue`) the next one, under the
//! lock of its pool of workers (`flush_workqueue_prep_pwqs`). So does the first when he goes on, once for all who came without a colour,
//! and he looks through the parts for what the next one waits for. What workers and `queue_work` take that lock for is left out.

use crate::filesystems::costs::Costs;
use crate::kernel::xfs::CilQueue;
use crate::waist::Machine;
use crate::waist::{Access, Account, LineId, LockId, Side, Time};
use std::cell::RefCell;
use std::collections::VecDeque;

/// How many colours there are (`WORK_NR_COLORS`).
const COLOURS: u32 = 16;

/// Contexts that are queued or written, and who waits.
#[derive(Debug)]
pub struct Pushes {
    /// None where each waits for an item of his own (`flush_work`), and is told by the worker.
    parts: Option<Parts>,
    state: RefCell<State>,
}

/// `wq->mutex`, and the lines of the parts and of their pools' locks.
#[derive(Debug)]
struct Parts {
    mutex: LockId,
    lines: Vec<LineId>,
    /// To change the colour of all.
    time: Time,
}

impl Parts {
    fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let (cpus, each) = (m.cpus(), costs.cpus_per_node().clamp(1, m.cpus()));
        let nodes = cpus.div_ceil(each);
        let (parts, locked, lines) = match costs.rules().cil_queue {
            CilQueue::Node => (nodes, nodes, vec![2; nodes as usize]),
            CilQueue::Cpu => (cpus, cpus, vec![1; (nodes + cpus) as usize]),
            // Nothing orders the parts of one pool, so that their lines come together.
            CilQueue::CpuByPool => (cpus, nodes, vec![1 + each; nodes as usize]),
        };
        let (part, lock) = (costs.sum(&["cil_queue_part"])?, costs.sum(&["cil_queue_lock"])?);
        Ok(Self {
            mutex: m.new_lock(m.class("xfs.cil_wq", "xfs.cil_wq")),
            lines: lines.into_iter().map(|span| m.new_line("xfs.cil_wq", span)).collect(),
            time: Time::from(parts) * part + Time::from(locked) * lock,
        })
    }

    /// `flush_workqueue_prep_pwqs`: writes the colour of what comes, or reads what is in flight.
    async fn go_over<M: Machine>(&self, m: &M, access: Access) {
        self.lines.iter().for_each(|line| m.touch(*line, access));
        m.run(Account::System, self.time).await;
    }
}

/// A waiter: his colour, and what is completed for him.
type Flusher = (u32, LockId);

/// How a wait begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// There is nothing to wait for.
    Over,
    /// With a colour.
    Coloured,
    /// Until there is a colour.
    Overflowed,
}

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

    /// Who comes waits for all that is under way.
    fn begin_wait(&mut self, done: LockId) -> Wait {
        if self.work_colour - self.flush_colour == self.colours - 1 {
            self.overflow.push(done);
            return Wait::Overflowed;
        }
        let mine = self.work_colour;
        self.work_colour += 1;
        if self.first.is_some() {
            self.queue.push_back((mine, done));
        } else if self.is_under_way(mine) {
            self.first = Some((mine, done));
        } else {
            self.flush_colour = self.work_colour;
            return Wait::Over;
        }
        Wait::Coloured
    }

    /// An item has returned. Returns the first if he has waited for it.
    fn end(&mut self, sequence: u32) -> Option<LockId> {
        let at = self.under_way.iter().position(|&(other, _)| other == sequence)?;
        let (_, colour) = self.under_way.remove(at);
        let (first, done) = self.first?;
        (first == colour && !self.is_under_way(colour)).then_some(done)
    }

    /// The first, who is told, goes on: whom he tells, and how often he goes over the parts.
    fn cascade(&mut self) -> (Vec<LockId>, Vec<Access>) {
        let (mut told, mut goes_over) = (Vec::new(), Vec::new());
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
                goes_over.push(Access::Write);
            }
            let Some(next) = self.queue.pop_front() else { return (told, goes_over) };
            goes_over.push(Access::Read);
            if self.is_under_way(self.flush_colour) {
                self.first = Some(next);
                return (told, goes_over);
            }
            told.push(next.1);
        }
    }
}

impl Pushes {
    /// Nothing is queued. `alone`: as before 5.15.
    pub fn new<M: Machine>(m: &M, alone: bool, costs: &Costs<'_>) -> Result<Self, String> {
        let colours = if alone { u32::MAX } else { COLOURS };
        let parts = if alone { None } else { Some(Parts::new(m, costs)?) };
        Ok(Self { parts, state: RefCell::new(State { colours, ..State::default() }) })
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
        let told = if self.parts.is_none() { self.state.borrow_mut().cascade().0 } else { Vec::new() };
        for done in [first].into_iter().chain(told) {
            m.complete(done).await;
        }
    }

    /// Waits for all that are under way now.
    pub async fn wait<M: Machine>(&self, m: &M) {
        let done = m.new_completion();
        if self.begin_wait(m, done).await {
            m.wchan("__flush_workqueue");
            m.wait_for(done).await;
            let is_first = self.state.borrow().first.is_some_and(|(_, first)| first == done);
            if let Some(parts) = self.parts.as_ref().filter(|_| is_first) {
                self.go_on(m, parts).await;
            }
        }
        m.drop_completion(done);
    }

    /// Returns whether there is anything to wait for.
    async fn begin_wait<M: Machine>(&self, m: &M, done: LockId) -> bool {
        let begin = || self.state.borrow_mut().begin_wait(done);
        let Some(parts) = &self.parts else { return begin() != Wait::Over };
        m.lock(parts.mutex, Side::Write).await;
        let wait = begin();
        if wait != Wait::Overflowed {
            parts.go_over(m, Access::Write).await;
        }
        m.unlock(parts.mutex, Side::Write).await;
        wait != Wait::Over
    }

    /// The first, who was told, tells the others.
    async fn go_on<M: Machine>(&self, m: &M, parts: &Parts) {
        m.lock(parts.mutex, Side::Write).await;
        let (told, goes_over) = self.state.borrow_mut().cascade();
        for access in goes_over {
            parts.go_over(m, access).await;
        }
        for other in told {
            m.complete(other).await;
        }
        m.unlock(parts.mutex, Side::Write).await;
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, State, Wait, COLOURS};

    fn queue(state: &mut State, sequence: u32) {
        let colour = state.work_colour;
        state.under_way.push((sequence, colour));
    }

    #[test]
    fn the_first_is_told_by_the_worker_and_tells_the_others() {
        let mut state = State { colours: COLOURS, ..State::default() };
        assert_eq!(state.begin_wait(9), Wait::Over);
        queue(&mut state, 1);
        assert_eq!([10, 11].map(|done| state.begin_wait(done)), [Wait::Coloured; 2]);
        queue(&mut state, 2);
        assert_eq!(state.begin_wait(12), Wait::Coloured);
        assert_eq!(state.end(1), Some(10));
        assert_eq!(state.begin_wait(13), Wait::Coloured); // the first is told, and has not run
        assert_eq!(state.cascade().0, vec![11]);
        assert_eq!(state.end(2), Some(12));
        assert_eq!(state.cascade().0, vec![13]);
        assert_eq!(state.begin_wait(14), Wait::Over);
    }

    #[test]
    fn nobody_is_told_before_what_he_waits_for_has_returned() {
        let mut state = State { colours: COLOURS, ..State::default() };
        queue(&mut state, 1);
        assert_eq!(state.begin_wait(10), Wait::Coloured);
        queue(&mut state, 2);
        assert_eq!(state.begin_wait(11), Wait::Coloured);
        assert_eq!(state.end(2), None);
        assert_eq!(state.end(1), Some(10));
        assert_eq!(state.cascade().0, vec![11]);
    }

    #[test]
    fn who_comes_when_all_colours_are_in_use_waits_for_one_with_others() {
        let mut state = State { colours: COLOURS, ..State::default() };
        queue(&mut state, 1);
        for done in 1..COLOURS + 2 {
            let full = done > COLOURS - 1;
            assert_eq!(state.begin_wait(done), if full { Wait::Overflowed } else { Wait::Coloured });
        }
        assert_eq!(state.overflow, vec![COLOURS, COLOURS + 1]);
        assert_eq!(state.end(1), Some(1));
        let (told, goes_over) = state.cascade();
        assert_eq!(told, (2..COLOURS + 2).collect::<Vec<_>>());
        assert_eq!(goes_over.iter().filter(|access| **access == Access::Write).count(), 1);
        // one colour for both
    }
}
