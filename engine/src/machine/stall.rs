//! Runs that cannot go on, and what is said of them: who waits for whom, who gave up, or that time stands still.

use super::native::Native;
use super::queue::{Event, Key};
use super::state::{State, STANDSTILL};
use super::task::Status;
use super::trace::Object;
use crate::waist::time::Time;
use crate::waist::{LockId, TaskId};

/// What who finds no space gives up with (`ENOSPC`).
const NO_SPACE: &str = "no space left";

/// A run that cannot go on.
#[derive(Clone, Debug)]
pub struct Stall {
    /// `deadlock` (a cycle of waits), `no space left`, or `stall` (nobody can go on, or time stands still).
    pub kind: &'static str,
    /// When.
    pub at: Time,
    /// Who waits for what.
    pub cycle: Vec<String>,
}

impl Native {
    pub(super) fn nobody_can_go_on(&self) -> Option<Stall> {
        let stuck = {
            let s = self.shared.state.borrow();
            s.setting_up.is_some() || s.tasks.iter().any(|t| !t.background && t.status != Status::Dead)
        };
        if !stuck {
            return None;
        }
        self.waits_in_a_circle().or_else(|| {
            let s = self.shared.state.borrow();
            let everybody = 0..s.tasks.len() as TaskId;
            let cycle = everybody
                .filter_map(|id| s.tasks[id as usize].waits_for().map(|lock| describe(&s, id, lock)))
                .collect();
            Some(Stall { kind: "stall", at: s.now, cycle })
        })
    }

    /// A cycle in the graph "task waits for the lock held by task".
    pub(super) fn waits_in_a_circle(&self) -> Option<Stall> {
        let s = self.shared.state.borrow();
        let next = |id: TaskId| {
            let lock = s.tasks[id as usize].waits_for()?;
            let holder = s.locks[lock as usize].holder.filter(|_| !s.locks[lock as usize].held_by_device())?;
            let stuck = s.tasks[id as usize].status == Status::Sleeping || s.tasks[id as usize].spinning;
            (holder != id && stuck).then_some((lock, holder))
        };
        for start in 0..s.tasks.len() as TaskId {
            let (mut at, mut cycle) = (start, Vec::new());
            while let Some((lock, holder)) = next(at) {
                cycle.push(describe(&s, at, lock));
                at = holder;
                if at == start {
                    return Some(Stall { kind: "deadlock", at: s.now, cycle });
                }
                if cycle.len() > s.tasks.len() {
                    break; // a cycle that does not contain the start
                }
            }
        }
        None
    }
}

#[cold]
pub(super) fn given_up(s: &mut State) -> Stall {
    let reason: Vec<String> = s.given_up.take().into_iter().collect();
    let full = reason.iter().any(|reason| reason.contains(NO_SPACE));
    Stall { kind: if full { NO_SPACE } else { "stall" }, at: s.now, cycle: reason }
}

#[cold]
pub(super) fn stands_still(key: Key) -> Stall {
    let event = Event::of(key);
    let cycle = vec![format!("{STANDSTILL} events at one instant, the last one {event:?}")];
    Stall { kind: "stall", at: event.time, cycle }
}

fn describe(s: &State, id: TaskId, lock: LockId) -> String {
    let (who, name, l) = (s.called(id), s.name_of(Object::Lock(lock)), &s.locks[lock as usize]);
    if let (None, 0, Some((since, by))) = (l.holder, l.readers, l.left) {
        return format!(
            "{who} waits for {name}, which {} released at {:.3} ns without waking anybody",
            s.called(by),
            s.on_the_clock(since)
        );
    }
    let holder = l.holder.map_or("readers or nobody".into(), |holder| s.called(holder));
    format!("{who} waits for {name} held by {holder}")
}
