//! Dirty tree blocks before the commit (`btree_inode` of `fs/btrfs/disk-io.c`, `btree_write_cache_pages` of `extent_io.c`, Linux 3.9 to
//! 7.0): they are dirty pages as those of files are, so that whoever dirties them may have to pause, and the flusher writes them. What
//! it has written has to be copied before it changes again in the same transaction, and the commit no longer writes it.
//!
//! Left out: blocks of logs, which each sync writes; that the kernel's count of dirty blocks is off by some for each CPU
//! (`dirty_metadata_batch`); that 4.19 and 4.20 also have workers pause that end ordered extents; what came after 7.0
//! (`btrfs_inhibit_eb_writeback`).

use crate::filesystems::btrfs::block_io::PAGES;
use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::btrfs::root::Root;
use crate::filesystems::btrfs::tree::key::NODE_SIZE;
use crate::filesystems::btrfs::tree::{BlockId, Dirty};
use crate::kernel::btrfs::BtreeWritepages;
use crate::waist::Machine;
use crate::waist::{Account, LockId};
use crate::writeback::{metadata_of, Why, METADATA};
use std::cell::Cell;

/// So many blocks are worth to be written (`BTRFS_DIRTY_METADATA_THRESH`: 32 MiB).
const THRESHOLD: u64 = (32 << 20) / NODE_SIZE as u64;

/// How many trees of space there are.
const SPACE_ROOTS: usize = 4;

/// The inode of all tree blocks.
pub struct BtreeInode {
    writepages: BtreeWritepages,
    /// Where the next turn of the flusher begins (`writeback_index`).
    next: Cell<u64>,
}

/// A dirty block: its place, the number of its tree, and its own there.
type DirtyBlock = (u64, usize, BlockId);

/// What a call has submitted: requests with the pages of each that its end cleans.
type Requests = Vec<(LockId, u64)>;

impl BtreeInode {
    /// Nothing is dirty.
    pub fn new(writepages: BtreeWritepages) -> Self {
        Self { writepages, next: Cell::new(0) }
    }
}

impl Btrfs {
    /// The trees of space.
    fn space_roots(&self) -> [&Root; SPACE_ROOTS] {
        let e = &self.extents;
        [&e.extent, &e.free_space, &e.csum, &e.roots]
    }

    /// Looks at each tree but logs, by number.
    fn each_root(&self, mut look: impl FnMut(usize, &Root)) {
        let (space, subvolumes) = (self.space_roots(), self.fs_roots.borrow());
        let all = space.into_iter().chain(subvolumes.iter().map(|fs_root| &fs_root.root));
        all.enumerate().for_each(|(number, root)| look(number, root));
    }

    /// `dirty_metadata_bytes`, in blocks.
    fn dirty_blocks(&self) -> u64 {
        let mut blocks = 0;
        self.each_root(|_, root| blocks += root.tree.borrow().dirty().len() as u64);
        blocks
    }

    /// The same in pages.
    pub(in super::super) fn dirty_tree_pages(&self) -> u64 {
        self.dirty_blocks() * PAGES
    }

    /// A task has changed trees (`btrfs_mark_buffer_dirty`).
    pub(in super::super) async fn note_dirty_blocks<M: Machine>(&self, m: &M) {
        let wb = &self.storage.writeback;
        if wb.is_limited() {
            wb.mark_dirty(m, METADATA, self.dirty_tree_pages()).await;
        }
    }

    /// `btrfs_btree_balance_dirty`.
    pub(in super::super) async fn btree_balance_dirty<M: Machine>(&self, m: &M) {
        self.balance_delayed_items(m).await;
        self.btree_balance_dirty_nodelay(m).await;
    }

    /// `btrfs_btree_balance_dirty_nodelay`.
    pub(in super::super) async fn btree_balance_dirty_nodelay<M: Machine>(&self, m: &M) {
        let wb = &self.storage.writeback;
        if wb.is_limited() && self.dirty_blocks() > THRESHOLD {
            wb.balance_ratelimited(m).await;
        }
    }

    /// `btree_writepages`: whether the flusher writes any.
    pub(in super::super) fn may_write_blocks(&self, why: Why) -> bool {
        match self.btree_inode.writepages {
            BtreeWritepages::Many => why == Why::TooMuch && self.dirty_blocks() >= THRESHOLD,
            BtreeWritepages::Any => true,
        }
    }

    /// `btree_write_cache_pages` of the flusher: at most so many pages, from where it ended last.
    pub(in super::super) async fn flush_blocks<M: Machine>(&self, m: &M, most: u64) {
        let wb = &self.storage.writeback;
        let blocks = self.dirty_from(self.btree_inode.next.get());
        let turn = (most.div_ceil(PAGES) as usize).min(blocks.len());
        for run in runs(&blocks[..turn], self.blocks.most_in_request()) {
            wb.room(m, 0).await;
            let transaction = metadata_of(self.transid());
            wb.begins_flush(transaction); // its commit waits for them from now on
            for (done, pages) in self.submit_run(m, run).await {
                wb.submitted(done, transaction, pages);
            }
            wb.ends_flush(m, transaction);
            self.btree_inode.next.set(run[run.len() - 1].0 + 1);
        }
        m.flush_plug();
    }

    /// The same of who syncs (`WB_SYNC_ALL`): all, which he waits for.
    pub(in super::super) async fn sync_blocks<M: Machine>(&self, m: &M) {
        let (wb, transaction) = (&self.storage.writeback, metadata_of(self.transid()));
        let mut submitted = Requests::new();
        wb.begins_flush(transaction);
        for run in runs(&self.dirty_from(0), self.blocks.most_in_request()) {
            let requests = self.submit_run(m, run).await;
            requests.iter().for_each(|&(_, pages)| wb.begin(pages));
            submitted.extend(requests);
        }
        m.flush_plug();
        for (done, pages) in submitted {
            m.wchan("folio_wait_writeback");
            m.wait_for_io(done).await;
            m.drop_completion(done);
            wb.end(pages);
        }
        wb.ends_flush(m, transaction);
    }

    /// Dirty blocks in the order of their places, beginning at one, round and round.
    fn dirty_from(&self, first: u64) -> Vec<DirtyBlock> {
        let mut all = Vec::new();
        self.each_root(|number, root| {
            let tree = root.tree.borrow();
            all.extend(tree.dirty().iter().map(|&block| (tree.place(block), number, block)));
        });
        all.sort_unstable();
        let behind = all.partition_point(|block| block.0 < first);
        all.rotate_left(behind);
        all
    }

    /// Submits blocks that lie side by side, those that are still dirty there.
    async fn submit_run<M: Machine>(&self, m: &M, run: &[DirtyBlock]) -> Requests {
        let mut dirty = Vec::new();
        for &block in run {
            dirty.extend(self.lock_for_io(m, block).await);
        }
        let dirty: Dirty = dirty.into_iter().sum();
        if dirty.blocks == 0 {
            return Requests::new();
        }
        self.storage.writeback.note(METADATA, self.dirty_tree_pages());
        m.run(Account::System, self.commits.time(dirty) + self.blocks.check(dirty)).await;
        let written = self.blocks.submit(m, &self.storage, dirty).await;
        let copies = self.blocks.copies();
        let pages = dirty.blocks * PAGES / (written.len() / copies) as u64;
        // a block is clean when its last copy is written, which comes first here
        let of = |(number, done)| (done, if number % copies == 0 { pages } else { 0 });
        written.into_iter().enumerate().map(of).collect()
    }

    /// `lock_extent_buffer_for_io`.
    async fn lock_for_io<M: Machine>(&self, m: &M, (place, tree, block): DirtyBlock) -> Option<Dirty> {
        let subvolume;
        let root = match self.space_roots().get(tree) {
            Some(&root) => root,
            None => {
                subvolume = self.fs_roots.borrow()[tree - SPACE_ROOTS].clone();
                &subvolume.root
            }
        };
        let begun = root.locked(m).begin_write(block, place).await;
        begun
    }
}

/// Blocks that lie side by side, at most so many together.
fn runs(blocks: &[DirtyBlock], most: usize) -> impl Iterator<Item = &[DirtyBlock]> {
    let side_by_side = |left: &DirtyBlock, right: &DirtyBlock| left.0 + u64::from(NODE_SIZE) == right.0;
    blocks.chunk_by(side_by_side).flat_map(move |run| run.chunks(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_go_together_up_to_the_size_of_a_request() {
        let places = [0, 1, 2, 5, 6, 9].map(|block| (block * u64::from(NODE_SIZE), 0, 0));
        let lengths = |most| runs(&places, most).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!(lengths(10), [3, 2, 1]);
        assert_eq!(lengths(2), [2, 1, 2, 1]);
        assert_eq!(lengths(1), [1; 6]);
    }
}
