//! Inode cluster buffers: 32 inodes of 512 bytes lie in one buffer of 16 KiB, which is locked by whoever changes one of them on disk,
//! and not in memory only: the unlinked lists, and the first logging of an inode since it was last written.

use super::buffer::{Buffer, Place};
use crate::filesystems::xfs::structures::geometry::{BLOCKS_PER_CLUSTER, INOPBLOG};
use crate::waist::ClassId;
use crate::waist::Machine;
use std::cell::RefCell;

/// Inodes of a cluster.
pub const INODES: u32 = BLOCKS_PER_CLUSTER << INOPBLOG;

/// The cluster buffers of a mount, made when first asked for.
pub struct Clusters {
    class: ClassId,
    lines: u32,
    agblocks: u32,
    /// By allocation group and place in it.
    buffers: RefCell<Vec<Vec<Option<Buffer>>>>,
}

impl Clusters {
    /// Of buffers of which a transaction writes `lines` cache lines, in groups of so many blocks.
    pub fn new<M: Machine>(m: &M, lines: u32, agblocks: u32) -> Self {
        Self { class: m.class("xfs.inode cluster", "xfs.buffer"), lines, agblocks, buffers: RefCell::default() }
    }

    /// The buffer of an inode.
    pub fn of<M: Machine>(&self, m: &M, agno: u32, agino: u32) -> Buffer {
        let (mut groups, agno, place) = (self.buffers.borrow_mut(), agno as usize, (agino / INODES) as usize);
        if groups.len() <= agno {
            groups.resize_with(agno + 1, Vec::new);
        }
        let group = &mut groups[agno];
        if group.len() <= place {
            group.resize(place + 1, None);
        }
        let block = agno as u64 * u64::from(self.agblocks) + place as u64 * u64::from(BLOCKS_PER_CLUSTER);
        let on_disk = Place { block, blocks: BLOCKS_PER_CLUSTER };
        *group[place].get_or_insert_with(|| Buffer::new(m, self.class, self.lines, on_disk))
    }
}
