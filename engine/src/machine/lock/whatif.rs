//! Counterfactuals on one lock class: what a run would be if its holders were faster, if it were another lock, many locks
//! or none. All is decided when a class or a lock is made; a run without a counterfactual pays a branch a segment.
//!
//! "Hold time" means the CPU time of the program's own segments that begin while the task is the exclusive holder: not the
//! shared holds, not the line transfers and wake-ups in them (the machine's costs), not waits for other locks or devices
//! inside them, and not the time in which a granted owner has yet to wake.

use super::LockKind;
use crate::machine::state::State;
use crate::spec::{Change, WhatIf};
use crate::waist::{ClassId, LockId, TaskId, Then};

impl WhatIf {
    /// Factor on the CPU time of holders.
    pub(in crate::machine) fn hold_scale(&self) -> f64 {
        match self.change {
            Change::HoldScale(factor) => factor,
            _ => 1.0,
        }
    }
}

impl State {
    /// The type of the class `name`, which would be a `kind`.
    pub(in crate::machine) fn kind_if(&self, name: &str, kind: LockKind) -> LockKind {
        match &self.whatif {
            Some(WhatIf { lock, change: Change::Remove }) if lock == name => LockKind::Removed(()),
            Some(WhatIf { lock, change: Change::Kind(other) }) if lock == name => {
                LockKind::parse(other).unwrap_or(kind)
            }
            _ => kind,
        }
    }

    /// Marks or splits the new `lock` of `class`.
    pub(super) fn apply_what_if(&mut self, class: ClassId, lock: LockId) {
        let Some(WhatIf { lock: name, change }) = &self.whatif else { return };
        if *name != self.classes[class as usize].name {
            return;
        }
        match *change {
            Change::HoldScale(_) => self.locks[lock as usize].scaled = true,
            Change::Split(parts) => {
                let rest = (1..parts).map(|_| self.new_whole_lock(class));
                let parts: Box<[LockId]> = std::iter::once(lock).chain(rest).collect();
                self.locks[lock as usize].parts = parts;
            }
            Change::Remove | Change::Kind(_) => {}
        }
    }

    /// `task` comes by where the removed `lock` was: it need not wait.
    pub(in crate::machine) fn pass(&mut self, task: TaskId, lock: LockId) -> bool {
        let (class, t) = (self.locks[lock as usize].class, &self.tasks[task as usize]);
        self.classes[class as usize].at(t.site, t.kind).acquired += 1;
        true
    }

    /// `holds` scaled holds of `task` have ended; a task that died with one has none any more.
    pub(super) fn leave_scaled_hold(&mut self, task: TaskId, holds: u32) {
        let task = &mut self.tasks[task as usize];
        task.scaled_holds = task.scaled_holds.saturating_sub(holds);
    }

    /// What a device does when it is done: it releases the part of a split lock that `task` has taken.
    pub(in crate::machine) fn release_own_part(&self, task: TaskId, then: Then) -> Then {
        match then {
            Then::Release(lock) if !self.locks[lock as usize].parts.is_empty() => {
                Then::Release(self.locks[lock as usize].part_of(task))
            }
            then => then,
        }
    }

    /// Why the counterfactual asked for cannot be had, if so: there is no such lock in the run.
    pub fn vain_what_if(&self) -> Option<String> {
        let asked = &self.whatif.as_ref()?.lock;
        let known = || self.classes.iter().filter(|c| !matches!(c.role.as_str(), "wait_lock" | "completion"));
        if known().any(|c| c.name == *asked) {
            return None;
        }
        let names: Vec<_> = known().map(|c| c.name.as_str()).collect();
        Some(format!("whatif.lock: this run has no lock class '{asked}'; it has {}", names.join(", ")))
    }
}
