//! What `workload.params` may say: the parameters of each workload, with what they are where a spec does not give them.

use super::WorkloadKind;
use crate::nearest::hint;
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// A parameter's name and what it is.
pub type Param = (&'static str, Is);

/// The parameters of a workload, part by part.
type Table = &'static [&'static [Param]];

/// What a parameter is. Numbers are never negative; times are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub enum Is {
    /// A number that must be given.
    Required,
    /// A number, or else this one.
    Number(f64),
    /// A number that means something by being there.
    Optional,
    /// One of these words; the first where none is given.
    Word(&'static [&'static str]),
    /// A text that the workload itself reads, or else this one.
    Text(&'static str),
    /// A list of times that means something by being there.
    Times,
    /// A list that must be given, which the workload itself reads.
    List,
}

use Is::{List, Number, Optional, Required, Text, Times, Word};

const DISTRIBUTION: Is = Word(&["constant", "exponential", "lognormal", "gamma", "empirical"]);

/// fio's, of which one of many is chosen.
const RANDOM_DISTRIBUTION: Is = Word(&["random", "zipf"]);

/// A time that is drawn: its mean, and how the values spread.
macro_rules! drawn {
    ($name:literal, $mean:expr) => {
        &[
            (concat!($name, "_ns"), $mean),
            (concat!($name, "_distribution"), DISTRIBUTION),
            (concat!($name, "_cv"), Number(1.0)),
            (concat!($name, "_values"), Times),
            (concat!($name, "_weights"), Times),
        ]
    };
}

/// What a program of a compilation leaves behind when it ends.
macro_rules! memory {
    ($program:literal) => {
        &[
            (concat!($program, ".pages"), Number(0.0)),
            (concat!($program, ".maps"), Number(0.0)),
            (concat!($program, ".areas"), Number(0.0)),
            (concat!($program, ".lost_dentries"), Number(0.0)),
        ]
    };
}

const LOCK_CYCLE: Table = &[
    &[("think", Word(&["cpu", "sleep"]))],
    drawn!("think", Required),
    drawn!("hold", Required),
    &[
        ("readers", Number(0.0)),
        ("blocking", Number(0.0)),
        ("data_lines", Number(0.0)),
        ("locks", Number(1.0)),
        ("begin_ns", Number(0.0)),
        ("order", Word(&["same", "opposite"])),
    ],
    drawn!("device", Number(0.0)),
    &[("device_parallelism", Number(1.0))],
];

const RANGE_LOCK: Table = &[
    &[
        ("design", Word(&["interval-tree", "btree", "optimistic", "rwsem"])),
        ("index_lock", Word(&["kernel", "pthread"])),
        ("ranges", Word(&["per-task", "interleaved", "shared"])),
        ("units", Number(1024.0)),
        ("length", Number(1.0)),
        ("outstanding", Number(1.0)),
        ("order", Word(&["rotating", "batches"])),
        ("readers", Number(0.0)),
    ],
    drawn!("think", Number(0.0)),
    drawn!("hold", Required),
    &[
        ("interval_tree_work_ns", Number(0.0)),
        ("btree_work_ns", Number(0.0)),
        ("optimistic_work_ns", Number(0.0)),
        ("syscall_ns", Number(0.0)),
    ],
];

/// Of all workloads on files but fio.
const FILES: Table = &[&[("subdirectories", Number(1.0)), ("initial_files", Number(0.0)), ("synced", Number(0.0))]];

/// Of all workloads that can serve requests.
const ARRIVALS: Table = &[drawn!("arrivals", Optional), &[("arrivals_trace", Times)]];

/// Names of metadata loops, and of single operations.
const LOOP_NAMES: Param = ("name_format", Text("p{task:02}_{serial:08}"));
const ACT_NAMES: Param = ("name_format", Text("f{task:04}_{serial:08}"));

/// What a loop uses before each turn.
const BEFORE: [Param; 3] =
    [("footprint_bytes", Number(0.0)), ("code_bytes", Number(0.0)), ("process_pages", Number(0.0))];

const CREATE: Table = &[&BEFORE, &[LOOP_NAMES]];

const TMPFILE: Table =
    &[&[("write_bytes", Number(4096.0)), ("fsync", Number(0.0)), ("time_calls", Number(0.0)), LOOP_NAMES], &BEFORE];

const FS_MARK: Table = &[&[
    ("sync", Number(1.0)),
    ("files", Number(1000.0)),
    ("file_bytes", Number(51200.0)),
    ("write_bytes", Number(16384.0)),
    ("keep", Number(0.0)),
    ("files_per_directory", Number(0.0)),
    ("user_ns", Required),
]];

const MIX: Table = &[&[
    ("operations", List),
    ("order", Word(&["drawn", "in-turn"])),
    ("files", Number(0.0)),
    ("file_bytes", Number(0.0)),
    ("cold", Number(0.0)),
    ("file_set", Word(&["own", "shared"])),
    ("threads", Number(0.0)),
    ("descriptors", Number(3.0)),
    ("watched", Number(0.0)),
    ("unlinked", Number(0.0)),
    ("shared_open", Number(0.0)),
    ("ends", Number(0.0)),
    ACT_NAMES,
    ("names", Optional),
    ("begin_ns", Number(0.0)),
    ("walked", Number(0.0)),
    ("walks_apart", Number(0.0)),
    ("random_distribution", RANDOM_DISTRIBUTION),
    ("zipf_theta", Number(0.0)),
    ("user_ns", Number(0.0)),
    ("pick_ns", Number(0.0)),
    ("give_back_ns", Number(0.0)),
]];

const FIO: Table = &[&[
    ("size", Number(0.0)),
    ("block_size", Number(4096.0)),
    ("extents", Number(1.0)),
    ("cached", Number(0.0)),
    ("read_before", Number(1.0)),
    ("direct", Number(0.0)),
    ("files", Word(&["shared", "per-task"])),
    ("reads", Number(0.5)),
    ("readers", Optional),
    ("written", Optional),
    ("unwritten", Optional),
    ("fsync", Number(0.0)),
    ("sync", Number(0.0)),
    ("fdatasync", Number(0.0)),
    ("watched", Number(0.0)),
    ("iodepth", Number(1.0)),
    ("places", Word(&["random", "own-block", "sequential"])),
    ("random_distribution", RANDOM_DISTRIBUTION),
    ("zipf_theta", Number(0.0)),
    ("user_ns", Number(0.0)),
]];

const COMPILE: Table = &[
    &[
        ("user_cpu_ns", Required),
        ("kernel_cpu_ns", Required),
        ("cpu_cv", Required),
        ("footprint_bytes", Number(0.0)),
        ("code_bytes", Number(0.0)),
        ("asm_bytes", Required),
        ("object_bytes", Required),
        ("object_writes", Required),
        ("shell", Number(0.0)),
        ("sh.user_cpu_ns", Number(0.0)),
        ("sh.kernel_cpu_ns", Number(0.0)),
        ("sh.spawn_cc_at", Number(0.0)),
        ("gcc.cpu_share", Required),
        ("gcc.kernel_share", Required),
        ("start.fork_ns", Required),
        ("start.parent_ns", Required),
        ("start.exec_ns", Required),
        ("start.release_ns", Required),
        ("start.wait_ns", Required),
        ("start.gone_ns", Required),
        ("start.reap_ns", Required),
        ("gcc.create_asm_at", Required),
        ("gcc.spawn_cc1_at", Required),
        ("gcc.spawn_as_at", Required),
        ("gcc.unlink_asm_at", Required),
        ("cc1.cpu_share", Required),
        ("cc1.kernel_share", Required),
        ("cc1.open_asm_at", Required),
        ("cc1.write_asm_at", Required),
        ("as.cpu_share", Required),
        ("as.kernel_share", Required),
        ("as.unlink_object_at", Required),
        ("as.create_object_at", Required),
        ("as.open_asm_at", Required),
        ("as.write_object_at", Required),
        ("proc_entries", Number(0.0)),
    ],
    memory!("sh"),
    memory!("gcc"),
    memory!("cc1"),
    memory!("as"),
];

const DBENCH: Table = &[&[
    ("ntcreatex_open", Required),
    ("ntcreatex_missing", Required),
    ("ntcreatex_create", Required),
    ("close", Required),
    ("rename", Required),
    ("unlink", Required),
    ("qpathinfo", Required),
    ("qpathinfo_missing", Required),
    ("qfileinfo", Required),
    ("qfsinfo", Required),
    ("sfileinfo", Required),
    ("find", Required),
    ("writex", Required),
    ("readx", Required),
    ("lockx", Required),
    ("unlockx", Required),
    ("flush", Required),
    ("write_bytes", Required),
    ("read_bytes", Required),
    ("overwrites", Required),
    ("writes_again", Required),
    ("writes_new", Required),
    ("flushed_directories", Required),
    ("renames_flushed", Required),
    ("renames_beside", Required),
    ("files", Required),
    ACT_NAMES,
    ("names", Required),
    ("reads_again", Required),
    ("finds_at_home", Required),
    ("stays", Required),
    ("sync", Number(0.0)),
    ("sync_directories", Number(0.0)),
    ("user_ns", Required),
    ("probe_ns", Required),
]];

/// The parameters of a workload; `None` for programs in Python, which read what they like.
pub fn of(kind: WorkloadKind) -> Option<impl Iterator<Item = &'static Param> + Clone> {
    let serves = matches!(
        kind,
        WorkloadKind::Compile
            | WorkloadKind::Create
            | WorkloadKind::CreateUnlink
            | WorkloadKind::Tmpfile
            | WorkloadKind::Mix
            | WorkloadKind::LockCycle
    );
    let arrivals = if serves { ARRIVALS } else { &[] };
    let (own, files): (Table, Table) = match kind {
        WorkloadKind::Compile => (COMPILE, FILES),
        WorkloadKind::Create | WorkloadKind::CreateUnlink => (CREATE, FILES),
        WorkloadKind::Tmpfile => (TMPFILE, FILES),
        WorkloadKind::FsMark => (FS_MARK, FILES),
        WorkloadKind::Mix => (MIX, FILES),
        WorkloadKind::Dbench => (DBENCH, FILES),
        WorkloadKind::LockCycle => (LOCK_CYCLE, &[]),
        WorkloadKind::RangeLock => (RANGE_LOCK, &[]),
        WorkloadKind::Fio => (FIO, &[]),
        WorkloadKind::Python => return None,
    };
    Some(own.iter().chain(files).chain(arrivals).copied().flatten())
}

/// What a parameter of a workload is. Panics for one that the table lacks: a defect of the program that asks.
pub fn is(kind: WorkloadKind, name: &str) -> Is {
    let found = of(kind).and_then(|mut all| all.find(|(known, _)| *known == name));
    found.unwrap_or_else(|| panic!("{kind:?} has no parameter '{name}'")).1
}

/// Refuses what the workload does not read, what is not what it should be, and what is missing.
pub fn check(kind: WorkloadKind, given: &BTreeMap<String, Value>) -> Result<(), String> {
    let Some(known) = of(kind) else { return Ok(()) };
    for (name, value) in given {
        let Some((_, is)) = known.clone().find(|(known, _)| known == name) else {
            let near = hint(name, known.map(|(name, _)| *name));
            return Err(format!("workload.params: nothing reads '{name}'{near}"));
        };
        fits(*is, value).map_err(|what| format!("workload.params.{name}: {value} is not {what}"))?;
    }
    let missing = known.clone().find(|(name, is)| matches!(is, Required | List) && !given.contains_key(*name));
    missing.map_or(Ok(()), |(name, _)| Err(format!("workload.params: '{name}' is missing")))
}

fn fits(is: Is, value: &Value) -> Result<(), String> {
    let (fits, what) = match is {
        Required | Number(_) | Optional => {
            (value.as_f64().is_some_and(|n| n >= 0.0), "a number of at least 0".to_owned())
        }
        Word(words) => {
            (value.as_str().is_some_and(|word| words.contains(&word)), format!("one of {}", words.join(", ")))
        }
        Text(_) => (value.is_string(), "a text".to_owned()),
        Times => (
            value
                .as_array()
                .is_some_and(|list| !list.is_empty() && list.iter().all(|n| n.as_f64().is_some_and(|n| n >= 0.0))),
            "a list of numbers of at least 0".to_owned(),
        ),
        List => (value.as_array().is_some_and(|list| !list.is_empty()), "a list with something in it".to_owned()),
    };
    fits.then_some(()).ok_or(what)
}

/// The table for those who write specs.
pub fn describe((name, is): &Param) -> Value {
    match is {
        Required | List => json!({"name": name, "required": true}),
        Number(default) => json!({"name": name, "default": default}),
        Optional | Times => json!({"name": name}),
        Word(words) => json!({"name": name, "default": words[0], "words": words}),
        Text(default) => json!({"name": name, "default": default}),
    }
}
