//! The native machine: time, CPUs, the scheduler, cache lines, locks, devices.
//!
//! `queue` orders events; `state` is everything that changes, `constants` what does not; `sched` gives CPUs to tasks, `cpus` have their time, `caches`
//! their lines; `lock` and `locks` are what tasks wait for, `chains` why; `rcu` makes grace periods and `softirq` invokes its callbacks;
//! `statistics` is what is counted; `device` serves requests, over `pipe` and `disk`, and `plug` holds them back; `context` is a task's handle, `primitives` what lock
//! algorithms are written in, `labels` what tasks are called, `native` the executor that drives programs over it (`stall` says why it cannot), `look_back` and `audit` what is
//! looked at when a run is over.
//!
//! Words (ids, sides, accounts, time) are the waist's. The files of `state` are in one circle: it holds what they keep, and each adds its
//! part of `impl State`, as the kernel's files do to `struct rq`; locks are in it through the registry of their kinds.

mod audit;
mod caches;
pub mod chains;
mod constants;
mod context;
mod cpus;
mod device;
mod disk;
pub mod in_force;
pub mod labels;
pub mod lock;
mod locks;
mod look_back;
mod native;
mod pipe;
mod plug;
mod primitives;
mod queue;
mod rcu;
mod sched;
mod seldom;
mod sleep;
mod softirq;
mod stacks;
mod stall;
mod state;
pub mod statistics;
mod task;
pub mod trace;
mod workers;

pub use crate::waist::time::{self, Time};
pub use crate::waist::{
    Access, Account, CachedId, ClassId, CpuId, DeviceId, Disk, Hardware, Io, LineId, LockId, Mode, Side, Span, TaskId,
    Then,
};
pub use audit::AUDIT;
pub use chains::ADD_UP;
pub use context::Context;
pub use cpus::cpu::ACCOUNTS;
pub use cpus::topology::MAX_CPUS;
pub use lock::LockKind;
pub use look_back::TOLD;
pub use native::{Native, Outcome};
pub use pipe::Pipe;
pub use rcu::CALLBACKS;
pub use stall::Stall;
pub use state::{Broken, Counters, State};
pub use task::TaskKind;
