//! The kernel: its scheduler, its locks, its constants.

use crate::kernel::Rules;
use serde::Deserialize;
use std::collections::BTreeMap;

/// When kernel code gives up its CPU to another task.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Preemption {
    /// Only on return to user mode or when it sleeps.
    None,
    /// Also where it asks for a lock that may sleep.
    Voluntary,
    /// Anywhere outside spinlocks.
    Full,
    /// Everywhere, also under spinlocks: the tasks are virtual CPUs, and their host knows nothing of what they hold.
    Host,
}

/// Scheduler and locks of a kernel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelSpec {
    /// The profile's name, for messages.
    pub name: String,
    /// Length of a scheduler tick.
    pub tick_ns: f64,
    /// EEVDF: the base slice; CFS: the minimum granularity.
    pub base_slice_ns: f64,
    /// The other times of CFS, where that is the scheduler.
    #[serde(default)]
    pub cfs: Option<CfsSpec>,
    /// When kernel code can be preempted.
    pub preemption: Preemption,
    /// Role -> lock type.
    pub locks: BTreeMap<String, String>,
    /// Everything else that kernels do differently, by name; as Linux 6.12 does it where absent.
    #[serde(default)]
    pub rules: Rules,
    /// Constants of the lock code and the scheduler.
    pub constants: KernelConstants,
    /// Kernel threads that have nothing to do with the workload; none run when absent.
    #[serde(default)]
    pub kernel_threads: Option<KernelThreadsSpec>,
}

/// How often kernel threads run that have nothing to do with the workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelThreadsSpec {
    /// From run to run of the thread bound to each CPU.
    pub bound_interval_ns: f64,
    /// Mean time from run to run of those that run anywhere.
    pub unbound_interval_ns: f64,
    /// CPU time of a run.
    pub run_ns: f64,
}

/// Times of CFS, the scheduler before Linux 6.6.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CfsSpec {
    /// The period that all runnable tasks share.
    pub latency_ns: f64,
    /// How far behind the current task a woken one must be to preempt it.
    pub wakeup_granularity_ns: f64,
}

/// The values of these names, which are all that is given.
fn values(names: &[&str], given: &BTreeMap<String, f64>) -> Result<Vec<f64>, String> {
    if let Some(name) = given.keys().find(|name| !names.contains(&name.as_str())) {
        return Err(format!("unknown field `{name}`"));
    }
    names.iter().map(|name| given.get(*name).copied().ok_or_else(|| format!("missing field `{name}`"))).collect()
}

macro_rules! constants {
    ($(#[$doc:meta])* $name:ident: $($field:ident),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(try_from = "BTreeMap<String, f64>")]
        #[allow(missing_docs)] // each is described, with its source, in the timeline of kernels
        pub struct $name { $(pub $field: f64),+ }

        impl $name {
            /// Their names.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),+];
        }

        // What serde derives has code for each of them.
        impl TryFrom<BTreeMap<String, f64>> for $name {
            type Error = String;

            fn try_from(given: BTreeMap<String, f64>) -> Result<Self, String> {
                let mut values = values(Self::NAMES, &given)?.into_iter();
                Ok(Self { $($field: values.next().expect("one for each name")),+ })
            }
        }
    };
}

constants! {
    /// Constants of the lock code and the scheduler: nanoseconds, but for counts and the
    /// instructions of the code of locks and RCU, and the part of kernel code that is inside of readers. None has a default, so a name that differs between the timeline and the engine is an error and never a silent fallback.
    KernelConstants: migration_cost, rwsem_handoff_wait, rwsem_reader_batch_max, rwsem_reader_spin_base,
    rwsem_reader_spin_per_reader, rwsem_reader_spin_cap, percpu_rwsem_grace_period, numa_spinlock_threshold,
    semaphore_count, cohort_handoffs, hqlock_fairness_threshold, hqlock_general_handoffs_turn_numa,
    code_mutex_spin, code_mutex_attempt, code_mutex_woken, code_mutex_taken, code_mutex_ask, code_mutex_queue, code_mutex_look,
    code_mutex_take, code_mutex_wake, code_mutex_mark, code_rwsem_spin, code_rwsem_attempt, code_rwsem_woken, code_rwsem_taken,
    code_rwsem_ask, code_rwsem_queue, code_rwsem_look, code_rwsem_take, code_rwsem_wake, code_rwsem_mark, code_rwsem_grant,
    code_rwsem_undo, code_rwsem_count, code_rwsem_count_reader, code_rwsem_collect, code_wake_awake, code_wake_before_wait, code_semaphore_queue, code_semaphore_taken, code_semaphore_mark,
    code_qspinlock_pend, code_qspinlock_queue, code_qspinlock_joined, code_qspinlock_head, code_qspinlock_take, code_qspinlock_taken, code_qspinlock_pending_take,
    code_qspinlock_pending_taken, code_qrwlock_ask, code_qrwlock_count, code_qrwlock_enter, code_qrwlock_leave, code_qrwlock_taken,
    code_futex, code_futex_queue, code_futex_mark, code_futex_return, code_pthread, code_dequeue, code_seek_cpu, code_queue_new, code_look_cpu, code_take_task,
    code_tick_timers, code_rcu_core, code_rcu_tick, code_rcu_note, code_rcu_report,
    code_rcu_thread, code_free_task, code_free_cred, code_free_map, code_free_area, code_free_dentry, code_free_proc,
    code_free_stack, code_vfree, code_lru_add, code_lru_release, code_lru_activate, code_unmap_page, code_free_page, lru_batch,
    code_alloc_fd, code_fd_install, code_close_fd, code_lookup_fd, code_fget, code_f_pos_lock, code_rehash, code_free_table,
    rcu_inside, idle_timer, wakeup_lines, woken_lines, guest_halt_poll, guest_halt_poll_start, host_halt_poll, host_halt_poll_start,
    host_halt_poll_shrink,
}
