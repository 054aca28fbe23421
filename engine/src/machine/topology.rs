//! CPUs, their distances, and sets of them.

use super::time::{from_ns, Time};
use crate::spec::MachineSpec;

/// A CPU's number.
pub type CpuId = u32;

const WORDS: usize = 4;
/// The most CPUs a machine may have.
pub const MAX_CPUS: u32 = WORDS as u32 * 64;

/// Which CPUs share what, and what moving a cache line between them costs.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Number of CPUs (hardware threads).
    pub cpus: u32,
    per_core: u32,
    per_llc: u32,
    per_socket: u32,
    /// Cost of an access that needs no transfer.
    pub hit: Time,
    smt: Time,
    llc: Time,
    socket: Time,
    remote: Time,
    overlap: f64,
}

impl Topology {
    /// From a machine profile.
    pub fn new(spec: &MachineSpec) -> Self {
        let costs = &spec.costs;
        Self {
            cpus: spec.cpus,
            per_core: spec.cpus_per_core.max(1),
            per_llc: spec.cpus_per_llc.max(1),
            per_socket: spec.cpus_per_socket.max(1),
            hit: from_ns(costs.line_hit),
            smt: from_ns(costs.line_smt),
            llc: from_ns(costs.line_llc),
            socket: from_ns(costs.line_socket),
            remote: from_ns(costs.line_remote),
            overlap: costs.line_overlap,
        }
    }

    /// Time to move a line that `from` has modified to `to`.
    pub fn transfer(&self, from: CpuId, to: CpuId) -> Time {
        match (from, to) {
            (a, b) if a / self.per_core == b / self.per_core => self.smt,
            (a, b) if a / self.per_llc == b / self.per_llc => self.llc,
            (a, b) if a / self.per_socket == b / self.per_socket => self.socket,
            _ => self.remote,
        }
    }

    /// Time to move `span` lines that are used together: the first at its full latency, the others overlapping with it.
    pub fn transfer_span(&self, from: CpuId, to: CpuId, span: u32) -> Time {
        let one = self.transfer(from, to);
        one + (one as f64 * f64::from(span.saturating_sub(1)) / self.overlap) as Time
    }

    /// The CPUs that share `cpu`'s last-level cache.
    pub fn llc(&self, cpu: CpuId) -> std::ops::Range<CpuId> {
        let first = cpu / self.per_llc * self.per_llc;
        first..(first + self.per_llc).min(self.cpus)
    }

    /// Whether two CPUs share a last-level cache.
    pub fn share_llc(&self, a: CpuId, b: CpuId) -> bool {
        a / self.per_llc == b / self.per_llc
    }
}

/// A set of CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuSet([u64; WORDS]);

impl CpuSet {
    /// Adds a CPU.
    pub fn insert(&mut self, cpu: CpuId) {
        self.0[cpu as usize / 64] |= 1 << (cpu % 64);
    }

    /// Removes a CPU.
    pub fn remove(&mut self, cpu: CpuId) {
        self.0[cpu as usize / 64] &= !(1 << (cpu % 64));
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.0[cpu as usize / 64] >> (cpu % 64) & 1 == 1
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.0 = [0; WORDS];
    }

    /// Whether the set has no CPU.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.0.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    i as u32 * 64 + bit
                })
            })
        })
    }

    /// The first member of `range`, searched upwards from `start` and then from the range's beginning.
    pub fn next_in(&self, range: std::ops::Range<CpuId>, start: CpuId) -> Option<CpuId> {
        if self.is_empty() {
            return None;
        }
        (start..range.end).chain(range.start..start).find(|&cpu| self.contains(cpu))
    }

    /// The member with the number nearest to `cpu` (distance grows with the difference of numbers).
    fn nearest_to(&self, cpu: CpuId) -> Option<CpuId> {
        self.iter().min_by_key(|&other| (other.abs_diff(cpu), other))
    }

    /// `cpu` itself if it is a member, else the nearest member.
    pub fn nearest(&self, cpu: CpuId) -> Option<CpuId> {
        if self.contains(cpu) {
            Some(cpu)
        } else {
            self.nearest_to(cpu)
        }
    }
}
