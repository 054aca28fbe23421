//! CPUs and their distances.

use crate::spec::MachineSpec;
use crate::waist::time::{from_ns, Time};
use crate::waist::{Access, CpuId};
use std::ops::Range;

/// The most CPUs a machine may have.
pub const MAX_CPUS: u32 = 1024;

/// A scheduling domain: so many neighbouring CPUs, in parts of so many, which share more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    /// CPUs in it.
    pub span: u32,
    /// CPUs in each of its parts.
    pub parts: u32,
}

/// Which CPUs share what, and what moving a cache line between them costs.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Number of CPUs (hardware threads).
    pub cpus: u32,
    per_core: u32,
    per_llc: u32,
    per_socket: u32,
    is_flat: bool,
    /// Cost of an access that needs no transfer.
    pub hit: Time,
    /// The same of an atomic read-modify-write.
    pub atomic: Time,
    /// Cost of a line that no cache has.
    pub memory: Time,
    /// Cost of one that only the last-level cache has.
    pub from_llc: Time,
    /// How fast a program runs while one other CPU of its core executes too, relative to alone.
    smt_speed: f64,
    transfers: Vec<Time>, // from * cpus + to
    within_llc: Time,
    within_socket: Time,
    domains: Vec<Domain>,
    near: Vec<Near>, // by CPU
    overlap: f64,
    /// A load takes a line that another CPU under the same last-level cache has modified.
    pub migrates: bool,
}

/// What is around a CPU: the first CPU of its core and under its last-level cache, and, by domain, how long it takes to move a line from
/// each CPU of it, one after the other.
#[derive(Clone, Copy, Debug)]
struct Near {
    core: CpuId,
    llc: CpuId,
    all: [Time; DOMAINS],
}

impl Topology {
    /// From a machine profile.
    pub fn new(spec: &MachineSpec) -> Self {
        let costs = &spec.costs;
        let (transfers, domains) = (transfers(spec), domains(spec));
        Self {
            near: near(spec, &domains, &transfers),
            cpus: spec.cpus,
            is_flat: spec.cpus_per_core <= 1 && spec.cpus_per_llc >= spec.cpus,
            per_core: spec.cpus_per_core.max(1),
            per_llc: spec.cpus_per_llc.max(1),
            per_socket: spec.cpus_per_socket.max(1),
            hit: from_ns(costs.line_hit),
            atomic: from_ns(costs.line_atomic.unwrap_or(costs.line_hit)),
            memory: spec.caches.as_ref().map_or(0, |caches| from_ns(caches.memory_ns)),
            from_llc: spec.caches.as_ref().map_or(0, |caches| from_ns(caches.llc_ns)),
            smt_speed: costs.smt_speed,
            transfers,
            within_llc: from_ns(costs.line_llc),
            within_socket: from_ns(costs.line_llc.max(costs.line_socket)),
            domains,
            overlap: costs.line_overlap,
            migrates: costs.line_migrates >= 0.5,
        }
    }

    /// Cost of an access that needs no transfer.
    #[inline]
    pub fn without_transfer(&self, access: Access) -> Time {
        if access == Access::Atomic {
            self.atomic
        } else {
            self.hit
        }
    }

    /// Time to move a line that `from` has modified to `to`.
    #[inline]
    pub fn transfer(&self, from: CpuId, to: CpuId) -> Time {
        self.transfers[(from * self.cpus + to) as usize]
    }

    /// Time to move `span` lines that are used together, of which `one` takes so long: the others overlap with it.
    #[inline]
    pub fn of_span(&self, one: Time, span: u32) -> Time {
        if span == 1 {
            return one;
        }
        one + (one as f64 * f64::from(span.saturating_sub(1)) / self.overlap) as Time
    }

    /// How much longer it takes to move a line between two CPUs than within a socket.
    #[inline]
    pub fn beyond_socket(&self, from: CpuId, to: CpuId) -> Time {
        self.transfer(from, to).saturating_sub(self.within_socket)
    }

    /// Time to move a line between CPUs that share a last-level cache.
    pub fn transfer_within_llc(&self) -> Time {
        self.within_llc
    }

    /// Time to move a line to `cpu` from each CPU of the domain with this number, one after the other.
    pub fn transfer_from_all(&self, cpu: CpuId, domain: usize) -> Time {
        self.near[cpu as usize].all[domain]
    }

    /// The domains of every CPU, the largest first.
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// Whether the parts of `domain` are NUMA nodes (`SD_NUMA`): here, sockets.
    pub fn is_numa(&self, domain: Domain) -> bool {
        domain.span > self.per_socket
    }

    /// How many looks into `domain` may fail before tasks move that ran a moment ago (`cache_nice_tries`, `sd_init`).
    pub fn nice_tries(&self, domain: Domain) -> u32 {
        match domain {
            _ if domain.span <= self.per_core => 0,
            _ if self.is_numa(domain) => 2,
            _ => 1,
        }
    }

    /// How many tasks a NUMA node may have before they count as too many (`imb_numa_nr`): with one last-level cache this part of
    /// its CPUs, else a task a cache.
    pub fn tasks_of_node(&self, part: u32) -> u64 {
        let caches = self.per_socket / self.per_llc;
        u64::from(if caches == 1 { self.per_socket / part } else { caches })
    }

    /// Whether each core has one CPU, and all are under one last-level cache.
    #[inline]
    pub fn is_flat(&self) -> bool {
        self.is_flat
    }

    /// Whether cores have more CPUs than one.
    pub fn has_siblings(&self) -> bool {
        self.per_core > 1
    }

    /// How fast a program runs, relative to alone, beside so many other CPUs of its core. More than two do together what two do, as the
    /// scheduler assumed (`arch_scale_cpu_capacity` of 4.9: `smt_gain` over the number of threads).
    fn speed_beside(&self, others: u32) -> f64 {
        match others {
            0 => 1.0,
            others => 2.0 * self.smt_speed / f64::from(others + 1),
        }
    }

    /// How many times as long a program takes that ran beside so many and now runs beside others.
    pub fn stretch(&self, from: u32, to: u32) -> f64 {
        self.speed_beside(from) / self.speed_beside(to)
    }

    /// The first CPU of `cpu`'s core, and under its last-level cache.
    #[inline]
    pub fn firsts(&self, cpu: CpuId) -> (CpuId, CpuId) {
        let near = &self.near[cpu as usize];
        (near.core, near.llc)
    }

    /// The CPUs of `cpu`'s core.
    pub fn core(&self, cpu: CpuId) -> Range<CpuId> {
        let first = self.near[cpu as usize].core;
        first..(first + self.per_core).min(self.cpus)
    }

    /// The CPUs that share `cpu`'s last-level cache.
    pub fn llc(&self, cpu: CpuId) -> Range<CpuId> {
        let first = self.near[cpu as usize].llc;
        first..(first + self.per_llc).min(self.cpus)
    }

    /// The CPUs around `cpu` that are together in parts of `size`.
    pub fn group(&self, cpu: CpuId, size: u32) -> Range<CpuId> {
        group(cpu, size, self.cpus)
    }

    /// The CPUs of the socket of `cpu`.
    pub fn group_of_socket(&self, cpu: CpuId) -> Range<CpuId> {
        self.group(cpu, self.per_socket)
    }

    /// The socket of `cpu`.
    pub fn socket(&self, cpu: CpuId) -> u32 {
        cpu / self.per_socket
    }

    /// How many sockets there are.
    pub fn sockets(&self) -> u32 {
        self.cpus.div_ceil(self.per_socket)
    }

    /// Whether two CPUs share a last-level cache.
    pub fn share_llc(&self, a: CpuId, b: CpuId) -> bool {
        self.near[a as usize].llc == self.near[b as usize].llc
    }
}

fn group(cpu: CpuId, size: u32, cpus: u32) -> Range<CpuId> {
    let first = cpu / size * size;
    first..(first + size).min(cpus)
}

fn near(spec: &MachineSpec, domains: &[Domain], transfers: &[Time]) -> Vec<Near> {
    let around = |cpu: CpuId| {
        let mut all = [0; DOMAINS];
        for (sum, domain) in all.iter_mut().zip(domains) {
            *sum = group(cpu, domain.span, spec.cpus).map(|from| transfers[(from * spec.cpus + cpu) as usize]).sum();
        }
        let first = |size: u32| group(cpu, size.max(1), spec.cpus).start;
        Near { core: first(spec.cpus_per_core), llc: first(spec.cpus_per_llc), all }
    };
    (0..spec.cpus).map(around).collect()
}

/// The most domains that a CPU is in: its core, its last-level cache, its socket, all.
pub const DOMAINS: usize = 4;

fn domains(spec: &MachineSpec) -> Vec<Domain> {
    let mut sizes = vec![1];
    for size in [spec.cpus_per_core, spec.cpus_per_llc, spec.cpus_per_socket, spec.cpus] {
        if sizes.last().is_some_and(|&last| size > last) {
            sizes.push(size);
        }
    }
    sizes.windows(2).rev().map(|pair| Domain { span: pair[1], parts: pair[0] }).collect()
}

fn transfers(spec: &MachineSpec) -> Vec<Time> {
    let costs = &spec.costs;
    let levels = [
        (spec.cpus_per_core, costs.line_smt),
        (spec.cpus_per_llc, costs.line_llc),
        (spec.cpus_per_socket, costs.line_socket),
    ];
    let price = |a: CpuId, b: CpuId| {
        let shared = levels.iter().find(|(share, _)| a / share.max(&1) == b / share.max(&1));
        from_ns(shared.map_or(costs.line_remote, |level| level.1))
    };
    (0..spec.cpus).flat_map(|a| (0..spec.cpus).map(move |b| price(a, b))).collect()
}
