//! Where the blocks of an open file are: its extent map in memory, each of whose blocks is four cache lines that lookups read.

use super::iext::{Extent, ExtentMap};
use crate::filesystems::{LaidOut, BLOCK};
use crate::waist::Machine;
use crate::waist::{Access, LineId};

/// Cache lines of a block of the map (256 bytes).
const LINES: u32 = 4;

/// Consecutive blocks of a file.
#[derive(Clone, Copy, Debug)]
struct Part {
    first: u64,
    end: u64,
}

impl Extent for Part {
    fn offset(&self) -> u64 {
        self.first
    }

    fn end(&self) -> u64 {
        self.end
    }
}

/// The extent map of a file, and the lines of its blocks.
pub(crate) struct FileExtents {
    map: ExtentMap<Part>,
    lines: Vec<LineId>,
}

impl FileExtents {
    /// Of a file that was written in order into extents of the same length.
    pub fn new<M: Machine>(m: &M, laid: LaidOut) -> Self {
        let blocks = laid.bytes.div_ceil(u64::from(BLOCK)).max(1);
        let extents = laid.extents.clamp(1, blocks);
        let mut map = ExtentMap::default();
        let start = |nth: u64| (u128::from(nth) * u128::from(blocks) / u128::from(extents)) as u64;
        (0..extents).for_each(|nth| map.insert(Part { first: start(nth), end: start(nth + 1) }));
        let lines = (0..map.blocks()).map(|_| m.new_line("xfs.file extents", LINES)).collect();
        Self { map, lines }
    }

    /// `xfs_iext_lookup_extent` of the block at `offset` bytes: reads the blocks of the map from the root down.
    pub fn find<M: Machine>(&self, m: &M, offset: u64) {
        self.map.lookup_visiting(offset / u64::from(BLOCK), |block| m.touch(self.lines[block as usize], Access::Read));
    }
}
