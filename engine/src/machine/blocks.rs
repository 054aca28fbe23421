//! Blocks of structures: a last-level cache has one as long as it holds all that was used since the block was.

use super::recency::{Bucket, Recency};
use super::state::{LineId, State};
use super::task::TaskId;
use super::time::{from_ns, Time};
use super::topology::{CpuId, Topology};
use crate::spec::{CachesSpec, MachineSpec};
use std::ops::Range;

const LINE_BYTES: u64 = 64;

/// The number of a block of a structure, as caches know it.
pub type CachedId = u32;

/// When a block was used last.
#[derive(Clone, Copy, Debug)]
enum Last {
    /// It was made just now.
    Made,
    /// Before the run, so many lines ago.
    Ago(u32),
    /// It is in this bucket.
    In(Bucket),
}

/// A block: 24 bytes.
#[derive(Clone, Copy, Debug)]
struct Block {
    last: Last,
    /// What its last use was of.
    bytes: u32,
    first_line: LineId,
    lines: u8,
    /// The first CPU under the cache of its last use.
    llc: u16,
    /// Whether it had been driven out when it was used last.
    cold: bool,
}

/// What last-level caches have of the blocks of structures.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// By the first CPU under a last-level cache, each with what had been used there altogether when last looked at.
    recent: Vec<(Recency, u64)>,
    all: Vec<Block>,
    size: u64,
    /// What one line costs from memory, and one of several whose addresses are known.
    memory: Time,
    overlapped: Time,
}

impl Blocks {
    /// From a machine profile.
    pub fn new(spec: &MachineSpec, caches: &CachesSpec) -> Self {
        let size = caches.llc_bytes as u64;
        Self {
            recent: (0..spec.cpus).map(|_| (Recency::new(size), 0)).collect(),
            all: Vec::new(),
            size,
            memory: from_ns(caches.memory_ns),
            overlapped: from_ns(caches.memory_ns / spec.costs.line_overlap),
        }
    }

    /// A block that was made just now, or that was last used so many bytes ago.
    fn new_block(&mut self, lines: Range<LineId>, ago: Option<u64>) -> CachedId {
        let last = ago.map_or(Last::Made, |ago| Last::Ago(u32::try_from(ago / LINE_BYTES).unwrap_or(u32::MAX)));
        let (first_line, lines) = (lines.start, lines.len() as u8);
        self.all.push(Block { last, bytes: 0, first_line, lines, llc: 0, cold: false });
        (self.all.len() - 1) as CachedId
    }

    /// A block is used on `llc`, where `used` bytes have been altogether. Its lines if it had been driven out.
    fn use_block(&mut self, llc: CpuId, used: &mut u64, block: CachedId, bytes: u32) -> Option<Range<LineId>> {
        let b = &mut self.all[block as usize];
        let (recent, seen) = &mut self.recent[llc as usize];
        if *used > *seen {
            recent.add(*used - *seen);
        }
        let since = match b.last {
            Last::Made => 0,
            Last::Ago(lines) => u64::from(lines) * LINE_BYTES + recent.total(),
            Last::In(last) => {
                let there = &mut self.recent[usize::from(b.llc)].0;
                let since = there.since(last);
                there.take(last, u64::from(b.bytes));
                since
            }
        };
        b.cold = since > self.size;
        let (recent, seen) = &mut self.recent[llc as usize];
        *used += if b.cold { u64::from(bytes) } else { 0 };
        *seen = *used;
        (b.last, b.bytes, b.llc) = (Last::In(recent.add(u64::from(bytes))), bytes, llc as u16);
        b.cold.then(|| b.first_line..b.first_line + LineId::from(b.lines))
    }

    /// What it costs to fetch more of a block, if that had been driven out.
    fn fetch(&self, block: CachedId, chain: u32, lines: u32) -> Time {
        let missing = Time::from(self.all[block as usize].cold);
        missing * (Time::from(chain) * self.memory + Time::from(lines) * self.overlapped)
    }
}

impl State {
    /// A block of a structure, made just now, or used so many bytes ago before the run.
    pub(super) fn new_block(&mut self, lines: Range<LineId>, ago: Option<u64>) -> CachedId {
        self.warmth.as_mut().map_or(0, |warmth| warmth.blocks.new_block(lines, ago))
    }

    /// Task `id` uses so many bytes of a block; if that was driven out, its lines are in memory.
    pub(super) fn use_block(&mut self, id: TaskId, block: CachedId, bytes: u32) {
        let Some(warmth) = &mut self.warmth else { return };
        let cpu = self.tasks[id as usize].cpu;
        if let Some(lines) = warmth.use_block(&self.topology, cpu, block, bytes) {
            lines.for_each(|line| self.lines[line as usize].drive_out());
        }
    }

    /// Task `id` looks at `chain` lines of a block one after the other, and at `lines` in any order.
    pub(super) fn fetch_block(&mut self, id: TaskId, block: CachedId, chain: u32, lines: u32) {
        if let Some(warmth) = &self.warmth {
            self.tasks[id as usize].segment.debt += warmth.blocks.fetch(block, chain, lines);
        }
    }
}

impl super::warmth::Warmth {
    fn use_block(&mut self, topology: &Topology, cpu: CpuId, block: CachedId, bytes: u32) -> Option<Range<LineId>> {
        let llc = topology.llc(cpu).start;
        let driven_out = self.blocks.use_block(llc, &mut self.llcs[llc as usize].used, block, bytes);
        if driven_out.is_some() {
            self.cores[topology.core(cpu).start as usize].used += u64::from(bytes);
        }
        driven_out
    }
}
