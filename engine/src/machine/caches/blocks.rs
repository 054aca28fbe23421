//! Blocks of structures: a cache has one as long as it holds all that was used there since the block was.

use super::line::Home;
use super::recency::{Bucket, Recency};
use crate::machine::cpus::topology::Topology;
use crate::machine::state::State;
use crate::spec::{CachesSpec, MachineSpec};
use crate::waist::time::{from_ns, Time};
use crate::waist::{CachedId, CpuId, LineId, TaskId};
use std::ops::Range;

const LINE_BYTES: u64 = 64;

/// When a block was used last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// It was made just now.
    Made,
    /// Before the run, so many lines ago.
    Ago,
    /// It is in these buckets.
    In,
}

/// A block: 24 bytes.
#[derive(Clone, Copy, Debug)]
struct Block {
    last: Last,
    /// What had it when it was used last.
    home: Home,
    lines: u8,
    /// What its last use was of.
    bytes: u32,
    first_line: LineId,
    /// The bucket of its last use under a last-level cache, or lines since its use before the run.
    in_llc: Bucket,
    in_core: Bucket,
    /// The first CPUs under the last-level cache and of the core of its last use.
    llc: u16,
    core: u16,
}

/// What was used in one cache: by blocks, and altogether when last looked at.
#[derive(Clone, Debug)]
struct Uses {
    recent: Recency,
    seen: u64,
}

impl Uses {
    fn of(size: u64, cpus: CpuId) -> Vec<Self> {
        (0..cpus).map(|_| Self { recent: Recency::new(size), seen: 0 }).collect()
    }

    /// What else was used here, until `used` bytes.
    fn catch_up(&mut self, used: u64) {
        if used > self.seen {
            self.recent.add(used - self.seen);
        }
    }

    /// Whether a use of what is in a bucket, of as many bytes as last time, changes nothing: nothing was used here since, until `used`
    /// bytes, and the bucket is the newest and not too full.
    #[inline]
    fn stays(&self, used: u64, bucket: Bucket) -> bool {
        used == self.seen && self.recent.is_open(bucket)
    }

    /// A block is used, which brings its bytes in if the cache did not have it.
    fn add(&mut self, used: &mut u64, bytes: u32, comes: bool) -> Bucket {
        *used += if comes { u64::from(bytes) } else { 0 };
        self.seen = *used;
        self.recent.add(u64::from(bytes))
    }
}

/// A core and the last-level cache above it: the first CPU of each, and the bytes used there.
pub(in crate::machine) struct At<'a> {
    core: (CpuId, &'a mut u64),
    llc: (CpuId, &'a mut u64),
}

/// What caches have of the blocks of structures.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// By the first CPU of a core, and under a last-level cache.
    cores: Vec<Uses>,
    llcs: Vec<Uses>,
    all: Vec<Block>,
    /// What one line costs from the last-level cache and from memory, and one of several whose addresses are known.
    llc: (Time, Time),
    memory: (Time, Time),
    /// What a byte costs that one core reads from memory in order, in ns.
    streamed_ns: f64,
}

impl Blocks {
    /// From a machine profile.
    pub fn new(spec: &MachineSpec, caches: &CachesSpec) -> Self {
        let price = |ns: f64| (from_ns(ns), from_ns(ns / spec.costs.line_overlap));
        Self {
            cores: Uses::of(caches.core_bytes as u64, spec.cpus),
            llcs: Uses::of(caches.llc_bytes as u64, spec.cpus),
            all: Vec::new(),
            llc: price(caches.llc_ns),
            memory: price(caches.memory_ns),
            streamed_ns: 1e9 / caches.memory_bandwidth,
        }
    }

    /// A block that was made just now, or that was last used so many bytes ago.
    fn new_block(&mut self, lines: Range<LineId>, ago: Option<u64>) -> CachedId {
        let last = if ago.is_some() { Last::Ago } else { Last::Made };
        let in_llc = ago.map_or(0, |ago| u32::try_from(ago / LINE_BYTES).unwrap_or(u32::MAX));
        let (first_line, lines) = (lines.start, lines.len() as u8);
        self.all.push(Block {
            last,
            home: Home::Core,
            lines,
            bytes: 0,
            first_line,
            in_llc,
            in_core: 0,
            llc: 0,
            core: 0,
        });
        (self.all.len() - 1) as CachedId
    }

    /// What has a block now. It is used no longer where it was.
    fn leave(&mut self, block: Block, at: &At<'_>) -> Home {
        let (core, llc) = match block.last {
            Last::Made => return Home::Core,
            Last::Ago => {
                let ago = u64::from(block.in_llc) * LINE_BYTES;
                let gone = |uses: &Uses| uses.recent.total() + ago > uses.recent.size();
                (gone(&self.cores[at.core.0 as usize]), gone(&self.llcs[at.llc.0 as usize]))
            }
            Last::In => {
                let leave = |uses: &mut Uses, bucket| {
                    let gone = uses.recent.is_gone(bucket);
                    uses.recent.take(bucket, u64::from(block.bytes));
                    gone
                };
                let core = leave(&mut self.cores[usize::from(block.core)], block.in_core);
                (core, leave(&mut self.llcs[usize::from(block.llc)], block.in_llc))
            }
        };
        match (core, llc) {
            (_, true) => Home::Memory,
            (true, false) => Home::Llc,
            (false, false) => Home::Core,
        }
    }

    /// Whether the same was used of a block just now, by the same core.
    #[inline]
    fn stays(&self, at: &At<'_>, block: &Block, bytes: u32) -> bool {
        let here = block.last == Last::In
            && (CpuId::from(block.core), CpuId::from(block.llc)) == (at.core.0, at.llc.0)
            && block.bytes == bytes;
        here && self.cores[at.core.0 as usize].stays(*at.core.1, block.in_core)
            && self.llcs[at.llc.0 as usize].stays(*at.llc.1, block.in_llc)
    }

    /// A block is used. What had it, and its lines.
    fn use_block(&mut self, at: At<'_>, block: CachedId, bytes: u32) -> (Home, Range<LineId>) {
        if self.stays(&at, &self.all[block as usize], bytes) {
            let b = &mut self.all[block as usize];
            b.home = Home::Core;
            return (b.home, b.first_line..b.first_line + LineId::from(b.lines));
        }
        self.cores[at.core.0 as usize].catch_up(*at.core.1);
        self.llcs[at.llc.0 as usize].catch_up(*at.llc.1);
        let home = self.leave(self.all[block as usize], &at);
        let in_core = self.cores[at.core.0 as usize].add(at.core.1, bytes, home != Home::Core);
        let in_llc = self.llcs[at.llc.0 as usize].add(at.llc.1, bytes, home == Home::Memory);
        let b = &mut self.all[block as usize];
        (b.last, b.home, b.bytes, b.in_core, b.in_llc) = (Last::In, home, bytes, in_core, in_llc);
        (b.core, b.llc) = (at.core.0 as u16, at.llc.0 as u16);
        (home, b.first_line..b.first_line + LineId::from(b.lines))
    }

    /// What it costs to fetch more of a block, if that had been driven out.
    fn fetch(&self, block: CachedId, chain: u32, lines: u32) -> Time {
        let (one, overlapped) = match self.all[block as usize].home {
            Home::Core => return 0,
            Home::Llc => self.llc,
            Home::Memory => self.memory,
        };
        Time::from(chain) * one + Time::from(lines) * overlapped
    }

    /// What it costs to copy so many bytes of a block, if memory had it.
    fn stream(&self, block: CachedId, bytes: u32) -> Time {
        match self.all[block as usize].home {
            Home::Memory => from_ns(f64::from(bytes) * self.streamed_ns),
            Home::Core | Home::Llc => 0,
        }
    }
}

impl State {
    /// A block of a structure, made just now, or used so many bytes ago before the run.
    pub(in crate::machine) fn new_block(&mut self, lines: Range<LineId>, ago: Option<u64>) -> CachedId {
        self.warmth.as_mut().map_or(0, |warmth| warmth.blocks.new_block(lines, ago))
    }

    /// Task `id` uses so many bytes of a block; if that was driven out, so are its lines. Whether memory had it.
    pub(in crate::machine) fn use_block(&mut self, id: TaskId, block: CachedId, bytes: u32) -> bool {
        let Some(warmth) = &mut self.warmth else { return false };
        let cpu = self.tasks[id as usize].cpu;
        let (home, lines) = warmth.use_block(&self.topology, cpu, block, bytes);
        if home != Home::Core {
            lines.for_each(|line| self.lines[line as usize].drive_out(home));
        }
        home == Home::Memory
    }

    /// Task `id` looks at `chain` lines of a block one after the other, and at `lines` in any order.
    pub(in crate::machine) fn fetch_block(&mut self, id: TaskId, block: CachedId, chain: u32, lines: u32) {
        if let Some(warmth) = &self.warmth {
            self.tasks[id as usize].segment.debt += warmth.blocks.fetch(block, chain, lines);
        }
    }

    /// Task `id` copies so many bytes of a block.
    pub(in crate::machine) fn stream_block(&mut self, id: TaskId, block: CachedId, bytes: u32) {
        if let Some(warmth) = &self.warmth {
            self.tasks[id as usize].segment.debt += warmth.blocks.stream(block, bytes);
        }
    }
}

impl super::warmth::Warmth {
    fn use_block(&mut self, topology: &Topology, cpu: CpuId, block: CachedId, bytes: u32) -> (Home, Range<LineId>) {
        let (core, llc) = topology.firsts(cpu);
        let used = (&mut self.cores[core as usize].used, &mut self.llcs[llc as usize].used);
        self.blocks.use_block(At { core: (core, used.0), llc: (llc, used.1) }, block, bytes)
    }
}
