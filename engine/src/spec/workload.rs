//! What the tasks do, and the groups that they are in.

use super::params::{self, Is};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The workloads there are.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // described in docs/scenarios.md
pub enum WorkloadKind {
    Compile,
    Create,
    CreateUnlink,
    Tmpfile,
    FsMark,
    Mix,
    Dbench,
    LockCycle,
    RangeLock,
    Fio,
    Python,
}

impl WorkloadKind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Compile,
        Self::Create,
        Self::CreateUnlink,
        Self::Tmpfile,
        Self::FsMark,
        Self::Mix,
        Self::Dbench,
        Self::LockCycle,
        Self::RangeLock,
        Self::Fio,
        Self::Python,
    ];
}

/// Which directories the tasks work in.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Directories {
    /// All in one.
    #[default]
    Shared,
    /// One each.
    PerTask,
}

/// Which CPU each task is bound to, and all that it starts.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// None: the scheduler decides.
    #[default]
    None,
    /// One of its own; a socket is filled before the next one is begun.
    Compact,
    /// One of its own; one socket after the other gets a task.
    Spread,
}

/// What the tasks do.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Which program they run.
    pub kind: WorkloadKind,
    /// How many tasks.
    pub tasks: u32,
    /// Shared directory or one each.
    #[serde(default)]
    pub directories: Directories,
    /// All tasks on this one CPU.
    #[serde(default)]
    pub pin_to_cpu: Option<u32>,
    /// Each task on a CPU of its own.
    #[serde(default)]
    pub binding: Binding,
    /// Their nice level.
    #[serde(default)]
    pub nice: i32,
    /// Where the program of a Python workload is: `FILE:FUNCTION`. Who calls the engine loads it.
    #[serde(default)]
    pub program: Option<String>,
    /// SHA-256 of that file, so that the text of a spec says all its result depends on.
    #[serde(default)]
    pub program_sha256: Option<String>,
    /// Numbers of the workload (nanoseconds, counts, fractions).
    #[serde(default)]
    pub params: BTreeMap<String, serde_json::Value>,
}

/// Some of the tasks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// What results call it.
    pub name: String,
    /// What its tasks do, and how many they are.
    pub workload: WorkloadSpec,
}

/// A load and the number of its first task.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// What the tasks do.
    pub workload: &'a WorkloadSpec,
    /// Tasks are numbered through all loads.
    pub first: u32,
    /// Their nice level, where it is not that of the whole workload.
    pub nice: Option<i32>,
}

impl Load<'_> {
    /// The numbers of its tasks.
    pub fn numbers(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.workload.tasks
    }
}

impl WorkloadSpec {
    /// A number among the parameters, or its default. Panics for one that the workload does not have.
    pub fn number(&self, name: &str) -> f64 {
        let given = self.given(name);
        match params::is(self.kind, name) {
            Is::Number(default) => given.unwrap_or(default),
            Is::Required => given.expect("a spec is checked"),
            other => panic!("{name} is no number, but {other:?}"),
        }
    }

    /// A number that need not be there.
    pub fn given(&self, name: &str) -> Option<f64> {
        self.params.get(name).and_then(serde_json::Value::as_f64)
    }

    /// A list of times that need not be there (ns).
    pub fn times(&self, name: &str) -> Option<Vec<f64>> {
        let list = self.params.get(name)?.as_array()?;
        Some(list.iter().filter_map(serde_json::Value::as_f64).collect())
    }

    /// A word among the parameters, or its default. Panics for one that the workload does not have.
    pub fn word(&self, name: &str) -> &str {
        let Is::Word(words) = params::is(self.kind, name) else { panic!("{name} is no word") };
        self.params.get(name).and_then(serde_json::Value::as_str).unwrap_or(words[0])
    }

    /// A text among the parameters, or its default. Panics for one that the workload does not have.
    pub fn text(&self, name: &str) -> &str {
        let Is::Text(default) = params::is(self.kind, name) else { panic!("{name} is no text") };
        self.params.get(name).and_then(serde_json::Value::as_str).unwrap_or(default)
    }
}
