//! Warmth: how much of the kernel's code and data a call finds in the caches of its core.
//!
//! Each core and each last-level cache counts the bytes that were used there. A kind of call remembers that count at its last
//! use; so many bytes later its lines are gone. How many lines a stretch of code touches grows with the root of its time (A.
//! Hartstein et al., "Cache miss behavior: is it sqrt 2?", Computing Frontiers 2006: re-references fall with time as t^-1.5), so
//! a call also finds what other calls have brought in since. No set of lines is kept.

use super::blocks::Blocks;
use crate::machine::cpus::topology::Topology;
use crate::machine::state::State;
use crate::spec::{CachesSpec, MachineSpec};
use crate::waist::time::{from_ns, Time};
use crate::waist::{CpuId, TaskId};

/// A part of the whole, in 1/65536.
pub type Part = u64;

const WHOLE: Part = 1 << 16;
/// Roots are of picoseconds, in 1/256.
const ROOT_SHIFT: u32 = 16;
/// The same of a microsecond.
const ROOT_OF_US: f64 = 256.0 * 1e3;
const LINE_BYTES: f64 = 64.0;
/// The longest time that is told from longer ones: 1.1 s.
const LONGEST: Time = 1 << 40;

/// What a call misses: a part of its lines in its core's cache, and in the last-level cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    core: u32,
    llc: u32,
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
    /// Bytes used so far at the last call of each kind.
    marks: Vec<Option<u64>>,
}

impl Cache {
    fn new(size: u64) -> Self {
        Self { size, used: 0, by_calls: 0, warm: 0, marks: Vec::new() }
    }

    /// A call of kind `site` begins. The part of its lines that is gone.
    fn enter(&mut self, site: usize) -> Part {
        if self.gone(self.used - self.by_calls) > 0 {
            self.warm = 0;
        }
        self.by_calls = self.used;
        if self.marks.len() <= site {
            self.marks.resize(site + 1, None);
        }
        let last = self.marks[site].replace(self.used);
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

    /// How much the root of the calls' time grows by `time`.
    fn grow(&mut self, time: Time) -> u64 {
        let before = self.warm;
        self.warm = (before + time).min(LONGEST);
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
fn share(of: u64, parts: u64) -> u64 {
    (of * parts) >> 16
}

/// The caches of a machine.
#[derive(Clone, Debug)]
pub struct Warmth {
    /// By the first CPU of a core.
    pub(in crate::machine) cores: Vec<Cache>,
    /// By the first CPU under a last-level cache.
    pub(super) llcs: Vec<Cache>,
    pub(in crate::machine) blocks: Blocks,
    speed: f64,
    /// What the lines of a unit of root cost from the last-level cache, and from memory besides, in 1/65536 ps.
    from_llc: u64,
    from_memory: u64,
    /// Their bytes, in 1/65536.
    bytes: u64,
    /// What one line costs from there, in ps.
    line: (Time, Time),
}

impl Warmth {
    /// From a machine profile; nothing if that says nothing of caches, or that code has no lines.
    pub fn new(spec: &MachineSpec) -> Option<Self> {
        let caches = spec.caches.as_ref().filter(|caches| caches.code_lines > 0.0)?;
        let scaled = |each: f64| (caches.code_lines * each / ROOT_OF_US * 65536.0).round() as u64;
        let price = |ns: f64| scaled(ns * 1e3 / spec.costs.line_overlap);
        Some(Self {
            cores: vec![Cache::new(caches.core_bytes as u64); spec.cpus as usize],
            llcs: vec![Cache::new(caches.llc_bytes as u64); spec.cpus as usize],
            blocks: Blocks::new(spec, caches),
            speed: spec.costs.speed,
            from_llc: price(caches.llc_ns),
            from_memory: price(caches.beyond()),
            bytes: scaled(LINE_BYTES),
            line: (
                from_ns(caches.llc_ns / spec.costs.line_overlap),
                from_ns(caches.beyond() / spec.costs.line_overlap),
            ),
        })
    }

    fn at(&mut self, topology: &Topology, cpu: CpuId) -> (&mut Cache, &mut Cache) {
        let (core, llc) = (topology.core(cpu).start, topology.llc(cpu).start);
        (&mut self.cores[core as usize], &mut self.llcs[llc as usize])
    }

    /// A call of kind `site` begins on `cpu`.
    fn enter(&mut self, topology: &Topology, cpu: CpuId, site: usize) -> Missing {
        let (core, llc) = self.at(topology, cpu);
        Missing { core: core.enter(site) as u32, llc: llc.enter(site) as u32 }
    }

    /// What it costs a call to fetch the lines that it misses in the next `own` of its time, which it does now.
    fn fetch(&mut self, topology: &Topology, cpu: CpuId, missing: Missing, own: Time) -> Time {
        let time = (own as f64 / self.speed) as Time;
        let (from_llc, from_memory, bytes) = (self.from_llc, self.from_memory, self.bytes);
        let (core, llc) = self.at(topology, cpu);
        if missing.core == 0 {
            core.warm = (core.warm + time).min(LONGEST);
            llc.warm = (llc.warm + time).min(LONGEST);
            return 0;
        }
        let lines = share(core.grow(time), missing.core.into());
        let beyond = lines.min(share(llc.grow(time), missing.llc.into()));
        core.bring(share(lines, bytes));
        llc.bring(share(beyond, bytes));
        (lines * from_llc + beyond * from_memory) >> 16
    }

    /// The same of `lines` of data, which are as warm as the code.
    fn fetch_data(&mut self, topology: &Topology, cpu: CpuId, missing: Missing, lines: u64) -> Time {
        let (near, far) = self.line;
        let (core, llc) = self.at(topology, cpu);
        let (in_core, beyond) = (Part::from(missing.core), Part::from(missing.llc.min(missing.core)));
        core.bring(share(lines, in_core) * LINE_BYTES as u64);
        llc.bring(share(lines, beyond) * LINE_BYTES as u64);
        (lines * (in_core * near + beyond * far)) >> 16
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
            let cpu = self.tasks[id as usize].cpu;
            self.tasks[id as usize].missing = Some(warmth.enter(&self.topology, cpu, site));
        }
    }

    /// Task `id` fetches what it misses for `own` of kernel code, and owes for it.
    pub(in crate::machine) fn fetch_code(&mut self, id: TaskId, own: Time) {
        let Some(warmth) = &mut self.warmth else { return };
        let task = &mut self.tasks[id as usize];
        if let Some(missing) = task.missing {
            task.segment.debt += warmth.fetch(&self.topology, task.cpu, missing, own);
        }
    }

    /// Task `id` uses so much data of its call, which is as warm as its code, and owes for what it misses.
    pub(in crate::machine) fn fetch_data(&mut self, id: TaskId, bytes: u64) {
        let Some(warmth) = &mut self.warmth else { return };
        let task = &mut self.tasks[id as usize];
        if let Some(missing) = task.missing {
            task.segment.debt +=
                warmth.fetch_data(&self.topology, task.cpu, missing, bytes.div_ceil(LINE_BYTES as u64));
        }
    }

    /// Task `id` uses so much memory of its own in user mode.
    pub(in crate::machine) fn use_memory(&mut self, id: TaskId, bytes: u64) {
        let Some(warmth) = &mut self.warmth else { return };
        let task = &mut self.tasks[id as usize];
        task.missing = None;
        let (core, llc) = warmth.at(&self.topology, task.cpu);
        core.used += bytes;
        llc.used += bytes;
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
