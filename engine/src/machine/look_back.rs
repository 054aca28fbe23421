//! What is looked at when a run is over and its statistics are taken: whether somebody was left behind.
//!
//! *Everybody who spins looks once more.* Who then does anything but go on spinning had a reason to, and nobody told it.
//!
//! *Nobody sleeps for a lock that was released ten ticks ago*, unless somebody who waits for it was woken since. If the end
//! of the run comes too early to tell, the machine runs on.

use super::native::Native;
use super::stall::Stall;
use super::state::{Broken, State};
use super::task::{Resume, Segment, Status, Task};
use super::trace::Object;
use crate::waist::time::Time;
use crate::waist::{LockId, TaskId};

/// The law of those who spin.
pub const TOLD: &str = "who spins is told";

/// Ticks for which a lock may lie there with a sleeper.
const TICKS: Time = 10;

/// The parts of that time after which it is seen whether the sleepers are still there.
const PARTS: [Time; 4] = [1000, 100, 10, 1];

/// Most steps that a look takes: it reads, pays, and looks.
const STEPS: u32 = 16;

impl State {
    /// `task` is about to sleep until somebody wakes it for the lock that it waits for, if any.
    pub(super) fn sleeps_for_lock(&mut self, task: TaskId) {
        let lock = self.tasks[task as usize].waits_for();
        self.tasks[task as usize].sleeps_for = lock;
        if let Some(lock) = lock {
            self.locks[lock as usize].left = None;
        }
    }

    /// `lock` was released by `task`: the first time since somebody was woken for it, or fell asleep.
    pub(super) fn leave(&mut self, lock: LockId, task: TaskId) {
        let now = self.now;
        self.locks[lock as usize].left.get_or_insert((now, task));
    }

    /// Who sleeps for which lock although it was released, when and by whom, and nobody who waits for it is about to run.
    fn forgotten(&self) -> Vec<Forgotten> {
        let awake = self.tasks.iter().filter(|task| matches!(task.status, Status::Runnable | Status::Running));
        let waits: Vec<(LockId, Status)> =
            awake.flat_map(|t| t.waits.iter().map(|wait| (wait.lock, t.status))).collect();
        let sleepers = self.tasks.iter().enumerate().filter(|(_, task)| task.status == Status::Sleeping);
        let forgotten = sleepers.filter_map(|(id, task)| {
            let lock = task.sleeps_for?;
            let (l, guard) = (&self.locks[lock as usize], self.locks[lock as usize].wait_lock.made());
            let (since, by) = l.left?;
            // somebody was woken and has yet to run, or is about to wake somebody
            let in_hand = |&(waits, status)| Some(waits) == guard || waits == lock && status == Status::Runnable;
            let in_hand = waits.iter().any(in_hand) || self.was_stopped(by, since);
            (!in_hand).then_some(Forgotten { task: id as TaskId, lock, since, by })
        });
        forgotten.collect()
    }

    /// `task` was taken off its CPU soon after `since` and waits for it.
    fn was_stopped(&self, task: TaskId, since: Time) -> bool {
        let task = &self.tasks[task as usize];
        task.status == Status::Runnable && task.last_ran < since + self.kernel.tick
    }

    /// What to say of somebody forgotten.
    fn tell_of(&self, f: &Forgotten) -> String {
        let (name, ns) = (self.name_of(Object::Lock(f.lock)), self.on_the_clock(f.since));
        let (who, by) = (self.called(f.task), self.called(f.by));
        format!("{who} sleeps for {name}, which {by} released at {ns:.3} ns without waking anybody")
    }
}

/// Somebody who sleeps for a lock that was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Forgotten {
    task: TaskId,
    lock: LockId,
    since: Time,
    by: TaskId,
}

impl Native {
    /// Looks once more at a run that has ended. The state of the machine is of no use afterwards.
    pub fn look_back(&mut self) -> (Vec<Broken>, Option<Stall>) {
        let broken = self.last_looks();
        let stall = if broken.is_empty() { self.forgotten_sleepers() } else { None };
        (broken, stall)
    }

    /// Lets everybody who spins look, and says who does something else then.
    fn last_looks(&mut self) -> Vec<Broken> {
        let spinning: Vec<_> = {
            let s = self.state();
            // who gives way to others does so when a tick ends; one that is due now has not begun
            let before = s.now.saturating_sub(1);
            let gives_way = |task: &Task| task.spins_until_resched && s.cpus[task.cpu as usize].in_tick(before);
            let unaware = |task: &Task| task.spinning && !task.look_due && !gives_way(task);
            (0..).zip(s.tasks.iter()).filter(|(_, task)| unaware(task)).map(|(id, _)| id).collect()
        };
        let mut broken = Vec::new();
        for id in spinning {
            let lock = self.state().tasks[id as usize].waits_for();
            if !self.spins_on(id) {
                let s = self.state();
                let name = lock.map_or_else(String::new, |lock| format!(" for {}", s.name_of(Object::Lock(lock))));
                let detail = format!("{} spins{name} at the end and would not after one more look", s.called(id));
                broken.push(Broken { law: TOLD, detail });
                break; // what it has done now concerns the others
            }
        }
        broken
    }

    /// Lets `id` look, for which no time goes by. Whether it goes on spinning.
    fn spins_on(&mut self, id: TaskId) -> bool {
        for _ in 0..STEPS {
            {
                let mut s = self.state();
                let task = &mut s.tasks[id as usize];
                task.generation = task.generation.wrapping_add(1);
                task.spinning = false;
                task.spins_until_resched = false;
                task.resume = Resume::Program;
                task.segment = Segment::default();
            }
            if self.state().goes_on(id) {
                self.step(id);
            }
            let s = self.state();
            let task = &s.tasks[id as usize];
            let pays = task.resume == Resume::Segment && task.segment.own == 0;
            if task.status != Status::Running || !pays {
                return task.spinning;
            }
        }
        false
    }

    /// Runs on as long as somebody seems forgotten, for ten ticks at most.
    fn forgotten_sleepers(&mut self) -> Option<Stall> {
        let mut forgotten = self.state().forgotten();
        let (end, patience) = {
            let s = self.state();
            (s.now, TICKS * s.kernel.tick)
        };
        for part in PARTS {
            if forgotten.is_empty() {
                return None;
            }
            let stall = self.run_until(end + patience / part);
            if stall.is_some() {
                return stall;
            }
            let still = self.state().forgotten();
            forgotten.retain(|f| still.contains(f));
        }
        let s = self.state();
        let at = forgotten.iter().map(|f| f.since).min()?;
        Some(Stall { kind: "stall", at, cycle: forgotten.iter().map(|f| s.tell_of(f)).collect() })
    }
}
