//! What blocks of XFS contain, apart from the lines that transactions write: who looks for something in one goes through its lines.

use super::by_block::ByBlock;
use super::structures::geometry::Geometry;
use super::structures::touch::{BlockKind, Touches};
use crate::filesystems::cached::{used_ago, Looks};
use crate::filesystems::costs::Costs;
use crate::waist::CachedId;
use crate::waist::Machine;
use std::cell::{Cell, RefCell};

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default)]
enum Block {
    #[default]
    Unknown,
    /// It was there before the run, as so manieth.
    Before(u32),
    Cached(CachedId),
}

/// The blocks of a mount that somebody has looked at.
pub(super) struct Contents {
    blocks: RefCell<ByBlock<Block>>,
    before: Cell<u32>,
    /// What leads to a block, and its header.
    chain: u32,
    /// Looks of a search among the names of a directory.
    probes: u32,
    /// Lines of a buffer that has none of its own here.
    buffer: u32,
}

impl Contents {
    /// Nobody has looked at any.
    pub fn new(geometry: &Geometry, costs: &Costs<'_>) -> Result<Self, String> {
        let lines = |name: &str| costs.number(name).map(|n| n as u32);
        let buffer = lines("xfs_buffer.struct")? + lines("xfs_buffer.log_item")? + lines("xfs_buffer.log_vector")?;
        let index = lines("xfs_buffer.index")?;
        let probes = lines("xfs_dir_block.probes")? + geometry.dir.blocks.ilog2();
        let (blocks, before) = (RefCell::new(ByBlock::new(geometry.agblklog)), Cell::new(0));
        Ok(Self { blocks, before, chain: index + 1, probes, buffer })
    }

    /// These blocks were there before the run.
    pub fn fill(&self, touches: &Touches) {
        for (_, fsblock) in touches.iter().filter(|(kind, _)| self.looks(*kind, None).is_some()) {
            let mut blocks = self.blocks.borrow_mut();
            let block = blocks.of(fsblock);
            if matches!(block, Block::Unknown) {
                *block = Block::Before(self.before.replace(self.before.get() + 1));
            }
        }
    }

    /// An operation has looked at these blocks.
    pub fn look_into<M: Machine>(&self, m: &M, touches: &Touches) {
        for (kind, fsblock, probes) in touches.searched() {
            let Some(looks) = self.looks(kind, probes) else { continue };
            let ago = |nth| used_ago(u64::from(nth), u64::from(self.before.get()), looks.bytes());
            let mut blocks = self.blocks.borrow_mut();
            let block = blocks.of(fsblock);
            let cached = match *block {
                Block::Cached(cached) => cached,
                Block::Before(nth) => m.new_block(0..0, Some(ago(nth))),
                Block::Unknown => m.new_block(0..0, None),
            };
            *block = Block::Cached(cached);
            looks.of(m, cached);
        }
    }

    /// What one looks at in a block of this kind, whose entries take so many probes; headers and clusters are all lines of their
    /// buffers.
    fn looks(&self, kind: BlockKind, probes: Option<u32>) -> Option<Looks> {
        let searched = |probes| Looks { chain: self.chain + probes, others: 0 };
        match kind {
            BlockKind::Agf | BlockKind::Agfl | BlockKind::Agi | BlockKind::InodeCluster => None,
            BlockKind::DirData | BlockKind::DirFree => Some(Looks { chain: self.chain, others: 1 }),
            BlockKind::Inobt | BlockKind::Finobt => Some(searched(probes.unwrap_or(1))),
            BlockKind::Cntbt | BlockKind::Bnobt | BlockKind::Bmbt => {
                Some(Looks { others: self.buffer, ..searched(probes.unwrap_or(1)) })
            }
            _ => Some(searched(self.probes)),
        }
    }
}
