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
    /// When.
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

impl State {
    /// Starts recording.
    pub fn record_trace(&mut self) {
        self.trace = Some(Vec::new());
    }

    /// What was recorded; the names of its objects are [`State::name_of`].
    pub fn take_trace(&mut self) -> Vec<Entry> {
        self.trace.take().unwrap_or_default()
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
        let entry = Entry { time: self.now, task, cpu, what, object };
        self.trace.get_or_insert_default().push(entry);
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
