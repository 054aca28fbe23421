//! What traces and messages call threads: those of the load are counted from 0 on, those of the kernel from -1 down. Their places
//! among all threads say little: the kernel's come first, two hundred on 24 CPUs with XFS, and whose program ends leaves its
//! place to another.

use super::state::State;
use crate::waist::{SpawnKind, TaskId};

/// The number of a thread of the load, or below 0 of one of the kernel.
pub type Label = i32;

/// The labels that are given.
#[derive(Debug, Default)]
pub struct Labels {
    load: Label,
    kernel: Label,
    /// Those of threads of the load that have ended.
    unused: Vec<Label>,
}

impl Labels {
    /// That of a new thread. Who sets the run up is none of the load's and has ended when these begin.
    pub(super) fn give(&mut self, spawn_kind: SpawnKind) -> Label {
        match spawn_kind {
            SpawnKind::Setup => 0,
            SpawnKind::Foreground | SpawnKind::Helper => self.unused.pop().unwrap_or_else(|| {
                self.load += 1;
                self.load - 1
            }),
            SpawnKind::Background => {
                self.kernel += 1;
                -self.kernel
            }
        }
    }

    /// A thread that did not set the run up has ended.
    pub(super) fn give_back(&mut self, label: Label) {
        if label >= 0 {
            self.unused.push(label);
        }
    }
}

impl State {
    /// What messages call a task: `task 3`, `kthread 3`.
    pub(super) fn called(&self, task: TaskId) -> String {
        match self.tasks[task as usize].label {
            label @ 0.. => format!("task {label}"),
            label => format!("kthread {}", -label),
        }
    }
}
