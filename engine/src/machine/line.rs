//! Cache lines: who has a copy, and until when the line is being transferred.
//!
//! The one mechanism behind every contended word (`reference`: MESI-like ownership; transfers of one line are served
//! one after the other, each priced by the distance between the CPUs). An access is a hit, or waits for the transfers
//! before it and then for its own.

use super::time::Time;
use super::topology::{CpuId, CpuSet, Topology};

/// What an access does to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load: any number of CPUs may share the line.
    Read,
    /// A store: the CPU takes the line for itself, from its store buffer if it has a copy.
    Write,
    /// An atomic read-modify-write: the CPU takes the line for itself, and waits until all others have given theirs up.
    Atomic,
}

/// One cache line, or `span` neighbouring ones that are always used together.
#[derive(Clone, Debug)]
pub struct Line {
    owner: Option<CpuId>,
    sharers: CpuSet,
    busy_until: Time,
    span: u32,
    /// Transfers so far.
    pub transfers: u64,
}

impl Line {
    /// A line that nobody has yet: the first access is a hit (it comes with the structure's own cost).
    pub fn new(span: u32) -> Self {
        Self { owner: None, sharers: CpuSet::default(), busy_until: 0, span, transfers: 0 }
    }

    /// The time that `cpu` spends on an access made at `at`. A store to a line of which it has a shared copy is a hit: it
    /// waits for the other copies' invalidation in the store buffer, not on the CPU. An atomic access cannot: it lasts until
    /// the farthest copy is gone.
    #[inline]
    pub fn access(&mut self, topology: &Topology, cpu: CpuId, at: Time, access: Access) -> Time {
        if self.hits(cpu, access) {
            return topology.hit;
        }
        self.fetch(topology, cpu, at, access)
    }

    /// The same where `cpu` has no copy that serves.
    fn fetch(&mut self, topology: &Topology, cpu: CpuId, at: Time, access: Access) -> Time {
        let supplier = match (self.owner, access) {
            (Some(owner), _) => Some(owner),
            (None, Access::Atomic) => self.farthest(topology, cpu),
            (None, Access::Read | Access::Write) => self.sharers.nearest(cpu),
        };
        match access {
            Access::Write | Access::Atomic => {
                self.owner = Some(cpu);
                self.sharers = CpuSet::of(cpu);
            }
            Access::Read => {
                if let Some(owner) = self.owner.take() {
                    self.sharers.insert(owner);
                }
                self.sharers.insert(cpu);
            }
        }
        let Some(supplier) = supplier.filter(|&s| s != cpu) else { return topology.hit };
        self.transfers += u64::from(self.span);
        let start = at.max(self.busy_until);
        self.busy_until = start + topology.transfer_span(supplier, cpu, self.span);
        self.busy_until - at
    }

    /// Whether some other CPU has a copy, so that `cpu` has to fetch the line before it can write to it.
    pub fn is_elsewhere(&self, cpu: CpuId) -> bool {
        match self.owner {
            Some(owner) => owner != cpu,
            None => self.sharers.iter().any(|other| other != cpu),
        }
    }

    /// Who of the others has the copy that it takes longest to get.
    fn farthest(&self, topology: &Topology, cpu: CpuId) -> Option<CpuId> {
        self.sharers.iter().filter(|&other| other != cpu).max_by_key(|&other| topology.transfer(other, cpu))
    }

    #[inline]
    fn hits(&self, cpu: CpuId, access: Access) -> bool {
        match access {
            Access::Write | Access::Atomic => self.owner == Some(cpu),
            Access::Read => self.sharers.contains(cpu),
        }
    }
}
