//! Cache lines: who has a copy, and until when the line is being transferred.
//!
//! The one mechanism behind every contended word (`reference`: MESI-like ownership; transfers of one line are served
//! one after the other, each priced by the distance between the CPUs). An access is a hit, or waits for the transfers
//! before it and then for its own.

use super::coming::{Coming, Load};
use super::rounds::Rounds;
use crate::machine::cpus::cpu_set::CpuSet;
use crate::machine::cpus::topology::Topology;
use crate::waist::time::Time;
use crate::waist::{Access, CpuId};

/// One cache line, or `span` neighbouring ones that are always used together.
#[derive(Clone, Debug)]
pub struct Line {
    /// Who has it to himself.
    owner: Option<CpuId>,
    /// Who have copies, if nobody owns it; else this says nothing.
    sharers: CpuSet,
    busy_until: Time,
    /// Who had the line to itself before, and until when it keeps it: until the request has reached it. `IN_MEMORY` or `IN_LLC` where no core has it.
    keeper: CpuId,
    keeps_until: Time,
    /// Where it is going, while CPUs of several cores or last-level caches queue for it.
    rounds: Option<Box<Rounds>>,
    /// Its owner has loaded it, and not written to it since.
    unmodified: bool,
    /// To whom it comes by loads, in this order, where loads may take it.
    coming: Option<Box<Coming>>,
    span: u32,
    /// Transfers so far.
    pub transfers: u64,
    /// How long tasks have waited for it, with the transfers before theirs.
    pub waited: Time,
}

/// The keepers of a line that was driven out of all caches, and of the cores' own.
const IN_MEMORY: CpuId = CpuId::MAX;
const IN_LLC: CpuId = CpuId::MAX - 1;

/// The nearest that has memory which was not used for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The core's own cache.
    Core,
    /// The last-level cache.
    Llc,
    /// No cache.
    Memory,
}

impl Line {
    /// A line that nobody has yet: the first access is a hit (it comes with the structure's own cost).
    pub fn new(span: u32) -> Self {
        Self {
            owner: None,
            sharers: CpuSet::default(),
            busy_until: 0,
            keeper: 0,
            keeps_until: 0,
            rounds: None,
            unmodified: false,
            coming: None,
            span,
            transfers: 0,
            waited: 0,
        }
    }

    /// What is counted of it begins anew.
    pub fn start_window(&mut self) {
        (self.transfers, self.waited) = (0, 0);
    }

    /// How long it takes until an access that `cpu` makes at `at` is done: whether the CPU waits for that is another thing
    /// ([`crate::machine::task::Task::access`]). A store to a line of which others have copies is done when the farthest is gone.
    #[inline]
    pub fn access(&mut self, topology: &Topology, cpu: CpuId, at: Time, access: Access) -> Time {
        if self.hits(cpu, access) {
            return topology.without_transfer(access);
        }
        self.fetch(topology, cpu, at, access)
    }

    /// `cpu` makes an access, if it has a copy that serves. Whether it has.
    #[inline(always)]
    pub fn hits(&mut self, cpu: CpuId, access: Access) -> bool {
        let hits = match access {
            Access::Store | Access::Write | Access::Atomic => self.owner == Some(cpu),
            Access::Read => self.has_copy(cpu),
        };
        if hits && access != Access::Read {
            self.unmodified = false;
        }
        hits
    }

    /// How long it takes where `cpu` has no copy that serves, unless it is about to lose one: a request has half of the transfer to go
    /// until it reaches the owner, and waits meanwhile for transfers before it.
    pub fn fetch(&mut self, topology: &Topology, cpu: CpuId, at: Time, access: Access) -> Time {
        let keeps = self.keeper == cpu && at < self.keeps_until;
        if keeps || self.has_just_come(cpu, at) {
            if access != Access::Read {
                self.modify_before_it_goes(topology, cpu, at);
            }
            return topology.without_transfer(access);
        }
        let Some(owner) = self.owner else { return self.fetch_shared(topology, cpu, at, access) };
        let transfer = self.way(topology, owner, cpu, at); // the owner has a copy and would not fetch it
        self.keeper = owner;
        self.keeps_until = self.busy_until.max(at + transfer / 2);
        let took = self.wait_for(at, topology.of_span(transfer, self.span));
        let loads = access == Access::Read;
        let takes = !loads || self.migrates(topology, owner, cpu);
        if loads && topology.migrates {
            self.comes(cpu, (at, took), takes);
        }
        self.owner = takes.then_some(cpu);
        self.unmodified = loads;
        if !takes && !self.sharers.become_near_pair(owner, cpu) {
            return self.shared_by(owner, cpu, took);
        }
        took
    }

    /// Whether a load by `cpu` takes the line from its owner: on some machines, if that has modified it.
    #[inline]
    fn migrates(&self, topology: &Topology, owner: CpuId, cpu: CpuId) -> bool {
        topology.migrates && !self.unmodified && topology.share_llc(owner, cpu)
    }

    /// `cpu` has asked for it at `at` by a load that is done after `took`.
    fn comes(&mut self, cpu: CpuId, (at, took): (Time, Time), takes: bool) {
        self.coming.get_or_insert_default().push(at, Load { to: cpu, at: at + took, takes });
    }

    /// Whether it has come to `cpu` just now by a load that takes it: the next instruction finds it there, though others wait for it.
    #[inline]
    fn has_just_come(&self, cpu: CpuId, at: Time) -> bool {
        self.coming.as_ref().is_some_and(|coming| coming.has_just_come(cpu, at))
    }

    /// `cpu` writes to the line, for which others have asked: the load that is served next finds it modified, and takes it.
    fn modify_before_it_goes(&mut self, topology: &Topology, cpu: CpuId, at: Time) {
        let Some(coming) = &mut self.coming else { return };
        if let Some(next) = coming.next(at) {
            next.takes |= topology.share_llc(cpu, next.to);
        }
        let last = coming.last().unwrap_or(cpu);
        if self.owner.is_none() && last != cpu && topology.share_llc(cpu, last) {
            (self.owner, self.unmodified) = (Some(last), true);
        }
    }

    /// How long the transfer takes by which `cpu`, which asks at `at`, gets it from `from`.
    #[inline(always)]
    fn way(&mut self, topology: &Topology, from: CpuId, cpu: CpuId, at: Time) -> Time {
        let queues = self.busy_until > at;
        if self.rounds.is_none() && (!queues || topology.is_flat()) {
            return topology.transfer(from, cpu);
        }
        self.way_in_rounds(topology, (from, cpu), at)
    }

    /// The same where CPUs of several cores or last-level caches may queue for it.
    #[inline(never)]
    fn way_in_rounds(&mut self, topology: &Topology, way @ (from, cpu): (CpuId, CpuId), at: Time) -> Time {
        let queues = self.busy_until > at;
        match &mut self.rounds {
            Some(rounds) if queues => rounds.queue(topology, way, at, self.busy_until),
            None if queues && (topology.has_siblings() || !topology.share_llc(from, cpu)) => {
                self.rounds.insert(Box::default()).queue(topology, way, at, self.busy_until)
            }
            rounds => {
                rounds.iter_mut().for_each(|rounds| rounds.end());
                topology.transfer(from, cpu)
            }
        }
    }

    /// The owner and `cpu` have copies now, which `took` so long.
    #[cold]
    fn shared_by(&mut self, owner: CpuId, cpu: CpuId, took: Time) -> Time {
        self.sharers.become_only(owner);
        self.sharers.insert(cpu);
        took
    }

    /// The same of a line that nobody has to himself.
    #[inline(never)]
    fn fetch_shared(&mut self, topology: &Topology, cpu: CpuId, at: Time, access: Access) -> Time {
        if access == Access::Read {
            return self.fetch_copy(topology, cpu, at);
        }
        self.owner = Some(cpu);
        self.unmodified = false;
        let latency = self.farthest(topology, cpu).map(|from| self.way(topology, from, cpu, at));
        self.fetch_over(topology, cpu, at, access, latency)
    }

    /// The same for a load.
    #[inline(never)]
    fn fetch_copy(&mut self, topology: &Topology, cpu: CpuId, at: Time) -> Time {
        let supplier = self.sharers.nearest(cpu, |other| topology.transfer(other, cpu));
        self.sharers.insert(cpu);
        let latency = supplier.filter(|&s| s != cpu).map(|from| match topology.share_llc(from, cpu) {
            true => topology.transfer(from, cpu),
            false => self.way(topology, from, cpu, at),
        });
        let moves = latency.is_some() || self.keeper >= IN_LLC;
        let took = self.fetch_over(topology, cpu, at, Access::Read, latency);
        if topology.migrates && moves {
            self.comes(cpu, (at, took), false);
        }
        took
    }

    /// The same from another core, for so long; without one from where else it is.
    #[inline(always)]
    fn fetch_over(&mut self, topology: &Topology, cpu: CpuId, at: Time, access: Access, latency: Option<Time>) -> Time {
        let latency = match latency {
            Some(latency) => latency,
            None => match self.keeper {
                IN_MEMORY => topology.memory,
                IN_LLC => topology.from_llc,
                _ => return topology.without_transfer(access),
            },
        };
        if self.keeper >= IN_LLC {
            self.keeper = cpu;
        }
        self.wait_for(at, topology.of_span(latency, self.span))
    }

    /// Asks at `at` for a transfer that takes `time`, after those before it. Returns how long it is until it is done.
    #[inline]
    fn wait_for(&mut self, at: Time, time: Time) -> Time {
        self.transfers += u64::from(self.span);
        self.busy_until = at.max(self.busy_until) + time;
        self.busy_until - at
    }

    /// When `cpu`, which polls the line, sees what was written to it at `at`: its copy may still be under way.
    pub fn refetch(&mut self, topology: &Topology, cpu: CpuId, at: Time) -> Time {
        let took = self.access(topology, cpu, at, Access::Read);
        self.busy_until.max(at + took)
    }

    /// Only its home has the line: who comes next fetches it from there.
    pub fn drive_out(&mut self, home: Home) {
        let keeper = if home == Home::Memory { IN_MEMORY } else { IN_LLC };
        (self.owner, self.keeper, self.keeps_until) = (None, keeper, 0);
        self.sharers.clear();
    }

    /// Whether it is under way at `at`: who asks for it then comes behind others.
    #[inline]
    pub fn is_moving(&self, at: Time) -> bool {
        self.busy_until > at
    }

    /// Whether `cpu` can read the line without fetching it.
    #[inline]
    pub fn has_copy(&self, cpu: CpuId) -> bool {
        match self.owner {
            Some(owner) => owner == cpu,
            None => self.sharers.contains(cpu),
        }
    }

    /// Whether some other CPU has a copy, so that `cpu` has to fetch the line before it can write to it.
    pub fn is_elsewhere(&self, cpu: CpuId) -> bool {
        match self.owner {
            Some(owner) => owner != cpu,
            None => self.sharers.has_other(cpu),
        }
    }

    /// Who of the others has the copy that it takes longest to get.
    #[inline(always)]
    fn farthest(&self, topology: &Topology, cpu: CpuId) -> Option<CpuId> {
        if topology.is_flat() {
            return self.sharers.iter().find(|&other| other != cpu); // all are as far
        }
        let mut farthest = None;
        self.sharers.each(|other| {
            let takes = topology.transfer(other, cpu);
            if other != cpu && farthest.is_none_or(|(most, _)| takes > most) {
                farthest = Some((takes, other));
            }
        });
        farthest.map(|(_, other)| other)
    }
}
