//! What may be wrong with a spec besides its form. Each error names the JSON path and what is wrong.

use super::{params, Binding, BodySpec, CachesSpec, Change, KernelSpec, RunSpec, WhatIf, WorkloadKind, WorkloadSpec};
use crate::kernel::roles;
use crate::kernel::sched::Class;
use crate::machine::LockKind;
use crate::nearest::hint;

impl KernelSpec {
    fn check(&self) -> Result<(), String> {
        require(self.tick_ns >= 1e3, "kernel.tick_ns", "must be at least 1 us")?;
        require(self.base_slice_ns >= 1e3, "kernel.base_slice_ns", "must be at least 1 us")?;
        require(
            (self.rules.class == Class::Cfs) == self.cfs.is_some(),
            "kernel.cfs",
            "must be given where the rule sched.class is cfs, and nowhere else",
        )
    }
}

impl WhatIf {
    fn check(&self) -> Result<(), String> {
        match &self.change {
            Change::HoldScale(factor) => {
                require((0.0..=1e3).contains(factor), "whatif.change.hold_scale", "must be between 0 and 1000")
            }
            Change::Split(parts) => require((1..=4096).contains(parts), "whatif.change.split", "must be 1..=4096"),
            Change::Kind(kind) => LockKind::parse(kind).map(drop).map_err(|e| format!("whatif.change.kind: {e}")),
            Change::Remove => Ok(()),
        }
    }
}

impl RunSpec {
    fn check_groups(&self) -> Result<(), String> {
        let kinds = || self.groups.iter().map(|group| group.workload.kind);
        let alone = |kind| matches!(kind, WorkloadKind::Python | WorkloadKind::RangeLock | WorkloadKind::Fio);
        if let Some(kind) = kinds().find(|kind| alone(*kind)) {
            return Err(format!("groups: tasks of {kind:?} cannot be in a group"));
        }
        let cycles = kinds().filter(|kind| *kind == WorkloadKind::LockCycle).count();
        require(
            cycles == 0 || cycles == self.groups.len(),
            "groups",
            "lock cycles have no filesystem, and other loads need one",
        )?;
        let tasks: u64 = self.groups.iter().map(|group| u64::from(group.workload.tasks)).sum();
        require(
            self.groups.is_empty() || tasks == u64::from(self.workload.tasks),
            "workload.tasks",
            "must be those of all groups",
        )
    }

    /// What may be wrong with a load.
    fn check_load(&self, w: &WorkloadSpec) -> Result<(), String> {
        require(w.tasks >= 1, "workload.tasks", "must be at least 1")?;
        require((-20..=19).contains(&w.nice), "workload.nice", "must be -20..=19")?;
        params::check(w.kind, &w.params)?;
        if let Some(cpu) = w.pin_to_cpu {
            require(cpu < self.machine.cpus, "workload.pin_to_cpu", "names a CPU that the machine does not have")?;
            require(w.binding == Binding::None, "workload.binding", "must be none where all tasks are on one CPU")?;
        }
        Ok(())
    }

    /// Everything.
    pub(super) fn check(&self) -> Result<(), String> {
        let m = &self.machine;
        require((1..=crate::machine::MAX_CPUS).contains(&m.cpus), "machine.cpus", "must be 1..=1024")?;
        if self.workload.kind != WorkloadKind::Python {
            if let Some(role) = self.kernel.locks.keys().find(|role| roles().all(|known| known != role.as_str())) {
                return Err(format!("kernel.locks: nothing takes '{role}'{}", hint(role, roles())));
            }
        }
        self.check_groups()?;
        self.loads().into_iter().try_for_each(|load| self.check_load(load.workload))?;
        require(self.batches >= 1, "batches", "must be at least 1")?;
        require(self.duration_ns > 0.0 && self.duration_ns < 1e15, "duration_ns", "must be positive and below 1e15")?;
        require((0.0..1e15).contains(&self.warmup_ns), "warmup_ns", "must be between 0 and 1e15")?;
        require((0.0..=10.0).contains(&m.costs.step_cv), "machine.costs.step_cv", "must be between 0 and 10")?;
        require(
            m.costs.smt_speed > 0.0 && m.costs.smt_speed <= 1.0,
            "machine.costs.smt_speed",
            "must be above 0 and at most 1",
        )?;
        require(m.costs.line_overlap >= 1.0, "machine.costs.line_overlap", "must be at least 1")?;
        require((0.0..=1.0).contains(&m.costs.line_migrates), "machine.costs.line_migrates", "must be 0 or 1")?;
        m.caches.as_ref().map_or(Ok(()), CachesSpec::check)?;
        self.kernel.check()?;
        if let Some(device) = &self.device {
            require(device.parallelism >= 1, "device.parallelism", "must be at least 1")?;
            require(device.raid0 != Some(0), "device.raid0", "must be at least 1")?;
        }
        self.whatif.as_ref().map_or(Ok(()), WhatIf::check)
    }
}

fn require(holds: bool, path: &str, what: &str) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(format!("{path}: {what}"))
    }
}

impl CachesSpec {
    fn check(&self) -> Result<(), String> {
        let size = |bytes: f64| (64.0..=2f64.powi(40)).contains(&bytes);
        require(size(self.core_bytes), "machine.caches.core_bytes", "must be between 64 and 2^40")?;
        require(size(self.llc_bytes), "machine.caches.llc_bytes", "must be between 64 and 2^40")?;
        require((0.0..=1e4).contains(&self.llc_ns), "machine.caches.llc_ns", "must be between 0 and 10,000")?;
        require((0.0..=1e4).contains(&self.memory_ns), "machine.caches.memory_ns", "must be between 0 and 10,000")?;
        let front_end = (0.0..=2f64.powi(40)).contains(&self.front_end_bytes);
        require(front_end, "machine.caches.front_end_bytes", "must be between 0 and 2^40")?;
        let time = |ns: f64| (0.0..=1e4).contains(&ns);
        require(time(self.front_end_ns), "machine.caches.front_end_ns", "must be between 0 and 10,000")?;
        require(time(self.front_end_stall_ns), "machine.caches.front_end_stall_ns", "must be between 0 and 10,000")?;
        let tlb = (0.0..=2f64.powi(40)).contains(&self.tlb_bytes);
        require(tlb, "machine.caches.tlb_bytes", "must be between 0 and 2^40")?;
        require(time(self.tlb_walk_ns), "machine.caches.tlb_walk_ns", "must be between 0 and 10,000")?;
        let bandwidth = (1e6..=1e15).contains(&self.memory_bandwidth);
        require(bandwidth, "machine.caches.memory_bandwidth", "must be between 1e6 and 1e15")?;
        let many = |body: &BodySpec| [body.lines, body.pages].iter().all(|n| (0.0..=1e6).contains(n));
        let bodies = self.bodies.iter().all(many);
        require(bodies, "machine.caches.bodies", "must have between 0 and 1,000,000 lines and pages each")?;
        require((0.0..=1e4).contains(&self.code_lines), "machine.caches.code_lines", "must be between 0 and 10,000")
    }
}
