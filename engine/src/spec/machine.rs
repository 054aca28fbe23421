//! The hardware.

use serde::Deserialize;

/// CPUs, distances, costs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSpec {
    /// Number of CPUs (hardware threads).
    pub cpus: u32,
    /// Hardware threads a core.
    pub cpus_per_core: u32,
    /// CPUs that share a last-level cache.
    pub cpus_per_llc: u32,
    /// CPUs a socket.
    pub cpus_per_socket: u32,
    /// Hardware and scheduler costs.
    pub costs: MachineCosts,
    /// Its caches; programs find theirs always warm when absent.
    #[serde(default)]
    pub caches: Option<CachesSpec>,
    /// Bytes of its memory; it never fills up when absent.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Idle states, shallowest first.
    pub idle_states: Vec<IdleState>,
    /// Power of a CPU that runs (W).
    pub watts_active: f64,
    /// Power of a CPU that spins (W).
    pub watts_spin: f64,
}

/// Costs of a machine, in nanoseconds; `speed` multiplies all program times.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // each field is described in docs/models.md
pub struct MachineCosts {
    pub line_hit: f64,
    /// An atomic read-modify-write of a line that the CPU has to itself; `line_hit` when absent.
    #[serde(default)]
    pub line_atomic: Option<f64>,
    pub line_smt: f64,
    pub line_llc: f64,
    pub line_socket: f64,
    pub line_remote: f64,
    /// How many neighbouring lines a CPU fetches at once.
    pub line_overlap: f64,
    /// 1 where a load takes a line that another CPU under the same last-level cache has modified, 0 where both have copies then.
    #[serde(default)]
    pub line_migrates: f64,
    /// One round of a polling loop (`cpu_relax`).
    pub cpu_relax: f64,
    pub context_switch: f64,
    /// What loading other page tables takes of it; nothing when absent.
    #[serde(default)]
    pub switch_mm: f64,
    pub wakeup: f64,
    /// What the waker of an idle CPU pays of `wakeup`; that CPU does the rest. All of it when absent.
    #[serde(default)]
    pub wakeup_queued: Option<f64>,
    /// An instruction of lock code; none takes time when absent.
    #[serde(default)]
    pub instruction: f64,
    pub ipi_send: f64,
    pub ipi_deliver: f64,
    /// Sending a reschedule interrupt to a busy CPU; `ipi_send` when absent.
    #[serde(default)]
    pub resched_send: Option<f64>,
    /// Until it arrives; `ipi_deliver` when absent.
    #[serde(default)]
    pub resched_deliver: Option<f64>,
    /// What serving it takes that CPU.
    #[serde(default)]
    pub resched_serve: f64,
    /// How much the time of the same kernel code varies: standard deviation over mean.
    pub step_cv: f64,
    /// How fast a program runs while the other CPU of its core executes too, relative to alone.
    pub smt_speed: f64,
    pub speed: f64,
}

/// The caches of a machine, and what kernel code needs of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CachesSpec {
    /// Size of a core's own (L2).
    pub core_bytes: f64,
    /// Size of a last-level cache.
    pub llc_bytes: f64,
    /// A load from the last-level cache.
    pub llc_ns: f64,
    /// A load from memory.
    pub memory_ns: f64,
    /// What one core reads from memory in order, in bytes a second.
    pub memory_bandwidth: f64,
    /// Lines that the first microsecond of kernel code touches, by the time of the traced machine; the first n touch root of n times as many.
    pub code_lines: f64,
    /// Code whose branches a core's front end knows, in bytes.
    #[serde(default)]
    pub front_end_bytes: f64,
    /// What a line costs whose branches it does not know.
    #[serde(default)]
    pub front_end_ns: f64,
    /// What such a line costs besides if it comes from beyond the core's own cache: nothing fetches it ahead.
    #[serde(default)]
    pub front_end_stall_ns: f64,
    /// Memory whose translations a core's TLB holds, in bytes: entries times the size of a page. 0: it forgets nothing.
    #[serde(default)]
    pub tlb_bytes: f64,
    /// What a walk of the page tables takes that finds its entries in the core's own cache.
    #[serde(default)]
    pub tlb_walk_ns: f64,
    /// Lines that were counted, by the calls that touch them; calls without any touch `code_lines`.
    #[serde(default)]
    pub bodies: Vec<BodySpec>,
}

/// Lines of code and data that just these kinds of calls touch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodySpec {
    /// The calls, by their sites.
    pub calls: Vec<String>,
    /// How many lines.
    pub lines: f64,
    /// How many pages of 4 KiB its data lie in.
    #[serde(default)]
    pub pages: f64,
}

/// One idle state.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleState {
    /// Its name, for example `C1`.
    pub name: String,
    /// Time to leave it while all CPUs of the socket idle: the package may sleep as well.
    pub exit_ns: f64,
    /// The same while another CPU of the socket is awake; as `exit_ns` by default.
    #[serde(default)]
    pub core_exit_ns: Option<f64>,
    /// How long a CPU must have been idle to be in it.
    pub residency_ns: f64,
    /// Power of a CPU in it (W).
    pub watts: f64,
}
