//! The scheduler: which task runs where, and when. The files have the names of what `kernel/sched/fair.c` and `core.c` do.
//!
//! `scheduler` takes a CPU from one task to the next; `policy` says who competes in which of its run queues (`run_queue`, `waiters`) and who is
//! next, by `eevdf` or `cfs`, `alone` where there is one; `address_space` whose page tables a CPU has; `group` has weights of the load's group, `load` averages; `spawn`, `waking`
//! and `preemption` make tasks runnable and take CPUs back; `placement` and `idlest` choose a CPU for a task, `newidle`, `balance`, `afar` and `busiest`
//! a task for a CPU, with the sums of `sched_group` and the rules of `numa`; `stopper` moves who runs; `resched` interrupts a busy CPU; `wakeups` is what is recorded.

pub(in crate::machine) mod address_space;
pub(in crate::machine) mod afar;
pub(in crate::machine) mod alone;
pub(in crate::machine) mod balance;
pub(in crate::machine) mod busiest;
pub(in crate::machine) mod cfs;
pub(in crate::machine) mod eevdf;
pub(in crate::machine) mod entity;
pub(in crate::machine) mod group;
pub(in crate::machine) mod idlest;
pub(in crate::machine) mod load;
pub(in crate::machine) mod newidle;
pub(in crate::machine) mod numa;
pub(in crate::machine) mod placement;
pub(in crate::machine) mod policy;
pub(in crate::machine) mod preemption;
pub(in crate::machine) mod resched;
pub(in crate::machine) mod run_queue;
pub(in crate::machine) mod sched_group;
pub(in crate::machine) mod scheduler;
pub(in crate::machine) mod spawn;
pub(in crate::machine) mod stopper;
pub(in crate::machine) mod waiters;
pub(in crate::machine) mod wakeups;
pub(in crate::machine) mod waking;
