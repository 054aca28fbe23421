//! Buffers of the blocks of directories, each with a lock, lines and a log item of its own; made when first asked for.

use super::by_block::ByBlock;
use super::log::buffer::{Buffer, Place};
use super::mount::Xfs;
use super::structures::geometry::Geometry;
use super::structures::touch::{BlockKind, LargeMap, Map, Touches};
use crate::filesystems::costs::Costs;
use crate::waist::{ClassId, LineId, Machine};
use std::cell::RefCell;
use std::ops::Deref;

/// What is logged of larger blocks of directories, by the lines of their buffers.
pub(super) type LargeMaps = Vec<(LineId, LargeMap)>;

/// Those that a transaction has: of one directory, or of both in a rename. What splits more blocks at once loses some.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    pub(super) buffers: arrayvec::ArrayVec<Buffer, 10>,
    pub(super) large: LargeMaps,
}

impl Deref for Blocks {
    type Target = [Buffer];

    fn deref(&self) -> &[Buffer] {
        &self.buffers
    }
}

/// The buffers, and of how many lines they are by what is in the block.
pub(super) struct DirectoryBuffers {
    class: ClassId,
    buffers: RefCell<ByBlock<Option<Buffer>>>,
    node: u32,
    leaf: u32,
    free: u32,
    data: u32,
}

impl DirectoryBuffers {
    /// None has been asked for.
    pub fn new<M: Machine>(m: &M, geometry: &Geometry, buffer: u32, costs: &Costs<'_>) -> Result<Self, String> {
        let lines = |name: &str| costs.number(name).map(|n| buffer + n as u32);
        Ok(Self {
            class: m.class("xfs.directory block", "xfs.buffer"),
            buffers: RefCell::new(ByBlock::new(geometry.agblklog)),
            node: buffer,
            leaf: buffer + (lines("xfs_dir_leaf.data")? - buffer) * geometry.dir.blocks, // a part of its entries moves
            free: lines("xfs_dir_free.data")?,
            data: lines("xfs_dir_data.data")?,
        })
    }

    fn lines(&self, kind: BlockKind) -> Option<u32> {
        match kind {
            BlockKind::DirBlock | BlockKind::DirData => Some(self.data),
            BlockKind::DirLeaf | BlockKind::DirLeafN => Some(self.leaf),
            BlockKind::DirFree => Some(self.free),
            BlockKind::DaNode => Some(self.node),
            _ => None,
        }
    }
}

impl Xfs {
    /// The buffer of a directory's block.
    pub(super) fn directory_buffer<M: Machine>(&self, m: &M, kind: BlockKind, fsblock: u64) -> Buffer {
        let blocks = &self.directory_buffers;
        let new = || {
            let layout = self.layout.borrow();
            let (agno, agbno) = layout.geometry().split_fsblock(fsblock);
            let place = Place { block: layout.geometry().linear(agno, agbno), blocks: layout.geometry().dir.blocks };
            Buffer::new(m, blocks.class, blocks.lines(kind).unwrap_or(blocks.node), place)
        };
        *blocks.buffers.borrow_mut().of(fsblock).get_or_insert_with(new)
    }

    /// Buffers of directories that a transaction locks and logs, in the kernel's order, and what it logs of them. Blocks that it only reads
    /// are left out, but for the inner ones of the hash tree.
    pub(super) fn directory_blocks<M: Machine>(&self, m: &M, touches: &[Touches]) -> Blocks {
        let mut found = Blocks::default();
        for &fsblock in touches.iter().flat_map(Touches::new_blocks) {
            if let Some(buffer) = self.directory_buffers.buffers.borrow_mut().of(fsblock) {
                self.log.ail.borrow_mut().renew(buffer.lines);
            }
        }
        if self.layout.borrow().geometry().dir.blocks > 1 {
            self.large_blocks(m, touches, &mut found);
            return found;
        }
        for (kind, fsblock, chunks) in touches.iter().flat_map(Touches::logged) {
            self.add_block(m, (kind, fsblock), chunks, &mut found);
        }
        found
    }

    /// The same of blocks of more than 4 KiB.
    fn large_blocks<M: Machine>(&self, m: &M, touches: &[Touches], found: &mut Blocks) {
        for (kind, fsblock, map) in touches.iter().flat_map(Touches::logged_large) {
            let logged = map.count() > 0;
            let Some(buffer) = self.add_block(m, (kind, fsblock), logged.into(), found).filter(|_| logged) else {
                continue;
            };
            match found.large.iter_mut().find(|(lines, _)| *lines == buffer.lines) {
                Some((_, known)) => known.merge(&map),
                None => found.large.push((buffer.lines, map)),
            }
        }
    }

    /// A block of a directory, of which these chunks are logged.
    fn add_block<M: Machine>(
        &self,
        m: &M,
        (kind, fsblock): (BlockKind, u64),
        chunks: Map,
        found: &mut Blocks,
    ) -> Option<Buffer> {
        let read = chunks == 0 && kind != BlockKind::DaNode;
        if read || self.directory_buffers.lines(kind).is_none() {
            return None;
        }
        let buffer = self.directory_buffer(m, kind, fsblock);
        if let Some(known) = found.buffers.iter_mut().find(|other| other.lock == buffer.lock) {
            *known = known.logging(chunks);
        } else if !found.buffers.is_full() {
            found.buffers.push(buffer.logging(chunks));
        }
        Some(buffer)
    }
}
