//! The event trace: everything that happens on a machine, in order. Both machines record the same events at the same
//! points, so that their traces of one scenario are equal, event for event.

use super::in_force::{InForce, LongWait};
use super::labels::Label;
use super::state::State;
use crate::waist::time::Time;
use crate::waist::{CpuId, DeviceId, LockId, TaskId};
use std::collections::BTreeMap;

/// What an event is about besides its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// Nothing else.
    Nothing,
    /// A lock or completion.
    Lock(LockId),
    /// A device.
    Device(DeviceId),
    /// A kind of operation, or of task.
    Operation(&'static str),
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// When, by the clock of the run.
    pub time: Time,
    /// The task it happens to.
    pub task: Option<Label>,
    /// The CPU on which it happens, or on which the task runs, is queued or ran last.
    pub cpu: CpuId,
    /// What.
    pub what: &'static str,
    /// About what.
    pub object: Object,
}

/// Events that a trace holds at most: Python needs some 300 bytes for one.
pub const MOST: usize = 1_000_000;

/// What is recorded of a run.
#[derive(Debug, Default)]
pub struct Trace {
    from: Time,
    /// Nothing has happened yet: what comes is made for the run.
    prepared: bool,
    /// What was in force at `from`, in order: it may have happened before the clock started.
    in_force: InForce,
    entries: Vec<Entry>,
    /// The longest wait for each lock that ended in the measured window and before `from`.
    longest: BTreeMap<LockId, LongWait>,
}

/// What was recorded, by the clock of the run.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The events that made the state at the start.
    pub in_force: Vec<Entry>,
    /// All events from then on.
    pub entries: Vec<Entry>,
    /// The longest wait for each lock before, if it ended in the measured window.
    pub longest: Vec<LongWait>,
}

impl State {
    /// Starts recording. Of what happens before `from` (by the clock of the run), and of all that sets it up, only
    /// what is in force then is kept. A run with more than [`MOST`] events gives up.
    pub fn record_trace(&mut self, from: Time) {
        self.trace = Some(Box::new(Trace { from, ..Trace::default() }));
    }

    /// The same before anything is put on the machine: what that does is in force when the run begins.
    pub fn prepare_trace(&mut self, from: Time) {
        self.trace = Some(Box::new(Trace { from, prepared: true, ..Trace::default() }));
    }

    /// What a trace was prepared for begins.
    pub fn begin_trace(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.prepared = false;
        }
    }

    /// The events that were recorded; the names of their objects are [`State::name_of`].
    pub fn take_trace(&mut self) -> Vec<Entry> {
        self.trace.take().unwrap_or_default().entries
    }

    /// All that was recorded.
    pub fn take_recorded(&mut self) -> Recorded {
        let Trace { in_force, entries, longest, .. } = *self.trace.take().unwrap_or_default();
        let clock = |time: Time| time.saturating_sub(self.origin);
        let in_force = in_force.events().into_iter().map(|e| Entry { time: clock(e.time), ..e }).collect();
        let longest =
            longest.into_values().map(|w| LongWait { begin: clock(w.begin), end: clock(w.end), ..w }).collect();
        Recorded { in_force, entries, longest }
    }

    /// The measured window begins: longest waits are those of the window.
    pub(super) fn forget_waits(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.longest.clear();
        }
    }

    /// Records that `what` happens to `task`.
    #[inline(always)]
    pub(super) fn note(&mut self, what: &'static str, task: TaskId, object: Object) {
        if self.trace.is_some() {
            let cpu = self.tasks[task as usize].cpu;
            self.record(what, Some(task), cpu, object);
        }
    }

    /// Records that `what` happens on `cpu`.
    #[inline]
    pub(super) fn note_cpu(&mut self, what: &'static str, cpu: CpuId, object: Object) {
        if self.trace.is_some() {
            self.record(what, None, cpu, object);
        }
    }

    #[cold]
    fn record(&mut self, what: &'static str, task: Option<TaskId>, cpu: CpuId, object: Object) {
        let Some(trace) = &mut self.trace else { return };
        let label = task.map(|task| self.tasks[task as usize].label);
        let entry = Entry { time: self.now, task: label, cpu, what, object };
        let time = self.now - self.origin;
        let sets_up = self.setting_up.is_some();
        if trace.prepared || sets_up || time < trace.from {
            if let Some(wait) = trace.in_force.see(task, entry, sets_up) {
                let longest = trace.longest.entry(wait.lock).or_insert(wait);
                if wait.end - wait.begin > longest.end - longest.begin {
                    *longest = wait;
                }
            }
            return;
        }
        trace.entries.push(Entry { time, ..entry });
        if trace.entries.len() > MOST {
            self.give_up(too_many);
        }
    }

    /// An object's name as traces and messages print it: `xfs.AGI#3`.
    pub fn name_of(&self, object: Object) -> String {
        match object {
            Object::Nothing => String::new(),
            Object::Lock(lock) => {
                let l = &self.locks[lock as usize];
                format!("{}#{}", self.classes[l.class as usize].name, l.number)
            }
            Object::Device(device) => format!("device#{device}"),
            Object::Operation(name) => name.into(),
        }
    }
}

/// Why a trace ends that has become too long.
pub fn too_many() -> String {
    format!("trace: more than {MOST} events: ask for less time")
}
