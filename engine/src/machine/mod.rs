//! The native machine: time, CPUs, the scheduler, cache lines, locks, devices.
//!
//! `queue` orders events; `state` is everything that changes, `constants` what does not; `scheduler` gives CPUs to tasks (with
//! `waking`, `preemption` and `idle_exit`), `policy` chooses which (by `eevdf` or `cfs`, `alone` where there
//! is one, in the run queues of `run_queue`, with the weights of `group` and the averages of `load`), `segment` books their time, `accounts` the window's, `pace` and `smt` make it
//! vary; `coherence` says what cache lines cost tasks; `lock`, `new_lock`, `holds` and `locks` are what tasks wait for, `chains`
//! why; `rcu` makes grace periods, for which `callbacks` wait, and `softirq` invokes them; `statistics` is what is counted, `wakeups` of wake-ups; `device` serves requests; `wheel` tells when timers ring; `whatif`
//! changes one lock class; `context` is a task's handle, `primitives` what lock algorithms are written in, `spawn` makes tasks,
//! `native` the executor that drives programs over it (`stall` says why it cannot), `look_back` and `audit` what is looked at when a run is over.
//!
//! Words (ids, sides, accounts, time) are the waist's. The files of `state` are in one circle: it holds what they keep, and each adds its
//! part of `impl State`, as the kernel's files do to `struct rq`; locks are in it through the registry of their kinds.

mod accounts;
mod afar;
mod alone;
mod at_lock;
mod audit;
mod balance;
mod blocks;
mod busiest;
mod callbacks;
mod cfs;
pub mod chains;
mod coherence;
mod constants;
mod context;
mod cpu;
mod cpu_set;
mod device;
mod disk;
mod eevdf;
mod entity;
mod governor;
mod group;
mod holds;
mod idle_exit;
mod idlest;
pub mod in_force;
mod into_idle;
mod line;
mod load;
pub mod lock;
mod lock_code;
mod lock_kind;
mod locks;
mod look_back;
mod native;
mod new_lock;
mod numa;
mod pace;
mod pipe;
mod placement;
mod policy;
mod preemption;
mod primitives;
mod queue;
mod rcu;
mod rcu_leaf;
mod recency;
mod rounds;
mod run_queue;
mod sched_group;
mod scheduler;
mod segment;
mod sleep;
mod smt;
mod softirq;
mod spawn;
mod stacks;
mod stall;
mod state;
pub mod statistics;
mod stopper;
mod task;
mod topology;
pub mod trace;
mod turns;
mod waiters;
mod waits;
mod wakeups;
mod waking;
mod warmth;
mod whatif;
mod wheel;

pub use crate::waist::time::{self, Time};
pub use crate::waist::{
    Access, Account, CachedId, ClassId, CpuId, DeviceId, Disk, Hardware, Io, LineId, LockId, Mode, Side, Span, TaskId,
    Then,
};
pub use audit::AUDIT;
pub use chains::ADD_UP;
pub use context::Context;
pub use cpu::ACCOUNTS;
pub use lock::LockKind;
pub use look_back::TOLD;
pub use native::{Native, Outcome};
pub use pipe::Pipe;
pub use rcu::CALLBACKS;
pub use stall::Stall;
pub use state::{Broken, Counters, State};
pub use task::TaskKind;
pub use topology::MAX_CPUS;
