//! The order in which caches have a line for which CPUs queue: a last-level cache serves those of its own cores that wait when the
//! line comes, then gives it away. A core asks once for its hyper-threads.

use crate::machine::cpus::cpu_set::CpuSet;
use crate::machine::cpus::topology::Topology;
use crate::waist::time::Time;
use crate::waist::CpuId;

/// The visits that a line makes while CPUs queue for it: of each last-level cache the latest.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    visits: Vec<Visit>,
    /// Which of them is the last.
    last: Option<usize>,
    /// Who has asked for its core, which has other CPUs, and when the line comes.
    cores: Vec<(CpuId, Time)>,
}

/// A line's stay under one last-level cache.
#[derive(Clone, Debug)]
struct Visit {
    /// When the line comes. Who has asked by then is served in this visit, each CPU once.
    begins: Time,
    serves: CpuSet,
    /// Whom it serves last.
    last: CpuId,
}

impl Visit {
    fn new(begins: Time, cpu: CpuId) -> Self {
        let mut serves = CpuSet::default();
        serves.become_only(cpu);
        Self { begins, serves, last: cpu }
    }

    fn takes(&self, cpu: CpuId, at: Time) -> bool {
        self.begins > at && !self.serves.contains(cpu)
    }
}

impl Rounds {
    /// How long the transfer takes by which `cpu`, which asks at `at`, gets the line, which is moved until `busy_until`. `from` has the
    /// farthest copy of it.
    pub fn queue(&mut self, topology: &Topology, (from, cpu): (CpuId, CpuId), at: Time, busy_until: Time) -> Time {
        if !topology.has_siblings() {
            return self.join(topology, (from, cpu), at, busy_until);
        }
        if let Some(sibling) = self.sibling(topology, (from, cpu), at, busy_until) {
            return topology.transfer(sibling, cpu);
        }
        let transfer = self.join(topology, (from, cpu), at, busy_until);
        self.cores.push((cpu, busy_until + transfer));
        transfer
    }

    /// The other CPU of `cpu`'s core, if it waits at `at`: then the line comes for both.
    fn sibling(
        &mut self,
        topology: &Topology,
        (from, cpu): (CpuId, CpuId),
        at: Time,
        busy_until: Time,
    ) -> Option<CpuId> {
        if self.last.is_none() {
            self.cores.clear();
            self.cores.push((from, busy_until)); // where it is going
        }
        self.cores.retain(|&(_, comes)| comes > at);
        let place = self.cores.iter().position(|&(other, _)| other != cpu && topology.core(cpu).contains(&other))?;
        Some(self.cores.remove(place).0)
    }

    fn join(&mut self, topology: &Topology, (from, cpu): (CpuId, CpuId), at: Time, busy_until: Time) -> Time {
        let last = self.last.unwrap_or_else(|| self.come_last(topology, Visit::new(busy_until, from))); // where it is going
        let own = self.of(topology, cpu);
        if let Some(own) = own.filter(|&own| self.visits[own].takes(cpu, at)) {
            return self.lengthen(topology, own, cpu);
        }
        let last = self.visits[last].last;
        if topology.share_llc(last, cpu) && topology.share_llc(from, cpu) {
            return topology.transfer(from, cpu);
        }
        let transfer = topology.transfer(last, cpu).max(topology.transfer(from, cpu));
        self.come_last(topology, Visit::new(busy_until + transfer, cpu));
        transfer
    }

    /// `cpu` is served in a visit that has not begun; those after it begin later.
    fn lengthen(&mut self, topology: &Topology, own: usize, cpu: CpuId) -> Time {
        let visit = &mut self.visits[own];
        let transfer = topology.transfer(visit.last, cpu);
        visit.last = cpu;
        visit.serves.insert(cpu);
        let begins = visit.begins;
        for later in self.visits.iter_mut().filter(|later| later.begins > begins) {
            later.begins += transfer;
        }
        transfer
    }

    /// The visit to the cache of `cpu`.
    fn of(&self, topology: &Topology, cpu: CpuId) -> Option<usize> {
        self.visits.iter().position(|visit| topology.share_llc(visit.last, cpu))
    }

    fn come_last(&mut self, topology: &Topology, visit: Visit) -> usize {
        let at = self.of(topology, visit.last).unwrap_or(self.visits.len());
        match self.visits.get_mut(at) {
            Some(before) => *before = visit,
            None => self.visits.push(visit),
        }
        self.last = Some(at);
        at
    }

    /// Nobody queues any more.
    pub fn end(&mut self) {
        self.last = None;
    }
}
