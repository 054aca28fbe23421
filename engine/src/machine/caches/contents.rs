//! What blocks hold, which CPUs read and change under a lock: each CPU fetches the lines of it that others have changed since it was
//! there.
//!
//! [`super::line`] has the words that CPUs meet at, one by one, with their queues. Here are whole blocks: which lines somebody goes through
//! is known, and nobody else is there meanwhile.

use crate::machine::cpus::topology::Topology;
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::{Access, ContentsId, CpuId, TaskId};
use std::ops::Range;

const WORDS: usize = 4;
const BITS: u32 = u64::BITS;

/// Lines of a block: 256 of them are 16 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines([u64; WORDS]);

impl Lines {
    fn of(lines: Range<u32>) -> Self {
        Self(std::array::from_fn(|word| {
            let first = word as u32 * BITS;
            let below = |line: u32| match line.saturating_sub(first) {
                bits if bits >= BITS => u64::MAX,
                bits => (1 << bits) - 1,
            };
            below(lines.end) & !below(lines.start)
        }))
    }

    fn each(self, other: Self, both: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|word| both(self.0[word], other.0[word])))
    }

    fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

/// What CPUs have of one block.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Lines that somebody has changed, who did so last, and who was the last before him.
    changed: Lines,
    by: Option<CpuId>,
    before: Option<CpuId>,
    /// Of each CPU that was here, the lines that others have changed since.
    stale: Vec<(CpuId, Lines)>,
}

impl Contents {
    /// `cpu` goes through these lines. How long it takes to fetch those that others have changed since it was there.
    pub fn touch(&mut self, topology: &Topology, cpu: CpuId, lines: Range<u32>, access: Access) -> Time {
        let touched = Lines::of(lines);
        let missing = self.take(cpu, touched).count();
        let other = if self.by == Some(cpu) { self.before } else { self.by };
        if access != Access::Read {
            self.change(cpu, touched);
        }
        match other {
            Some(from) if missing > 0 => topology.of_span(topology.transfer(from, cpu), missing),
            _ => 0,
        }
    }

    /// Which of the lines `cpu` did not have. It has them now.
    fn take(&mut self, cpu: CpuId, touched: Lines) -> Lines {
        let known = self.stale.iter().position(|&(other, _)| other == cpu);
        let at = known.unwrap_or_else(|| {
            self.stale.push((cpu, self.changed));
            self.stale.len() - 1
        });
        let stale = &mut self.stale[at].1;
        let missing = stale.each(touched, |stale, touched| stale & touched);
        *stale = stale.each(touched, |stale, touched| stale & !touched);
        missing
    }

    fn change(&mut self, cpu: CpuId, touched: Lines) {
        let or = |old: Lines| old.each(touched, |old, new| old | new);
        self.changed = or(self.changed);
        self.stale.iter_mut().filter(|(other, _)| *other != cpu).for_each(|(_, stale)| *stale = or(*stale));
        if self.by != Some(cpu) {
            self.before = self.by.replace(cpu);
        }
    }
}

impl State {
    /// The running `task` goes through lines of what a block holds.
    pub(in crate::machine) fn touch_contents(
        &mut self,
        task: TaskId,
        contents: ContentsId,
        lines: Range<u32>,
        access: Access,
    ) {
        let task = &mut self.tasks[task as usize];
        let contents = &mut self.contents[contents as usize];
        task.segment.debt += contents.touch(&self.topology, task.cpu, lines, access);
    }
}
