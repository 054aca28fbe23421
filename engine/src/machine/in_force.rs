//! What a trace that begins in the middle of a run must be told: for each task, CPU, wait, hold and operation the last event that
//! still counts. Also how long waits were, by which an interesting moment is found.

use super::labels::Label;
use super::trace::{Entry, Object};
use crate::waist::time::Time;
use crate::waist::{CpuId, LockId, TaskId};
use std::collections::HashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Kind(TaskId),
    /// How it last came to a CPU or left one.
    Status(TaskId),
    /// That it was woken since.
    Woken(TaskId),
    Cpu(CpuId),
    Operation(TaskId),
    Wait(TaskId, LockId),
    Hold(TaskId, LockId),
}

/// A wait from asking for a lock to having it; one that slept may run later.
#[derive(Clone, Copy, Debug)]
pub struct LongWait {
    /// For what.
    pub lock: LockId,
    /// Who.
    pub task: Label,
    /// From when, by the clock of the machine.
    pub begin: Time,
    /// To when.
    pub end: Time,
}

/// The events that made things as they are.
#[derive(Debug, Default)]
pub(super) struct InForce {
    seen: u64,
    last: HashMap<Key, (u64, Entry)>,
}

impl InForce {
    /// Takes note of an event, which happens to `task`. A wait that it ends is given back.
    pub(super) fn see(&mut self, task: Option<TaskId>, entry: Entry, sets_up: bool) -> Option<LongWait> {
        self.seen += 1;
        if let Some(task) = task {
            return self.see_task(task, entry, sets_up);
        }
        if matches!(entry.what, "idle" | "idle exit") {
            self.keep(Key::Cpu(entry.cpu), entry);
        }
        None
    }

    fn see_task(&mut self, task: TaskId, entry: Entry, sets_up: bool) -> Option<LongWait> {
        match (entry.what, entry.object) {
            ("start", _) => self.keep(Key::Kind(task), entry),
            ("begin", _) => self.keep(Key::Operation(task), entry),
            ("end", _) => self.forget(Key::Operation(task)),
            ("wake", _) => self.keep(Key::Woken(task), entry),
            ("run" | "preempt" | "yield" | "sleep", _) => {
                self.forget(Key::Woken(task));
                self.keep(Key::Status(task), entry);
                self.keep(Key::Cpu(entry.cpu), entry);
            }
            ("exit", _) => {
                [Key::Kind(task), Key::Status(task), Key::Woken(task), Key::Operation(task)]
                    .into_iter()
                    .for_each(|key| self.forget(key));
                if sets_up {
                    self.forget(Key::Cpu(entry.cpu)); // who has set the run up is called as one of those that it is for
                } else {
                    self.keep(Key::Cpu(entry.cpu), entry);
                }
            }
            ("wait", Object::Lock(lock)) => self.keep(Key::Wait(task, lock), entry),
            ("release" | "release shared" | "hand to device", Object::Lock(lock)) => self.forget(Key::Hold(task, lock)),
            ("acquire" | "acquire shared", Object::Lock(lock)) => {
                self.keep(Key::Hold(task, lock), entry);
                let (_, wait) = self.last.remove(&Key::Wait(task, lock))?;
                return Some(LongWait { lock, task: entry.task?, begin: wait.time, end: entry.time });
            }
            _ => {}
        }
        None
    }

    fn keep(&mut self, key: Key, entry: Entry) {
        self.last.insert(key, (self.seen, entry));
    }

    fn forget(&mut self, key: Key) {
        self.last.remove(&key);
    }

    /// The events that still count, in order.
    pub(super) fn events(&self) -> Vec<Entry> {
        let mut events: Vec<_> = self.last.values().collect();
        events.sort_by_key(|(seen, _)| *seen);
        events.dedup_by_key(|(seen, _)| *seen);
        events.into_iter().map(|&(_, entry)| entry).collect()
    }
}
