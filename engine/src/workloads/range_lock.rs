//! The range lock's microbenchmark: each task locks a range, holds it, and unlocks the one it has held longest, for ever; or
//! it locks all its ranges one after the other and then unlocks them all.

use super::draw::{chance, Draw};
use crate::range_locks::{Design, Range, RangeLock, RequestId};
use crate::spec::WorkloadSpec;
use crate::waist::{Account, Machine, Side};
use rand_core::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::RefCell;
use std::rc::Rc;

/// Where the tasks' ranges lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each task has a part of the file to itself.
    PerTask,
    /// Each task has every so-manieth range to itself: neighbours belong to different tasks.
    Interleaved,
    /// All tasks draw from the same so many start units: ranges overlap.
    Shared(u64),
}

/// What all tasks do.
#[derive(Clone, Debug)]
pub struct Load {
    /// The range lock's design.
    pub design: Design,
    /// Number of tasks.
    pub tasks: u32,
    /// Where their ranges lie.
    pub layout: Layout,
    /// Units in a range.
    pub length: u64,
    /// Most ranges that a task holds at once.
    pub outstanding: u32,
    /// All of them are locked, and then all unlocked.
    pub batches: bool,
    /// Share of ranges locked for reading.
    pub readers: f64,
    /// CPU time between locking a range and unlocking the oldest.
    pub hold: Draw,
    /// CPU time between two turns.
    pub think: Draw,
}

/// Most units in a range, ranges of a task, and start units of a shared layout.
const MOST: f64 = (1 << 20) as f64;

impl Load {
    /// From a workload's parameters. The error names the parameter.
    pub fn of(w: &WorkloadSpec) -> Result<Self, String> {
        let count = |name: &str| match w.number(name) {
            n if (1.0..=MOST).contains(&n) => Ok(n as u64),
            n => Err(format!("workload.params.{name}: must be between 1 and 2^20, not {n}")),
        };
        let layout = match w.word("ranges") {
            "interleaved" => Layout::Interleaved,
            "shared" => Layout::Shared(count("units")?),
            _ => Layout::PerTask,
        };
        let design = Design::parse(w.word("design")).map_err(|e| format!("workload.params.design: {e}"))?;
        let (length, outstanding) = (count("length")?, count("outstanding")? as u32);
        if outstanding > 1 && (matches!(layout, Layout::Shared(_)) || design == Design::Rwsem) {
            return Err(
                "workload.params.outstanding: a task that may have to wait for a range can hold only one".into()
            );
        }
        let batches = w.word("order") == "batches";
        if batches && matches!(layout, Layout::Shared(_)) {
            return Err(
                "workload.params.order: ranges that may have to wait for each other are not locked in batches".into()
            );
        }
        let (hold, think) = (Draw::of(w, "hold")?, Draw::of(w, "think")?);
        Ok(Self {
            design,
            tasks: w.tasks,
            layout,
            length,
            outstanding,
            batches,
            readers: w.number("readers"),
            hold,
            think,
        })
    }

    /// An empty ledger: a line for each task where tasks can collide, else none.
    pub fn ledger(&self) -> Ledger {
        let lines = if matches!(self.layout, Layout::Shared(_)) { self.tasks } else { 0 };
        Rc::new(RefCell::new(vec![None; lines as usize]))
    }
}

/// A task draws from so many ranges of its own for each that it holds.
const CHOICE: u64 = 2;
/// Units between the parts of two tasks; no task has more than 2^20 ranges of 2^20 units.
const PART: u64 = 1 << 40;

/// Who holds what, where tasks can collide: the law that every range lock is held to.
pub type Ledger = Rc<RefCell<Vec<Option<(Range, Side)>>>>;

/// Runs turns for ever.
pub async fn run<M: Machine>(m: M, lock: Rc<RangeLock>, load: Load, task: u32, ledger: Ledger) {
    let mut random = m.stream(&format!("task {task}"));
    let requests: Vec<_> = (0..load.outstanding).map(|_| lock.new_request(&m)).collect();
    let mut places = Places::new(&load, task);
    if load.batches {
        return lock_and_unlock_all(&m, &lock, &load, &mut random, &places, &requests).await;
    }
    for turn in 0u64.. {
        let slot = (turn % u64::from(load.outstanding)) as usize;
        let range = places.draw(&mut random, slot);
        let side = if chance(&mut random, load.readers) { Side::Read } else { Side::Write };
        m.run(Account::User, load.think.draw(&mut random)).await;
        m.begin();
        m.at("lock");
        lock.lock(&m, requests[slot], range, side).await;
        m.end("lock", false);
        if !enter(&ledger, task, range, side) {
            return m.give_up("two tasks hold ranges that exclude each other");
        }
        m.run(Account::User, load.hold.draw(&mut random)).await;
        let oldest = (slot + 1) % requests.len();
        if turn + 1 >= u64::from(load.outstanding) {
            leave(&ledger, task);
            m.at("unlock");
            lock.unlock(&m, requests[oldest]).await;
            places.give_back(oldest);
        }
        m.end("lock and unlock", true);
    }
}

/// Locks all ranges of a task, neighbours after each other, and then unlocks them in the same order.
async fn lock_and_unlock_all<M: Machine>(
    m: &M,
    lock: &RangeLock,
    load: &Load,
    random: &mut Xoshiro256PlusPlus,
    places: &Places,
    requests: &[RequestId],
) {
    loop {
        for (place, &request) in (0..).zip(requests) {
            let side = if chance(random, load.readers) { Side::Read } else { Side::Write };
            m.run(Account::User, load.think.draw(random)).await;
            m.begin();
            m.at("lock");
            lock.lock(m, request, places.own(place), side).await;
            m.end("lock", false);
        }
        m.run(Account::User, load.hold.draw(random)).await;
        for &request in requests {
            m.begin();
            m.at("unlock");
            lock.unlock(m, request).await;
            m.end("unlock", true);
        }
    }
}

/// Notes a range that is held now. Returns whether it may be. Only shared layouts have a ledger, and there a task holds one range.
fn enter(ledger: &Ledger, task: u32, range: Range, side: Side) -> bool {
    let mut held = ledger.borrow_mut();
    let excludes = |other: &(Range, Side)| other.0.overlaps(&range) && (side == Side::Write || other.1 == Side::Write);
    let free = !held.iter().flatten().any(excludes);
    if let Some(mine) = held.get_mut(task as usize) {
        *mine = Some((range, side));
    }
    free
}

fn leave(ledger: &Ledger, task: u32) {
    if let Some(mine) = ledger.borrow_mut().get_mut(task as usize) {
        *mine = None;
    }
}

/// The ranges that a task draws from, and which of them it holds.
struct Places {
    layout: Layout,
    length: u64,
    tasks: u64,
    task: u64,
    taken: Vec<bool>,
    of_slot: Vec<usize>,
}

impl Places {
    fn new(load: &Load, task: u32) -> Self {
        let own = (CHOICE * u64::from(load.outstanding)) as usize;
        Self {
            layout: load.layout,
            length: load.length,
            tasks: load.tasks.into(),
            task: task.into(),
            taken: vec![false; own],
            of_slot: vec![0; load.outstanding as usize],
        }
    }

    fn draw(&mut self, random: &mut Xoshiro256PlusPlus, slot: usize) -> Range {
        match self.layout {
            Layout::Shared(units) => self.from(random.next_u64() % units),
            _ => {
                let place = self.draw_own(random, slot);
                self.own(place)
            }
        }
    }

    /// The range of a number that only this task has.
    fn own(&self, place: u64) -> Range {
        match self.layout {
            Layout::PerTask => self.from(self.task * PART + place * self.length),
            _ => self.from((place * self.tasks + self.task) * self.length),
        }
    }

    fn from(&self, start: u64) -> Range {
        Range { start, last: start + self.length - 1 }
    }

    /// The number of a range that this task does not hold; `slot` holds it from now on.
    fn draw_own(&mut self, random: &mut Xoshiro256PlusPlus, slot: usize) -> u64 {
        loop {
            let place = (random.next_u64() % self.taken.len() as u64) as usize;
            if !std::mem::replace(&mut self.taken[place], true) {
                self.of_slot[slot] = place;
                return place as u64;
            }
        }
    }

    fn give_back(&mut self, slot: usize) {
        self.taken[self.of_slot[slot]] = false;
    }
}
