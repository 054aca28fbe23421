//! The costs of the machine and the rules of its kernel, in [`Time`].

use super::sched::cfs::Cfs;
use crate::kernel::Rules;
use crate::spec::{KernelSpec, MachineCosts, Preemption};
use crate::waist::time::{from_ns, Time};
use std::collections::BTreeMap;

/// Costs of the machine in [`Time`].
#[derive(Clone, Debug)]
pub struct Costs {
    /// A context switch that leaves the page tables as they are.
    pub context_switch: Time,
    /// What one takes besides that loads others.
    pub switch_mm: Time,
    /// What a wake-up costs the waker.
    pub wakeup: Time,
    /// What it costs the waker if the woken task's idle CPU does the rest (`ttwu_queue_wakelist`).
    pub wakeup_queued: Time,
    /// What sending an interrupt to another CPU costs the waker besides.
    pub ipi_send: Time,
    /// From sending to the other CPU noticing.
    pub ipi_deliver: Time,
    /// What interrupting a busy CPU costs the waker, which wants it for another task.
    pub resched_send: Time,
    /// From sending to the interrupt's arrival there.
    pub resched_deliver: Time,
    /// What that CPU takes to serve it.
    pub resched_serve: Time,
    /// One round of a polling loop.
    pub cpu_relax: Time,
}

impl Costs {
    pub(super) fn new(costs: &MachineCosts) -> Self {
        let switch_mm = from_ns(costs.switch_mm.min(costs.context_switch));
        Self {
            context_switch: from_ns(costs.context_switch) - switch_mm,
            switch_mm,
            wakeup: from_ns(costs.wakeup),
            wakeup_queued: from_ns(costs.wakeup_queued.unwrap_or(costs.wakeup)),
            ipi_send: from_ns(costs.ipi_send),
            ipi_deliver: from_ns(costs.ipi_deliver),
            resched_send: from_ns(costs.resched_send.unwrap_or(costs.ipi_send)),
            resched_deliver: from_ns(costs.resched_deliver.unwrap_or(costs.ipi_deliver)),
            resched_serve: from_ns(costs.resched_serve),
            cpu_relax: from_ns(costs.cpu_relax),
        }
    }
}

/// The kernel's rules in [`Time`].
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Scheduler tick.
    pub tick: Time,
    /// EEVDF base slice.
    pub base_slice: Time,
    /// The times of CFS, in kernels that have it instead of EEVDF.
    pub cfs: Option<Cfs>,
    /// What this kernel does differently.
    pub rules: Rules,
    /// When kernel code gives way.
    pub preemption: Preemption,
    /// A task that ran less than this ago is not pulled to another CPU.
    pub migration_cost: Time,
    /// rwsem: how many ticks the first waiter lets pass before it asks for a hand-off.
    pub rwsem_handoff_ticks: u64,
    /// rwsem: most readers woken by one call.
    pub rwsem_reader_batch: usize,
    /// rwsem: how long a writer spins on readers: base, a reader, at most.
    pub rwsem_reader_spin: (Time, Time, Time),
    /// RCU grace period (percpu-rwsem writers).
    pub grace_period: Time,
    /// What of a switch it takes until who goes to sleep has left the run queue.
    pub dequeue: Time,
    /// What it takes to look at a CPU for a new task, and to queue that there.
    pub seek_cpu: Time,
    /// See `seek_cpu`.
    pub queue_new: Time,
    /// What it takes a CPU about to idle to look at another one, and to take a task.
    pub look_cpu: Time,
    /// See `look_cpu`.
    pub take_task: Time,
    /// From the moment at which a tick accounts the running task until its softirq wakes somebody by a timer.
    pub tick_timers: Time,
    /// What a round of RCU's softirq takes besides the callbacks.
    pub rcu_core: Time,
    /// From a tick until RCU's softirq wants the lock of the CPU's node.
    pub rcu_tick: Time,
    /// How long who learns of a grace period has that lock, and who reports.
    pub rcu_note: Time,
    /// See `rcu_note`.
    pub rcu_report: Time,
    /// The part of kernel code that is inside of RCU's readers, or is not preempted.
    pub rcu_inside: f64,
    /// When a timer of an idle CPU rings of which nothing is known.
    pub idle_timer: Time,
    /// Lines of a sleeper and its run queue that a waker fetches.
    pub wakeup_lines: Time,
    /// Lines that the CPU of who is woken fetches back.
    pub woken_lines: Time,
    /// Tasks that may hold a counting semaphore at once.
    pub semaphore_count: u64,
    /// Cohort locks: the most hand-offs in a row within a socket.
    pub cohort_handoffs: u64,
    /// hqlock: the same.
    pub hqlock_fairness_threshold: u64,
    /// hqlock: hand-offs of one queue after which it keeps a queue a socket.
    pub hqlock_turn_numa: u64,
    /// CNA: how long waiters of other sockets are kept out of the way.
    pub cna_threshold: Time,
    /// Lock type by role.
    pub locks: BTreeMap<String, String>,
}

impl Kernel {
    pub(super) fn new(kernel: &KernelSpec, instruction: f64) -> Self {
        let constants = &kernel.constants;
        Self {
            tick: from_ns(kernel.tick_ns),
            base_slice: from_ns(kernel.base_slice_ns),
            cfs: kernel.cfs.map(|cfs| Cfs {
                latency: from_ns(cfs.latency_ns),
                min_granularity: from_ns(kernel.base_slice_ns),
                wakeup_granularity: from_ns(cfs.wakeup_granularity_ns),
            }),
            rules: kernel.rules,
            preemption: kernel.preemption,
            migration_cost: from_ns(constants.migration_cost),
            rwsem_handoff_ticks: (constants.rwsem_handoff_wait / kernel.tick_ns).ceil() as u64,
            rwsem_reader_batch: constants.rwsem_reader_batch_max as usize,
            rwsem_reader_spin: (
                from_ns(constants.rwsem_reader_spin_base),
                from_ns(constants.rwsem_reader_spin_per_reader),
                from_ns(constants.rwsem_reader_spin_cap),
            ),
            grace_period: from_ns(constants.percpu_rwsem_grace_period),
            dequeue: from_ns(constants.code_dequeue * instruction),
            seek_cpu: from_ns(constants.code_seek_cpu * instruction),
            queue_new: from_ns(constants.code_queue_new * instruction),
            look_cpu: from_ns(constants.code_look_cpu * instruction),
            take_task: from_ns(constants.code_take_task * instruction),
            tick_timers: from_ns(constants.code_tick_timers * instruction),
            rcu_core: from_ns(constants.code_rcu_core * instruction),
            rcu_tick: from_ns(constants.code_rcu_tick * instruction),
            rcu_note: from_ns(constants.code_rcu_note * instruction),
            rcu_report: from_ns(constants.code_rcu_report * instruction),
            rcu_inside: constants.rcu_inside,
            idle_timer: from_ns(constants.idle_timer),
            wakeup_lines: constants.wakeup_lines as Time,
            woken_lines: constants.woken_lines as Time,
            cna_threshold: from_ns(constants.numa_spinlock_threshold),
            semaphore_count: constants.semaphore_count as u64,
            cohort_handoffs: constants.cohort_handoffs as u64,
            hqlock_fairness_threshold: constants.hqlock_fairness_threshold as u64,
            hqlock_turn_numa: constants.hqlock_general_handoffs_turn_numa as u64,
            locks: kernel.locks.clone(),
        }
    }
}
