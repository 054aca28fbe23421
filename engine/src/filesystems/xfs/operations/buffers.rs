//! The buffers that operations get, of which the hash tables of the groups know.

use crate::filesystems::xfs::mount::Xfs;
use crate::filesystems::xfs::structures::geometry::{BLOCKS_PER_CHUNK, BLOCKS_PER_CLUSTER};
use crate::filesystems::xfs::structures::layout::{Dialloc, Freed};
use crate::filesystems::xfs::structures::touch::{BlockKind, Touches};
use crate::waist::{Account, CpuId, Machine};
use std::rc::Rc;

/// Blocks whose buffers an operation asks for, but for what was read at the mount. The free list is in the headers' block.
fn blocks_of(touches: &Touches) -> impl Iterator<Item = u64> + '_ {
    touches.iter().filter(|(kind, _)| !matches!(kind, BlockKind::Agf | BlockKind::Agi)).map(|(_, fsblock)| fsblock)
}

/// First blocks of the cluster buffers of the chunk in which this cluster is.
fn clusters_of_chunk(cluster: u64) -> impl Iterator<Item = u64> {
    let first = cluster - cluster % u64::from(BLOCKS_PER_CHUNK);
    (first..first + u64::from(BLOCKS_PER_CHUNK)).step_by(BLOCKS_PER_CLUSTER as usize)
}

impl Xfs {
    /// An operation gets these buffers and looks into them.
    pub(super) async fn get_buffers<M: Machine>(&self, m: &M, touches: &Touches) {
        self.contents.look_into(m, touches);
        for fsblock in blocks_of(touches) {
            self.buffers.change(m, fsblock, true).await;
        }
        let large = self.layout.borrow().geometry().dir.blocks > 1;
        let time = if large { self.costs.map_time(touches) } else { 0 };
        if time > 0 {
            m.run(Account::System, time).await;
        }
    }

    /// An inode is allocated: the cluster buffers of a new chunk are made (`xfs_ialloc_inode_init`), else the inode's is read when it is
    /// first logged.
    pub(super) async fn get_inode_buffers<M: Machine>(&self, m: &M, new: &Dialloc) {
        self.get_buffers(m, &new.touches).await;
        let cluster = self.layout.borrow().cluster(new.ino);
        for block in clusters_of_chunk(cluster).filter(|&block| new.new_chunk || block == cluster) {
            self.buffers.change(m, block, true).await;
        }
    }

    /// An inode is freed, and with its chunk the cluster buffers (`xfs_ifree_cluster`).
    pub(super) async fn drop_inode_buffers<M: Machine>(&self, m: &M, ino: u64, freed: &Freed) {
        self.get_buffers(m, &freed.touches).await;
        if freed.chunk_freed {
            let cluster = self.layout.borrow().cluster(ino);
            for block in clusters_of_chunk(cluster) {
                self.buffers.change(m, block, false).await;
            }
        }
    }

    /// A file was there before the run: its inode's cluster and these blocks were in memory.
    pub(super) fn fill_buffers(&self, ino: u64, touches: [&Touches; 2]) {
        let cluster = self.layout.borrow().cluster(ino);
        self.buffers.fill(touches.into_iter().flat_map(blocks_of).chain([cluster]));
    }

    /// The program of the worker of a CPU that replaces tables of buffers.
    pub(in crate::filesystems::xfs) async fn rehash_worker<M: Machine>(m: M, fs: Rc<Self>, cpu: CpuId) {
        m.at("rht_deferred_worker");
        fs.buffers.replace_tables(&m, cpu).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_two_clusters() {
        assert_eq!(clusters_of_chunk(20).collect::<Vec<_>>(), [16, 20]);
        assert_eq!(clusters_of_chunk(24).collect::<Vec<_>>(), [24, 28]);
    }
}
