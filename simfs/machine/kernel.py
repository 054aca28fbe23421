"""The kernel's rules and the machine's costs, in simulated time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from simfs.machine.time import Time, from_ns
from simfs.vocabulary import vocabulary

RULES = (
    "cpu.turns", "sched.run_to_parity", "sched.place_lag", "sched.place_deadline_initial",
    "sched.place_rel_deadline", "sched.preempt_short", "sched.pick_buddy", "sched.exit_leaves_autogroup",
    "sched.groups", "sched.wake_scan", "sched.lazy_tlb", "sched.recent_cpu", "sched.waker_recent_cpu",
    "sched.kthread_stacking", "sched.wakeup_queue", "sched.descheduling", "sched.busiest", "sched.numa_imbalance",
    "sched.newidle", "sched.delay_dequeue", "lock.debug_spinlock", "lock.semaphore_wake_queue", "idle.governor",
    "idle.io_waiters", "idle.polling", "process.stack_free", "softirq.ksoftirqd_first", "time.wheel",
)  # fmt: skip
"""Rules that are fields of `Kernel`, by their names there without the part before the dot."""

CODE = (
    "dequeue", "seek_cpu", "queue_new", "look_cpu", "take_task", "tick_timers", "rcu_core", "rcu_tick", "rcu_note",
    "rcu_report",
)  # fmt: skip
"""Times of kernel code that are fields of `Kernel`: constants `code_...`, in instructions."""


@dataclass(frozen=True)
class Costs:
    """Costs of switches and wake-ups."""

    context_switch: Time
    """A context switch that leaves the page tables as they are."""
    switch_mm: Time
    """What one takes besides that loads others."""
    wakeup: Time
    """What a wake-up costs the waker."""
    wakeup_queued: Time
    """What it costs the waker if the woken task's idle CPU does the rest (`ttwu_queue_wakelist`)."""
    ipi_send: Time
    """What sending an interrupt to another CPU costs the waker besides."""
    ipi_deliver: Time
    """From sending to the other CPU noticing."""
    resched_send: Time
    """What interrupting a busy CPU costs the waker, which wants it for another task."""
    resched_deliver: Time
    """From sending to the interrupt's arrival there."""
    resched_serve: Time
    """What that CPU takes to serve it."""
    cpu_relax: Time
    """One round of a polling loop."""

    @classmethod
    def of(cls, machine: Mapping[str, Any]) -> Costs:
        """From the `machine` of a RunSpec."""
        costs = machine["costs"]
        switch_mm = from_ns(min(costs.get("switch_mm", 0), costs["context_switch"]))
        return cls(
            context_switch=from_ns(costs["context_switch"]) - switch_mm,
            switch_mm=switch_mm,
            wakeup=from_ns(costs["wakeup"]),
            wakeup_queued=from_ns(costs.get("wakeup_queued", costs["wakeup"])),
            ipi_send=from_ns(costs["ipi_send"]),
            ipi_deliver=from_ns(costs["ipi_deliver"]),
            resched_send=from_ns(costs.get("resched_send", costs["ipi_send"])),
            resched_deliver=from_ns(costs.get("resched_deliver", costs["ipi_deliver"])),
            resched_serve=from_ns(costs.get("resched_serve", 0)),
            cpu_relax=from_ns(costs["cpu_relax"]),
        )


@dataclass(frozen=True)
class HaltPolling:
    """How long a guest polls before it halts, and its host for who has halted."""

    guest: Time
    guest_start: Time
    host_adapts: bool
    """The host's time is adapted (`kvm_vcpu_halt`), not as the machine's idle states say."""
    host: Time
    host_start: Time
    host_shrink: int
    """By what the host's time is divided after a long halt; 0: it does not poll any more."""


@dataclass(frozen=True)
class Kernel:
    """Scheduler and lock code."""

    tick: Time
    base_slice: Time
    """EEVDF's base slice, or CFS's minimum granularity."""
    cfs: tuple[Time, Time] | None
    """Latency and wake-up granularity of CFS; kernels without have EEVDF."""
    turns: bool
    """CPUs execute one after the other in each round of `cpu_relax`."""
    run_to_parity: bool
    """A running task is protected for its slice."""
    place_lag: bool
    """Lag is kept over a sleep."""
    place_deadline_initial: bool
    """A new task has half a slice to begin with."""
    place_rel_deadline: bool
    """Who comes from another queue has what was left of its slice."""
    preempt_short: bool
    """A CPU looks for another task as soon as its own is ahead and not protected."""
    pick_buddy: bool
    """A group whose task goes to sleep is picked again if it has others."""
    exit_leaves_autogroup: bool
    """A process that ends leaves its session for the root group before its parent is woken."""
    groups: str
    """Which tasks compete as a group: `none`, or the load, of one session (`autogroup`) or in one `cgroup`."""
    wake_scan: str
    """How many CPUs a wake-up looks at for an idle one: `all`, `proportional`, `utilization`, `none`."""
    lazy_tlb: bool
    """Kernel threads and idle CPUs leave the page tables that are loaded."""
    recent_cpu: bool
    """A wake-up looks at the CPU before the last one too."""
    waker_recent_cpu: bool
    """Who wakes a task notes its own CPU as that one."""
    kthread_stacking: bool
    """Whom a kernel thread of its own CPU wakes stays there if that has nothing else to do."""
    wakeup_queue: bool
    """Who wakes somebody on an idle CPU leaves most of it to that CPU."""
    descheduling: str
    """What a waker does about a sleeper that its CPU has not switched from yet (`Scheduler._leaves_to_switch`)."""
    debug_spinlock: bool
    """Spinlocks check their owner, which lies in their line (`CONFIG_DEBUG_SPINLOCK`)."""
    semaphore_wake_queue: bool
    """Who releases a semaphore wakes the first waiter after the inner spinlock, and not under it."""
    busiest: str
    """What makes CPUs the busiest, to take a task from: tasks `waiting`, `utilization`, or that and `runnable`."""
    numa_imbalance: str
    """How much busier a NUMA node may become than another; the values are in `numa.py`."""
    newidle: str
    """When a CPU about to idle looks for a task to take: `above_migration_cost`, `always`, or `by_success`."""
    delay_dequeue: bool
    """Who sleeps ahead of the average stays in EEVDF's queue until it is not."""
    governor: str
    """Who chooses idle states: `menu`, `teo`, `haltpoll`; or nobody: the deepest it has idled long enough for."""
    io_waiters: bool
    """A CPU on which tasks wait for I/O idles less deeply."""
    polling: str
    """How long an idle CPU polls before its governor chooses again: the values are in `polling.py`."""
    preemptible_rcu: bool
    """Where a kernel can be preempted, it is outside of RCU's readers (but for `rcu_inside`)."""
    stack_free: str
    """How the stack of a process is freed that no CPU keeps: `pages`, by a `worker`, or by one after a `callback`."""
    ksoftirqd_first: bool
    """While `ksoftirqd` is awake, interrupts leave softirqs to it."""
    wheel: str
    """How exact timers of the wheel are: `cascading` or `levels`."""
    preemption: str
    """When kernel code gives way: `none`, `voluntary`, `full`; or at any time, to the `host` of a guest."""
    locks: Mapping[str, str]
    """Lock kind by role."""
    migration_cost: Time
    """A task that ran less than this ago is not pulled to another CPU."""
    rwsem_handoff_ticks: int
    """How many ticks the first waiter of an rwsem lets pass before it asks for a hand-off."""
    rwsem_reader_batch: int
    rwsem_reader_spin_base: Time
    rwsem_reader_spin_per_reader: Time
    rwsem_reader_spin_cap: Time
    grace_period: Time
    """RCU grace period that a percpu-rwsem's writer waits for."""
    dequeue: Time
    """What of a switch it takes until who goes to sleep has left the run queue."""
    seek_cpu: Time
    """What it takes to look at a CPU for a new task."""
    queue_new: Time
    """What it takes to queue it there."""
    look_cpu: Time
    """What it takes a CPU about to idle to look at another one."""
    take_task: Time
    """What it takes it to take a task."""
    tick_timers: Time
    """From the moment at which a tick accounts the running task until its softirq wakes somebody by a timer."""
    rcu_core: Time
    """What a round of RCU's softirq takes besides the callbacks."""
    rcu_tick: Time
    """From a tick until RCU's softirq wants the lock of the CPU's node."""
    rcu_note: Time
    """How long who learns of a grace period has that lock."""
    rcu_report: Time
    """How long who reports has it."""
    rcu_inside: float
    """The part of kernel code that is inside of RCU's readers, or is not preempted."""
    halt_polling: HaltPolling
    idle_timer: Time
    """When a timer of an idle CPU rings of which nothing is known."""
    wakeup_lines: int
    """Lines of a sleeper and its run queue that a waker fetches."""
    woken_lines: int
    """Lines that the CPU of who is woken fetches back."""
    numa_spinlock_threshold: Time
    """CNA: how long waiters of other sockets are kept out of the way."""
    semaphore_count: int
    """Tasks that may hold a counting semaphore at once."""
    cohort_handoffs: int
    """Cohort locks: the most hand-offs in a row within a socket."""
    hqlock_fairness_threshold: int
    """hqlock: the same."""
    hqlock_turn_numa: int
    """hqlock: hand-offs of one queue after which it keeps a queue a socket."""

    @property
    def most_lag(self) -> Time:
        """The most service that anybody is owed, or owes (`entity_lag`)."""
        return max(2 * self.base_slice, self.tick)

    @classmethod
    def of(cls, kernel: Mapping[str, Any], instruction: float) -> Kernel:
        """From the `kernel` of a RunSpec; each of its instructions takes so many ns."""
        constants, cfs = kernel["constants"], kernel.get("cfs")
        rules = {**vocabulary().defaults, **kernel.get("rules", {})}
        return cls(
            tick=from_ns(kernel["tick_ns"]),
            base_slice=from_ns(kernel["base_slice_ns"]),
            cfs=(from_ns(cfs["latency_ns"]), from_ns(cfs["wakeup_granularity_ns"])) if cfs else None,
            preemption=kernel["preemption"],
            locks=kernel["locks"],
            migration_cost=from_ns(constants["migration_cost"]),
            preemptible_rcu=rules["rcu.preemptible"],
            rcu_inside=constants["rcu_inside"],
            halt_polling=_halt_polling(constants, rules["idle.host_polling"]),
            idle_timer=from_ns(constants["idle_timer"]),
            wakeup_lines=int(constants["wakeup_lines"]),
            woken_lines=int(constants["woken_lines"]),
            **{name.partition(".")[2]: rules[name] for name in RULES},
            **_times_of_code(constants, instruction),
            **_lock_constants(constants, kernel["tick_ns"]),
        )


def _halt_polling(constants: Mapping[str, float], host: object) -> HaltPolling:
    return HaltPolling(
        guest=from_ns(constants["guest_halt_poll"]),
        guest_start=from_ns(constants["guest_halt_poll_start"]),
        host_adapts=host == "adaptive",
        host=from_ns(constants["host_halt_poll"]),
        host_start=from_ns(constants["host_halt_poll_start"]),
        host_shrink=int(constants["host_halt_poll_shrink"]),
    )


def _times_of_code(constants: Mapping[str, float], instruction: float) -> dict[str, Any]:
    """The fields of a kernel that say how long its code takes, where an instruction takes so many ns."""
    return {name: from_ns(constants[f"code_{name}"] * instruction) for name in CODE}


def _lock_constants(constants: Mapping[str, float], tick_ns: float) -> dict[str, Any]:
    """The fields of a kernel that say how locks wait and hand over."""
    return {
        "rwsem_handoff_ticks": ceil(constants["rwsem_handoff_wait"] / tick_ns),
        "rwsem_reader_batch": int(constants["rwsem_reader_batch_max"]),
        "rwsem_reader_spin_base": from_ns(constants["rwsem_reader_spin_base"]),
        "rwsem_reader_spin_per_reader": from_ns(constants["rwsem_reader_spin_per_reader"]),
        "rwsem_reader_spin_cap": from_ns(constants["rwsem_reader_spin_cap"]),
        "grace_period": from_ns(constants["percpu_rwsem_grace_period"]),
        "numa_spinlock_threshold": from_ns(constants["numa_spinlock_threshold"]),
        "semaphore_count": int(constants["semaphore_count"]),
        "cohort_handoffs": int(constants["cohort_handoffs"]),
        "hqlock_fairness_threshold": int(constants["hqlock_fairness_threshold"]),
        "hqlock_turn_numa": int(constants["hqlock_general_handoffs_turn_numa"]),
    }
