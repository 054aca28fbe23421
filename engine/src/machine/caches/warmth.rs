//! Warmth: how much of the kernel's code and data a call finds in the caches of its core.
//!
//! Each core and each last-level cache counts the bytes that were used there. A kind of call remembers that count at its last
//! use; so many bytes later its lines are gone. Of some kinds the lines were counted ([`counted`](super::counted)). Of other kinds
//! nobody knows the lines. How many a stretch of their code touches grows with the root of its time (A. Hartstein et al., "Cache miss behavior: is it sqrt 2?", Computing Frontiers 2006: re-references fall with
//! time as t^-1.5), and they find what other calls have brought in since. No set of lines is kept.
//!
//! The front end of a core is one more cache, of the branches in lines of code: only code that runs drives them out. Its TLB is
//! one of pages, of whose translations each that is missing takes a walk.

use super::blocks::Blocks;
use super::counted::{Counted, Fetching};
use crate::machine::cpus::topology::Topology;
use crate::machine::state::State;
use crate::spec::{CachesSpec, MachineSpec};
use crate::waist::time::{divided, from_ns, Time};
use crate::waist::{CpuId, TaskId};

/// A part of the whole, in 1/65536.
pub type Part = u64;

pub(super) const WHOLE: Part = 1 << 16;
/// Roots are of picoseconds, in 1/256.
const ROOT_SHIFT: u32 = 16;
/// The same of a microsecond.
const ROOT_OF_US: f64 = 256.0 * 1e3;
const LINE_BYTES: f64 = 64.0;
const PAGE_BYTES: u64 = 4096;
/// The longest time that is told from longer ones: 1.1 s.
const LONGEST: Time = 1 << 40;

/// What a call misses: a part of its lines in its core's cache, in the last-level cache, and in its core's front end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    core: u32,
    llc: u32,
    front: u32,
    counted: Option<Fetching>,
}

/// One cache: what was used on it, and when each kind of call last was.
#[derive(Clone, Debug)]
pub(in crate::machine) struct Cache {
    size: u64,
    /// Bytes used so far.
    pub(in crate::machine) used: u64,
    /// The same at the last use by a call.
    by_calls: u64,
    /// Time of the calls since somebody else's bytes drove something out.
    warm: Time,
    /// One more than the bytes used so far at the last call of each kind; 0 where there was none.
    marks: Vec<u64>,
}

impl Cache {
    fn new(size: u64) -> Self {
        Self { size, used: 0, by_calls: 0, warm: 0, marks: Vec::new() }
    }

    /// A call of a kind begins. The part of its lines that is gone.
    fn enter(&mut self, kind: usize) -> Part {
        if self.gone(self.used - self.by_calls) > 0 {
            self.warm = 0;
        }
        self.by_calls = self.used;
        let gone = self.gone_of(kind);
        if self.marks.len() <= kind {
            self.marks.resize(kind + 1, 0);
        }
        self.marks[kind] = self.used + 1;
        gone
    }

    /// The part of the lines of a kind that is gone.
    fn gone_of(&self, kind: usize) -> Part {
        self.gone_of_any(&[kind])
    }

    /// The part of lines that is gone of a body that several kinds touch: since the last of them.
    pub(super) fn gone_of_any(&self, kinds: &[usize]) -> Part {
        let mark = |&kind: &usize| self.marks.get(kind).copied().unwrap_or(0);
        let last = kinds.iter().map(mark).max().and_then(|mark| mark.checked_sub(1));
        last.map_or(WHOLE, |last| self.gone(self.used - last))
    }

    /// The part of lines that is gone after so many bytes. Which set a line is in is chance, so some of them are gone after half
    /// of the cache's size, and some last for one and a half: of 16 ways a set meets 16 +- 4 lines while a cache of them comes in.
    fn gone(&self, bytes: u64) -> Part {
        let half = self.size / 2;
        match bytes {
            few if few <= half => 0,
            many if many >= half + self.size => WHOLE,
            some => ((some - half) << 16) / self.size,
        }
    }

    /// Calls have taken so much longer.
    fn note_time(&mut self, time: Time) {
        self.warm = (self.warm + time).min(LONGEST);
    }

    /// How much the root of the calls' time grows by `time`.
    fn grow(&mut self, time: Time) -> u64 {
        let before = self.warm;
        self.note_time(time);
        root(self.warm) - root(before)
    }

    /// A call has brought so much in.
    fn bring(&mut self, bytes: u64) {
        self.used += bytes;
        self.by_calls += bytes;
    }
}

/// The whole root, as `isqrt` has it: the processor's is at most one too large where the number has more than 53 bits.
fn root(time: Time) -> u64 {
    let square = time << ROOT_SHIFT;
    let root = (square as f64).sqrt() as u64;
    root - u64::from(root * root > square)
}

/// So many 65536ths of a number.
pub(super) fn share(of: u64, parts: u64) -> u64 {
    (of * parts) >> 16
}

/// How many of something a call misses in each cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    pub core: u64,
    pub llc: u64,
    pub front: u64,
    /// Those of the front end that the core's cache has lost, too.
    pub stalled: u64,
    /// Pages whose translations are missing, of which these have their line of the page tables beyond the core's cache, and these
    /// in memory.
    pub walks: u64,
    pub far_walks: u64,
    pub farther_walks: u64,
}

/// The caches of one CPU.
struct At<'a> {
    core: &'a mut Cache,
    llc: &'a mut Cache,
    front: &'a mut Cache,
    tlb: &'a mut Cache,
}

/// What one of [`Lines`] costs: from the last-level cache, from memory besides, in the front end, and stalled besides.
#[derive(Clone, Copy, Debug)]
struct Prices {
    llc: u64,
    beyond: u64,
    front: u64,
    stall: u64,
    /// Of a walk, which is waited for: in the core's cache, to the last-level cache, and from memory besides.
    walk: [u64; 3],
}

impl Prices {
    fn new(spec: &MachineSpec, caches: &CachesSpec, price: impl Fn(f64) -> u64) -> Self {
        let overlap = spec.costs.line_overlap;
        let walk = [caches.tlb_walk_ns, caches.llc_ns, caches.beyond()];
        Self {
            llc: price(caches.llc_ns / overlap),
            beyond: price(caches.beyond() / overlap),
            front: price(caches.front_end_ns),
            stall: price(caches.front_end_stall_ns),
            // without a TLB not even a first call walks
            walk: if caches.tlb_bytes > 0.0 { walk.map(price) } else { [0; 3] },
        }
    }

    fn of(self, lines: Lines) -> u64 {
        let lost = lines.core * self.llc + lines.llc * self.beyond;
        let [walk, far, farther] = self.walk;
        let walked = lines.walks * walk + lines.far_walks * far + lines.farther_walks * farther;
        lost + lines.front * self.front + lines.stalled * self.stall + walked
    }
}

/// The caches of a machine.
#[derive(Clone, Debug)]
pub struct Warmth {
    /// By the first CPU of a core.
    pub(in crate::machine) cores: Vec<Cache>,
    fronts: Vec<Cache>,
    tlbs: Vec<Cache>,
    /// By the first CPU under a last-level cache.
    pub(super) llcs: Vec<Cache>,
    pub(in crate::machine) blocks: Blocks,
    counted: Counted,
    speed: f64,
    /// What the lines of a unit of root cost, in 1/65536 ps.
    root: Prices,
    /// Their bytes, in 1/65536.
    bytes: u64,
    /// What one line costs, in ps.
    line: Prices,
}

impl Warmth {
    /// From a machine profile; nothing if that says nothing of caches, or that code has no lines.
    pub fn new(spec: &MachineSpec) -> Option<Self> {
        let caches = spec.caches.as_ref().filter(|caches| caches.code_lines > 0.0)?;
        let scaled = |each: f64| (caches.code_lines * each / ROOT_OF_US * 65536.0).round() as u64;
        // a machine that says nothing of its front end or its TLB has one that forgets nothing
        let sized = |bytes: f64| Cache::new(if bytes > 0.0 { bytes as u64 } else { u64::MAX / 2 });
        Some(Self {
            cores: vec![Cache::new(caches.core_bytes as u64); spec.cpus as usize],
            fronts: vec![sized(caches.front_end_bytes); spec.cpus as usize],
            tlbs: vec![sized(caches.tlb_bytes); spec.cpus as usize],
            llcs: vec![Cache::new(caches.llc_bytes as u64); spec.cpus as usize],
            blocks: Blocks::new(spec, caches),
            counted: Counted::new(&caches.bodies),
            speed: spec.costs.speed,
            root: Prices::new(spec, caches, |ns| scaled(ns * 1e3)),
            bytes: scaled(LINE_BYTES),
            line: Prices::new(spec, caches, from_ns),
        })
    }

    #[inline]
    fn at(&mut self, topology: &Topology, cpu: CpuId) -> At<'_> {
        let (core, llc) = topology.firsts(cpu);
        let (core, llc) = (core as usize, llc as usize);
        At {
            core: &mut self.cores[core],
            llc: &mut self.llcs[llc],
            front: &mut self.fronts[core],
            tlb: &mut self.tlbs[core],
        }
    }

    /// A call begins on `cpu`, at a site of all that were met.
    fn enter(&mut self, topology: &Topology, cpu: CpuId, site: usize, sites: &[&str]) -> Missing {
        let kind = self.counted.kind(site, sites);
        let counted =
            self.counted.took(kind).map(|last| Fetching::new(kind, self.fetch_bodies(topology, cpu, kind), last));
        let at = self.at(topology, cpu);
        at.tlb.enter(kind);
        Missing {
            core: at.core.enter(kind) as u32,
            llc: at.llc.enter(kind) as u32,
            front: at.front.enter(kind) as u32,
            counted,
        }
    }

    /// What it costs a call of a kind to bring in the bodies that it misses.
    fn fetch_bodies(&mut self, topology: &Topology, cpu: CpuId, kind: usize) -> Time {
        let (core, llc) = topology.firsts(cpu);
        let (core, llc) = (core as usize, llc as usize);
        let (own, front, tlb) = (&self.cores[core], &self.fronts[core], &self.tlbs[core]);
        if [own, front, tlb].iter().all(|cache| cache.gone_of(kind) == 0) {
            return 0;
        }
        let lines = self.counted.missing(kind, own, &self.llcs[llc], front, tlb);
        self.cores[core].used += lines.core * LINE_BYTES as u64;
        self.llcs[llc].used += lines.llc * LINE_BYTES as u64;
        self.fronts[core].used += lines.front * LINE_BYTES as u64;
        self.tlbs[core].used += lines.walks * PAGE_BYTES;
        self.line.of(lines)
    }

    /// A call is over.
    fn leave(&mut self, missing: Option<Missing>) {
        if let Some(call) = missing.and_then(|missing| missing.counted) {
            self.counted.over(call);
        }
    }

    /// What it costs a call to fetch the lines that it misses in the next `own` of its time, which it does now.
    fn fetch(&mut self, topology: &Topology, cpu: CpuId, missing: &mut Missing, own: Time) -> Time {
        let time = divided(own, self.speed);
        let (prices, bytes) = (self.root, self.bytes);
        let At { core, llc, front, .. } = self.at(topology, cpu);
        if missing.counted.is_some() || missing.core | missing.front == 0 {
            [core, llc, front].into_iter().for_each(|cache| cache.note_time(time));
            return missing.counted.as_mut().map_or(0, |call| call.pay(own));
        }
        let gone = |cache: &mut Cache, part: u32| share(cache.grow(time), part.into());
        let (lines, unknown) = (gone(core, missing.core), gone(front, missing.front));
        let beyond = lines.min(gone(llc, missing.llc));
        core.bring(share(lines, bytes));
        llc.bring(share(beyond, bytes));
        front.bring(share(unknown, bytes));
        prices.of(Lines { core: lines, llc: beyond, front: unknown, stalled: unknown.min(lines), ..Lines::default() })
            >> 16
    }
}

impl CachesSpec {
    /// What a line costs from memory besides the way to the last-level cache.
    fn beyond(&self) -> f64 {
        (self.memory_ns - self.llc_ns).max(0.0)
    }
}

impl State {
    /// Task `id` begins a call of kind `site`.
    pub(in crate::machine) fn enter_call(&mut self, id: TaskId, site: usize) {
        if let Some(warmth) = &mut self.warmth {
            let task = &mut self.tasks[id as usize];
            warmth.leave(task.missing.take());
            task.missing = Some(warmth.enter(&self.topology, task.cpu, site, &self.sites));
        }
    }

    /// Task `id` fetches what it misses for `own` of kernel code, and owes for it.
    pub(in crate::machine) fn fetch_code(&mut self, id: TaskId, own: Time) {
        let Some(warmth) = &mut self.warmth else { return };
        let task = &mut self.tasks[id as usize];
        if let Some(missing) = &mut task.missing {
            task.segment.debt += warmth.fetch(&self.topology, task.cpu, missing, own);
        }
    }

    /// Task `id` uses so much memory of its own in user mode.
    pub(in crate::machine) fn use_memory(&mut self, id: TaskId, bytes: u64) {
        let Some(warmth) = &mut self.warmth else { return };
        let task = &mut self.tasks[id as usize];
        warmth.leave(task.missing.take());
        let At { core, llc, tlb, .. } = warmth.at(&self.topology, task.cpu);
        [core, llc, tlb].into_iter().for_each(|cache| cache.used += bytes);
    }

    /// Task `id` runs so much code of its own in user mode.
    pub(in crate::machine) fn use_code(&mut self, id: TaskId, bytes: u64) {
        self.use_memory(id, bytes);
        let Some(warmth) = &mut self.warmth else { return };
        warmth.at(&self.topology, self.tasks[id as usize].cpu).front.used += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_whole_roots_beside_squares_and_anywhere() {
        let exact = |time: Time| assert_eq!(root(time), (time << ROOT_SHIFT).isqrt(), "of {time}");
        let sides = (1..=1 << 14).flat_map(|n: u64| [4001 * n * n, n * n, n << 26].map(|time| time.min(LONGEST)));
        sides.flat_map(|time| [time - 1, time, (time + 1).min(LONGEST)]).for_each(exact);
        (0..28).map(|bit| LONGEST >> bit).flat_map(|time| [time - 1, time]).for_each(exact);
    }
}
