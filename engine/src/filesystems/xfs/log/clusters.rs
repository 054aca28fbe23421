//! Inode cluster buffers: 32 inodes of 512 bytes lie in one buffer of 16 KiB, which is locked by whoever changes one of them on disk,
//! and not in memory only: the unlinked lists, and the first logging of an inode since it was last written.
//!
//! Whoever logs a buffer copies all that was logged of it since it was written last (`blf_data_map`, `xfs_buf_item_format`): of a cluster
//! a chunk of 128 bytes for each inode whose pointer to the next unlinked one has changed. Its lines, and those that it is copied to,
//! are with the CPU that came there last.

use super::buffer::{Buffer, Place};
use crate::filesystems::xfs::structures::geometry::{BLOCKS_PER_CLUSTER, INOPBLOG};
use crate::waist::{Access, ClassId, ContentsId, Machine, Time};
use std::cell::RefCell;
use std::ops::Range;

/// Inodes of a cluster.
pub const INODES: u32 = BLOCKS_PER_CLUSTER << INOPBLOG;

/// Lines of a chunk.
const CHUNK: u32 = 2;
/// Those of the log vector behind the buffer's chunks: a chunk has a header in it, 12 bytes, besides.
const VECTOR: u32 = INODES * CHUNK;

/// A cluster's buffer, and its inodes that were changed on disk since it was written last, a bit each.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    buffer: Buffer,
    changed: u32,
    /// The lines of its chunks, and of the log vector that they are copied to.
    chunks: ContentsId,
}

impl Cluster {
    /// The lines of an inode's pointer.
    fn chunk(inode: u32) -> Range<u32> {
        CHUNK * inode..CHUNK * (inode + 1)
    }

    /// Copies what has changed; how many chunks that is.
    fn copy<M: Machine>(&self, m: &M) -> u32 {
        let changed = (0..INODES).filter(|inode| self.changed >> inode & 1 == 1);
        changed.for_each(|inode| m.touch_contents(self.chunks, Self::chunk(inode), Access::Read));
        let chunks = self.changed.count_ones();
        m.touch_contents(self.chunks, VECTOR..VECTOR + CHUNK * chunks + chunks / 4, Access::Write);
        chunks
    }
}

/// The cluster buffers of a mount, made when first asked for.
pub struct Clusters {
    class: ClassId,
    lines: u32,
    agblocks: u32,
    /// Copying a chunk.
    region: Time,
    /// By allocation group and place in it.
    buffers: RefCell<Vec<Vec<Option<Cluster>>>>,
}

impl Clusters {
    /// Of buffers of which a transaction writes `lines` cache lines, in groups of so many blocks. To copy a chunk takes `region`.
    pub fn new<M: Machine>(m: &M, lines: u32, agblocks: u32, region: Time) -> Self {
        Self { class: m.class("xfs.inode cluster", "xfs.buffer"), lines, agblocks, region, buffers: RefCell::default() }
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
        let new = || Cluster {
            buffer: Buffer::new(m, self.class, self.lines, on_disk),
            changed: 0,
            chunks: m.new_contents(),
        };
        group[place].get_or_insert_with(new).buffer
    }

    /// The buffer of an inode that is changed in it.
    pub fn change<M: Machine>(&self, m: &M, agno: u32, agino: u32) -> Buffer {
        let buffer = self.of(m, agno, agino);
        self.with(buffer.place, |cluster| {
            cluster.changed |= 1 << (agino % INODES);
            m.touch_contents(cluster.chunks, Cluster::chunk(agino % INODES), Access::Write);
        });
        buffer
    }

    /// How long it takes to log these buffers: `each`, and to copy what has changed in them.
    pub fn logging<M: Machine>(&self, m: &M, buffers: &[Buffer], each: Time) -> Time {
        let mut regions = 0;
        buffers.iter().for_each(|buffer| self.with(buffer.place, |cluster| regions += cluster.copy(m)));
        self.region * Time::from(regions) + each * buffers.len() as Time
    }

    /// A buffer is on disk, if it is one of these.
    pub fn written(&self, place: Place) {
        self.with(place, |cluster| cluster.changed = 0);
    }

    fn with(&self, place: Place, change: impl FnOnce(&mut Cluster)) {
        let (group, block) = (place.block / u64::from(self.agblocks), place.block % u64::from(self.agblocks));
        let mut groups = self.buffers.borrow_mut();
        let cluster = groups
            .get_mut(group as usize)
            .and_then(|group| group.get_mut((block / u64::from(BLOCKS_PER_CLUSTER)) as usize));
        if let Some(Some(cluster)) = cluster.filter(|_| place.blocks == BLOCKS_PER_CLUSTER) {
            change(cluster);
        }
    }
}
