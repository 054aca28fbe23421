//! The event trace: everything that happens on a machine, in order. Both machines record the same events at the same
//! points, so that their traces of one scenario are equal, event for event.

use super::device::DeviceId;
use super::lock::LockId;
use super::state::State;
use super::task::TaskId;
use super::time::Time;
use super::topology::CpuId;

/// What an event is about besides its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// Nothing else.
    Nothing,
    /// A lock or completion.
    Lock(LockId),
    /// A device.
    Device(DeviceId),
    /// A kind of operation.
    Operation(&'static str),
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// When, by the clock of the run.
    pub time: Time,
    /// The task it happens to.
    pub task: Option<TaskId>,
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
    entries: Vec<Entry>,
}

impl State {
    /// Starts recording; what happens before `from` (by the clock of the run) is left out, and all that sets it up. A run with more than [`MOST`] events gives up.
    pub fn record_trace(&mut self, from: Time) {
        self.trace = Some(Trace { from, entries: Vec::new() });
    }

    /// What was recorded; the names of its objects are [`State::name_of`].
    pub fn take_trace(&mut self) -> Vec<Entry> {
        self.trace.take().unwrap_or_default().entries
    }

    /// Records that `what` happens to `task`.
    #[inline]
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
        let entry = Entry { time: self.now - self.origin, task, cpu, what, object };
        let recorded = |trace: &&mut Trace| self.setting_up.is_none() && entry.time >= trace.from;
        let Some(trace) = self.trace.as_mut().filter(recorded) else { return };
        trace.entries.push(entry);
        if trace.entries.len() > MOST {
            self.given_up.get_or_insert_with(too_many);
        }
    }

    /// An object's name as traces and messages print it: `xfs.AGI#3`.
    pub fn name_of(&self, object: Object) -> String {
        match object {
            Object::Nothing => String::new(),
            Object::Lock(lock) => format!("{}#{lock}", self.classes[self.locks[lock as usize].class as usize].name),
            Object::Device(device) => format!("device#{device}"),
            Object::Operation(name) => name.into(),
        }
    }
}

/// Why a trace ends that has become too long.
pub fn too_many() -> String {
    format!("trace: more than {MOST} events: ask for less time")
}
